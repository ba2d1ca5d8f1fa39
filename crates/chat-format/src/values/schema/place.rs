//! Where in a schema.

use crate::values::shapes::ShapeError;

/// Where in a schema: its JSON pointer is only written where it is needed.
pub(super) struct Place<'a> {
    above: Option<&'a Place<'a>>,
    part: Part<'a>,
    pub(super) depth: usize,
}

enum Part<'a> {
    Pointer(&'a str),
    Key(&'a str),
    Index(usize),
    None,
}

impl<'a> Place<'a> {
    pub(super) fn root() -> Self {
        Self::named("", 0)
    }

    /// By its pointer.
    pub(super) fn named(pointer: &'a str, depth: usize) -> Self {
        Self { above: None, part: Part::Pointer(pointer), depth }
    }

    pub(super) fn key<'b>(&'b self, key: &'b str) -> Place<'b> {
        Place { above: Some(self), part: Part::Key(key), depth: self.depth + 1 }
    }

    pub(super) fn index(&self, index: usize) -> Place<'_> {
        Place { above: Some(self), part: Part::Index(index), depth: self.depth }
    }

    /// The same, one level deeper.
    pub(super) fn deeper(&self) -> Place<'_> {
        Place { above: Some(self), part: Part::None, depth: self.depth + 1 }
    }

    /// Whether it is a schema of the arguments themselves, not of a value in them.
    pub(super) fn is_top(&self) -> bool {
        let inside = ["properties", "items", "prefixItems", "additionalProperties", "patternProperties"];
        let here = match self.part {
            Part::Key(key) => !inside.contains(&key),
            Part::Pointer(pointer) => !pointer.split('/').any(|part| inside.contains(&part)),
            Part::Index(_) | Part::None => true,
        };
        here && self.above.is_none_or(Place::is_top)
    }

    pub(super) fn pointer(&self) -> String {
        let mut pointer = self.above.map(Place::pointer).unwrap_or_default();
        match self.part {
            Part::Pointer(text) => pointer.push_str(text),
            Part::Key(key) => {
                pointer.push('/');
                pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
            }
            Part::Index(index) => {
                pointer.push('/');
                pointer.push_str(&index.to_string());
            }
            Part::None => {}
        }
        pointer
    }

    pub(super) fn error(&self, problem: &str) -> ShapeError {
        ShapeError { pointer: self.pointer(), problem: problem.to_owned() }
    }
}
