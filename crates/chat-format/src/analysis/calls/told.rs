//! Calls that a template only tells of: its prompt shows the model how to write one, and nothing renders any.
//!
//! ```text
//!   told         what the prompt says where there are tools, without the tools themselves
//!   core         from the name to the end of the arguments, in each of the ways to write them
//!   example      the core with the markers around it that are opened before and closed after
//! ```

mod cores;
mod lines;
mod words;

use super::ends::{FENCE, ends, open_tags};
use super::example::{Example, Piece};
use crate::analysis::probe::{Ask, Probe};
use crate::analysis::text::{Segment, closes, floor, segments};
use cores::{Core, PromptTools};
use words::{has_placeholder, has_word, is_placeholder, push_text};

/// Syntax of calls that only the prompt or the vocabulary shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InferredSyntax {
    pub(crate) example: Example,
    /// Source of the syntax, in words.
    pub(crate) by: String,
}

/// The first example of a call in what the template tells of tools.
pub(super) fn in_prompt(probe: &Probe) -> Option<InferredSyntax> {
    let text = tools_text(probe)?;
    let (first, last) = (text.find(&probe.needles.names[0])?, text.rfind(&probe.needles.stem)?);
    // The tools themselves are none, nor is what stands in their lines.
    let before = text[..first].rfind('\n').map_or(0, |at| at + 1);
    let after = text[last..].find('\n').map_or(text.len(), |at| last + at);
    let example = [&text[after..], &text[..before]].into_iter().find_map(in_text)?;
    Some(InferredSyntax { example, by: "as the example in its prompt shows".into() })
}

/// Returns the text before the user's message in a prompt with tools.
fn tools_text(probe: &Probe) -> Option<String> {
    let mut text = probe.render(&Ask::new(vec![probe.user()]).with_tools())?;
    text.truncate(text.rfind(&probe.needles.user)?);
    text.contains(&probe.needles.names[0]).then_some(text)
}

/// Returns the syntax between two control tokens of calls: Python if the vocabulary has such tokens around a list of
/// tools too, else JSON.
pub(super) fn of_vocabulary(probe: &Probe) -> Option<InferredSyntax> {
    if probe.control.is_empty() {
        return None;
    }
    tools_text(probe)?;
    let mut starts = probe.control.iter().filter(|token| is_of_calls(token));
    starts.find_map(|start| {
        let close = probe.control.iter().find(|token| !is_of_calls(token) && closes(start, token))?;
        let of_lists = |marker: &str| probe.control.iter().any(|token| *token == marker.replace("call", "list"));
        let is_python = start.contains("tool_call") && of_lists(start) && of_lists(close);
        let style = if is_python { "a list of Python calls" } else { "JSON" };
        let by = format!("as {style} between {start:?} and {close:?}, which the vocabulary has: a guess");
        let example = if is_python {
            Example::python_list(start, close)
        } else {
            Example::json(&format!("{start}\n"), &format!("\n{close}"))
        };
        Some(InferredSyntax { example, by })
    })
}

/// Returns whether a marker begins calls.
fn is_of_calls(marker: &str) -> bool {
    let word = marker.to_lowercase();
    let other = ["end", "/", "id", "arg", "name", "result", "response", "output"];
    // `<x|>` closes `<|x>`.
    let is_end = marker.ends_with("|>") && !marker.starts_with("<|");
    word.contains("call") && !is_end && !other.iter().any(|other| word.contains(other))
}

fn in_text(told: &str) -> Option<Example> {
    let told = PromptTools::new(&told[..floor(told, MOST_TOLD)]);
    told.cores().find_map(|core| told.add_markers(core))
}

/// Returns whether the text begins with a marker that has no other meaning.
fn begins_with_marker(text: &str) -> bool {
    matches!(segments(text.trim_start()).first(), Some(Segment::Marker(marker)) if !is_placeholder(marker))
}

/// The most bytes that are looked at: prompts of those in use say some thousand.
const MOST_TOLD: usize = 1 << 15;
/// The most markers before a call.
const MOST_MARKERS: usize = 12;

impl<'a> PromptTools<'a> {
    /// The example: the core with the markers around it.
    fn add_markers(&self, core: Core) -> Option<Example> {
        let (start, is_list) = self.head(core.start);
        let head = &self.text[start..core.start];
        let tags = open_tags(&self.text[start..core.end.min(self.text.len())]);
        let mut at = core.end;
        let mut tail: Vec<&str> = Vec::new();
        // The brackets of a list close before the markers around it.
        if is_list {
            let rest = self.paragraph(at);
            at += rest.find(']')? + 1;
        }
        let mut closed: Vec<&str> = Vec::new();
        for tag in tags.iter().rev() {
            let rest = self.paragraph(at);
            let mut from = 0;
            let end = segments(rest).into_iter().find_map(|segment| {
                let place = from;
                from += segment.text().len();
                match segment {
                    Segment::Marker(marker) => ends(tag, marker).then_some((place, place + marker.len())),
                    Segment::Text(text) if tag.starts_with(FENCE) => {
                        text.find(FENCE).map(|fence| (place + fence, place + fence + FENCE.len()))
                    }
                    Segment::Text(_) => None,
                }
            });
            let Some((from, to)) = end else { continue };
            let space = rest[..from].len() - rest[..from].trim_end().len();
            tail.push(&rest[from - space..to]);
            closed.push(tag);
            at += to;
        }
        let mut example = Example { between: "\n".into(), ..Example::default() };
        if is_list {
            let list = head.rfind('[').unwrap_or(head.len());
            example.start = format!("{}[", head[..list].trim_start());
            example.end = format!("]{}", tail.concat());
            example.between = ", ".into();
            example.call = core.pieces;
            return Some(example);
        }
        // Of several markers the first is around all calls.
        let outer = head.trim_start();
        let section = match closed.last().and_then(|tag| outer.strip_prefix(tag)) {
            Some(inner) if closed.len() > 1 || (tags.len() > 1 && begins_with_marker(inner)) => {
                outer.len() - inner.trim_start().len()
            }
            _ => 0,
        };
        if section > 0 {
            tail.pop().unwrap_or_default().clone_into(&mut example.end);
            outer[..section].clone_into(&mut example.start);
        }
        for segment in segments(&outer[section..]) {
            match segment {
                Segment::Marker(marker) if is_placeholder(marker) => example.call.push(Piece::Id),
                other => push_text(&mut example.call, other.text()),
            }
        }
        for piece in core.pieces {
            match piece {
                Piece::Text(text) => push_text(&mut example.call, &text),
                other => example.call.push(other),
            }
        }
        push_text(&mut example.call, &tail.concat());
        // Words for a marker are none.
        let is_whole = |piece: &Piece| matches!(piece, Piece::Text(text) if has_placeholder(text));
        (!example.call.iter().any(is_whole)).then_some(example)
    }

    /// Returns the text up to the next empty line.
    fn paragraph(&self, at: usize) -> &'a str {
        let rest = &self.text[at..];
        &rest[..rest.find("\n\n").unwrap_or(rest.len())]
    }

    /// Returns whether a marker closes an earlier one.
    fn closes(&self, number: usize, marker: &str) -> bool {
        let first = |text: &str| self.segments[..number].iter().position(|(_, tag)| tag.text() == text);
        let same = first(marker).unwrap_or(number);
        self.segments[..same].iter().any(|(_, tag)| ends(tag.text(), marker))
    }

    /// Returns the start of the markers before a core, and whether it is in a list.
    fn head(&self, core: usize) -> (usize, bool) {
        let (mut start, mut is_list) = (core, false);
        let mut until = core;
        let last = self.segment_before(core);
        for number in (0..last.map_or(0, |last| last + 1)).rev().take(2 * MOST_MARKERS) {
            let (from, segment) = self.segments[number];
            let text = &self.text[from..until];
            match segment {
                Segment::Marker(marker) => {
                    let is_id = is_placeholder(marker) && has_word(marker, &["id"]);
                    if self.closes(number, marker) || (is_placeholder(marker) && !is_id) {
                        break;
                    }
                    start = from;
                }
                Segment::Text(_) => {
                    let line = text.rfind('\n').map_or(0, |at| at + 1);
                    let fence = text.rfind(FENCE).filter(|at| text[*at..].matches('\n').count() == 1);
                    let adjacent = text.rfind(char::is_whitespace).map_or(0, |at| at + 1);
                    let opened = text.trim_end();
                    if text.contains("\n\n") {
                        break;
                    } else if let Some(fence) = fence {
                        start = from + fence;
                        break;
                    } else if opened.ends_with('[') && until == core {
                        is_list = true;
                        start = from + opened.len() - 1;
                        if opened.trim_start().len() > 1 {
                            break;
                        }
                    } else if text.trim().is_empty() {
                        // Up to a marker before it.
                    } else if until == core && adjacent >= line && adjacent < text.len() {
                        // What stands right before a name is part of the call: `call:NAME`.
                        start = from + adjacent;
                        if adjacent > 0 {
                            break;
                        }
                    } else if line == 0 && text.len() <= 24 && adjacent == 0 && number > 0 {
                        // A word between two markers.
                        start = from;
                    } else {
                        break;
                    }
                }
            }
            until = from;
        }
        (start, is_list)
    }
}
