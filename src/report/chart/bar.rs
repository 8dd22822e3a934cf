//! Horizontal bars, first on top.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{Drawn, GREY, Shape, both};

/// Letters of a label that a wide chart has room for.
const LABEL_LETTERS_MAX: usize = 21;

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

/// Draws the bars. Returns `None` without any.
pub(crate) fn bars(rows: &[Bar]) -> Option<String> {
    let longest =
        rows.iter().map(|row| row.parts.iter().map(|part| part.1).sum::<f64>()).fold(0.0, f64::max);
    if rows.is_empty() || longest <= 0.0 {
        return None;
    }
    both(|shape, svg| draw(svg, shape, rows, longest))
}

/// On a narrow chart the label stands above its bar.
fn draw(svg: &mut String, shape: Shape, rows: &[Bar], longest: f64) -> Drawn {
    let (row_height, left, room) = match shape {
        Shape::Wide => (26, 160, 460.0),
        Shape::Narrow => (40, 2, 200.0),
    };
    let height = 10 + row_height * u32::try_from(rows.len())?;
    let area = SVGBackend::with_string(svg, (shape.width(), height)).into_drawing_area();
    let middle = |from| Pos::new(from, VPos::Center);
    let text = TextStyle::from(("sans-serif", 13)).color(&GREY).pos(middle(HPos::Left));
    for (position, row) in rows.iter().enumerate() {
        let top = 5 + i32::try_from(row_height)? * i32::try_from(position)?;
        let y = match shape {
            Shape::Wide => {
                let label = TextStyle::from(("sans-serif", 13)).pos(middle(HPos::Right));
                area.draw(&Text::new(short(&row.label), (left - 10, top + 10), label))?;
                top
            }
            Shape::Narrow => {
                let label = TextStyle::from(("sans-serif", 13)).pos(middle(HPos::Left));
                area.draw(&Text::new(short(&row.label), (left, top + 7), label))?;
                top + 16
            }
        };
        let thick = if shape == Shape::Wide { 20 } else { 16 };
        let mut x = f64::from(left);
        for (colour, length) in &row.parts {
            let width = length / longest * room;
            let corners = [(x as i32, y), ((x + width) as i32, y + thick)];
            area.draw(&Rectangle::new(corners, colour.filled()))?;
            x += width;
        }
        area.draw(&Text::new(row.text.clone(), (x as i32 + 8, y + thick / 2), text.clone()))?;
    }
    area.present()?;
    Ok(())
}

/// A label that fits, its end cut where it is longer.
fn short(label: &str) -> String {
    if label.chars().count() <= LABEL_LETTERS_MAX {
        return label.to_owned();
    }
    let kept: String = label.chars().take(LABEL_LETTERS_MAX - 1).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_label_is_cut_and_says_so() {
        assert_eq!(short("vision"), "vision");
        assert_eq!(short("a-user-name-of-thirty-letters-"), "a-user-name-of-thirt…");
    }
}
