//! Properties that comparison cannot reveal: one table of families, recognised by the shapes of their markers.

use super::frame::Frame;
use super::probe::{Ask, Probe};
use super::text::{Segment, segments, word_of};
use crate::dialect::{
    Arguments, Calls, ContentMode, Dialect, Part, Pattern, ReasoningMode, Style, TaggedArguments, Wrap,
};

/// Input of an entry of the table.
struct FamilyInput<'a, 'p> {
    probe: &'a Probe<'p>,
    frame: &'a Frame,
}

/// A family: the test that recognises it, and the properties that it adds.
struct Family {
    /// Description of it for people.
    name: &'static str,
    /// Returns whether a dialect has its shape.
    known_by: fn(&FamilyInput, &Dialect) -> bool,
    /// Adds its properties to a dialect.
    add: fn(&FamilyInput, &mut Dialect),
}

/// The table. Each entry has a test.
const FAMILIES: [Family; 9] = [
    Family {
        name: "functions as unclosed tags, values on lines of their own: the tag around a call may be left out",
        known_by: |_, dialect| lined_function_tags(dialect) && dialect.reasoning.mode == ReasoningMode::None,
        add: |_, dialect| with_first_pattern(dialect, |pattern| pattern.optional_head = 1),
    },
    Family {
        name: "the same with reasoning: a call ends it",
        known_by: |_, dialect| lined_function_tags(dialect) && dialect.reasoning.mode != ReasoningMode::None,
        add: |_, dialect| dialect.reasoning.calls_end_it = true,
    },
    Family {
        name: "tags for keys and values, one argument right after the other: a call ends reasoning",
        known_by: |_, dialect| {
            let Some(keyed) = tagged_arguments(dialect) else { return false };
            has_value_tag(keyed)
                && !keyed.value_end.ends_with('\n')
                && on_one_line(dialect)
                && dialect.reasoning.mode == ReasoningMode::OpenedByPrompt
        },
        add: |_, dialect| dialect.reasoning.calls_end_it = true,
    },
    Family {
        name: "tags that say whether a value is a string: a call ends reasoning",
        known_by: |_, dialect| {
            tagged_arguments(dialect).is_some_and(|keyed| keyed.opened.len() == 2)
                && dialect.reasoning.mode != ReasoningMode::None
        },
        add: |_, dialect| dialect.reasoning.calls_end_it = true,
    },
    Family {
        name: "prefixed names with numbers: such models think, and a call ends it",
        known_by: |_, dialect| parts(dialect).contains(&Part::WholeId),
        add: |_, dialect| {
            if dialect.reasoning.mode == ReasoningMode::None {
                dialect.reasoning.mode = ReasoningMode::Optional;
                (dialect.reasoning.start, dialect.reasoning.end) = ("<think>".into(), "</think>".into());
            }
            dialect.reasoning.calls_end_it = true;
        },
    },
    Family {
        name: "channels: a header of two markers with the channel between, recipients before or in it",
        known_by: |_, dialect| channel(dialect).is_some(),
        add: |_, dialect| add_channels(dialect),
    },
    Family {
        name: "recipients: content may come without one",
        known_by: |_, dialect| recipient(dialect).is_some(),
        add: |_, dialect| {
            if let Some(marker) = recipient(dialect) {
                dialect.content.other_starts.push(marker);
                dialect.content.end.clear();
            }
        },
    },
    Family {
        name: "tools listed between markers that say so, calls not rendered: Python calls between markers like them",
        known_by: |seen, dialect| dialect.calls.is_none() && listed_between(seen).is_some(),
        add: |seen, dialect| {
            let Some((start, end)) = listed_between(seen) else { return };
            let of_calls = |marker: &str| marker.replace("list", "call");
            let parts = vec![
                Part::Name,
                Part::Text("(".into()),
                Part::Arguments(Arguments::Keywords(Style::python())),
                Part::Text(")".into()),
            ];
            let section = Wrap::new(of_calls(&start), of_calls(&end));
            dialect.calls = Some(Calls {
                section,
                list: true,
                patterns: vec![Pattern::new(parts)],
                parallel: true,
                ..Calls::default()
            });
        },
    },
    Family {
        name: "turns written as tags without bars: no token of its own ends them",
        known_by: |seen, dialect| tag_that_ends_turns(seen, dialect).is_some(),
        add: |seen, dialect| dialect.stops.extend(tag_that_ends_turns(seen, dialect)),
    },
];

/// Number of entries in the table.
pub(super) const COUNT: usize = FAMILIES.len();

/// Adds what the families know, and says which they are.
pub(super) fn complete(probe: &Probe, frame: &Frame, dialect: &mut Dialect) -> Vec<&'static str> {
    let seen = FamilyInput { probe, frame };
    let mut found = Vec::new();
    for family in &FAMILIES {
        if (family.known_by)(&seen, dialect) {
            (family.add)(&seen, dialect);
            found.push(family.name);
        }
    }
    found
}

fn with_first_pattern(dialect: &mut Dialect, change: impl FnOnce(&mut Pattern)) {
    if let Some(pattern) = dialect.calls.as_mut().and_then(|calls| calls.patterns.first_mut()) {
        change(pattern);
    }
}

fn parts(dialect: &Dialect) -> &[Part] {
    dialect.calls.as_ref().and_then(|calls| calls.patterns.first()).map_or(&[], |pattern| &pattern.parts)
}

fn tagged_arguments(dialect: &Dialect) -> Option<&TaggedArguments> {
    parts(dialect).iter().find_map(|part| match part {
        Part::Arguments(Arguments::Tagged(keyed)) => Some(keyed),
        _ => None,
    })
}

/// `<x>` then `<function=NAME>`, values between line ends.
fn lined_function_tags(dialect: &Dialect) -> bool {
    let [Part::Text(_), Part::Text(tag), Part::Name, ..] = parts(dialect) else { return false };
    let open = tag.trim_start().starts_with('<') && tag.ends_with('=');
    open && tagged_arguments(dialect).is_some_and(|keyed| {
        keyed.value_end.starts_with('\n') && keyed.opened.iter().all(|opened| opened.text.ends_with('\n'))
    })
}

/// Returns whether the value has an opening tag of its own.
fn has_value_tag(keyed: &TaggedArguments) -> bool {
    let markers = |text: &str| segments(text).iter().filter(|segment| matches!(segment, Segment::Marker(_))).count();
    keyed.opened.iter().all(|opened| markers(&opened.text) == 2)
}

/// Returns whether the end of a call begins a line although arguments do not.
fn on_one_line(dialect: &Dialect) -> bool {
    let last = dialect.calls.as_ref().and_then(|calls| calls.patterns.first()).and_then(|pattern| pattern.parts.last());
    matches!(last, Some(Part::Text(text)) if text.starts_with('\n'))
}

/// The markers and words of a header `<c>word<m>` that reasoning and content both have, with other words.
fn channel(dialect: &Dialect) -> Option<(String, String, String, String)> {
    let (reasoning, content) = (dialect.reasoning.start.trim(), dialect.content.start.trim());
    let (thinks, says) = (word_of(reasoning)?, word_of(content)?);
    let [Segment::Marker(open), _, Segment::Marker(close)] = segments(reasoning)[..] else { return None };
    let same = content.starts_with(open) && content.ends_with(close) && thinks != says;
    let recipient =
        matches!(parts(dialect), [Part::Text(_), Part::Name, Part::Text(next), ..] if next.starts_with(open));
    (same && recipient).then(|| (open.into(), close.into(), thinks.into(), says.into()))
}

/// Headers as such models write them, beside the one that the template renders.
fn add_channels(dialect: &mut Dialect) {
    let Some((open, close, thinks, says)) = channel(dialect) else { return };
    let [Part::Text(to), Part::Name, Part::Text(next), ..] = parts(dialect) else { return };
    let to = to.clone();
    let calls = next[open.len()..].split(|sign: char| !sign.is_alphanumeric()).next().unwrap_or_default().to_owned();
    let arguments = || Part::Arguments(Arguments::Json);
    let text = |text: String| Part::Text(text);
    let mut patterns = Vec::new();
    for channel in [&calls, &thinks] {
        patterns.push(Pattern::new(vec![
            text(to.clone()),
            Part::Name,
            text(format!("{open}{channel}")),
            Part::Anything,
            text(close.clone()),
            arguments(),
        ]));
        let header = format!("{open}{channel}{to}");
        for kind in ["", " json", " <|constrain|>json"] {
            let said = format!("{open}{channel}{kind}{close}");
            patterns.push(Pattern::new(vec![text(to.clone()), Part::Name, text(said), arguments()]));
            let said = format!("{kind}{close}");
            patterns.push(Pattern::new(vec![text(header.clone()), Part::Name, text(said), arguments()]));
        }
        patterns.push(Pattern::new(vec![text(header), Part::Name, Part::Anything, text(close.clone()), arguments()]));
    }
    let to_self = format!("{open}{calls} to=assistant");
    if let Some(known) = &mut dialect.calls {
        known.patterns.extend(patterns.into_iter().map(Pattern::at_start));
    }
    let starts = [format!("{open}{calls}{close}"), format!("{open}{says} <|constrain|>json{close}")];
    dialect.content.other_starts.extend(starts);
    dialect.content.other_starts.push(format!("{to_self}{open}{says}{close}"));
    dialect.joints.push(to_self);
    // A joint ends it.
    dialect.content.end.clear();
}

/// The marker that ends a recipient, where reasoning, content and calls all begin with ` to=`.
fn recipient(dialect: &Dialect) -> Option<String> {
    let (reasoning, content) = (&dialect.reasoning.start, &dialect.content.start);
    let [Part::Text(to), Part::Name, ..] = parts(dialect) else { return None };
    let is_word = to.trim_start().starts_with(char::is_alphabetic);
    if !is_word || !reasoning.starts_with(to.as_str()) || !content.starts_with(to.as_str()) {
        return None;
    }
    let marker = segments(content).into_iter().find_map(|segment| match segment {
        Segment::Marker(marker) => Some(marker.to_owned()),
        Segment::Text(_) => None,
    })?;
    (dialect.content.mode == ContentMode::Wrapped).then_some(marker)
}

/// The markers around the list of tools, if their names speak of a list.
fn listed_between(seen: &FamilyInput) -> Option<(String, String)> {
    let text = seen.probe.render(&Ask::new(vec![seen.probe.user()]).with_tools())?;
    let first = text.find(&seen.probe.needles.names[0])?;
    let last = text.rfind(&seen.probe.needles.names[1])?;
    let marker = |segment: &Segment| match segment {
        Segment::Marker(marker) if marker.contains("list") => Some((*marker).to_owned()),
        _ => None,
    };
    let start = segments(&text[..first]).iter().rev().find_map(marker)?;
    let end = segments(&text[last..]).iter().find_map(marker)?;
    Some((start, end))
}

/// Returns the end of a turn whose header or end is a closing tag.
fn tag_that_ends_turns(seen: &FamilyInput, dialect: &Dialect) -> Option<String> {
    let end = seen.frame.turn_end.trim();
    let closing = |text: &str| segments(text).iter().any(|segment| segment.text().starts_with("</"));
    let header = closing(&dialect.turns.assistant) || closing(end);
    let one = matches!(segments(end)[..], [Segment::Marker(_)]);
    (header && one && dialect.content.mode == ContentMode::Plain).then(|| end.to_owned())
}
