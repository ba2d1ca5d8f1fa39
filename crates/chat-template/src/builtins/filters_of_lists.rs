//! Filters over lists and dicts.

use super::args::{Args, flag, int, unless_none};
use super::{filters, methods, tests};
use crate::error::{Fault, Kind, Res, wrong};
use crate::eval::Eval;
use crate::eval::attributes::{attribute, item, text_of};
use crate::meter::{room, spend};
use crate::syntax::ast::Operator;
use crate::value::{Key, Text, Value, View, ops};
use indexmap::IndexSet;
use std::rc::Rc;

/// A path such as `function.name` or `0.id`.
#[derive(Debug)]
struct Path(Vec<Value>);

impl Path {
    fn new(attribute: &Value) -> Res<Self> {
        let Value::Str(text) = attribute else { return Ok(Self(vec![attribute.clone()])) };
        let part = |part: &str| match part.parse::<i128>() {
            Ok(index) if part.bytes().all(|digit| digit.is_ascii_digit()) => Ok(Value::Int(index)),
            _ => Value::str(part),
        };
        spend(text.len() as u64)?;
        text.as_str().split('.').map(part).collect::<Res<_>>().map(Self)
    }

    fn maybe(attribute: Option<Value>) -> Res<Self> {
        unless_none(attribute).map_or_else(|| Ok(Self(Vec::new())), |attribute| Self::new(&attribute))
    }

    fn get(&self, of: &Value, otherwise: Option<&Value>) -> Res<Value> {
        let mut value = of.clone();
        for part in &self.0 {
            value = item(&value, part)?;
            if let (Value::Undefined(_), Some(otherwise)) = (&value, otherwise) {
                value = otherwise.clone();
            }
        }
        Ok(value)
    }
}

/// A text in small letters, unless its case matters.
fn fold_case(value: Value, case_sensitive: bool) -> Res<Value> {
    match &value {
        Value::Str(text) if !case_sensitive => Value::str(text.as_str().to_lowercase()),
        _ => Ok(value),
    }
}

pub(super) fn list(_: &mut Eval<'_>, value: Value, args: Args) -> Res<Value> {
    args.none("list")?;
    Value::list(value.iterate()?)
}

pub(super) fn length(_: &mut Eval<'_>, value: Value, args: Args) -> Res<Value> {
    args.none("length")?;
    value.length().map(Value::from)
}

pub(super) fn default(_: &mut Eval<'_>, value: Value, args: Args) -> Res<Value> {
    let [otherwise, boolean] = args.bind("default", ["default_value", "boolean"])?;
    let missing = matches!(value, Value::Undefined(_)) || (flag(boolean.as_ref(), false) && !value.is_true());
    if missing { otherwise.map_or_else(|| Value::str(""), Ok) } else { Ok(value) }
}

pub(super) fn first(_: &mut Eval<'_>, value: Value, args: Args) -> Res<Value> {
    args.none("first")?;
    let found = match &value {
        Value::Stream(stream) => stream.items.borrow_mut().pop_front(),
        Value::List(list) | Value::Tuple(list) => list.items().first().cloned(),
        Value::Str(_) => Some(item(&value, &Value::Int(0))?).filter(|found| !matches!(found, Value::Undefined(_))),
        other => other.iterate()?.into_iter().next(),
    };
    Ok(found.unwrap_or_else(|| Value::undefined("No first item, sequence was empty.")))
}

pub(super) fn last(_: &mut Eval<'_>, value: Value, args: Args) -> Res<Value> {
    args.none("last")?;
    let found = match &value {
        Value::Stream(_) => return wrong("'generator' object is not reversible"),
        Value::List(list) | Value::Tuple(list) => list.items().last().cloned(),
        Value::Str(_) => Some(item(&value, &Value::Int(-1))?).filter(|found| !matches!(found, Value::Undefined(_))),
        other => other.iterate()?.pop(),
    };
    Ok(found.unwrap_or_else(|| Value::undefined("No last item, sequence was empty.")))
}

pub(super) fn reverse(_: &mut Eval<'_>, value: Value, args: Args) -> Res<Value> {
    args.none("reverse")?;
    if let Value::Str(text) = &value {
        spend(text.len() as u64 / 8)?;
        return text.made_of(text.as_str().chars().rev().collect(), false).map(Value::Str);
    }
    if !value.is_iterable() {
        return wrong("argument must be iterable");
    }
    let mut items = value.iterate()?;
    items.reverse();
    if matches!(value, Value::Stream(_)) { Value::list(items) } else { Value::stream(items) }
}

pub(super) fn items(_: &mut Eval<'_>, value: Value, args: Args) -> Res<Value> {
    args.none("items")?;
    match value {
        Value::Undefined(_) => Value::stream(Vec::new()),
        Value::Dict(dict) => Value::stream(Value::View(View::Items, dict).iterate()?),
        _ => wrong("Can only get item pairs from a mapping."),
    }
}

pub(super) fn dictsort(_: &mut Eval<'_>, value: Value, args: Args) -> Res<Value> {
    let [sensitive, by, reverse] = args.bind("dictsort", ["case_sensitive", "by", "reverse"])?;
    let by = by.map_or_else(|| Value::str("key"), Ok)?;
    let by_value = match text_of(&by, "by")?.as_str() {
        "key" => false,
        "value" => true,
        _ => return wrong("You can only sort by either \"key\" or \"value\""),
    };
    let Value::Dict(dict) = value else {
        return Err(value.missing().unwrap_or_else(|| {
            Fault::new(Kind::Value, format!("'{}' object has no attribute 'items'", value.type_name()))
        }));
    };
    let sensitive = flag(sensitive.as_ref(), false);
    let mut entries = Vec::new();
    for (Key(key), value) in dict.entries() {
        let by = if by_value { value } else { key };
        entries.push((fold_case(by.clone(), sensitive)?, Value::tuple(vec![key.clone(), value.clone()])?));
    }
    ops::sort(&mut entries, flag(reverse.as_ref(), false))?;
    Value::list(entries.into_iter().map(|(_, pair)| pair).collect())
}

pub(super) fn sort(_: &mut Eval<'_>, value: Value, args: Args) -> Res<Value> {
    let [reverse, sensitive, attribute] = args.bind("sort", ["reverse", "case_sensitive", "attribute"])?;
    let sensitive = flag(sensitive.as_ref(), false);
    let paths: Vec<Path> = match unless_none(attribute) {
        Some(Value::Str(names)) => {
            let path = |name: &str| Path::new(&Value::str(name)?);
            names.as_str().split(',').map(path).collect::<Res<_>>()?
        }
        other => vec![Path::maybe(other)?],
    };
    let mut keyed = Vec::new();
    for value in value.iterate()? {
        let keys = paths.iter().map(|path| fold_case(path.get(&value, None)?, sensitive));
        keyed.push((Value::list(keys.collect::<Res<_>>()?)?, value));
    }
    ops::sort(&mut keyed, flag(reverse.as_ref(), false))?;
    Value::list(keyed.into_iter().map(|(_, value)| value).collect())
}

pub(super) fn unique(_: &mut Eval<'_>, value: Value, args: Args) -> Res<Value> {
    let [sensitive, attribute] = args.bind("unique", ["case_sensitive", "attribute"])?;
    let path = Path::maybe(attribute)?;
    let mut seen = IndexSet::new();
    let mut kept = Vec::new();
    for value in value.iterate()? {
        let key = fold_case(path.get(&value, None)?, flag(sensitive.as_ref(), false))?;
        if seen.insert(Key::new(key)?) {
            kept.push(value);
        }
    }
    Value::stream(kept)
}

pub(super) fn extreme(value: &Value, args: Args, most: bool) -> Res<Value> {
    let [sensitive, attribute] = args.bind("min or max", ["case_sensitive", "attribute"])?;
    let path = Path::maybe(attribute)?;
    let mut best: Option<(Value, Value)> = None;
    for value in value.iterate()? {
        let key = fold_case(path.get(&value, None)?, flag(sensitive.as_ref(), false))?;
        let better = match &best {
            None => true,
            Some((other, _)) => {
                let (left, right) = if most { (other, &key) } else { (&key, other) };
                ops::order(left, right, "<")?.is_some_and(std::cmp::Ordering::is_lt)
            }
        };
        if better {
            best = Some((key, value));
        }
    }
    Ok(best.map_or_else(|| Value::undefined("No aggregated item, sequence was empty."), |(_, value)| value))
}

pub(super) fn sum(_: &mut Eval<'_>, value: Value, args: Args) -> Res<Value> {
    let [attribute, start] = args.bind("sum", ["attribute", "start"])?;
    let path = Path::maybe(attribute)?;
    let mut total = start.unwrap_or(Value::Int(0));
    if matches!(total, Value::Str(_)) {
        return wrong("sum() can't sum strings [use ''.join(seq) instead]");
    }
    for value in value.iterate()? {
        total = ops::apply(Operator::Add, &total, &path.get(&value, None)?)?;
    }
    Ok(total)
}

pub(super) fn join(_: &mut Eval<'_>, value: Value, args: Args) -> Res<Value> {
    let [separator, attribute] = args.bind("join", ["d", "attribute"])?;
    let separator = separator.map_or_else(|| Text::new(String::new()), |separator| separator.to_text())?;
    let mut items = value.iterate()?;
    if let Some(attribute) = unless_none(attribute) {
        let path = Path::new(&attribute)?;
        items = items.iter().map(|value| path.get(value, None)).collect::<Res<_>>()?;
    }
    super::methods_of_text::join(&separator, &items, true)
}

pub(super) fn groupby(_: &mut Eval<'_>, value: Value, args: Args) -> Res<Value> {
    let [attribute, otherwise, sensitive] = args.bind("groupby", ["attribute", "default", "case_sensitive"])?;
    let Some(attribute) = attribute else { return wrong("groupby needs an attribute") };
    let (path, sensitive, otherwise) =
        (Path::new(&attribute)?, flag(sensitive.as_ref(), false), unless_none(otherwise));
    let mut keyed = Vec::new();
    for value in value.iterate()? {
        keyed.push((fold_case(path.get(&value, otherwise.as_ref())?, sensitive)?, value));
    }
    ops::sort(&mut keyed, false)?;
    let mut groups: Vec<(Value, Vec<Value>)> = Vec::new();
    for (key, value) in keyed {
        match groups.last_mut() {
            Some((last, values)) if ops::equal(last, &key)? => values.push(value),
            _ => groups.push((key, vec![value])),
        }
    }
    let group = |(key, values): (Value, Vec<Value>)| {
        let key = if sensitive { key } else { path.get(&values[0], otherwise.as_ref())? };
        crate::value::List::group(key, Value::list(values)?).map(Value::Tuple)
    };
    Value::list(groups.into_iter().map(group).collect::<Res<_>>()?)
}

pub(super) fn batch(_: &mut Eval<'_>, value: Value, args: Args) -> Res<Value> {
    let [count, fill] = args.bind("batch", ["linecount", "fill_with"])?;
    let count = int(count.as_ref(), 0, "batch")?;
    let items = value.iterate()?;
    let size = usize::try_from(count).unwrap_or(usize::MAX);
    if size == 0 {
        return wrong("batch needs a count of 1 or more");
    }
    let mut batches = Vec::new();
    for chunk in items.chunks(size) {
        let mut batch = chunk.to_vec();
        if let Some(fill) = unless_none(fill.clone()) {
            room(size.saturating_mul(size_of::<Value>()))?;
            spend(size as u64)?;
            batch.resize(size, fill);
        }
        batches.push(Value::list(batch)?);
    }
    Value::stream(batches)
}

pub(super) fn slice(_: &mut Eval<'_>, value: Value, args: Args) -> Res<Value> {
    let [count, fill] = args.bind("slice", ["slices", "fill_with"])?;
    let count = int(count.as_ref(), 0, "slice")?;
    let items = value.iterate()?;
    if count == 0 {
        return wrong("integer division or modulo by zero");
    }
    let count = usize::try_from(count.max(0)).unwrap_or(usize::MAX);
    room(count.saturating_mul(96))?;
    spend(count as u64)?;
    let each = items.len().checked_div(count).unwrap_or(0);
    let extra = items.len() - each * count;
    let mut slices = Vec::new();
    let mut at = 0;
    for number in 0..count {
        let length = each + usize::from(number < extra);
        let mut slice = items[at..at + length].to_vec();
        at += length;
        if let (Some(fill), true) = (unless_none(fill.clone()), number >= extra) {
            slice.push(fill);
        }
        slices.push(Value::list(slice)?);
    }
    Value::stream(slices)
}

pub(super) fn attr(_: &mut Eval<'_>, value: Value, args: Args) -> Res<Value> {
    let name = args.one("attr")?;
    let name = text_of(&name, "attribute name")?.as_str();
    let missing = || Value::undefined(format!("'{} object' has no attribute '{name}'", value.type_name()));
    let has = match &value {
        Value::Namespace(namespace) => namespace.attributes.borrow().contains_key(name),
        Value::Loop(_) => true,
        other => methods::method_access(other, name) != methods::AttributeAccess::No,
    };
    if has { attribute(&value, name) } else { Ok(missing()) }
}

pub(super) fn map(eval: &mut Eval<'_>, value: Value, args: Args) -> Res<Value> {
    if !value.is_true() {
        return Value::stream(Vec::new());
    }
    let mut mapped = Vec::new();
    if args.positional.is_empty() && args.named.iter().any(|(name, _)| &**name == "attribute") {
        let [attribute, otherwise] = args.bind("map", ["attribute", "default"])?;
        let (path, otherwise) = (Path::maybe(attribute)?, unless_none(otherwise));
        for value in value.iterate()? {
            mapped.push(path.get(&value, otherwise.as_ref())?);
        }
        return Value::stream(mapped);
    }
    let Args { positional, named } = args;
    let mut positional = positional.into_iter();
    let Some(name) = positional.next() else { return wrong("map requires a filter argument") };
    let name = Rc::clone(text_of(&name, "the name of a filter")?);
    let Some(apply) = filters::find(name.as_str()) else {
        return wrong(format!("No filter named '{}'.", name.as_str()));
    };
    let positional: Vec<Value> = positional.collect();
    for value in value.iterate()? {
        let args = Args { positional: positional.clone(), named: named.clone() };
        mapped.push(eval.apply_filter(apply, value, args)?);
    }
    Value::stream(mapped)
}

/// `select`, `reject` and the same by attribute.
pub(super) fn select(_: &mut Eval<'_>, value: &Value, args: Args, wanted: bool, by: bool) -> Res<Value> {
    if !value.is_true() {
        return Value::stream(Vec::new());
    }
    let Args { positional, named } = args;
    let mut positional = positional.into_iter();
    let path = if by {
        let Some(attribute) = positional.next() else { return wrong("Missing parameter for attribute name") };
        Path::new(&attribute)?
    } else {
        Path(Vec::new())
    };
    let holds = match positional.next() {
        None => None,
        Some(name) => {
            let name = text_of(&name, "the name of a test")?;
            match tests::find(name.as_str()) {
                Some(holds) => Some(holds),
                None => return wrong(format!("No test named '{}'.", name.as_str())),
            }
        }
    };
    let args = Args { positional: positional.collect(), named };
    let mut kept = Vec::new();
    for value in value.iterate()? {
        let found = path.get(&value, None)?;
        let holds = holds.map_or_else(|| Ok(found.is_true()), |holds| holds(&found, &args))?;
        if holds == wanted {
            kept.push(value);
        }
    }
    Value::stream(kept)
}
