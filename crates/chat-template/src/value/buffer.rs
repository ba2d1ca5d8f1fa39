//! Output buffer with a size limit.

use super::{Text, TracedText, Value};
use crate::error::Res;
use crate::meter::{RANGE, hold, release, spend_bytes};

/// Text under construction, within the limit on memory. Every byte records whether the template wrote it.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    text: TracedText,
    held: usize,
}

impl Buffer {
    /// Appends text that the template did not write, or wrote differently.
    pub(crate) fn push(&mut self, text: &str) -> Res<()> {
        spend_bytes(text.len())?;
        self.hold(text.len())?;
        self.text.push_foreign(text);
        Ok(())
    }

    /// Appends text that stands in the template.
    pub(crate) fn push_own(&mut self, text: &str) -> Res<()> {
        spend_bytes(text.len())?;
        self.hold(text.len() + RANGE)?;
        self.text.push_own(text);
        Ok(())
    }

    /// Appends a text as it is.
    pub(crate) fn push_text(&mut self, text: &Text) -> Res<()> {
        self.push_part(text, text.as_str())
    }

    /// Appends a part of a text as it is; anything that is not a slice of it counts as foreign.
    pub(crate) fn push_part(&mut self, of: &Text, part: &str) -> Res<()> {
        let Some(range) = of.range_of(part) else { return self.push(part) };
        spend_bytes(part.len())?;
        let before = self.text.own_ranges().len();
        self.hold(part.len())?;
        self.text.push_part(of.as_traced(), range);
        let ranges = self.text.own_ranges().len() - before;
        spend_bytes(ranges * RANGE)?;
        self.hold(ranges * RANGE)
    }

    pub(crate) fn push_char(&mut self, character: char) -> Res<()> {
        self.hold(character.len_utf8())?;
        self.text.push_foreign(character.encode_utf8(&mut [0; 4]));
        Ok(())
    }

    /// Appends the same character this many times.
    pub(crate) fn fill(&mut self, character: char, times: usize) -> Res<()> {
        let bytes = times.saturating_mul(character.len_utf8());
        spend_bytes(bytes)?;
        self.hold(bytes)?;
        self.text.push_foreign(&std::iter::repeat_n(character, times).collect::<String>());
        Ok(())
    }

    fn hold(&mut self, bytes: usize) -> Res<()> {
        hold(bytes)?;
        self.held += bytes;
        Ok(())
    }

    pub(crate) fn as_str(&self) -> &str {
        self.text.text()
    }

    pub(crate) fn into_traced(mut self) -> TracedText {
        std::mem::take(&mut self.text)
    }

    /// Converts the buffer to a value.
    pub(crate) fn into_value(self) -> Res<Value> {
        Text::traced_text(self.into_traced(), false).map(Value::Str)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        release(self.held);
    }
}
