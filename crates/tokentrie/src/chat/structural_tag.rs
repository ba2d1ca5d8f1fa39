//! Structural tags, as a grammar in Lark: texts between tags that obey formats, with free text around them.
//!
//! Both shapes are read: `{"structures": [{"begin", "schema", "end"}], "triggers": [...]}`, and `{"format": ...}` of
//! `XGrammar`. Free text is an automaton of Aho and Corasick over the texts that end it, or lead elsewhere: a rule for
//! each of its states.

use crate::constraint::SpecProblem;
use crate::json::with::texts;
use crate::json::{ReadError, carry_error, inner, type_error, value_error};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::sync::Arc;

type Result<T> = std::result::Result<T, ReadError>;

/// Limit on the states of free text.
const MOST_STATES: usize = 20_000;

/// The constraint that a structural tag stands for: `{"lark": ...}` or `{"gbnf": ...}`.
pub(super) struct StructuralTag(pub(super) Value);

impl<'de> Deserialize<'de> for StructuralTag {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct NestedTag {
            #[serde(rename = "type")]
            _type: IgnoredAny,
            format: TagFormat,
        }

        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct StructureList {
            #[serde(rename = "type")]
            _type: IgnoredAny,
            #[serde(deserialize_with = "some")]
            structures: Vec<Structure>,
            #[serde(deserialize_with = "filled_texts")]
            triggers: Vec<String>,
        }

        let value = Value::deserialize(from)?;
        if value.get("format").is_none() {
            let StructureList { structures, triggers, .. } = inner(&value)?;
            let tags = structures.into_iter().map(Tag::from).collect();
            let triggered = TriggeredTags { triggers, tags, ..TriggeredTags::default() };
            return Rules::default().grammar(&TagFormat::TriggeredTags(triggered)).map(Self).map_err(carry_error);
        }
        let NestedTag { format, .. } = inner(&value)?;
        let constraint = match format {
            TagFormat::Grammar { grammar, syntax: Syntax::Ebnf } => Ok(json!({"gbnf": grammar})),
            TagFormat::Grammar { grammar, syntax: Syntax::Lark } => Ok(json!({"lark": grammar})),
            format => Rules::default().grammar(&format).map_err(|error| error.in_field("format")),
        };
        constraint.map(Self).map_err(carry_error)
    }
}

/// Texts between tags, in the shape that has a schema in each tag.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Structure {
    begin: String,
    schema: Value,
    end: String,
}

/// Allowed text, by its type.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum TagFormat {
    ConstString {
        value: String,
    },
    JsonSchema {
        #[serde(deserialize_with = "schema")]
        json_schema: Value,
        #[serde(rename = "style", default, deserialize_with = "json_style")]
        _style: (),
        #[serde(rename = "any_order", default)]
        _any_order: UnsupportedOption,
        #[serde(rename = "max_whitespace_cnt", default)]
        _max_whitespace: UnsupportedOption,
        #[serde(rename = "excludes", default)]
        _excludes: UnsupportedOption,
    },
    Regex {
        pattern: String,
        #[serde(rename = "excludes", default)]
        _excludes: UnsupportedOption,
    },
    Grammar {
        grammar: String,
        #[serde(default)]
        syntax: Syntax,
    },
    AnyText {
        #[serde(default, deserialize_with = "filled_texts")]
        excludes: Vec<String>,
        #[serde(rename = "max_tokens", default)]
        _max_tokens: UnsupportedOption,
        #[serde(rename = "max_chars", default)]
        _max_chars: UnsupportedOption,
    },
    Sequence {
        #[serde(deserialize_with = "some")]
        elements: Vec<Self>,
    },
    Or {
        #[serde(deserialize_with = "some")]
        elements: Vec<Self>,
    },
    Tag(Tag),
    TriggeredTags(TriggeredTags),
    Dispatch {
        #[serde(deserialize_with = "some")]
        rules: Vec<(String, Self)>,
        #[serde(rename = "loop", default = "crate::json::with::yes")]
        is_loop: bool,
        #[serde(default, deserialize_with = "filled_texts")]
        excludes: Vec<String>,
    },
    TagsWithSeparator {
        #[serde(deserialize_with = "some")]
        tags: Vec<Tag>,
        separator: String,
        #[serde(default)]
        at_least_one: bool,
        #[serde(default)]
        stop_after_first: bool,
    },
    Optional {
        content: Box<Self>,
    },
    Plus {
        content: Box<Self>,
    },
    Star {
        content: Box<Self>,
    },
    Repeat {
        content: Box<Self>,
        min: i64,
        max: i64,
    },
    QwenXmlParameter(IgnoredAny),
    Token(IgnoredAny),
    ExcludeToken(IgnoredAny),
    AnyTokens(IgnoredAny),
    TokenTriggeredTags(IgnoredAny),
    TokenDispatch(IgnoredAny),
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Syntax {
    #[default]
    Ebnf,
    Lark,
}

/// Content between a beginning and one of several ends.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tag {
    #[serde(rename = "type", default)]
    _type: IgnoredAny,
    begin: String,
    content: Box<TagFormat>,
    #[serde(deserialize_with = "ends")]
    end: Vec<Arc<str>>,
}

impl From<Structure> for Tag {
    fn from(of: Structure) -> Self {
        let content = Box::new(TagFormat::document(of.schema));
        Self { _type: IgnoredAny, begin: of.begin, content, end: vec![of.end.into()] }
    }
}

/// Free text with tags, each of which a trigger begins.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct TriggeredTags {
    #[serde(rename = "type", default)]
    _type: IgnoredAny,
    #[serde(deserialize_with = "filled_texts")]
    triggers: Vec<String>,
    #[serde(deserialize_with = "some")]
    tags: Vec<Tag>,
    #[serde(default)]
    at_least_one: bool,
    #[serde(default)]
    stop_after_first: bool,
    #[serde(default, deserialize_with = "filled_texts")]
    excludes: Vec<String>,
}

/// An option that changes nothing when it is off, and is refused otherwise.
#[derive(Default)]
struct UnsupportedOption;

impl<'de> Deserialize<'de> for UnsupportedOption {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        match Value::deserialize(from)? {
            Value::Bool(false) => Ok(Self),
            Value::Array(items) if items.is_empty() => Ok(Self),
            _ => Err(refused("the option is not supported: leave it out")),
        }
    }
}

fn refused<E: serde::de::Error>(reason: impl Into<String>) -> E {
    value_error(SpecProblem::Value(reason.into()))
}

fn some<'de, T: for<'v> Deserialize<'v>, D: Deserializer<'de>>(from: D) -> std::result::Result<Vec<T>, D::Error> {
    let value = Value::deserialize(from)?;
    if value.as_array().is_none_or(Vec::is_empty) {
        return Err(type_error("an array with at least one item", &value));
    }
    inner(&value)
}

fn filled_texts<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<Vec<String>, D::Error> {
    let value = Value::deserialize(from)?;
    let texts: Vec<String> = inner(&value)?;
    if texts.iter().any(String::is_empty) {
        return Err(type_error("an array of texts that are not empty", &value));
    }
    Ok(texts)
}

fn ends<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<Vec<Arc<str>>, D::Error> {
    let ends = texts::deserialize(from)?;
    if ends.is_empty() { Err(refused("an array without an end: give a text, \"\" for none")) } else { Ok(ends) }
}

fn schema<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<Value, D::Error> {
    match Value::deserialize(from)? {
        schema @ Value::Object(_) => Ok(schema),
        Value::Bool(true) => Ok(json!({})),
        other => Err(type_error("a JSON Schema, an object", &other)),
    }
}

fn json_style<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<(), D::Error> {
    match Value::deserialize(from)? {
        Value::String(style) if style == "json" => Ok(()),
        style => {
            Err(refused(format!("the style {style} is not supported: give tools, whose calls the template writes")))
        }
    }
}

impl TagFormat {
    fn document(json_schema: Value) -> Self {
        Self::JsonSchema {
            json_schema,
            _style: (),
            _any_order: UnsupportedOption,
            _max_whitespace: UnsupportedOption,
            _excludes: UnsupportedOption,
        }
    }

    /// Returns whether the format has free text at its end, so that what follows must be known in it.
    fn is_open(&self) -> bool {
        match self {
            Self::AnyText { .. } | Self::TriggeredTags(_) | Self::Dispatch { .. } => true,
            Self::Sequence { elements } => elements.last().is_some_and(Self::is_open),
            Self::Or { elements } => elements.iter().any(Self::is_open),
            _ => false,
        }
    }
}

/// Rules of the grammar so far.
#[derive(Default)]
struct Rules {
    text: String,
    count: usize,
}

/// Text that must follow a format: one of these; `None` is nothing.
type Ends<'e> = Option<&'e [Arc<str>]>;

impl Rules {
    fn grammar(mut self, format: &TagFormat) -> Result<Value> {
        let start = self.format(format, None)?;
        Ok(json!({"lark": format!("start: {start}\n{}", self.text)}))
    }

    fn name(&mut self) -> String {
        self.count += 1;
        format!("part{}", self.count)
    }

    /// Writes a rule, and returns its name.
    fn rule(&mut self, content: &str) -> String {
        let name = self.name();
        let _ = writeln!(self.text, "{name}: {content}");
        name
    }

    /// Returns an expression for a format and the text that must follow it.
    fn format(&mut self, format: &TagFormat, ends: Ends<'_>) -> Result<String> {
        let alone = match format {
            TagFormat::ConstString { value } => literal(value),
            TagFormat::JsonSchema { json_schema, .. } => self.rule(&format!("%json {json_schema}")),
            TagFormat::Regex { pattern, .. } => regex(pattern),
            TagFormat::AnyText { excludes, .. } => {
                return self.free(&Free { ends, excludes, ways: Vec::new(), is_loop: true });
            }
            TagFormat::Sequence { elements } => {
                let last = elements.len() - 1;
                if let Some(open) = elements[..last].iter().position(TagFormat::is_open) {
                    let reason = "free text is only supported at the end of a sequence: put it into a tag";
                    return Err(refused::<ReadError>(reason).in_item(open).in_field("elements"));
                }
                return Ok(format!("({})", self.elements(elements, |at| ends.filter(|_| at == last))?.join(" ")));
            }
            TagFormat::Or { elements } => {
                return Ok(format!("({})", self.elements(elements, |_| ends)?.join(" | ")));
            }
            TagFormat::Tag(tag) => self.tag(tag)?,
            TagFormat::TriggeredTags(triggered) => return self.triggered_tags(triggered, ends),
            TagFormat::Dispatch { rules, is_loop, excludes } => {
                let mut ways = Vec::with_capacity(rules.len());
                for (at, (pattern, inside)) in rules.iter().enumerate() {
                    let way = if pattern.is_empty() || inside.is_open() {
                        Err(refused("an empty text, and free text behind one, are not supported: put it into a tag"))
                    } else {
                        self.format(inside, None).map_err(|error| error.in_item(1))
                    };
                    ways.push((pattern.clone(), way.map_err(|error| error.in_item(at).in_field("rules"))?));
                }
                return self.free(&Free { ends, excludes, ways, is_loop: *is_loop });
            }
            TagFormat::TagsWithSeparator { tags, separator, at_least_one, stop_after_first } => {
                let tags = tags
                    .iter()
                    .enumerate()
                    .map(|(at, tag)| self.tag(tag).map_err(|error| error.in_item(at).in_field("tags")));
                let tags = tags.collect::<Result<Vec<_>>>()?.join(" | ");
                let (separator, tag) = (literal(separator), self.rule(&tags));
                let some = if *stop_after_first { tag } else { format!("{tag} ({separator} {tag})*") };
                if *at_least_one { format!("({some})") } else { format!("({some})?") }
            }
            TagFormat::Optional { content } => format!("({})?", self.repeated(content)?),
            TagFormat::Plus { content } => format!("({})+", self.repeated(content)?),
            TagFormat::Star { content } => format!("({})*", self.repeated(content)?),
            TagFormat::Repeat { content, min, max } => {
                let content = self.repeated(content)?;
                match (*min, *max) {
                    (least @ 0.., -1) => format!("({content})~{least} ({content})*"),
                    (least @ 0.., most) if most >= least => format!("({content})~{least}..{most}"),
                    _ => return Err(type_error("min from 0, and max from min on or -1", &json!([min, max]))),
                }
            }
            TagFormat::Grammar { .. } => {
                let reason =
                    "a grammar inside another format is not supported: give it as the whole format, or a regex";
                return Err(refused(reason));
            }
            TagFormat::QwenXmlParameter(_) => {
                let reason = "the type is not supported: give tools, whose calls the template writes";
                return Err(refused::<ReadError>(reason).in_field("type"));
            }
            TagFormat::Token(_)
            | TagFormat::ExcludeToken(_)
            | TagFormat::AnyTokens(_)
            | TagFormat::TokenTriggeredTags(_)
            | TagFormat::TokenDispatch(_) => {
                let reason = "the type is not supported: a constraint is a set of texts, not of tokens; give the text";
                return Err(refused::<ReadError>(reason).in_field("type"));
            }
        };
        Ok(match ends {
            Some(ends) => format!("{alone} {}", any_of(ends)),
            None => alone,
        })
    }

    fn elements<'e>(&mut self, elements: &[TagFormat], ends: impl Fn(usize) -> Ends<'e>) -> Result<Vec<String>> {
        let each = elements.iter().enumerate();
        let each = each.map(|(at, element)| {
            self.format(element, ends(at)).map_err(|error| error.in_item(at).in_field("elements"))
        });
        each.collect()
    }

    fn repeated(&mut self, content: &TagFormat) -> Result<String> {
        let content = if content.is_open() {
            Err(refused("free text is not supported in a repetition: put it into a tag"))
        } else {
            self.format(content, None)
        };
        content.map_err(|error| error.in_field("content"))
    }

    fn tag(&mut self, tag: &Tag) -> Result<String> {
        Ok(format!("({} {})", literal(&tag.begin), self.behind_begin(tag)?))
    }

    /// Returns an expression for the content of a tag and its end.
    fn behind_begin(&mut self, tag: &Tag) -> Result<String> {
        let content = if tag.content.is_open() && tag.end.iter().any(|end| end.is_empty()) {
            Err(refused("free text needs an end of its tag that is not empty"))
        } else {
            self.format(&tag.content, Some(&tag.end))
        };
        content.map_err(|error| error.in_field("content"))
    }

    fn triggered_tags(&mut self, of: &TriggeredTags, ends: Ends<'_>) -> Result<String> {
        let (mut behind, mut all) = (vec![Vec::new(); of.triggers.len()], Vec::new());
        for (at, tag) in of.tags.iter().enumerate() {
            let in_tag = |error: ReadError| error.in_item(at).in_field("tags");
            let begins = |trigger: &usize| tag.begin.starts_with(&of.triggers[*trigger]);
            let matching: Vec<usize> = (0..of.triggers.len()).filter(begins).collect();
            let [trigger] = matching[..] else {
                let reason = format!("{} triggers begin {:?}: exactly one must", matching.len(), tag.begin);
                return Err(in_tag(refused::<ReadError>(reason).in_field("begin")));
            };
            // The content is written twice where the first tag stands apart.
            let content = self.behind_begin(tag).map_err(in_tag)?;
            let name = self.rule(&content);
            behind[trigger].push(format!("{} {name}", literal(&tag.begin[of.triggers[trigger].len()..])));
            all.push(format!("{} {name}", literal(&tag.begin)));
        }
        if let Some(idle) = behind.iter().position(Vec::is_empty) {
            let reason = format!("no tag begins with {:?}", of.triggers[idle]);
            return Err(refused::<ReadError>(reason).in_field("triggers"));
        }
        if of.at_least_one && of.stop_after_first {
            let end = ends.map_or_else(String::new, any_of);
            return Ok(format!("({}) {end}", all.join(" | ")));
        }
        let ways = of.triggers.iter().zip(behind);
        let ways = ways.map(|(trigger, behind)| (trigger.clone(), format!("({})", behind.join(" | ")))).collect();
        let free = self.free(&Free { ends, excludes: &of.excludes, ways, is_loop: !of.stop_after_first })?;
        Ok(if of.at_least_one { format!("(({}) {free})", all.join(" | ")) } else { free })
    }

    /// Returns an expression for free text, with all that may come in it, and its end.
    fn free(&mut self, free: &Free<'_>) -> Result<String> {
        let ends = free.ends.unwrap_or_default();
        let leading = free.excludes.iter().chain(free.ways.iter().map(|(text, _)| text)).map(String::as_str);
        let automaton = TextSearch::new(ends.iter().map(|end| &**end).chain(leading));
        if automaton.next.len() > MOST_STATES {
            let reason = format!("the texts that lead out of free text have more than {MOST_STATES} characters");
            return Err(refused(reason));
        }
        let names: Vec<String> = automaton.next.iter().map(|_| self.name()).collect();
        let (end, way) = (0..ends.len(), ends.len() + free.excludes.len());
        for state in 0..automaton.next.len() {
            // By what they lead to.
            let mut edges: BTreeMap<String, BTreeSet<char>> = BTreeMap::new();
            for (&char, &to) in &automaton.next[state] {
                let target = match automaton.found[to].iter().min() {
                    Some(found) if end.contains(found) => Some(String::new()),
                    Some(found) if *found < way => None,
                    Some(found) => {
                        let inside = &free.ways[found - way].1;
                        Some(match (free.is_loop, free.ends) {
                            (true, _) => format!("{inside} {}", names[0]),
                            (false, None) => inside.clone(),
                            (false, Some(ends)) => format!("{inside} {}", any_of(ends)),
                        })
                    }
                    None => Some(names[to].clone()),
                };
                if let Some(target) = target {
                    edges.entry(target).or_default().insert(char);
                }
            }
            let known: String = automaton.next[state].keys().map(|&char| in_class(char)).collect();
            let other = if known.is_empty() { "/[\\s\\S]/".to_owned() } else { format!("/[^{known}]/") };
            let mut ways = vec![format!("{other} {}", names[0])];
            ways.extend(edges.into_iter().map(|(target, chars)| {
                let chars: String = chars.into_iter().map(in_class).collect();
                format!("/[{chars}]/ {target}")
            }));
            let may_end = if free.ends.is_none() { "?" } else { "" };
            let _ = writeln!(self.text, "{}: ({}){may_end}", names[state], ways.join(" | "));
        }
        Ok(names[0].clone())
    }
}

/// Free text: what ends it, what it must not contain, and what texts of it lead to.
struct Free<'e> {
    ends: Ends<'e>,
    excludes: &'e [String],
    ways: Vec<(String, String)>,
    /// True if free text goes on behind what a text leads to.
    is_loop: bool,
}

/// Automaton that finds texts: the longest beginnings of texts with which what was read ends.
struct TextSearch {
    /// For each state the characters that do not lead back to the first one.
    next: Vec<BTreeMap<char, usize>>,
    /// The texts that end at each state, by their numbers.
    found: Vec<BTreeSet<usize>>,
}

impl TextSearch {
    fn new<'t>(texts: impl Iterator<Item = &'t str>) -> Self {
        let mut search = Self { next: vec![BTreeMap::new()], found: vec![BTreeSet::new()] };
        for (number, text) in texts.enumerate() {
            let mut at = 0;
            for char in text.chars() {
                let fresh = search.next.len();
                at = *search.next[at].entry(char).or_insert(fresh);
                if at == fresh {
                    search.next.push(BTreeMap::new());
                    search.found.push(BTreeSet::new());
                }
            }
            search.found[at].insert(number);
        }
        // From each state on, what its longest proper end leads to as well.
        let mut queue: VecDeque<(usize, usize)> = search.next[0].values().map(|&state| (state, 0)).collect();
        while let Some((state, behind)) = queue.pop_front() {
            let more = search.found[behind].clone();
            search.found[state].extend(more);
            let own: Vec<(char, usize)> = search.next[state].iter().map(|(&char, &to)| (char, to)).collect();
            queue.extend(own.iter().map(|&(char, to)| (to, search.next[behind].get(&char).copied().unwrap_or(0))));
            for (char, to) in search.next[behind].clone() {
                search.next[state].entry(char).or_insert(to);
            }
        }
        search
    }
}

/// A text in Lark.
fn literal(text: &str) -> String {
    if text.is_empty() {
        "(\"a\")~0".to_owned()
    } else {
        format!("/{}/", text.chars().map(char_pattern).collect::<String>())
    }
}

fn any_of(texts: &[Arc<str>]) -> String {
    format!("({})", texts.iter().map(|text| literal(text)).collect::<Vec<_>>().join(" | "))
}

/// A pattern in Lark, whose patterns end with a slash.
fn regex(pattern: &str) -> String {
    let mut text = String::from("/");
    let mut is_escaped = false;
    for char in pattern.chars() {
        match char {
            '/' if !is_escaped => text.push_str("\\/"),
            '\n' => text.push_str(if is_escaped { "n" } else { "\\n" }),
            _ => text.push(char),
        }
        is_escaped = char == '\\' && !is_escaped;
    }
    text.push('/');
    if pattern.is_empty() { literal("") } else { text }
}

/// A character as a pattern.
fn char_pattern(char: char) -> String {
    if char.is_ascii_alphanumeric() || char == '_' { char.to_string() } else { format!("\\x{{{:x}}}", u32::from(char)) }
}

fn in_class(char: char) -> String {
    char_pattern(char)
}
