//! The JSON text of arguments, as it becomes certain.

use crate::values::Out;
use crate::values::styles::raw::json_of;
use crate::values::utf8::Utf8;
use std::ops::Deref;
use trie_schema::{Types, ValueId, Values};

/// Assembles the JSON text of arguments. Text is only added at its end. The text is UTF-8; invalid bytes become U+FFFD.
#[derive(Debug, Clone)]
pub(crate) struct JsonOut<S> {
    values: S,
    text: String,
    /// A character that is begun.
    begun: Vec<u8>,
    at: Utf8,
    raw: Option<(ValueId, Types, Vec<u8>)>,
}

impl<S: Deref<Target = Values>> JsonOut<S> {
    pub(crate) fn new(values: S) -> Self {
        Self { values, text: String::new(), begun: Vec::new(), at: Utf8::WHOLE, raw: None }
    }

    /// Returns the JSON text that is certain so far.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    fn bytes(&mut self, text: &[u8]) {
        let mut rest = text;
        if self.begun.is_empty() {
            let whole = std::str::from_utf8(text).map_or_else(|error| error.valid_up_to(), str::len);
            self.text.push_str(std::str::from_utf8(&text[..whole]).unwrap_or_default());
            rest = &text[whole..];
        }
        for &byte in rest {
            self.byte(byte);
        }
    }

    fn byte(&mut self, byte: u8) {
        if let Some(at) = self.at.step(byte) {
            self.at = at;
            self.begun.push(byte);
            if at.is_whole() {
                self.text.push_str(std::str::from_utf8(&self.begun).unwrap_or("\u{fffd}"));
                self.begun.clear();
            }
        } else if self.begun.is_empty() {
            self.text.push('\u{fffd}');
        } else {
            // The byte may begin another.
            self.text.push('\u{fffd}');
            self.begun.clear();
            self.at = Utf8::WHOLE;
            self.byte(byte);
        }
    }
}

impl<S: Deref<Target = Values>> Out for JsonOut<S> {
    #[inline]
    fn json(&mut self, text: &[u8]) {
        match *text {
            [byte @ 0..0x80] if self.begun.is_empty() => self.text.push(char::from(byte)),
            _ => self.bytes(text),
        }
    }

    fn raw_begin(&mut self, id: ValueId, types: Types) {
        self.raw = Some((id, types, Vec::new()));
    }

    fn raw(&mut self, bytes: &[u8]) {
        if let Some((_, _, raw)) = &mut self.raw {
            raw.extend_from_slice(bytes);
        }
    }

    fn raw_end(&mut self) {
        if let Some((id, types, raw)) = self.raw.take() {
            self.json(&json_of(&self.values, id, types, &raw));
        }
    }
}
