//! Finds how tool calls are written: the text before a call, inside it, between two calls, and after the last.

mod arguments;
mod ends;
mod example;
mod object;
mod parts;
mod shape;
mod told;

use super::frame::Frame;
use super::probe::Probe;
use super::text::{closes, common_prefix, common_tags, first_tag, last_tag, length_of_last_marker, open_marker};
use crate::dialect::{Arguments, Calls, ContentMode, Part, Pattern, Style, Wrap};
use arguments::FoundArguments;
use ends::{FENCE, divide};
pub(crate) use example::{Example, to_spaced_json};
use parts::{ID, INDEX, NAME};
use serde_json::{Value, json};
use shape::Shape;
use told::InferredSyntax;

/// Calls, and the other findings from their renderings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RenderedCalls {
    pub(super) calls: Option<Calls>,
    /// End of a turn with calls, if it differs from the end of other turns.
    pub(super) turn_end: String,
    /// True if turns with calls end as other turns do.
    pub(super) ends_like_others: bool,
    /// Between two calls: the end of a message and the header of the next.
    pub(super) joints: Vec<String>,
    /// Text between two calls that are in no section.
    pub(super) separator: String,
    /// A header at the end of the prompt that begins calls. It is not part of the turn's header.
    pub(super) begun: String,
    /// True if the template takes null content beside calls.
    pub(super) null_content: bool,
    /// Syntax of calls, if the template renders none and only its prompt shows it.
    pub(super) told: Option<InferredSyntax>,
}

/// One call in a rendering, from the user's text on. Positions are of the text.
#[derive(Debug, Clone)]
pub(super) struct Body {
    /// Start of the call's name or object.
    pub(super) start: usize,
    /// End of its arguments or object.
    pub(super) end: usize,
    /// Between name and arguments; empty for objects.
    pub(super) middle: String,
    pub(super) what: BodyContent,
}

#[derive(Debug, Clone)]
pub(super) enum BodyContent {
    Object(Part),
    Arguments(Arguments),
}

/// Calls for each shape of messages in which the template renders them. Each is computed when it is asked for.
pub(super) fn find_rendered<'a>(probe: &'a Probe, frame: &'a Frame) -> impl Iterator<Item = RenderedCalls> + 'a {
    let contents = move || [Value::Null, "".into(), probe.needles.reply.clone().into()];
    // Arguments as a dict, as text, and as a dict that is printed.
    let arguments = [(false, false), (true, false), (false, true)];
    let shapes = arguments.into_iter().flat_map(move |how| contents().map(|content| (how, content)));
    shapes.filter_map(move |((text, printed), content)| {
        let null_content = content.is_null();
        let mut shape = Shape { text, printed, content, ..Shape::default() };
        let found = of_shape(probe, frame, &shape).or_else(|| {
            shape.answered = shape.answer(probe);
            shape.answered.as_ref()?;
            of_shape(probe, frame, &shape)
        });
        found.map(|written| RenderedCalls { null_content, ..written })
    })
}

/// Calls as the prompt describes them, for a template that renders no calls.
pub(super) fn infer_from_prompt(probe: &Probe, frame: &Frame) -> Option<RenderedCalls> {
    analyse_inferred(probe, frame, told::in_prompt(probe)?)
}

/// Calls between control tokens of the vocabulary, for a template that shows tools and nothing else.
pub(super) fn infer_from_vocabulary(probe: &Probe, frame: &Frame) -> Option<RenderedCalls> {
    analyse_inferred(probe, frame, told::of_vocabulary(probe)?)
}

fn analyse_inferred(probe: &Probe, frame: &Frame, known: InferredSyntax) -> Option<RenderedCalls> {
    let shape = Shape { example: Some((known.example.clone(), frame.turn_end.clone())), ..Shape::default() };
    let written = of_shape(probe, frame, &shape)?;
    Some(RenderedCalls { told: Some(known), ..written })
}

impl RenderedCalls {
    /// The same calls, and others for which the text after calls is divided differently into the end of all calls and
    /// the end of the turn.
    pub(super) fn otherwise(self) -> Vec<Self> {
        let mut ways = Vec::new();
        if let Some(calls) = &self.calls {
            let (start, end) = (calls.section.start.trim(), calls.section.end.trim());
            let tag = first_tag(end, None).trim();
            let mut divided = |end_of_calls: &str| {
                let mut other = self.clone();
                let turn_end = end[end_of_calls.len()..].trim();
                turn_end.clone_into(&mut other.turn_end);
                if let Some(calls) = &mut other.calls {
                    end_of_calls.clone_into(&mut calls.section.end);
                }
                ways.push(other);
            };
            if !tag.is_empty() && tag.len() < end.len() {
                divided(tag);
            }
            if !tag.is_empty() && !closes(start, tag) {
                divided("");
            }
        }
        ways.push(self);
        ways
    }
}

fn of_shape(probe: &Probe, frame: &Frame, shape: &Shape) -> Option<RenderedCalls> {
    let needles = &probe.needles;
    let call = |number: usize| probe.call(number, json!({&needles.keys[0]: &needles.values[number]}));
    let one = shape.render(probe, vec![call(0)])?;
    // A dict as Python prints it: most such templates want the text.
    if probe.is_printed(&one) != shape.printed {
        return None;
    }
    let first = body(probe, shape, &one, 0)?;
    if one[..first.start].contains("None") {
        return None;
    }
    let mut before = parts::normal(probe, skip_frame(&one[..first.start], frame, &needles.reply));
    let after = parts::normal(probe, &one[first.end..]);
    let two = shape.render(probe, vec![call(0), call(1)]).and_then(|two| second(probe, shape, two));
    let mut written = match two {
        Some(two) => of_two(frame, &first, &mut before, &after, &two),
        None => of_one(frame, &first, &before, &after),
    };
    if let Some(calls) = &mut written.calls {
        calls.lines = writes_lines(probe, shape, &first);
    }
    Some(written)
}

/// Returns whether arguments that are no tags are written over several lines, or the call around them is indented.
fn writes_lines(probe: &Probe, shape: &Shape, first: &Body) -> bool {
    let ([key, next], [value, last]) = (&probe.needles.keys, &probe.needles.values);
    if matches!(&first.what, BodyContent::Arguments(Arguments::Tagged(_) | Arguments::Elements { .. })) {
        return false;
    }
    let text = shape.render(probe, vec![probe.call(0, json!({key: value, next: [last]}))]);
    let Some((text, end)) = text.as_deref().and_then(|text| Some((text, text.rfind(last.as_str())?))) else {
        return false;
    };
    let written = &text[..end];
    let in_arguments = written.find(key.as_str()).is_some_and(|at| written[at..].contains('\n'));
    in_arguments || written.contains("\n ") || written.contains("\n\t")
}

/// The text between two calls, and the second.
struct Two {
    between: String,
    middle: String,
}

fn second(probe: &Probe, shape: &Shape, two: String) -> Option<Two> {
    let first = body(probe, shape, &two, 0)?;
    let rest = &two[first.end..];
    let next = body(probe, shape, rest, 1)?;
    Some(Two { between: parts::normal(probe, &rest[..next.start]), middle: next.middle })
}

/// The call of this number in a text.
fn body(probe: &Probe, shape: &Shape, text: &str, number: usize) -> Option<Body> {
    let needles = &probe.needles;
    let (name, value) = (&needles.names[number], &needles.values[number]);
    let at = text.find(name.as_str())?;
    if !text.contains(value.as_str()) {
        return None;
    }
    if let Some(found) = object::find(text, name, &needles.keys[0], value, &needles.ids[number]) {
        let (start, end) = (found.start, found.end);
        if let Some(part) = found.call {
            return Some(Body { start, end, middle: String::new(), what: BodyContent::Object(part) });
        }
        let middle = parts::normal(probe, text.get(at + name.len()..start)?);
        let arguments = if found.python { Arguments::Literal(Style::python()) } else { Arguments::Json };
        return Some(Body { start: at, end, middle, what: BodyContent::Arguments(arguments) });
    }
    let FoundArguments { start, end, arguments } = arguments::find(probe, shape, text, number)?;
    let middle = parts::normal(probe, text.get(at + name.len()..start)?);
    Some(Body { start: at, end, middle, what: BodyContent::Arguments(arguments) })
}

/// Skips the header of the turn, an empty block of reasoning and empty content.
fn skip_frame<'a>(text: &'a str, frame: &Frame, reply: &str) -> &'a str {
    let text = text.rfind(reply).map_or(text, |at| &text[at + reply.len()..]);
    let text = text.strip_prefix(frame.user_end.as_str()).unwrap_or(text);
    let header = frame.header.as_str();
    let text = text.strip_prefix(header).or_else(|| text.strip_prefix(header.trim_end())).unwrap_or(text);
    let text = super::frame::skip_reasoning(text, &frame.reasoning);
    let empty = text.strip_prefix(frame.content.start.trim()).unwrap_or(text);
    match empty.strip_prefix(frame.content.end.trim()) {
        Some(rest) if !frame.content.end.is_empty() => rest,
        _ => text,
    }
}

fn of_two(frame: &Frame, first: &Body, before: &mut String, after: &str, two: &Two) -> RenderedCalls {
    let mut written = RenderedCalls::default();
    let mut between = two.between.as_str();
    // A call that the prompt begins: its beginning went away with the header.
    if !between.is_empty() && before.is_empty() && frame.header.ends_with(between) {
        between.clone_into(&mut written.begun);
        between.clone_into(before);
    }
    // What ends each call also where they stand in a list.
    let closed = common_prefix(between, after);
    let list = is_list(before, &after[closed.len()..]) && between[closed.len()..].trim() == ",";
    let (section_start, head) = if list {
        (before.trim_end().trim_end_matches('[').to_owned(), String::new())
    } else {
        // Lines begin anywhere; a space may be the beginning of a recipient.
        let head = common_tags(before, between).trim_start_matches('\n');
        (before[..before.len() - head.len()].to_owned(), head.to_owned())
    };
    between = &between[..between.len() - head.len().min(between.len())];
    let mut tail = common_prefix(between, after);
    let header = frame.header.trim();
    if tail.trim().is_empty() || (!header.is_empty() && between[tail.len()..].trim_start().starts_with(header)) {
        // What ends a call ends its turn, where each call is one.
        tail = "";
    }
    let rest = &after[tail.len()..];
    let mut between = between[tail.len()..].to_owned();
    if !frame.header.trim().is_empty()
        && let Some(at) = between.find(frame.header.trim())
    {
        // Each call is a message of its own.
        written.joints = vec![between[..at].trim().to_owned(), frame.header.trim().to_owned()];
        between.clear();
    }
    let mut end = end_of_section(rest, frame, list);
    written.ends_like_others = end.trim().is_empty();
    let is_marked = !list && !section_start.trim().is_empty();
    written.turn_end = end_of_turn(&section_start, &mut end, rest, frame, is_marked);
    let section = if section_start.trim().is_empty() {
        written.turn_end.insert_str(0, &end);
        Wrap::default()
    } else {
        Wrap::new(section_start.trim_start(), end.trim())
    };
    let middle = parts::with_index_sign(&first.middle, &two.middle);
    let mut calls = Calls { section, list, parallel: true, ..Calls::default() };
    let between = between.trim();
    if calls.section.is_empty() && !list {
        // Nothing ends all calls: what stands between two means nothing.
        between.clone_into(&mut written.separator);
    } else if !list {
        between.clone_into(&mut calls.between);
    }
    calls.patterns = vec![pattern(&head, &middle, first, tail, &calls.section)];
    written.calls = Some(calls);
    written
}

fn of_one(frame: &Frame, first: &Body, before: &str, after: &str) -> RenderedCalls {
    // What the prompt ends with may begin calls and content alike: `>>>`.
    let shared = before.is_empty() && matches!(first.what, BodyContent::Arguments(_));
    let begun = if shared && frame.content.mode == ContentMode::Wrapped { last_sign(&frame.header) } else { "" };
    let before = if begun.is_empty() { before } else { begun };
    // What ends a call also where it stands in a list; there a word such as `api.` may stand before the name.
    let listed =
        before.rfind('[').map(|at| at + 1).filter(|at| !before[*at..].contains(|sign: char| !is_of_word(sign)));
    let closed = after.strip_prefix(')').is_some_and(|after| after.trim_start().starts_with(']'));
    let (before, prefix) = before.split_at(listed.filter(|_| closed).unwrap_or(before.len()));
    let closed = closed && is_list(before, &after[1..]);
    let (closed, after) = after.split_at(usize::from(closed));
    let list = is_list(before, after);
    let (section, head) = match first.what {
        BodyContent::Arguments(_) if closed.is_empty() => ("", before),
        _ if list => (before.trim().trim_end_matches('['), prefix),
        _ => (before.trim_start(), ""),
    };
    let mut end = end_of_section(after, frame, list);
    let mut written =
        RenderedCalls { ends_like_others: end.trim().is_empty(), begun: begun.to_owned(), ..RenderedCalls::default() };
    let (mut section, mut head) = (section, head);
    let opened = format!("{before}{}", first.middle);
    let is_closed = divide(&opened, &end).is_some();
    written.turn_end = end_of_turn(&opened, &mut end, after, frame, false);
    if !list && is_closed {
        (section, head) = ("", before);
    }
    let (section, tail) = match (section.is_empty(), segments_of(&end)) {
        (true, 1)
            if matches!(first.what, BodyContent::Arguments(_))
                && head.trim_start().starts_with(char::is_alphabetic) =>
        {
            written.turn_end = end;
            (Wrap::default(), String::new())
        }
        (true, _) => (Wrap::default(), end),
        (false, _) => (Wrap::new(section, end.trim()), String::new()),
    };
    let mut calls = Calls { section, list, ..Calls::default() };
    let tail = format!("{closed}{tail}");
    calls.patterns = vec![pattern(head, &first.middle, first, &tail, &calls.section)];
    written.calls = Some(calls);
    written
}

/// Splits the text after calls into their end and the end of the turn. If a marker begins a section that needs an end,
/// all of the text ends the calls.
fn end_of_turn(before: &str, end: &mut String, rest: &str, frame: &Frame, is_marked: bool) -> String {
    let usual = frame.turn_end.trim();
    // A turn that ends as others do has nothing else that ends it.
    if !usual.is_empty() && rest.trim_end().ends_with(usual) {
        return String::new();
    }
    // What closes a marker before the arguments ends calls; what comes after it ends the turn.
    if let Some((closing, _)) = divide(before, end) {
        return end.split_off(closing.len());
    }
    // A turn ends somehow: where not as others do, its last marker ends it.
    let is_marked = is_marked && segments_of(end) < 2;
    if is_marked || usual.is_empty() || !common_tags(rest.trim_end(), usual).is_empty() {
        return String::new();
    }
    end.split_off(end.len() - last_tag(end, None).len())
}

fn segments_of(text: &str) -> usize {
    super::text::segments(text.trim()).len()
}

fn is_list(before: &str, after: &str) -> bool {
    before.trim_end().ends_with('[') && after.trim_start().starts_with(']')
}

/// Returns the end of all calls: the text before the end of the turn.
fn end_of_section(rest: &str, frame: &Frame, list: bool) -> String {
    let rest = if list { rest.trim_start().strip_prefix(']').unwrap_or(rest) } else { rest };
    let end = common_tags(rest, &frame.turn_end);
    rest[..rest.len() - end.len()].to_owned()
}

fn pattern(head: &str, middle: &str, first: &Body, tail: &str, section: &Wrap) -> Pattern {
    let mut found = parts::parse_parts(head);
    match &first.what {
        BodyContent::Object(part) => found.push(part.clone()),
        BodyContent::Arguments(arguments) => {
            found.push(Part::Name);
            let tail_of_head = found.len();
            found.extend(parts::parse_parts(middle));
            if is_prefixed(middle) {
                parts::whole_id(&mut found, tail_of_head - 1);
            }
            found.push(Part::Arguments(arguments.clone()));
        }
    }
    found.extend(parts::parse_parts(tail));
    let pattern = Pattern::new(found);
    // One sign that opens nothing, such as `@`, stands in texts too.
    let short = |text: &str| text.trim().chars().count() < 2 && open_marker(text, text.len()).is_none();
    let word =
        |text: &str| (text.trim_start().starts_with(char::is_alphanumeric) && !text.contains(FENCE)) || short(text);
    if section.start.trim().is_empty()
        && pattern.head().is_none_or(|head| word(head) && !head.contains(NAME))
        && !is_labelled(&pattern)
    {
        return pattern.at_start();
    }
    pattern
}

/// Returns whether name and arguments are on lines of their own, each after a label.
fn is_labelled(pattern: &Pattern) -> bool {
    let label = |text: &str| text.trim().ends_with(':');
    matches!(&pattern.parts[..], [Part::Text(name), Part::Name, Part::Text(arguments), ..]
        if label(name) && label(arguments) && arguments.starts_with('\n'))
}

fn is_of_word(sign: char) -> bool {
    sign.is_alphanumeric() || matches!(sign, '.' | '_')
}

/// The marker or the signs that a text ends with.
fn last_sign(text: &str) -> &str {
    let word = |sign: char| sign.is_alphanumeric() || sign.is_whitespace();
    match length_of_last_marker(text) {
        0 => text.rsplit(word).next().unwrap_or_default(),
        length => &text[text.len() - length..],
    }
}

/// Returns whether name and number make one word, `NAME:0`.
fn is_prefixed(middle: &str) -> bool {
    let joint = middle.split(INDEX).next().unwrap_or_default();
    middle.contains(INDEX)
        && !joint.contains(ID)
        && !joint.contains(|sign: char| sign.is_whitespace() || matches!(sign, '<' | '>' | '"' | '\'' | '[' | ']'))
}
