//! Functions that a template may call by name.

use super::args::{Args, int, unless_none};
use crate::error::{Fault, Kind, Res, wrong};
use crate::eval::Eval;
use crate::eval::attributes::text_of;
use crate::value::{Dict, Key, Namespace, Range, Value, deepest};
use indexmap::IndexMap;
use std::cell::Cell;
use std::rc::Rc;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Function {
    Range,
    Dict,
    Namespace,
    Cycler,
    Joiner,
    Lipsum,
    RaiseException,
    StrftimeNow,
}

/// Every function and its name.
pub(crate) const FUNCTIONS: [(&str, Function); 8] = [
    ("range", Function::Range),
    ("dict", Function::Dict),
    ("namespace", Function::Namespace),
    ("cycler", Function::Cycler),
    ("joiner", Function::Joiner),
    ("lipsum", Function::Lipsum),
    ("raise_exception", Function::RaiseException),
    ("strftime_now", Function::StrftimeNow),
];

/// Object that a template gets from `cycler(...)`.
#[derive(Debug)]
pub(crate) struct Cycler {
    items: Vec<Value>,
    at: Cell<usize>,
    depth: u32,
}

impl Cycler {
    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    pub(crate) fn current(&self) -> Value {
        self.items.get(self.at.get()).cloned().unwrap_or(Value::None)
    }

    pub(super) fn next(&self) -> Value {
        let now = self.current();
        self.at.set((self.at.get() + 1) % self.items.len().max(1));
        now
    }

    pub(super) fn reset(&self) {
        self.at.set(0);
    }
}

pub(crate) fn call(eval: &mut Eval<'_>, function: Function, args: Args) -> Res<Value> {
    match function {
        Function::Range => range(args),
        Function::Dict => dict(args).map(Value::Dict),
        Function::Namespace => {
            let entries = dict(args)?;
            let mut attributes = IndexMap::new();
            for (Key(key), value) in entries.entries() {
                attributes.insert(Rc::from(text_of(key, "attribute name")?.as_str()), value.clone());
            }
            let namespace = Rc::new(Namespace { attributes: attributes.into() });
            eval.keep(&namespace)?;
            Ok(Value::Namespace(namespace))
        }
        Function::Cycler => {
            if args.positional.is_empty() || !args.named.is_empty() {
                return wrong("at least one item has to be provided");
            }
            let depth = deepest(&args.positional)?;
            crate::meter::spend(args.positional.len() as u64)?;
            // Cyclers are not counted back; there are never many.
            crate::meter::hold(args.positional.len() * size_of::<Value>() + 64)?;
            Ok(Value::Cycler(Rc::new(Cycler { items: args.positional, at: Cell::new(0), depth })))
        }
        Function::Joiner => {
            let [separator] = args.bind("joiner", ["sep"])?;
            let separator = separator.map_or_else(|| Value::str(", "), Ok)?;
            crate::meter::hold(64)?;
            Ok(Value::Joiner(Rc::new((Rc::clone(text_of(&separator, "sep")?), Cell::new(false)))))
        }
        Function::Lipsum => Err(Fault::new(Kind::Unsupported, "lipsum: random text has no place in a prompt")),
        Function::RaiseException => {
            let message = args.one("raise_exception")?.to_text()?;
            Err(Fault::new(Kind::Refused, message.as_str()))
        }
        Function::StrftimeNow => {
            let format = args.one("strftime_now")?;
            Value::str(eval.clock.strftime(text_of(&format, "a time format")?.as_str())?)
        }
    }
}

/// Python's `range`, with at most 100,000 numbers as in the sandbox of Jinja2.
fn range(args: Args) -> Res<Value> {
    const LONGEST: i128 = 100_000;
    if !args.named.is_empty() {
        return wrong("range() takes no keyword arguments");
    }
    let values: Vec<i128> = args.positional.iter().map(|value| int(Some(value), 0, "range")).collect::<Res<_>>()?;
    let (start, stop, step) = match values[..] {
        [stop] => (0, stop, 1),
        [start, stop] => (start, stop, 1),
        [start, stop, step] if step != 0 => (start, stop, step),
        [_, _, _] => return wrong("range() arg 3 must not be zero"),
        _ => return wrong(format!("range expected 1 to 3 arguments, got {}", values.len())),
    };
    let far = 1_i128 << 100;
    if [start, stop, step].iter().any(|value| value.abs() > far) {
        return crate::error::too_much(format!("Range too big. The sandbox blocks ranges larger than {LONGEST}."));
    }
    let span = if step > 0 { stop - start } else { start - stop };
    let length = if span <= 0 { 0 } else { (span - 1) / step.abs() + 1 };
    if length > LONGEST {
        return crate::error::too_much(format!("Range too big. The sandbox blocks ranges larger than {LONGEST}."));
    }
    crate::meter::spend(1)?;
    Ok(Value::Range(Rc::new(Range { start, step, length: length as usize, stop })))
}

/// Builds a dictionary as Python's `dict(...)`.
fn dict(args: Args) -> Res<Rc<Dict>> {
    let mut entries = IndexMap::new();
    let mut positional = args.positional.into_iter();
    if let Some(first) = unless_none(positional.next()) {
        if let Value::Dict(dict) = &first {
            crate::meter::spend(dict.entries().len() as u64)?;
            entries.clone_from(dict.entries());
        } else {
            for pair in first.iterate()? {
                let mut pair = pair.iterate()?.into_iter();
                match (pair.next(), pair.next(), pair.next()) {
                    (Some(key), Some(value), None) => entries.insert(Key::new(key)?, value),
                    _ => return wrong("dictionary update sequence element has not length 2"),
                };
            }
        }
    }
    if positional.next().is_some() {
        return wrong("dict expected at most 1 argument");
    }
    for (name, value) in args.named {
        entries.insert(Key::new(Value::str(&*name)?)?, value);
    }
    Dict::new(entries)
}
