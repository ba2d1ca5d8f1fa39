//! JSON text that is collected.

use crate::values::Out;
use trie_schema::{Types, ValueId};

/// JSON text, as it comes; no raw values.
#[derive(Debug, Default)]
pub(crate) struct QuotedText(pub(crate) Vec<u8>);

impl Out for QuotedText {
    fn json(&mut self, text: &[u8]) {
        self.0.extend_from_slice(text);
    }

    fn raw_begin(&mut self, _: ValueId, _: Types) {}

    fn raw(&mut self, _: &[u8]) {}

    fn raw_end(&mut self) {}
}
