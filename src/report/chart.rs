//! Charts as SVG text, drawn by plotters; no fonts are embedded, the page's own are used.

use chrono::{DateTime, Offset, TimeZone, Utc};
use chrono_tz::Tz;
use plotters::prelude::*;

/// Colours that stay apart in print and for most colour-blind readers.
pub(crate) const BLUE: RGBColor = RGBColor(31, 90, 166);
/// Held, beside busy.
pub(crate) const BLUE_LIGHT: RGBColor = RGBColor(169, 196, 230);
/// Second series.
pub(crate) const ORANGE: RGBColor = RGBColor(217, 119, 6);
/// Third series.
pub(crate) const GREEN: RGBColor = RGBColor(15, 118, 110);
/// Limits and waste.
pub(crate) const RED: RGBColor = RGBColor(185, 28, 28);
/// Grid and axis.
const GREY: RGBColor = RGBColor(120, 120, 120);

/// One line of a chart over time; a `None` value breaks the line.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    /// Legend.
    pub(crate) name: String,
    /// Stroke.
    pub(crate) colour: RGBColor,
    /// Instant and value.
    pub(crate) points: Vec<(DateTime<Utc>, Option<f64>)>,
}

/// A band between two values at each instant.
#[derive(Debug, Clone)]
pub(crate) struct Band {
    /// Legend.
    pub(crate) name: String,
    /// Fill.
    pub(crate) colour: RGBColor,
    /// Instant, lower and upper value.
    pub(crate) points: Vec<(DateTime<Utc>, f64, f64)>,
}

/// A horizontal bar made of parts.
#[derive(Debug, Clone)]
pub(crate) struct Bar {
    /// Label left of it.
    pub(crate) label: String,
    /// Colour and length of each part, left to right.
    pub(crate) parts: Vec<(RGBColor, f64)>,
    /// Text right of it.
    pub(crate) text: String,
}

/// Whole days since 1970 in local time, with the fraction of the day: the x axis.
fn local_days(at: DateTime<Utc>, zone: Tz) -> f64 {
    let offset = zone.offset_from_utc_datetime(&at.naive_utc()).fix().local_minus_utc();
    (at.timestamp() + i64::from(offset)) as f64 / 86_400.0
}

fn day_label(days: f64) -> String {
    DateTime::from_timestamp((days * 86_400.0).round() as i64, 0)
        .map_or_else(String::new, |at| at.format("%m-%d").to_string())
}

/// Lines and bands over time. `percent` prints the y axis in per cent; `limit` is a dashed
/// horizontal line with its legend.
///
/// Returns `None` when there is nothing to draw.
pub(crate) fn over_time(
    zone: Tz,
    lines: &[Line],
    bands: &[Band],
    limit: Option<(&str, f64)>,
    percent: bool,
) -> Option<String> {
    let instants = lines
        .iter()
        .flat_map(|line| line.points.iter().map(|point| point.0))
        .chain(bands.iter().flat_map(|band| band.points.iter().map(|point| point.0)));
    let (first, last) = instants.fold(None, |span: Option<(_, _)>, at| {
        Some(span.map_or((at, at), |(low, high)| (at.min(low), at.max(high))))
    })?;
    let top = lines
        .iter()
        .flat_map(|line| line.points.iter().filter_map(|point| point.1))
        .chain(bands.iter().flat_map(|band| band.points.iter().map(|point| point.2)))
        .chain(limit.map(|(_, value)| value))
        .fold(if percent { 1.0 } else { 0.0 }, f64::max);
    let (start, end) = (local_days(first, zone), local_days(last, zone));
    let end = if end > start { end } else { start + 1.0 };
    let mut svg = String::new();
    draw_over_time(&mut svg, (start, end), top, zone, (lines, bands, limit), percent).ok()?;
    let bands = bands.iter().map(|band| (band.name.as_str(), css(band.colour, 0.3)));
    let lines = lines.iter().map(|line| (line.name.as_str(), css(line.colour, 1.0)));
    let limit = limit.map(|(name, _)| (name, css(RED, 1.0)));
    let entries: Vec<_> = lines.chain(bands).chain(limit).collect();
    Some(format!("{}{}", legend(&entries), responsive(&svg)))
}

type Drawn<'a> = (&'a [Line], &'a [Band], Option<(&'a str, f64)>);

fn draw_over_time(
    svg: &mut String,
    (start, end): (f64, f64),
    top: f64,
    zone: Tz,
    (lines, bands, limit): Drawn<'_>,
    percent: bool,
) -> Result<(), Box<dyn std::error::Error>> {
    let area = SVGBackend::with_string(svg, (860, 280)).into_drawing_area();
    let high = if top > 0.0 { top * 1.06 } else { 1.0 };
    let mut chart = ChartBuilder::on(&area)
        .margin(6)
        .margin_right(16)
        .x_label_area_size(24)
        .y_label_area_size(52)
        .build_cartesian_2d(start..end, 0.0..high)?;
    let y_text = |value: &f64| {
        if percent { format!("{:.0} %", value * 100.0) } else { number(*value) }
    };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GREY.mix(0.2))
        .axis_style(GREY)
        .x_labels(10)
        .y_labels(6)
        .label_style(("sans-serif", 12))
        .x_label_formatter(&|days| day_label(*days))
        .y_label_formatter(&y_text)
        .draw()?;
    for band in bands {
        let colour = band.colour;
        let upper = band.points.iter().map(|p| (local_days(p.0, zone), p.2));
        let lower = band.points.iter().rev().map(|p| (local_days(p.0, zone), p.1));
        let outline: Vec<_> = upper.chain(lower).collect();
        chart.draw_series(std::iter::once(Polygon::new(outline, colour.mix(0.22))))?;
    }
    for line in lines {
        for stretch in unbroken(&line.points) {
            let points = stretch.into_iter().map(|(at, value)| (local_days(at, zone), value));
            chart.draw_series(LineSeries::new(points, line.colour.stroke_width(2)))?;
        }
    }
    if let Some((_, value)) = limit {
        let points = [(start, value), (end, value)];
        chart.draw_series(DashedLineSeries::new(points, 6, 4, RED.stroke_width(2)))?;
    }
    area.present()?;
    Ok(())
}

/// Names and colours above a chart, where they hide nothing.
pub(crate) fn legend(entries: &[(&str, String)]) -> String {
    let entries: String = entries
        .iter()
        .map(|(name, colour)| format!("<span><i style=\"background:{colour}\"></i>{name}</span>"))
        .collect();
    format!("<p class=\"legend\">{entries}</p>")
}

/// A colour as CSS writes it; `strength` is 1 for the colour itself and 0 for white.
pub(crate) fn css(colour: RGBColor, strength: f64) -> String {
    let part = |value: u8| (255.0 - (255.0 - f64::from(value)) * strength).round() as u8;
    format!("#{:02x}{:02x}{:02x}", part(colour.0), part(colour.1), part(colour.2))
}

/// Splits a line at its missing values.
fn unbroken(points: &[(DateTime<Utc>, Option<f64>)]) -> Vec<Vec<(DateTime<Utc>, f64)>> {
    let mut stretches = vec![Vec::new()];
    for (at, value) in points {
        match value {
            Some(value) => stretches.last_mut().expect("begins with one").push((*at, *value)),
            None => stretches.push(Vec::new()),
        }
    }
    stretches.retain(|stretch| !stretch.is_empty());
    stretches
}

/// Horizontal bars, first on top. Returns `None` without bars.
pub(crate) fn bars(rows: &[Bar]) -> Option<String> {
    let longest =
        rows.iter().map(|row| row.parts.iter().map(|part| part.1).sum::<f64>()).fold(0.0, f64::max);
    if rows.is_empty() || longest <= 0.0 {
        return None;
    }
    let mut svg = String::new();
    draw_bars(&mut svg, rows, longest).ok()?;
    Some(responsive(&svg))
}

fn draw_bars(
    svg: &mut String,
    rows: &[Bar],
    longest: f64,
) -> Result<(), Box<dyn std::error::Error>> {
    let height = 10 + 26 * u32::try_from(rows.len())?;
    let area = SVGBackend::with_string(svg, (860, height)).into_drawing_area();
    let label = TextStyle::from(("sans-serif", 13)).pos(plotters::style::text_anchor::Pos::new(
        plotters::style::text_anchor::HPos::Right,
        plotters::style::text_anchor::VPos::Center,
    ));
    let text = TextStyle::from(("sans-serif", 12)).color(&GREY).pos(
        plotters::style::text_anchor::Pos::new(
            plotters::style::text_anchor::HPos::Left,
            plotters::style::text_anchor::VPos::Center,
        ),
    );
    for (position, row) in rows.iter().enumerate() {
        let y = 5 + 26 * i32::try_from(position)?;
        area.draw(&Text::new(row.label.clone(), (150, y + 10), label.clone()))?;
        let mut x = 160.0;
        for (colour, length) in &row.parts {
            let width = length / longest * 460.0;
            let corners = [(x as i32, y), ((x + width) as i32, y + 20)];
            area.draw(&Rectangle::new(corners, colour.filled()))?;
            x += width;
        }
        area.draw(&Text::new(row.text.clone(), (x as i32 + 8, y + 10), text.clone()))?;
    }
    area.present()?;
    Ok(())
}

/// Lets the picture take the width of the page.
fn responsive(svg: &str) -> String {
    svg.replacen("<svg ", "<svg role=\"img\" style=\"width:100%;height:auto\" ", 1)
}

/// A number with as many digits as help: thousands apart, no noise behind the point.
pub(crate) fn number(value: f64) -> String {
    let magnitude = value.abs();
    let digits = if magnitude >= 100.0 || (value - value.round()).abs() < 1e-9 { 0 } else { 1 };
    let plain = format!("{magnitude:.digits$}");
    let (whole, fraction) =
        plain.split_once('.').map_or((plain.as_str(), None), |(w, f)| (w, Some(f)));
    let mut grouped = String::new();
    for (position, digit) in whole.chars().enumerate() {
        if position > 0 && (whole.len() - position) % 3 == 0 {
            grouped.push('\u{202f}');
        }
        grouped.push(digit);
    }
    if let Some(fraction) = fraction {
        grouped.push('.');
        grouped.push_str(fraction);
    }
    if value < 0.0 { format!("-{grouped}") } else { grouped }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_group_thousands_and_drop_noise() {
        assert_eq!(number(1_234_567.8), "1\u{202f}234\u{202f}568");
        assert_eq!(number(3.26), "3.3");
        assert_eq!(number(-12.0), "-12");
        assert_eq!(number(0.0), "0");
    }

    #[test]
    fn a_gap_breaks_the_line() {
        let at = |s| DateTime::from_timestamp(s, 0).unwrap();
        let points = [(at(0), Some(1.0)), (at(1), None), (at(2), Some(2.0)), (at(3), Some(3.0))];
        let stretches: Vec<usize> = unbroken(&points).iter().map(Vec::len).collect();
        assert_eq!(stretches, [1, 2]);
    }

    #[test]
    fn nothing_to_draw_is_no_picture() {
        assert!(over_time(Tz::UTC, &[], &[], None, true).is_none());
        assert!(bars(&[]).is_none());
    }
}
