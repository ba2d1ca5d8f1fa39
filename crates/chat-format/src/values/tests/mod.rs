//! Tests of readers.

mod held;
mod naive;
mod properties;
mod schemas;
mod speed;
mod styles;

use super::{ArgsState, Gaps, JsonOut, Nobody, Reader, Step};
use crate::dialect::{Arguments, Style, TaggedArguments, ValueOpening};
use serde_json::Value;
use trie_schema::{ValueId, Values};

/// What came of reading a text: where it ended, and its JSON.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Was {
    /// So many bytes were read, and this is their JSON.
    Over(usize, String),
    /// The text is dead at this byte.
    Dead(usize),
    /// More must come; so far it is this.
    Open(String),
}

pub(super) fn read(reader: &Reader, values: &Values, id: ValueId, text: &[u8]) -> Was {
    let mut out = JsonOut::new(values);
    let mut state = reader.begin(values, id);
    for (at, &byte) in text.iter().enumerate() {
        match reader.step(values, &mut state, byte, &mut out) {
            Step::Inside => {}
            Step::Done => return Was::Over(at + 1, out.text().to_owned()),
            Step::DoneBefore => return Was::Over(at, out.text().to_owned()),
            Step::Dead => return Was::Dead(at),
        }
    }
    Was::Open(out.text().to_owned())
}

/// The state after a text that does not end.
pub(super) fn after(reader: &Reader, values: &Values, id: ValueId, text: &[u8]) -> Option<ArgsState> {
    let mut state = reader.begin(values, id);
    text.iter().all(|&byte| reader.step(values, &mut state, byte, &mut Nobody) == Step::Inside).then_some(state)
}

/// A style with the text after it, and one schema.
pub(super) struct Case {
    pub(super) values: Values,
    pub(super) id: ValueId,
    pub(super) lenient: Reader,
    pub(super) strict: Reader,
}

impl Case {
    pub(super) fn new(arguments: &Arguments, after: &str, schema: &Value) -> Self {
        let mut values = Values::new(None);
        let (id, _) = values.add(schema).unwrap();
        let [lenient, strict] = [false, true].map(|strict| Reader::new(arguments, after, strict, Gaps::Lines));
        Self { values, id, lenient, strict }
    }

    pub(super) fn lenient(&self, text: &str) -> Was {
        read(&self.lenient, &self.values, self.id, text.as_bytes())
    }

    pub(super) fn strict(&self, text: &[u8]) -> Was {
        read(&self.strict, &self.values, self.id, text)
    }

    /// The JSON of a text that both read to its end, or only the lenient reader.
    #[track_caller]
    pub(super) fn json(&self, text: &str, strict: bool) -> Value {
        let was = self.lenient(text);
        let Was::Over(end, json) = &was else { panic!("{text:?}: {was:?}") };
        assert_eq!(*end, text.len(), "{text:?}");
        match self.strict(text.as_bytes()) {
            held if strict => assert_eq!(held, was, "{text:?}"),
            held => assert!(!matches!(held, Was::Over(..)), "{text:?}: {held:?}"),
        }
        serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"))
    }
}

pub(super) fn tagged(key_start: &str, opened: &str, value_end: &str) -> Arguments {
    Arguments::Tagged(TaggedArguments::new(key_start, opened, value_end))
}

pub(super) fn typed(key_start: &str, opened: &[(&str, &[&str])], value_end: &str) -> Arguments {
    let mut keyed = TaggedArguments::new(key_start, "", value_end);
    keyed.opened = opened
        .iter()
        .map(|(text, types)| ValueOpening {
            text: (*text).to_owned(),
            types: types.iter().map(|&name| name.to_owned()).collect(),
        })
        .collect();
    Arguments::Tagged(keyed)
}

/// As Qwen3-Coder writes them.
pub(super) fn qwen() -> Arguments {
    tagged("<parameter=", ">\n", "\n</parameter>\n")
}

pub(super) fn keywords() -> Arguments {
    Arguments::Keywords(Style::python())
}

pub(super) fn gemma() -> Arguments {
    Arguments::Pairs(Style::quoted_by("<|\"|>"))
}
