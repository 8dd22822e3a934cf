//! Charts as SVG text, drawn by plotters; no fonts are embedded, the page's own are used.

mod bar;
mod day_axis;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use plotters::prelude::*;

pub(crate) use bar::{Bar, bars};
use day_axis::{DayAxis, day_label, label_days, local_days};

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

/// A chart is drawn twice, and the page shows the one that fits: text keeps its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// For a screen or a sheet.
    Wide,
    /// For a phone.
    Narrow,
}

impl Shape {
    const fn width(self) -> u32 {
        match self {
            Self::Wide => 860,
            Self::Narrow => 340,
        }
    }

    /// Most labels on an axis of time.
    const fn labels_max(self) -> usize {
        match self {
            Self::Wide => 11,
            Self::Narrow => 5,
        }
    }
}

/// What is drawn over time, and how its axes read.
struct Drawing<'a> {
    zone: Tz,
    lines: &'a [Line],
    bands: &'a [Band],
    limit: Option<(&'a str, f64)>,
    percent: bool,
    start: f64,
    end: f64,
    top: f64,
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
    // A line of which nothing is known is not named either.
    let known = |line: &&Line| line.points.iter().any(|point| point.1.is_some());
    let lines: Vec<Line> = lines.iter().filter(known).cloned().collect();
    if lines.is_empty() && bands.is_empty() {
        return None;
    }
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
    // One instant stands in the middle of its day.
    let (start, end) = if end > start { (start, end) } else { (start - 0.5, start + 0.5) };
    let drawing = Drawing { zone, lines: &lines, bands, limit, percent, start, end, top };
    let pictures = both(|shape, svg| draw_over_time(svg, shape, &drawing))?;
    let bands = bands.iter().map(|band| (band.name.as_str(), css(band.colour, 0.3)));
    let lines = lines.iter().map(|line| (line.name.as_str(), css(line.colour, 1.0)));
    let limit = limit.map(|(name, _)| (name, css(RED, 1.0)));
    let entries: Vec<_> = lines.chain(bands).chain(limit).collect();
    Some(format!("{}{pictures}", legend(&entries)))
}

type Drawn = Result<(), Box<dyn std::error::Error>>;

/// The picture in both shapes.
fn both(draw: impl Fn(Shape, &mut String) -> Drawn) -> Option<String> {
    let mut pictures = String::new();
    for (shape, class) in [(Shape::Wide, "wide"), (Shape::Narrow, "narrow")] {
        let mut svg = String::new();
        draw(shape, &mut svg).ok()?;
        let opening = format!("<svg class=\"{class}\" role=\"img\" ");
        pictures.push_str(&svg.replacen("<svg ", &opening, 1));
    }
    Some(pictures)
}

fn draw_over_time(svg: &mut String, shape: Shape, drawing: &Drawing<'_>) -> Drawn {
    let Drawing { zone, lines, bands, limit, percent, start, end, top } = *drawing;
    let height = if shape == Shape::Wide { 280 } else { 230 };
    let area = SVGBackend::with_string(svg, (shape.width(), height)).into_drawing_area();
    let high = if top > 0.0 { top * 1.06 } else { 1.0 };
    let hours_told = |places: &[f64]| places.iter().any(|day| (day - day.round()).abs() > 1e-6);
    let mut places = label_days(start, end, shape.labels_max());
    if hours_told(&places) {
        // Labels with hours are long.
        places = label_days(start, end, shape.labels_max() / 2);
    }
    let hours_told = hours_told(&places);
    let mut chart = ChartBuilder::on(&area)
        .margin(6)
        .margin_right(if shape == Shape::Wide { 28 } else { 18 })
        .x_label_area_size(24)
        .y_label_area_size(if shape == Shape::Wide { 56 } else { 44 })
        .build_cartesian_2d(DayAxis { start, end, places }, 0.0..high)?;
    let y_text = |value: &f64| {
        if percent { format!("{:.0} %", value * 100.0) } else { number(*value) }
    };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GREY.mix(0.2))
        .axis_style(GREY)
        .x_labels(shape.labels_max())
        .y_labels(6)
        .label_style(("sans-serif", if shape == Shape::Wide { 14 } else { 12 }))
        .x_label_formatter(&|days| day_label(*days, hours_told))
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
            let points = stretch.iter().map(|(at, value)| (local_days(*at, zone), *value));
            if let [(at, value)] = stretch[..] {
                // A line through one point cannot be seen.
                let dot = Circle::new((local_days(at, zone), value), 3, line.colour.filled());
                chart.draw_series(std::iter::once(dot))?;
            }
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
    fn a_lone_point_is_seen_and_text_keeps_its_size_on_a_phone() {
        let at = DateTime::from_timestamp(1_772_000_000, 0).unwrap();
        let line = Line { name: "busy".into(), colour: BLUE, points: vec![(at, Some(0.5))] };
        let drawn = over_time(Tz::UTC, &[line], &[], None, true).unwrap();
        assert!(drawn.contains("<circle"));
        assert!(drawn.contains("class=\"wide\"") && drawn.contains("class=\"narrow\""));
    }

    #[test]
    fn nothing_to_draw_is_no_picture() {
        assert!(over_time(Tz::UTC, &[], &[], None, true).is_none());
        assert!(bars(&[]).is_none());
    }
}
