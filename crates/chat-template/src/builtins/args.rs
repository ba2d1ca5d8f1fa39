//! Arguments of a call.

use crate::error::{Res, wrong};
use crate::syntax::ast::Ident;
use crate::value::Value;
use crate::value::number::as_int;

#[derive(Debug, Default)]
pub(crate) struct Args {
    pub(crate) positional: Vec<Value>,
    pub(crate) named: Vec<(Ident, Value)>,
}

impl Args {
    /// Binds the arguments to these names, in order. Names without an argument give `None`.
    pub(crate) fn bind<const N: usize>(self, what: &str, names: [&str; N]) -> Res<[Option<Value>; N]> {
        let mut found = [const { None }; N];
        if self.positional.len() > N {
            let given = self.positional.len();
            return wrong(format!("{what} takes at most {N} arguments, {given} were given"));
        }
        for (slot, value) in found.iter_mut().zip(self.positional) {
            *slot = Some(value);
        }
        for (name, value) in self.named {
            match names.iter().position(|known| **known == *name) {
                Some(at) if found[at].is_none() => found[at] = Some(value),
                Some(_) => return wrong(format!("{what} got multiple values for argument '{name}'")),
                None => return wrong(format!("{what} got an unexpected keyword argument '{name}'")),
            }
        }
        Ok(found)
    }

    /// Returns the only argument of a call.
    pub(crate) fn one(self, what: &str) -> Res<Value> {
        let [value] = self.bind(what, [""])?;
        value.map_or_else(|| wrong(format!("{what} needs an argument")), Ok)
    }

    pub(crate) fn none(self, what: &str) -> Res<()> {
        let [] = self.bind(what, [])?;
        Ok(())
    }
}

/// Reads an optional integer argument.
pub(crate) fn int(value: Option<&Value>, otherwise: i128, what: &str) -> Res<i128> {
    match value {
        None => Ok(otherwise),
        Some(value) => match as_int(value) {
            Some(value) => Ok(value),
            None => match value.missing() {
                Some(missing) => Err(missing),
                None => wrong(format!("{what}: '{}' object cannot be interpreted as an integer", value.type_name())),
            },
        },
    }
}

/// Reads an optional argument as true or false.
pub(crate) fn flag(value: Option<&Value>, otherwise: bool) -> bool {
    value.map_or(otherwise, Value::is_true)
}

/// Returns the argument, unless it is `None`.
pub(crate) fn unless_none(value: Option<Value>) -> Option<Value> {
    value.filter(|value| !matches!(value, Value::None))
}
