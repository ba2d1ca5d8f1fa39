//! A tree as a picture: boxes from left to right, joined by curves, as SVG.

use std::fmt::Write;

/// One box of a [`svg`] drawing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrawnBox {
    /// The number of the box to its left, which comes earlier; `None` at a root.
    pub parent: Option<usize>,
    /// Text in the box.
    pub label: String,
    /// Kind of the box.
    pub kind: BoxKind,
}

/// Role of a box, which its looks tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoxKind {
    /// Tokens up to a choice.
    Inner,
    /// The end of a value.
    Leaf,
    /// Parts that are not drawn.
    Hidden,
}

/// Characters of a label that are drawn; the whole one stands in the box's tooltip.
const LONGEST: usize = 60;
/// Pixels. The text is told its width, so that it fits whatever the font.
const CHARACTER: usize = 8;
const HEIGHT: usize = 24;
const ROW: usize = 32;
const PADDING: usize = 10;
const BETWEEN: usize = 48;
const MARGIN: usize = 16;

impl BoxKind {
    fn class(self) -> &'static str {
        match self {
            Self::Inner => "inner",
            Self::Leaf => "leaf",
            Self::Hidden => "hidden",
        }
    }
}

/// Position of a box: twice the height of its middle in rows, and its column.
#[derive(Clone, Copy, Default)]
struct Place {
    middle: usize,
    column: usize,
}

/// An SVG picture of the boxes. `O(boxes)`; the same boxes give the same text.
///
/// Each box stands in the middle of the boxes to its right, and no two boxes overlap. Boxes come in depth-first order:
/// each after its parent, and everything below a box before its next sibling. A parent that does not come earlier is
/// ignored.
///
/// ```
/// use trie_formats::{BoxKind, DrawnBox, svg};
/// let named = |parent, label: &str, kind| DrawnBox { parent, label: label.to_owned(), kind };
/// let boxes = [named(None, "(2 leaves)", BoxKind::Inner), named(Some(0), "a < b", BoxKind::Leaf)];
/// let picture = svg("two", &boxes);
/// assert!(picture.starts_with("<svg ") && picture.contains(">a &lt; b</text>"));
/// ```
pub fn svg(title: &str, boxes: &[DrawnBox]) -> String {
    let shown: Vec<(String, usize)> = boxes.iter().map(|one| shorten(&one.label)).collect();
    let places = places(boxes);
    let mut widths = vec![0; places.iter().map(|place| place.column + 1).max().unwrap_or_default()];
    for (place, (_, cells)) in places.iter().zip(&shown) {
        widths[place.column] = widths[place.column].max(cells * CHARACTER + 2 * PADDING);
    }
    let lefts: Vec<usize> = widths
        .iter()
        .scan(MARGIN, |next, width| {
            let left = *next;
            *next += width + BETWEEN;
            Some(left)
        })
        .collect();
    let wide = lefts.last().zip(widths.last()).map_or(0, |(left, width)| left + width) + MARGIN;
    let rows = places.iter().map(|place| place.middle / 2 + 1).max().unwrap_or_default();
    let high = rows * ROW + 2 * MARGIN;
    let mut out = String::new();
    write_text(
        &mut out,
        format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{wide}\" height=\"{high}\" \
             viewBox=\"0 0 {wide} {high}\" role=\"img\">\n<title>{}</title>\n<style>{STYLE}</style>\n",
            escape_xml(title)
        ),
    );
    let middle = |place: Place| MARGIN + (place.middle + 1) * ROW / 2;
    for (number, (one, &place)) in boxes.iter().zip(&places).enumerate() {
        let Some(parent) = box_to_left(boxes, number) else { continue };
        let (from, to) = (places[parent], lefts[place.column]);
        // A line leaves the parent's own box, which may be narrower than its column.
        let start = lefts[from.column] + shown[parent].1 * CHARACTER + 2 * PADDING;
        let (y, end, bend) = (middle(from), middle(place), to - BETWEEN / 2);
        let class = if one.kind == BoxKind::Hidden { "edge more" } else { "edge" };
        write_text(&mut out, format_args!("<path class=\"{class}\" d=\"M{start} {y}H{} ", to - BETWEEN));
        write_text(&mut out, format_args!("C{bend} {y} {bend} {end} {to} {end}\"/>\n"));
    }
    for ((one, &place), (text, cells)) in boxes.iter().zip(&places).zip(&shown) {
        let (x, y, width) = (lefts[place.column], middle(place), cells * CHARACTER + 2 * PADDING);
        let (class, round) = (one.kind.class(), if one.kind == BoxKind::Leaf { HEIGHT / 2 } else { 4 });
        write_text(&mut out, format_args!("<g class=\"{class}\"><title>{}</title>", escape_xml(&one.label)));
        write_text(
            &mut out,
            format_args!(
                "<rect x=\"{x}\" y=\"{}\" width=\"{width}\" height=\"{HEIGHT}\" rx=\"{round}\"/>",
                y - HEIGHT / 2
            ),
        );
        let length = cells * CHARACTER;
        let fitted = if length == 0 { String::new() } else { format!(" textLength=\"{length}\"") };
        let (x, text) = (x + PADDING, escape_xml(text));
        write_text(&mut out, format_args!("<text x=\"{x}\" y=\"{}\"{fitted} lengthAdjust=\"spacingAndGlyphs\"", y + 5));
        write_text(&mut out, format_args!(" xml:space=\"preserve\">{text}</text></g>\n"));
    }
    out.push_str("</svg>\n");
    out
}

/// Light and dark styles, chosen by the reader's settings.
const STYLE: &str = "text{font:13px ui-monospace,Menlo,Consolas,monospace;fill:#1f2933}\
rect{fill:#eef2f6;stroke:#8a9aab}.leaf rect{fill:#e2f4e8;stroke:#2f8f56}.hidden rect{fill:none;stroke:#b4bfca;\
stroke-dasharray:4 3}.hidden text{fill:#6b7885}.edge{fill:none;stroke:#8a9aab}.more{stroke-dasharray:4 3}\
svg{background:#fff}@media(prefers-color-scheme:dark){svg{background:#16191d}text{fill:#e4e8ec}\
rect{fill:#262c33}.leaf rect{fill:#173524}}";

/// The number of the box to the left.
fn box_to_left(boxes: &[DrawnBox], number: usize) -> Option<usize> {
    boxes[number].parent.filter(|&parent| parent < number)
}

/// Boxes with nothing to their right stand below each other, the others in the middle of theirs.
fn places(boxes: &[DrawnBox]) -> Vec<Place> {
    let mut places = vec![Place::default(); boxes.len()];
    let mut ends = vec![true; boxes.len()];
    for number in 0..boxes.len() {
        if let Some(parent) = box_to_left(boxes, number) {
            places[number].column = places[parent].column + 1;
            ends[parent] = false;
        }
    }
    for (row, (place, _)) in places.iter_mut().zip(&ends).filter(|&(_, &end)| end).enumerate() {
        place.middle = 2 * row;
    }
    // First and last of what is to the right, known once all of that is placed.
    let mut span: Vec<Option<(usize, usize)>> = vec![None; boxes.len()];
    for number in (0..boxes.len()).rev() {
        if let Some((first, last)) = span[number] {
            places[number].middle = usize::midpoint(first, last);
        }
        if let Some(parent) = box_to_left(boxes, number) {
            let middle = places[number].middle;
            span[parent] = Some((middle, span[parent].map_or(middle, |(_, last)| last)));
        }
    }
    places
}

/// Shortens a label, and returns its width in cells.
fn shorten(label: &str) -> (String, usize) {
    let mut shown: String = label.chars().take(LONGEST).collect();
    if shown.len() < label.len() {
        shown.pop();
        shown.push('…');
    }
    let cells = shown.chars().map(|character| if is_wide(character) { 2 } else { 1 }).sum();
    (shown, cells)
}

/// Returns whether a character takes two cells of a terminal: a coarse guess, since the text is fitted into its box
/// anyway.
fn is_wide(character: char) -> bool {
    matches!(character, '\u{1100}'..='\u{115f}' | '\u{2e80}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe6f}' | '\u{ff00}'..='\u{ff60}' | '\u{1f300}'..='\u{1faff}'
        | '\u{20000}'..='\u{3fffd}')
}

/// As the text of an element: what XML cannot hold is written by its number.
fn escape_xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\0'..='\x1f' | '\x7f'..='\u{9f}' | '\u{fffe}' | '\u{ffff}' => out.extend(character.escape_unicode()),
            other => out.push(other),
        }
    }
    out
}

fn write_text(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = out.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boxes(parents: &[Option<usize>]) -> Vec<DrawnBox> {
        let named = |(number, &parent): (usize, &Option<usize>)| DrawnBox {
            parent,
            label: format!("box {number}"),
            kind: BoxKind::Inner,
        };
        parents.iter().enumerate().map(named).collect()
    }

    #[test]
    fn a_box_stands_in_the_middle_of_those_to_its_right() {
        let drawn = boxes(&[None, Some(0), Some(1), Some(1), Some(0)]);
        let places: Vec<(usize, usize)> = places(&drawn).iter().map(|place| (place.middle, place.column)).collect();
        assert_eq!(places, [(2, 0), (1, 1), (0, 2), (2, 2), (4, 1)]);
        assert!(svg("", &[]).ends_with("</svg>\n"));
        let astray = boxes(&[Some(0), Some(7), None]);
        assert_eq!(svg("t", &astray).matches("<path").count(), 0, "a parent that is not earlier counts as none");
    }

    #[test]
    fn what_xml_cannot_hold_is_escaped() {
        let odd = DrawnBox { parent: None, label: "<&>\0\u{ffff}日".to_owned(), kind: BoxKind::Leaf };
        assert!(svg("<t>", &[odd]).contains(">&lt;&amp;&gt;\\u{0}\\u{ffff}日</text>"));
        let long = DrawnBox { parent: None, label: "x".repeat(100), kind: BoxKind::Hidden };
        let picture = svg("", &[long]);
        assert!(picture.contains(&format!("<title>{}</title>", "x".repeat(100))));
        assert!(picture.contains(&format!(">{}…</text>", "x".repeat(LONGEST - 1))));
    }
}
