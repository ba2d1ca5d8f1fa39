//! Layout of a prompt: text with places for the parts of a question.

use super::question::as_text;
use crate::constraint::SpecProblem;
use crate::json::value_error;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Part of a layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    State,
    Instructions,
    Options,
    Answer,
}

const PARTS: [(&str, Part); 4] = [
    ("state", Part::State),
    ("instructions", Part::Instructions),
    ("options", Part::Options),
    ("answer", Part::Answer),
];

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Place(Part),
}

/// The text of a prompt, with placeholders in braces: `{state}`, `{instructions}`, `{options}` and `{answer}`, which
/// asks for one of the options. A line that is only a placeholder is left out if its text is empty; `{{` and `}}` stand
/// for braces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout(Vec<Vec<Piece>>);

/// Texts of a question for the places.
#[derive(Debug, Default)]
pub(super) struct Filling {
    pub(super) instructions: String,
    pub(super) options: String,
    pub(super) answer: String,
}

impl Layout {
    /// Layout that is used by default.
    pub const USUAL: &str = "{state}\n\n{instructions}\n{options}\n{answer}";

    fn new(text: &str) -> Result<Self, String> {
        text.split('\n').map(line).collect::<Result<_, _>>().map(Self)
    }

    /// Returns whether the options are listed: in lines of their own, and once.
    ///
    /// # Errors
    /// They are listed elsewhere.
    pub(super) fn options_line(&self) -> Result<bool, String> {
        let is_options = |piece: &&Piece| **piece == Piece::Place(Part::Options);
        let count = self.0.iter().flatten().filter(is_options).count();
        let alone = self.0.iter().filter(|line| matches!(line[..], [Piece::Place(Part::Options)])).count();
        match (count, alone) {
            (0, _) => Ok(false),
            (1, 1) => Ok(true),
            _ => Err("the place {options} must stand in it once, and alone in a line".to_owned()),
        }
    }

    /// The text for a state.
    pub(super) fn fill(&self, state: &Value, filling: &Filling) -> String {
        let state = as_text(state);
        let of = |part: Part| match part {
            Part::State => &state,
            Part::Instructions => &filling.instructions,
            Part::Options => &filling.options,
            Part::Answer => &filling.answer,
        };
        let is_left_out = |line: &[Piece]| matches!(line, [Piece::Place(part)] if of(*part).is_empty());
        let lines = self.0.iter().filter(|line| !is_left_out(line)).map(|line| {
            let piece = |piece: &Piece| match piece {
                Piece::Text(text) => text.clone(),
                Piece::Place(part) => of(*part).clone(),
            };
            line.iter().map(piece).collect::<String>()
        });
        lines.collect::<Vec<_>>().join("\n").trim_start_matches('\n').to_owned()
    }
}

impl<'de> Deserialize<'de> for Layout {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::new(&String::deserialize(from)?).map_err(|reason| value_error(SpecProblem::Value(reason)))
    }
}

impl Default for Layout {
    fn default() -> Self {
        Self::new(Self::USUAL).unwrap_or(Self(Vec::new()))
    }
}

fn line(mut rest: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    while let Some(at) = rest.find(['{', '}']) {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        let doubled = ["{{", "}}"].iter().find_map(|doubled| rest.strip_prefix(doubled));
        if let Some(behind) = doubled {
            text.push_str(&rest[..1]);
            rest = behind;
            continue;
        }
        let known = PARTS
            .iter()
            .find_map(|&(name, part)| Some((part, rest.strip_prefix('{')?.strip_prefix(name)?.strip_prefix('}')?)));
        let Some((part, behind)) = known else {
            let names = PARTS.map(|(name, _)| format!("{{{name}}}")).join(", ");
            let shown: String = rest.chars().take(20).collect();
            return Err(format!("there is no place {shown:?}: it may have {names}; a brace is written twice"));
        };
        if !text.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut text)));
        }
        pieces.push(Piece::Place(part));
        rest = behind;
    }
    text.push_str(rest);
    if !text.is_empty() || pieces.is_empty() {
        pieces.push(Piece::Text(text));
    }
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filling(instructions: &str, options: &str) -> Filling {
        let [instructions, options, answer] = [instructions, options, "?"].map(str::to_owned);
        Filling { instructions, options, answer }
    }

    #[test]
    fn lines_of_one_empty_place_are_left_out() {
        let usual = Layout::default();
        assert_eq!(usual.fill(&"s".into(), &filling("q", "- a\n- b")), "s\n\nq\n- a\n- b\n?");
        assert_eq!(usual.fill(&"".into(), &filling("q", "")), "q\n?");
        let own = Layout::new("{{{state}}} says: {options}, {answer}").unwrap();
        assert_eq!(own.fill(&Value::from(1), &filling("q", "")), "{1} says: , ?");
        assert_eq!(Layout::new("").unwrap().fill(&"s".into(), &filling("q", "")), "");
    }

    #[test]
    fn options_stand_in_a_line_of_their_own_or_nowhere() {
        let listed = |text: &str| Layout::new(text).unwrap().options_line();
        assert_eq!((listed(Layout::USUAL), listed("{options}"), listed("{state}")), (Ok(true), Ok(true), Ok(false)));
        for wrong in ["One of: {options}", "{options}\n{options}", "{options}{state}"] {
            assert!(listed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn other_places_are_refused() {
        for wrong in ["{stat}", "{", "a } b", "{ state }", "{state"] {
            let said = Layout::new(wrong).unwrap_err();
            assert!(said.starts_with("there is no place") && said.contains("{instructions}"), "{wrong}: {said}");
        }
    }
}
