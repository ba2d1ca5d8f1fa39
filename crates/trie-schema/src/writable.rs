//! Texts that can be written, for formats that cannot write them all.

use crate::json::Json;
use trie_rules::TextSet;

/// Sets of writable texts, for formats that cannot write all: strings, names, and names of the outermost object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writable {
    pub(crate) texts: TextSet,
    pub(crate) names: TextSet,
    pub(crate) top_names: TextSet,
}

impl Writable {
    /// Returns the sets of strings, of names, and of names of the outermost object.
    pub fn new(texts: TextSet, names: TextSet, top_names: TextSet) -> Self {
        Self { texts, names, top_names }
    }

    /// Returns whether all texts can be written.
    pub fn is_all(&self) -> bool {
        self.texts.is_all() && self.names.is_all() && self.top_names.is_all()
    }

    /// Returns whether a value can be written.
    pub(crate) fn writes(&self, value: &Json) -> bool {
        match value {
            Json::String(text) => self.texts.is_match(text),
            Json::Array(items) => items.iter().all(|item| self.writes(item)),
            Json::Object(members) => {
                members.iter().all(|(name, value)| self.names.is_match(name) && self.writes(value))
            }
            _ => true,
        }
    }
}
