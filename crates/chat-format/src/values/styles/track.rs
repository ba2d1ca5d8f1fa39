//! The key that is read, and what its value is: known in lenient use too.

use crate::values::styles::listed::Listed;
use trie_schema::{ValueId, Values};

/// Position among the keys of an object; `listed` is `None` if the keys are unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Track {
    object: ValueId,
    listed: Option<Listed>,
}

impl Track {
    /// Before a key of such an object.
    pub(crate) fn new(values: &Values, object: ValueId) -> Self {
        let listed = values.members(object).map(|members| Listed::begin(members.names.len()));
        Self { object, listed }
    }

    pub(crate) fn step(self, values: &Values, byte: u8) -> Self {
        let (Some(listed), Some(members)) = (self.listed, values.members(self.object)) else { return self };
        let listed = listed.step(byte, |key| members.names[key as usize].0.as_bytes());
        // Behind the last of them, so that nothing more is found.
        Self { listed: listed.or(Some(Listed::NOWHERE)), ..self }
    }

    /// Returns the schema of the key's value.
    pub(crate) fn id(self, values: &Values) -> ValueId {
        let (Some(listed), Some(members)) = (self.listed, values.members(self.object)) else { return Values::ANY };
        let named = listed.whole(|key| members.names[key as usize].0.as_bytes());
        named.map_or(members.others, |key| members.names[key as usize].1)
    }
}
