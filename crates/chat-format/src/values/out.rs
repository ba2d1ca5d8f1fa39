//! Sinks for the JSON of arguments.

use trie_schema::Types;
use trie_schema::ValueId;

/// Sink that a reader writes to.
pub(crate) trait Out {
    /// More of the JSON text. Inside of strings it may be invalid UTF-8, as it was read.
    fn json(&mut self, text: &[u8]);
    /// A value begins whose type is open until its end. It must have one of these types and match the schema `id`.
    fn raw_begin(&mut self, id: ValueId, types: Types);
    /// More of its text.
    fn raw(&mut self, bytes: &[u8]);
    /// The value ends here.
    fn raw_end(&mut self);
}

/// Sink that drops what it gets.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Nobody;

impl Out for Nobody {
    #[inline]
    fn json(&mut self, _: &[u8]) {}
    #[inline]
    fn raw_begin(&mut self, _: ValueId, _: Types) {}
    #[inline]
    fn raw(&mut self, _: &[u8]) {}
    #[inline]
    fn raw_end(&mut self) {}
}
