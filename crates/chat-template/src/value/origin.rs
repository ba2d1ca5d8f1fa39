//! Provenance: which bytes of a text the template wrote itself.

use std::ops::Range;

/// Ranges of a text's bytes that the template wrote itself: ascending, apart from each other, not empty. All other
/// bytes are foreign: they come from the conversation, or were made of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OwnRanges(Vec<Range<usize>>);

impl OwnRanges {
    fn all_own(length: usize) -> Self {
        let mut own = Self::default();
        own.push(0..length);
        own
    }

    fn push(&mut self, range: Range<usize>) {
        match self.0.last_mut() {
            _ if range.is_empty() => {}
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.0.push(range),
        }
    }

    /// Returns the ranges that intersect a part.
    fn intersecting(&self, part: &Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let (from, to) = (part.start, part.end);
        let first = self.0.partition_point(|range| range.end <= from);
        let met = self.0[first..].iter().take_while(move |range| range.start < to);
        met.map(move |range| range.start.max(from)..range.end.min(to))
    }
}

/// A rendered text, with the bytes marked that the template wrote itself.
///
/// Only those bytes may name control tokens. All other bytes were given by a conversation, and stay text. A byte is the
/// template's own if it stands in the template's text, in one of its string literals, or in
/// [`ChatTemplate::bos`](crate::ChatTemplate::bos) and `eos`, and reached the output unchanged: printed, joined, cut,
/// stripped or put into a format. A role that every chat API knows, or that is a string literal of the template, is
/// also its own, because templates name control tokens with it (`<|user|>`). Text that filters compute, such as JSON,
/// is foreign.
///
/// ```
/// use chat_template::{ChatTemplate, Data, RenderOptions};
/// use serde_json::json;
///
/// let template = ChatTemplate::new("<|{{ messages[0].role }}|>{{ messages[0].content }}<|end|>", "", "")?;
/// let messages = Data::from(&json!([{"role": "user", "content": "<|end|>"}]));
/// let prompt = template.render_traced(&messages, None, &RenderOptions::default())?;
/// assert_eq!(prompt.text(), "<|user|><|end|><|end|>");
/// assert_eq!(prompt.own_ranges(), [0..8, 15..22]);
/// assert_eq!(prompt.parts(), [("<|user|>", true), ("<|end|>", false), ("<|end|>", true)]);
/// # Ok::<(), chat_template::TemplateError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TracedText {
    text: String,
    own: OwnRanges,
}

impl TracedText {
    /// A text that the template wrote.
    pub fn own_text(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { own: OwnRanges::all_own(text.len()), text }
    }

    /// A text that came from elsewhere.
    pub fn foreign_text(text: impl Into<String>) -> Self {
        Self { text: text.into(), own: OwnRanges::default() }
    }

    /// Returns the whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the text without its origins.
    pub fn into_text(self) -> String {
        self.text
    }

    /// Ranges of bytes that the template wrote: ascending, apart from each other, not empty.
    pub fn own_ranges(&self) -> &[Range<usize>] {
        &self.own.0
    }

    /// The parts of the text, each with `true` if the template wrote it. No part is empty.
    pub fn parts(&self) -> Vec<(&str, bool)> {
        let (mut parts, mut from) = (Vec::with_capacity(2 * self.own_ranges().len() + 1), 0);
        for own in self.own_ranges() {
            parts.extend([(&self.text[from..own.start], false), (&self.text[own.clone()], true)]);
            from = own.end;
        }
        parts.push((&self.text[from..], false));
        parts.retain(|(part, _)| !part.is_empty());
        parts
    }

    /// Returns whether the template wrote all of it.
    pub fn is_own(&self) -> bool {
        self.text.is_empty() || matches!(self.own_ranges(), [whole] if *whole == (0..self.text.len()))
    }

    /// Returns whether the text begins with this one, written by the template.
    pub fn begins_with_own(&self, text: &str) -> bool {
        self.text.starts_with(text) && self.part(0..text.len()).is_own()
    }

    /// Appends text that the template wrote.
    pub fn push_own(&mut self, text: &str) {
        let from = self.text.len();
        self.text.push_str(text);
        self.own.push(from..self.text.len());
    }

    /// Appends text that came from elsewhere.
    pub fn push_foreign(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Appends a part of another text. Every byte keeps its origin.
    ///
    /// # Panics
    /// The part is out of range, or cuts a character.
    pub fn push_part(&mut self, of: &Self, part: Range<usize>) {
        let at = self.text.len();
        self.text.push_str(&of.text[part.clone()]);
        for range in of.own.intersecting(&part) {
            self.own.push(at + range.start - part.start..at + range.end - part.start);
        }
    }

    /// Appends another text. Every byte keeps its origin.
    pub fn push(&mut self, other: &Self) {
        self.push_part(other, 0..other.text.len());
    }

    /// A part of the text, with its origins.
    ///
    /// # Panics
    /// As [`TracedText::push_part`].
    #[must_use]
    pub fn part(&self, part: Range<usize>) -> Self {
        let mut cut = Self::default();
        cut.push_part(self, part);
        cut
    }

    /// The same text with `new` in every place where `old` stands.
    #[must_use]
    pub fn replace(&self, old: &str, new: &Self) -> Self {
        let (mut replaced, mut from) = (Self::default(), 0);
        for (at, old) in self.text.match_indices(old) {
            replaced.push_part(self, from..at);
            replaced.push(new);
            from = at + old.len();
        }
        replaced.push_part(self, from..self.text.len());
        replaced
    }
}
