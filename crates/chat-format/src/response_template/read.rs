//! A response template as a [`Dialect`], so that replies are parsed and constrained by the machine of chat templates.

use super::content::{Content, Json, Lines, Tags};
use super::pattern::syntax::{Node, Place};
use super::template::{Anchor, Field as Region, ResponseTemplate};
use super::transform::{Transform, placeholder};
use crate::dialect::{
    Arguments, Calls, Content as Marks, ContentMode, Dialect, Field, ObjectCall, Part, Pattern, Quote, Reasoning,
    ReasoningMode, Style, TaggedArguments, Turns, Wrap,
};
use serde_json::Value;

/// Names under which response templates keep reasoning.
pub(crate) const REASONING: [&str; 3] = ["reasoning_content", "thinking", "reasoning"];
/// The name of the text for the user.
pub(crate) const CONTENT: &str = "content";
/// The name of the calls.
pub(crate) const CALLS: &str = "tool_calls";

/// Limit on the ways to write an anchor.
const MOST_WAYS: usize = 16;

/// The parts of a format, as a response template says them; an error is the reason why the machine cannot express it.
#[derive(Debug)]
pub(crate) struct DerivedParts {
    pub(crate) reasoning: Result<Option<Reasoning>, String>,
    pub(crate) content: Result<Marks, String>,
    pub(crate) calls: Result<Option<Calls>, String>,
    /// Texts that end a reply.
    pub(crate) stops: Vec<String>,
    /// Texts that begin a reply in a prompt.
    pub(crate) starts: Vec<String>,
    /// Texts between the parts of a reply.
    pub(crate) joints: Vec<String>,
    /// Fields that only the parser of the response template reads.
    pub(crate) others: Vec<String>,
}

impl ResponseTemplate {
    /// Derives the parts of a format.
    pub(crate) fn derive(&self) -> DerivedParts {
        let fields = &self.inner().fields;
        let of = |name: &str| fields.iter().find(|field| field.name == name);
        let reasoning = REASONING.iter().find_map(|name| of(name));
        let starts = match self.start_texts() {
            Some(texts) => texts.to_vec(),
            None => ways(self.start()).unwrap_or_default().iter().filter_map(|way| only_text(way)).collect(),
        };
        let has_rest = self.inner().implicit.is_some();
        let known = |name: &str| REASONING.contains(&name) || [CONTENT, CALLS].contains(&name);
        let content = of(CONTENT);
        let stops = content.filter(|content| content.open.is_none()).map(ends_of).unwrap_or_default();
        DerivedParts {
            reasoning: reasoning.map(read_reasoning).transpose(),
            content: content.map_or(Ok(Marks::default()), read_content),
            calls: of(CALLS).map(read_calls).transpose(),
            stops,
            joints: if has_rest { Vec::new() } else { starts.iter().map(|text| text.trim().to_owned()).collect() },
            starts,
            others: fields.iter().filter(|field| !known(&field.name)).map(|field| field.name.clone()).collect(),
        }
    }
}

impl DerivedParts {
    /// The whole as a dialect.
    ///
    /// # Errors
    /// The first part that the machine cannot express, and the reason.
    pub(crate) fn dialect(&self) -> Result<Dialect, String> {
        let of = |part: &str, reason: &String| format!("{part}: {reason}");
        let reasoning = self.reasoning.as_ref().map_err(|reason| of("the reasoning", reason))?;
        let content = self.content.as_ref().map_err(|reason| of("the content", reason))?;
        let calls = self.calls.as_ref().map_err(|reason| of("the calls", reason))?;
        Ok(Dialect {
            reasoning: reasoning.clone().unwrap_or_default(),
            content: content.clone(),
            calls: calls.clone(),
            turns: Turns { assistant: self.starts.first().cloned().unwrap_or_default(), ..Turns::default() },
            joints: self.joints.clone(),
            stops: self.stops.clone(),
        })
    }
}

/// A piece of an anchor.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Blank,
    /// A named group, which holds no others.
    Named(String),
    /// The border of a named group that holds others.
    Border(String),
    Anything,
    /// The beginning of the reply.
    Start,
    /// The end of the reply.
    End,
}

/// The ways to write an anchor.
fn ways(anchor: &Anchor) -> Result<Vec<Vec<Piece>>, String> {
    if let Some(texts) = &anchor.texts {
        return Ok(texts.iter().map(|text| vec![Piece::Text(text.clone())]).collect());
    }
    let mut ways = ways_of(anchor.pattern.node())?;
    ways.iter_mut().for_each(join_texts);
    ways.dedup();
    Ok(ways)
}

fn join_texts(pieces: &mut Vec<Piece>) {
    let mut joined: Vec<Piece> = Vec::new();
    for piece in pieces.drain(..) {
        match (joined.last_mut(), piece) {
            (Some(Piece::Text(before)), Piece::Text(text)) => before.push_str(&text),
            (Some(Piece::Blank), Piece::Blank) => {}
            (_, piece) => joined.push(piece),
        }
    }
    *pieces = joined;
}

fn ways_of(node: &Node) -> Result<Vec<Vec<Piece>>, String> {
    let ways = match node {
        Node::One(set) => match set.single() {
            Some(sign) => vec![vec![Piece::Text(sign.into())]],
            None if set.is_blank() => vec![vec![Piece::Blank]],
            None => return Err("one of several characters".into()),
        },
        Node::Sequence(nodes) => {
            let mut ways = vec![Vec::new()];
            for node in nodes {
                let more = ways_of(node)?;
                let with = |way: &Vec<Piece>| {
                    let longer = |more: &Vec<Piece>| way.iter().chain(more).cloned().collect::<Vec<Piece>>();
                    more.iter().map(longer).collect::<Vec<_>>()
                };
                ways = ways.iter().flat_map(with).collect();
                if ways.len() > MOST_WAYS {
                    return Err(format!("more than {MOST_WAYS} ways to write it"));
                }
            }
            ways
        }
        Node::Either(nodes) => {
            let ways: Vec<Vec<Vec<Piece>>> = nodes.iter().map(ways_of).collect::<Result<_, _>>()?;
            ways.into_iter().flatten().collect()
        }
        Node::Repeat { node, least, most, .. } => match (&**node, least, most) {
            (Node::One(set), ..) if set.is_blank() => vec![vec![Piece::Blank]],
            (Node::One(set), _, _) if set.single().is_none() => vec![vec![Piece::Anything]],
            (node, least, Some(most)) if least == most && *most <= 8 => {
                ways_of(&Node::Sequence(vec![node.clone(); *most as usize]))?
            }
            (node, 0, Some(1)) => {
                let mut ways = ways_of(node)?;
                ways.push(Vec::new());
                ways
            }
            _ => return Err("a repeated text".into()),
        },
        Node::Named(name, node) if holds_names(node) => {
            let border = || std::iter::once(Piece::Border(name.clone()));
            ways_of(node)?.into_iter().map(|way| border().chain(way).chain(border()).collect()).collect()
        }
        Node::Named(name, _) => vec![vec![Piece::Named(name.clone())]],
        Node::Place(Place::Start) => vec![vec![Piece::Start]],
        Node::Place(Place::End | Place::LineEnd) => vec![vec![Piece::End]],
        Node::Place(_) => return Err("the border of a word".into()),
        Node::Ahead { .. } => return Err("a look ahead".into()),
    };
    if ways.len() > MOST_WAYS { Err(format!("more than {MOST_WAYS} ways to write it")) } else { Ok(ways) }
}

fn holds_names(node: &Node) -> bool {
    match node {
        Node::Named(..) => true,
        Node::Sequence(nodes) | Node::Either(nodes) => nodes.iter().any(holds_names),
        Node::Repeat { node, .. } | Node::Ahead { node, .. } => holds_names(node),
        _ => false,
    }
}

/// The text of a way that is nothing but a text, with white space at most.
fn only_text(way: &[Piece]) -> Option<String> {
    let mut texts = way.iter().filter(|piece| !matches!(piece, Piece::Blank | Piece::Start));
    match (texts.next(), texts.next()) {
        (Some(Piece::Text(text)), None) => Some(text.clone()),
        _ => None,
    }
}

/// The texts that end a region.
fn ends_of(field: &Region) -> Vec<String> {
    let ways = field.close.as_ref().map(ways).and_then(Result::ok).unwrap_or_default();
    ways.iter().filter_map(|way| only_text(way)).filter(|text| !text.trim().is_empty()).collect()
}

/// The only text of an anchor.
fn text_of(anchor: &Anchor, what: &str) -> Result<String, String> {
    let ways = ways(anchor).map_err(|reason| format!("what {what} it is {reason}"))?;
    let texts: Vec<String> = ways.iter().filter_map(|way| only_text(way)).collect();
    match &texts[..] {
        [text] if ways.len() == 1 => Ok(text.clone()),
        [text, ..] if texts.len() == ways.len() => {
            Err(format!("{} texts {what} it, such as {text:?}: the machine has one", texts.len()))
        }
        _ => Err(format!("what {what} it is not a text")),
    }
}

fn read_reasoning(field: &Region) -> Result<Reasoning, String> {
    let close = field.close.as_ref().ok_or("nothing ends it")?;
    let end = text_of(close, "ends")?;
    let open = field.open.as_ref().ok_or("all text outside of the other fields is reasoning")?;
    if !matches!(field.content, Content::Text { .. }) || field.transform.is_some() {
        return Err("its text is parsed".into());
    }
    if let Some(until) = looked_for(open.pattern.node())
        && until == end.trim()
    {
        return Ok(Reasoning { mode: ReasoningMode::OnlyEnded, end, ..Reasoning::default() });
    }
    let start = text_of(open, "begins")?;
    Ok(Reasoning { mode: ReasoningMode::Optional, start, end, ..Reasoning::default() })
}

/// The text that a pattern looks ahead for, after anything: `(?=[\s\S]*?</think>)`.
fn looked_for(node: &Node) -> Option<String> {
    let Node::Ahead { node, not: false } = node else { return None };
    let Node::Sequence(nodes) = &**node else { return None };
    let (Node::Repeat { node, least: 0, most: None, .. }, text) = nodes.split_first()? else { return None };
    let Node::One(set) = &**node else { return None };
    let single = |node: &Node| match node {
        Node::One(set) => set.single(),
        _ => None,
    };
    if set.is_all() { text.iter().map(single).collect() } else { None }
}

fn read_content(field: &Region) -> Result<Marks, String> {
    if !matches!(field.content, Content::Text { .. }) || field.transform.is_some() {
        return Err("its text is parsed".into());
    }
    let Some(open) = &field.open else { return Ok(Marks::default()) };
    let texts = ways(open).map_err(|reason| format!("what begins it is {reason}"))?;
    let texts: Option<Vec<String>> = texts.iter().map(|way| only_text(way)).collect();
    let mut texts = texts.ok_or("what begins it is not a text")?.into_iter();
    let start = texts.next().unwrap_or_default();
    let end = ends_of(field).into_iter().next().unwrap_or_default();
    Ok(Marks { mode: ContentMode::Wrapped, start, end, other_starts: texts.collect() })
}

/// The place of a value in a call.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    /// Captured by an anchor.
    Captured(String),
    /// Under these keys of the parsed region, or of an item of it.
    Inside(Vec<String>),
}

/// The places of the parts of a call.
struct Sources {
    name: Source,
    arguments: Source,
    id: Option<Source>,
}

fn sources(transform: Option<&Transform>) -> Result<Sources, String> {
    let inside = |keys: &[&str]| Source::Inside(keys.iter().map(|&key| key.to_owned()).collect());
    let Some(transform) = transform else {
        let (name, arguments) = (inside(&["function", "name"]), inside(&["function", "arguments"]));
        return Ok(Sources { name, arguments, id: Some(inside(&["id"])) });
    };
    let source = |value: Option<&Value>| -> Option<Source> {
        let names = placeholder(value?.as_str()?)?;
        let rest = if transform.each { &names[..] } else { &names[1..] };
        Some(match names[0] {
            "content" if !transform.each => inside(rest),
            _ if transform.each => inside(rest),
            name => Source::Captured(name.to_owned()),
        })
    };
    let shape = &transform.shape;
    let function = shape.get("function").unwrap_or(shape);
    let id = source(shape.get("id")).or_else(|| source(function.get("id")));
    if let Some(Source::Inside(keys)) = source(Some(function)) {
        let under = |key: &str| Source::Inside(keys.iter().cloned().chain([key.to_owned()]).collect());
        return Ok(Sources { name: under("name"), arguments: under("arguments"), id });
    }
    let part = |key: &str| source(function.get(key)).ok_or_else(|| format!("the transform names no {key:?}"));
    Ok(Sources { name: part("name")?, arguments: part("arguments")?, id })
}

fn read_calls(field: &Region) -> Result<Calls, String> {
    let sources = sources(field.transform.as_ref())?;
    let each = field.transform.as_ref().is_some_and(|transform| transform.each);
    let open = field.open.as_ref().ok_or("nothing begins them")?;
    let opens = ways(open).map_err(|reason| format!("what begins them holds {reason}"))?;
    let closes = match &field.close {
        Some(close) => ways(close).map_err(|reason| format!("what ends them holds {reason}"))?,
        None => vec![Vec::new()],
    };
    let inner = call_parts(&field.content, &sources, each)?;
    if each {
        let head = opens.iter().find_map(|way| only_text(way)).ok_or("what begins the list is not a text")?;
        let end = closes.iter().find_map(|way| only_text(way)).unwrap_or_default();
        let section = Wrap::new(head, end);
        let patterns = vec![Pattern::new(inner)];
        return Ok(Calls { section, list: true, patterns, parallel: true, ..Calls::default() });
    }
    let mut patterns = Vec::new();
    for open in &opens {
        for close in &closes {
            let mut parts = parts_of(open, &sources)?;
            parts.extend(inner.iter().cloned());
            parts.extend(parts_of(close, &sources)?);
            let named = |part: &Part| matches!(part, Part::Name | Part::Object(_) | Part::NameAsKey);
            if !parts.iter().any(named) {
                return Err("nothing names the tool".into());
            }
            let mut pattern = Pattern::new(parts);
            let is_open = |part: Option<&Part>| !matches!(part, Some(Part::Text(text)) if text.trim().len() > 2);
            pattern.at_start_only = open.first() == Some(&Piece::Start) || is_open(pattern.parts.first());
            if !patterns.contains(&pattern) {
                patterns.push(pattern);
            }
        }
    }
    Ok(Calls { patterns, parallel: field.repeats, ..Calls::default() })
}

/// The parts that an anchor writes.
fn parts_of(way: &[Piece], sources: &Sources) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    for piece in way {
        let of = |name: &String| Source::Captured(name.clone());
        parts.push(match piece {
            Piece::Text(text) => Part::Text(text.clone()),
            Piece::Named(name) if of(name) == sources.name => Part::Name,
            Piece::Named(name) if Some(of(name)) == sources.id => Part::Id,
            Piece::Named(name) if of(name) == sources.arguments => {
                return Err(format!("the group {name:?} holds the arguments"));
            }
            Piece::Border(name) if Some(of(name)) == sources.id => Part::WholeId,
            Piece::Blank | Piece::Start | Piece::End | Piece::Border(_) => continue,
            Piece::Named(_) | Piece::Anything => Part::Anything,
        });
    }
    Ok(parts)
}

/// The parts of a call inside a region.
fn call_parts(content: &Content, sources: &Sources, each: bool) -> Result<Vec<Part>, String> {
    let text = |text: &str| Part::Text(text.into());
    match (content, &sources.name, &sources.arguments) {
        (Content::Json(json), Source::Inside(name), Source::Inside(arguments)) => {
            if json.bare_keys || !json.quotes.is_empty() {
                return Err("a whole call in JSON of a dialect".into());
            }
            let call = object_call(name, arguments, sources.id.as_ref())?;
            Ok(vec![Part::Object(call)])
        }
        (Content::Json(json), Source::Captured(_), Source::Inside(keys)) if keys.is_empty() => {
            Ok(json_arguments(json)?)
        }
        (Content::Calls, Source::Inside(name), Source::Inside(arguments)) if each => {
            if name[..] != ["name"] || arguments[..] != ["arguments"] {
                return Err("Python calls have \"name\" and \"arguments\"".into());
            }
            Ok(vec![Part::Name, text("("), Part::Arguments(Arguments::Keywords(Style::python())), text(")")])
        }
        (Content::Tags(tags), Source::Captured(_), Source::Inside(keys)) if keys.is_empty() => {
            Ok(vec![Part::Arguments(Arguments::Tagged(read_tags(tags)?))])
        }
        (Content::Lines(lines), Source::Captured(_), Source::Inside(keys)) if keys.is_empty() => {
            Ok(vec![Part::Arguments(Arguments::Tagged(read_lines(lines)?))])
        }
        _ => Err("name and arguments do not come from the anchors and the region as in any known style".into()),
    }
}

fn object_call(name: &[String], arguments: &[String], id: Option<&Source>) -> Result<ObjectCall, String> {
    let (Some((name, inside)), Some((arguments, beside))) = (name.split_last(), arguments.split_last()) else {
        return Err("a call without keys".into());
    };
    if inside != beside || inside.len() > 1 {
        return Err("name and arguments are not beside each other".into());
    }
    let id = id.and_then(|id| match id {
        Source::Inside(keys) if keys.len() == 1 => Some(Field::Id(keys[0].clone())),
        _ => None,
    });
    let call = [Field::Name(name.clone()), Field::Arguments(arguments.clone())];
    let fields = id.into_iter().chain(call).collect();
    Ok(ObjectCall { fields, inside: inside.first().cloned().unwrap_or_default(), ..ObjectCall::default() })
}

fn json_arguments(json: &Json) -> Result<Vec<Part>, String> {
    let style = match &json.quotes[..] {
        [] => Style { bare_keys: json.bare_keys, json_words: true, ..Style::json() },
        [(open, close)] if open == close => {
            Style { bare_keys: json.bare_keys, json_words: true, ..Style::quoted_by(open.clone()) }
        }
        _ => return Err("texts between two different marks".into()),
    };
    if json.quotes.is_empty() && !json.bare_keys {
        return Ok(vec![Part::Arguments(Arguments::Json)]);
    }
    if !json.bare_keys {
        let quotes = style.quotes.iter().cloned().chain([Quote { mark: "\"".into(), escapes: true }]).collect();
        return Ok(vec![Part::Arguments(Arguments::Literal(Style { quotes, ..style }))]);
    }
    let text = |text: &str| Part::Text(text.into());
    Ok(vec![text("{"), Part::Arguments(Arguments::Pairs(style)), text("}")])
}

fn read_tags(tags: &Tags) -> Result<TaggedArguments, String> {
    let ways = ways_of(tags.pattern.node()).map_err(|reason| format!("tag_pattern holds {reason}"))?;
    let [way] = &ways[..] else { return Err("tag_pattern writes an argument in several ways".into()) };
    if !is_free("value", tags.pattern.node()) {
        return Err("the value in tag_pattern is not free text".into());
    }
    if tags.merge {
        return Err("values of a key that comes again are a list".into());
    }
    let mut parts = way.split(|piece| matches!(piece, Piece::Named(_)));
    let names: Vec<&Piece> = way.iter().filter(|piece| matches!(piece, Piece::Named(_))).collect();
    if names != [&Piece::Named("key".into()), &Piece::Named("value".into())] {
        return Err("tag_pattern is not a key and then a value".into());
    }
    let mut text = || {
        let pieces = parts.next().unwrap_or_default();
        let text = |piece: &Piece| match piece {
            Piece::Text(text) => Ok(text.clone()),
            Piece::Blank => Ok(String::new()),
            _ => Err("tag_pattern holds more than texts".to_owned()),
        };
        pieces.iter().map(text).collect::<Result<String, String>>()
    };
    let (start, between, end) = (text()?, text()?, text()?);
    if start.trim().is_empty() || end.trim().is_empty() {
        return Err("tag_pattern marks no beginning or no end".into());
    }
    // The machine takes any white space between markers, none too.
    if [&start, &between, &end].iter().any(|text| text.contains(char::is_whitespace)) {
        return Err("tag_pattern requires white space".into());
    }
    Ok(TaggedArguments::new(start, between, end))
}

/// Returns whether a group holds any text.
fn is_free(wanted: &str, node: &Node) -> bool {
    match node {
        Node::Named(name, node) if name == wanted => match &**node {
            Node::Repeat { node, most: None, .. } => matches!(&**node, Node::One(set) if set.is_all()),
            _ => false,
        },
        Node::Sequence(nodes) | Node::Either(nodes) => nodes.iter().any(|node| is_free(wanted, node)),
        Node::Named(_, node) | Node::Repeat { node, .. } => is_free(wanted, node),
        _ => false,
    }
}

fn read_lines(lines: &Lines) -> Result<TaggedArguments, String> {
    if lines.line != "\n" {
        return Err(format!("arguments on lines that end with {:?}", lines.line));
    }
    Ok(TaggedArguments::new("", lines.key.clone(), "\n"))
}
