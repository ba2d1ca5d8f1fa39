//! The ways to write a call, each as the text before its arguments and the text after them.

use super::members::Side;
use super::seq::{Atom, Literal};
use crate::dialect::{Arguments, Field, ObjectCall, Part, Pattern, Style};

/// A way to write a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CallForm {
    pub before: Vec<Atom>,
    pub arguments: Arguments,
    pub after: Vec<Atom>,
    /// True if it may come only at the beginning of a reply.
    pub at_start_only: bool,
}

/// All ways to write a pattern, the usual one first. With `strict`, only the usual one and those in which the name
/// comes before the arguments.
///
/// `marked`: a marker says that a call begins.
pub(super) fn call_forms(pattern: &Pattern, strict: bool, marked: bool) -> Vec<CallForm> {
    let mut found: Vec<CallForm> = Vec::new();
    for missing in 0..=pattern.optional_head {
        for (before, arguments, after) in spread(&pattern.parts[missing.min(pattern.parts.len())..], strict, marked) {
            let named = |atoms: &[Atom]| atoms.contains(&Atom::Name);
            let usable = named(&before) || named(&after);
            let way = CallForm { before, arguments, after, at_start_only: pattern.at_start_only };
            if usable && !found.contains(&way) {
                found.push(way);
            }
        }
    }
    found
}

impl CallForm {
    /// The bytes with which arguments can begin, or the text after empty arguments.
    pub(super) fn first_bytes(&self) -> Box<[u8]> {
        let after = self.after.first().and_then(Atom::literal).unwrap_or_default();
        let (key, after) = match &self.arguments {
            Arguments::Json | Arguments::Literal(_) => ("{", ""),
            Arguments::JsonText => ("\"", ""),
            Arguments::Tagged(keyed) => (keyed.key_start.trim(), &after[..]),
            Arguments::Elements { mark, .. } => (if mark.trim().is_empty() { "<" } else { mark.trim() }, &after[..]),
            // Keys without quotes go on from a name.
            Arguments::Keywords(_) | Arguments::Pairs(_) => ("", ""),
        };
        let mut bytes: Vec<u8> = [key, after].iter().filter_map(|text| text.bytes().next()).collect();
        bytes.dedup();
        bytes.into()
    }
}

type Ways = Vec<(Vec<Atom>, Arguments, Vec<Atom>)>;

fn spread(parts: &[Part], strict: bool, marked: bool) -> Ways {
    let Some(place) = parts.iter().position(holds_arguments) else { return Vec::new() };
    let before: Vec<Atom> = atoms(&parts[..place], strict);
    let after: Vec<Atom> = atoms(&parts[place + 1..], strict);
    let inner: Ways = match &parts[place] {
        Part::Arguments(arguments) => vec![(Vec::new(), arguments.clone(), Vec::new())],
        Part::NameAsKey => {
            vec![(vec![text("{"), text("\""), Atom::Name, exactly("\""), text(":")], Arguments::Json, vec![text("}")])]
        }
        Part::Object(object) => object_ways(object, strict, marked),
        _ => Vec::new(),
    };
    // White space at the end of the text before stands before what follows it.
    let blanks = match parts[..place].last() {
        Some(Part::Text(text)) => &text[text.trim_end().len()..],
        _ => "",
    };
    let around = |(mut inner_before, arguments, inner_after): (Vec<Atom>, Arguments, Vec<Atom>)| {
        add_blanks(blanks, &mut inner_before);
        let before = before.iter().cloned().chain(inner_before).collect();
        (before, arguments, inner_after.into_iter().chain(after.iter().cloned()).collect())
    };
    inner.into_iter().map(around).collect()
}

/// Sets a first text behind this white space.
pub(super) fn add_blanks(blanks: &str, atoms: &mut [Atom]) {
    if let Some(Atom::Text(text)) = atoms.first_mut() {
        text.blanks = [blanks.as_bytes(), &text.blanks].concat().into();
    }
}

fn holds_arguments(part: &Part) -> bool {
    matches!(part, Part::Arguments(_) | Part::Object(_) | Part::NameAsKey)
}

fn atoms(parts: &[Part], strict: bool) -> Vec<Atom> {
    let (mut atoms, mut blanks) = (Vec::new(), "");
    for part in parts {
        let before = std::mem::take(&mut blanks);
        match part {
            // White space alone says where a name ends.
            Part::Text(given) if given.trim().is_empty() => {
                if let Some(Atom::Name | Atom::Id | Atom::Index | Atom::Anything) = atoms.last() {
                    atoms.extend(given.chars().next().map(|first| exactly(&first.to_string())));
                }
            }
            // Where a name ends, what is written says what stands there.
            Part::Text(given) if strict && atoms.last() == Some(&Atom::Name) => {
                atoms.push(exactly(given.trim_end()));
                blanks = &given[given.trim_end().len()..];
            }
            Part::Text(given) => {
                let own = &given[..given.len() - given.trim_start().len()];
                atoms.push(Atom::Text(Literal::with_blanks(&format!("{before}{own}"), given)));
                blanks = &given[given.trim_end().len()..];
            }
            Part::Name => {
                // Who reads takes any white space after a word that the template sets apart from the name.
                let is_word = matches!(atoms.last(), Some(Atom::Text(text)) if text.ends_with_word());
                let blanks = if strict { before.chars().count() } else { usize::from(is_word && !before.is_empty()) };
                atoms.extend(std::iter::repeat_n(Atom::Blank, blanks));
                atoms.push(Atom::Name);
            }
            Part::Id => atoms.push(Atom::Id),
            Part::Index => atoms.push(Atom::Index),
            Part::Anything => atoms.push(Atom::Anything),
            Part::WholeId => atoms.push(Atom::WholeId),
            Part::Arguments(_) | Part::Object(_) | Part::NameAsKey => {}
        }
    }
    atoms
}

fn text(text: &str) -> Atom {
    Atom::Text(Literal::new(text))
}

/// A text that JSON has after a blank, as most templates write it.
fn apart(text: &str) -> Atom {
    Atom::Text(Literal::with_blanks(" ", text))
}

fn exactly(text: &str) -> Atom {
    Atom::Exactly(Literal::exactly(text))
}

/// A JSON object with its fields in the order of the template. Readers also take the fields in any order, without those
/// beside name and arguments, and with others that the template does not write. A call without arguments may lack them.
fn object_ways(object: &ObjectCall, strict: bool, marked: bool) -> Ways {
    let needed = |field: &Field| matches!(field, Field::Name(_) | Field::Arguments(_));
    let mut sets = vec![object.fields.clone()];
    if object.fields.iter().any(|field| !needed(field)) {
        sets.push(object.fields.iter().filter(|field| needed(field)).cloned().collect());
    }
    // Who reads a dict takes either quotes, as Python does.
    let quotes: &[char] = match (object.python, strict) {
        (false, _) => &['"'],
        (true, true) => &['\''],
        (true, false) => &['\'', '"'],
    };
    let mut ways = Ways::new();
    for fields in sets {
        let orders = if fields.len() > 4 { vec![fields] } else { orders(&fields) };
        for (number, order) in orders.into_iter().enumerate() {
            for &quote in quotes {
                // Arguments before the name are only written where the template writes them so.
                // Who reads takes other members at the end in any case.
                let others = (!strict).then_some(ExtraMembers { first: false, between: false });
                if let Some(way) = object_way(object, &order, quote, others)
                    && (!strict || number == 0 || way.0.contains(&Atom::Name))
                {
                    ways.push(way);
                }
            }
        }
    }
    if !strict {
        let names = |field: &Field| matches!(field, Field::Name(_));
        let given: Vec<Field> = object.fields.iter().filter(|field| needed(field)).cloned().collect();
        let bare = [object.fields.clone(), given.clone()].map(|mut fields| {
            fields.retain(|field| !matches!(field, Field::Arguments(_)));
            fields
        });
        for &quote in quotes {
            let bare = bare.iter().filter(|fields| fields.iter().any(names) && fields.len() <= 4);
            ways.extend(
                bare.flat_map(|fields| orders(fields)).filter_map(|order| object_way(object, &order, quote, None)),
            );
            let others = ExtraMembers { first: marked, between: true };
            ways.extend(orders(&given).iter().filter_map(|order| object_way(object, order, quote, Some(others))));
        }
    }
    ways
}

/// Members that the template does not write.
#[derive(Debug, Clone, Copy)]
struct ExtraMembers {
    /// True if they may come first.
    first: bool,
    /// True if they may come between those that the template writes.
    between: bool,
}

/// All orders, the given one first.
fn orders(fields: &[Field]) -> Vec<Vec<Field>> {
    if fields.len() < 2 {
        return vec![fields.to_vec()];
    }
    let mut all = Vec::new();
    for first in 0..fields.len() {
        let mut rest = fields.to_vec();
        let first = rest.remove(first);
        all.extend(orders(&rest).into_iter().map(|rest| std::iter::once(first.clone()).chain(rest).collect()));
    }
    all
}

fn object_way(
    object: &ObjectCall,
    fields: &[Field],
    quote: char,
    others: Option<ExtraMembers>,
) -> Option<(Vec<Atom>, Arguments, Vec<Atom>)> {
    let before_first = || others.filter(|others| others.first).map(|_| Atom::Members(Side::Before));
    let before_next = || others.filter(|others| others.between).map(|_| Atom::Members(Side::Before));
    let after_last = || others.map(|_| Atom::Members(Side::After));
    let (mut before, mut after, mut seen) = (Vec::new(), Vec::new(), false);
    let is_inner = |field: &Field| match field {
        Field::Name(_) | Field::Arguments(_) => true,
        Field::Id(key) | Field::Constant(key, _) => object.beside.contains(key),
    };
    let mut open = vec![text("{")];
    open.extend(before_first());
    let is_outer = |field: &&Field| !object.inside.is_empty() && !is_inner(field);
    let inner: Vec<_> = fields.iter().filter(|field| !is_outer(field)).collect();
    let first = fields.iter().position(is_inner).unwrap_or_default();
    let outer: Vec<_> = fields[..first].iter().filter(is_outer).collect();
    let later: Vec<_> = fields[first..].iter().filter(is_outer).collect();
    let blank = |first: bool| if first { "" } else { " " };
    for (number, field) in outer.iter().enumerate() {
        open.extend(member(field, blank(number == 0), quote));
        open.push(text(","));
        open.extend(before_next());
    }
    if !object.inside.is_empty() {
        let key = Atom::Text(Literal::with_blanks(blank(outer.is_empty()), &quote_text(&object.inside, quote)));
        open.extend([key, text(":"), apart("{")]);
        open.extend(before_first());
    }
    before.append(&mut open);
    for (number, field) in inner.iter().enumerate() {
        let side = if seen { &mut after } else { &mut before };
        if number > 0 {
            side.push(text(","));
            side.extend(before_next());
        }
        side.extend(member(field, blank(number == 0), quote));
        seen |= matches!(field, Field::Arguments(_));
    }
    if !seen {
        // The end of the object stands where arguments would.
        before.push(Atom::Ahead([b'}'].into()));
        seen = true;
    }
    after.extend(after_last());
    after.push(text("}"));
    if !object.inside.is_empty() {
        for field in later {
            after.push(text(","));
            after.extend(member(field, " ", quote));
        }
        after.extend(after_last());
        after.push(text("}"));
    }
    let arguments = match (object.python, object.text) {
        (true, _) => Arguments::Literal(Style::python()),
        (false, true) => Arguments::JsonText,
        (false, false) => Arguments::Json,
    };
    seen.then_some((before, arguments, after))
}

/// A field, after this white space, in these quotes.
fn member(field: &Field, blank: &str, quote: char) -> Vec<Atom> {
    let key = |key: &str| Atom::Text(Literal::with_blanks(blank, &quote_text(key, quote)));
    let mark = quote.to_string();
    let with = |name: &str, value: Atom| vec![key(name), text(":"), apart(&mark), value, exactly(&mark)];
    match field {
        Field::Name(key) => with(key, Atom::Name),
        Field::Id(key) => with(key, Atom::Id),
        Field::Constant(name, value) => vec![key(name), text(":"), apart(&quote_text(value, quote))],
        Field::Arguments(name) => vec![key(name), text(":")],
    }
}

fn quote_text(text: &str, quote: char) -> String {
    if quote == '"' { serde_json::Value::from(text).to_string() } else { format!("{quote}{text}{quote}") }
}
