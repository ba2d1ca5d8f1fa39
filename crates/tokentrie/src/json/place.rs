//! Places in a spec.

use std::fmt;

/// A place, written as `$.form[1].value`. Lives on the stack of whoever walks a spec.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'p> {
    before: Option<&'p Place<'p>>,
    step: Step<'p>,
}

#[derive(Debug, Clone, Copy)]
enum Step<'p> {
    Root,
    Field(&'p str),
    Item(usize),
}

impl<'p> Place<'p> {
    pub(crate) const ROOT: Place<'static> = Place { before: None, step: Step::Root };

    pub(crate) fn field(&'p self, name: &'p str) -> Self {
        Self { before: Some(self), step: Step::Field(name) }
    }

    /// Returns whether the place is inside a field with one of these names.
    pub(crate) fn is_inside(&self, names: &[&str]) -> bool {
        let is_own = matches!(self.step, Step::Field(name) if names.contains(&name));
        is_own || self.before.is_some_and(|before| before.is_inside(names))
    }

    pub(crate) fn item(&'p self, index: usize) -> Self {
        Self { before: Some(self), step: Step::Item(index) }
    }
}

fn is_word(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(before) = self.before {
            before.fmt(f)?;
        }
        match self.step {
            Step::Root => f.write_str("$"),
            Step::Field(name) if is_word(name) => write!(f, ".{name}"),
            Step::Field(name) => write!(f, "[{name:?}]"),
            Step::Item(index) => write!(f, "[{index}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_written_from_the_outside_in() {
        let form = Place::ROOT.field("form");
        let part = form.item(3);
        assert_eq!(part.field("value").to_string(), "$.form[3].value");
        assert_eq!(part.field("my key").to_string(), "$.form[3][\"my key\"]");
    }
}
