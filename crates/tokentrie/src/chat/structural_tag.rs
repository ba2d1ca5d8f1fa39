//! Structural tags, as a grammar in Lark: texts between tags that obey formats, with free text around them.
//!
//! Both shapes are read: `{"structures": [{"begin", "schema", "end"}], "triggers": [...]}`, and `{"format": ...}` of
//! `XGrammar`. Free text is an automaton of Aho and Corasick over the texts that end it, or lead elsewhere: a rule for
//! each of its states.

use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;

/// Reason why a structural tag is refused, with its place.
type Result<T> = std::result::Result<T, String>;

/// Deepest nesting of formats.
const MOST_DEPTH: usize = 64;
/// Limit on the states of free text.
const MOST_STATES: usize = 20_000;

/// The constraint that a structural tag stands for: `{"lark": ...}` or `{"gbnf": ...}`.
///
/// # Errors
/// A sentence with the place: what cannot be read, or cannot be held.
pub(super) fn structural_tag(fields: &Map<String, Value>) -> Result<Value> {
    let place = Place(String::new());
    if fields.contains_key("format") {
        place.check_fields(fields, &["type", "format"])?;
        let (place, format) = place.object(fields, "format")?;
        if format.get("type").is_some_and(|kind| kind == "grammar") {
            return whole_grammar(&place, format);
        }
        return Rules::default().grammar(&place, format);
    }
    place.check_fields(fields, &["type", "structures", "triggers"])?;
    let tags = place.list(fields, "structures")?.into_iter().map(|(place, structure)| {
        let structure = place.as_object(structure)?;
        place.check_fields(structure, &["begin", "schema", "end"])?;
        let schema = structure.get("schema").ok_or_else(|| place.missing("schema"))?;
        let content = json!({"type": "json_schema", "json_schema": schema});
        Ok(json!({
            "type": "tag", "begin": place.text(structure, "begin")?, "content": content,
            "end": place.text(structure, "end")?,
        }))
    });
    let tags: Vec<Value> = tags.collect::<Result<_>>()?;
    let triggers = fields.get("triggers").ok_or_else(|| place.missing("triggers"))?;
    let format = json!({"type": "triggered_tags", "triggers": triggers, "tags": tags});
    let format = format.as_object().cloned().unwrap_or_default();
    Rules::default().grammar(&place, &format)
}

/// A grammar that is all of the text.
fn whole_grammar(place: &Place, format: &Map<String, Value>) -> Result<Value> {
    place.check_fields(format, &["type", "grammar", "syntax"])?;
    let grammar = place.text(format, "grammar")?;
    match format.get("syntax").map_or(Some("ebnf"), Value::as_str) {
        Some("ebnf") => Ok(json!({"gbnf": grammar})),
        Some("lark") => Ok(json!({"lark": grammar})),
        _ => Err(place.field("syntax").wrong("\"ebnf\" or \"lark\"", &format["syntax"])),
    }
}

/// Place of a part, in the message of an error.
#[derive(Clone)]
struct Place(String);

impl Place {
    fn field(&self, name: &str) -> Self {
        Self(if self.0.is_empty() { name.to_owned() } else { format!("{}.{name}", self.0) })
    }

    fn item(&self, number: usize) -> Self {
        Self(format!("{}[{number}]", self.0))
    }

    fn refusal(&self, reason: &str) -> String {
        if self.0.is_empty() { reason.to_owned() } else { format!("{}: {reason}", self.0) }
    }

    fn wrong(&self, expected: &str, given: &Value) -> String {
        let given: String = given.to_string().chars().take(60).collect();
        self.refusal(&format!("expected {expected}, got {given}"))
    }

    fn missing(&self, name: &str) -> String {
        self.refusal(&format!("the field {name:?} is missing"))
    }

    fn check_fields(&self, fields: &Map<String, Value>, names: &[&str]) -> Result<()> {
        match fields.keys().find(|name| !names.contains(&name.as_str())) {
            Some(name) => Err(self.refusal(&format!("unknown field {name:?}; known are {names:?}"))),
            None => Ok(()),
        }
    }

    fn as_object<'v>(&self, value: &'v Value) -> Result<&'v Map<String, Value>> {
        value.as_object().ok_or_else(|| self.wrong("an object", value))
    }

    fn object<'v>(&self, fields: &'v Map<String, Value>, name: &str) -> Result<(Self, &'v Map<String, Value>)> {
        let place = self.field(name);
        let value = fields.get(name).ok_or_else(|| self.missing(name))?;
        let object = place.as_object(value)?;
        Ok((place, object))
    }

    fn list<'v>(&self, fields: &'v Map<String, Value>, name: &str) -> Result<Vec<(Self, &'v Value)>> {
        let (place, value) = (self.field(name), fields.get(name).ok_or_else(|| self.missing(name))?);
        let list = value.as_array().filter(|list| !list.is_empty());
        let list = list.ok_or_else(|| place.wrong("an array with at least one item", value))?;
        Ok(list.iter().enumerate().map(|(number, item)| (place.item(number), item)).collect())
    }

    fn text(&self, fields: &Map<String, Value>, name: &str) -> Result<String> {
        let value = fields.get(name).ok_or_else(|| self.missing(name))?;
        value.as_str().map(str::to_owned).ok_or_else(|| self.field(name).wrong("a text", value))
    }

    /// Texts that are not empty; none where the field is missing.
    fn texts(&self, fields: &Map<String, Value>, name: &str) -> Result<Vec<String>> {
        let Some(value) = fields.get(name).filter(|value| !value.is_null()) else { return Ok(Vec::new()) };
        let wrong = || self.field(name).wrong("an array of texts that are not empty", value);
        let text = |text: &Value| text.as_str().filter(|text| !text.is_empty()).map(str::to_owned).ok_or_else(wrong);
        value.as_array().ok_or_else(wrong)?.iter().map(text).collect()
    }

    fn flag(&self, fields: &Map<String, Value>, name: &str, usual: bool) -> Result<bool> {
        match fields.get(name) {
            None => Ok(usual),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(other) => Err(self.field(name).wrong("true or false", other)),
        }
    }

    fn count(&self, fields: &Map<String, Value>, name: &str) -> Result<i64> {
        let value = fields.get(name).ok_or_else(|| self.missing(name))?;
        value.as_i64().ok_or_else(|| self.field(name).wrong("a whole number", value))
    }

    /// Refuses a field that says something.
    fn unsaid(&self, fields: &Map<String, Value>, name: &str) -> Result<()> {
        let says_nothing =
            |value: &Value| value.is_null() || *value == false || value.as_array().is_some_and(Vec::is_empty);
        match fields.get(name) {
            Some(value) if !says_nothing(value) => Err(self.field(name).refusal("it is not supported")),
            _ => Ok(()),
        }
    }
}

/// Rules of the grammar so far.
#[derive(Default)]
struct Rules {
    text: String,
    count: usize,
    depth: usize,
}

/// Text that must follow a format: one of these; `None` is nothing.
type Ends<'e> = Option<&'e [String]>;

impl Rules {
    fn grammar(mut self, place: &Place, format: &Map<String, Value>) -> Result<Value> {
        let start = self.format(place, format, None)?;
        Ok(json!({"lark": format!("start: {start}\n{}", self.text)}))
    }

    fn name(&mut self) -> String {
        self.count += 1;
        format!("part{}", self.count)
    }

    /// Returns an expression for a format and the text that must follow it.
    fn format(&mut self, place: &Place, format: &Map<String, Value>, ends: Ends<'_>) -> Result<String> {
        if self.depth >= MOST_DEPTH {
            return Err(place.refusal(&format!("nested more than {MOST_DEPTH} levels deep")));
        }
        self.depth += 1;
        let found = self.format_of_kind(place, format, ends);
        self.depth -= 1;
        found
    }

    fn format_of_kind(&mut self, place: &Place, format: &Map<String, Value>, ends: Ends<'_>) -> Result<String> {
        let kind = place.text(format, "type")?;
        let alone = match kind.as_str() {
            "const_string" => {
                place.check_fields(format, &["type", "value"])?;
                literal(&place.text(format, "value")?)
            }
            "json_schema" => {
                let names = ["type", "json_schema", "style", "any_order", "max_whitespace_cnt", "excludes"];
                place.check_fields(format, &names)?;
                names[3..].iter().try_for_each(|name| place.unsaid(format, name))?;
                if let Some(style) = format.get("style").filter(|style| **style != "json") {
                    let reason =
                        format!("the style {style} is not supported: give tools, whose calls the template writes");
                    return Err(place.field("style").refusal(&reason));
                }
                let schema = format.get("json_schema").ok_or_else(|| place.missing("json_schema"))?;
                let schema = match schema {
                    Value::Object(_) => schema.clone(),
                    Value::Bool(true) => json!({}),
                    other => return Err(place.field("json_schema").wrong("a JSON Schema, an object", other)),
                };
                let name = self.name();
                let _ = writeln!(self.text, "{name}: %json {schema}");
                name
            }
            "regex" => {
                place.check_fields(format, &["type", "pattern", "excludes"])?;
                place.unsaid(format, "excludes")?;
                regex(&place.text(format, "pattern")?)
            }
            "grammar" => {
                let reason =
                    "a grammar inside another format is not supported: give it as the whole format, or a regex";
                return Err(place.refusal(reason));
            }
            "any_text" => {
                place.check_fields(format, &["type", "excludes", "max_tokens", "max_chars"])?;
                ["max_tokens", "max_chars"].iter().try_for_each(|name| place.unsaid(format, name))?;
                let excludes = place.texts(format, "excludes")?;
                return self.free(place, &Free { ends, excludes, ways: Vec::new(), is_loop: true });
            }
            "sequence" => {
                place.check_fields(format, &["type", "elements"])?;
                let elements = place.list(format, "elements")?;
                let last = elements.len() - 1;
                let each = elements.into_iter().enumerate().map(|(number, (place, element))| {
                    let element = place.as_object(element)?;
                    if number < last && is_open(element, MOST_DEPTH) {
                        let reason = "free text is only supported at the end of a sequence: put it into a tag";
                        return Err(place.refusal(reason));
                    }
                    self.format(&place, element, ends.filter(|_| number == last))
                });
                return Ok(format!("({})", each.collect::<Result<Vec<_>>>()?.join(" ")));
            }
            "or" => {
                place.check_fields(format, &["type", "elements"])?;
                let each = place.list(format, "elements")?.into_iter();
                let each = each.map(|(place, element)| self.format(&place, place.as_object(element)?, ends));
                return Ok(format!("({})", each.collect::<Result<Vec<_>>>()?.join(" | ")));
            }
            "tag" => self.tag(place, format)?,
            "triggered_tags" => return self.triggered_tags(place, format, ends),
            "dispatch" => return self.dispatch(place, format, ends),
            "tags_with_separator" => self.tags_with_separator(place, format)?,
            "optional" | "plus" | "star" | "repeat" => self.repetition(&kind, place, format)?,
            other => {
                let reason = match other {
                    "token" | "exclude_token" | "any_tokens" | "token_triggered_tags" | "token_dispatch" => {
                        "a constraint is a set of texts, not of tokens"
                    }
                    "qwen_xml_parameter" => "give tools, whose calls the template writes",
                    _ => "it is not known here",
                };
                return Err(place.field("type").refusal(&format!("{other:?} is not supported: {reason}")));
            }
        };
        Ok(match ends {
            Some(ends) => format!("{alone} {}", any_of(ends)),
            None => alone,
        })
    }

    fn repetition(&mut self, kind: &str, place: &Place, format: &Map<String, Value>) -> Result<String> {
        let names: &[&str] = if kind == "repeat" { &["type", "content", "min", "max"] } else { &["type", "content"] };
        place.check_fields(format, names)?;
        let (inside, content) = place.object(format, "content")?;
        if is_open(content, MOST_DEPTH) {
            return Err(inside.refusal("free text is not supported in a repetition: put it into a tag"));
        }
        let content = self.format(&inside, content, None)?;
        Ok(match kind {
            "optional" => format!("({content})?"),
            "plus" => format!("({content})+"),
            "star" => format!("({content})*"),
            _ => match (place.count(format, "min")?, place.count(format, "max")?) {
                (least @ 0.., -1) => format!("({content})~{least} ({content})*"),
                (least @ 0.., most) if most >= least => format!("({content})~{least}..{most}"),
                _ => {
                    let given = json!([format["min"], format["max"]]);
                    return Err(place.wrong("min from 0, and max from min on or -1", &given));
                }
            },
        })
    }

    fn tag(&mut self, place: &Place, format: &Map<String, Value>) -> Result<String> {
        let begin = begin_of(place, format)?;
        Ok(format!("({} {})", literal(&begin), self.behind_begin(place, format)?))
    }

    /// Returns an expression for the content of a tag and its end.
    fn behind_begin(&mut self, place: &Place, format: &Map<String, Value>) -> Result<String> {
        let end = format.get("end").ok_or_else(|| place.missing("end"))?;
        let wrong = || place.field("end").wrong("a text, or an array of texts", end);
        let ends: Vec<String> = match end {
            Value::String(end) => vec![end.clone()],
            Value::Array(ends) if !ends.is_empty() => {
                ends.iter().map(|end| end.as_str().map(str::to_owned)).collect::<Option<_>>().ok_or_else(wrong)?
            }
            _ => return Err(wrong()),
        };
        let (inside, content) = place.object(format, "content")?;
        if is_open(content, MOST_DEPTH) && ends.iter().any(String::is_empty) {
            return Err(inside.refusal("free text needs an end of its tag that is not empty"));
        }
        self.format(&inside, content, Some(&ends))
    }

    fn triggered_tags(&mut self, place: &Place, format: &Map<String, Value>, ends: Ends<'_>) -> Result<String> {
        let names = ["type", "triggers", "tags", "at_least_one", "stop_after_first", "excludes"];
        place.check_fields(format, &names)?;
        let triggers = place.texts(format, "triggers")?;
        if triggers.is_empty() {
            return Err(place.missing("triggers"));
        }
        let (mut behind, mut all) = (vec![Vec::new(); triggers.len()], Vec::new());
        for (place, tag) in tags_of(place, format)? {
            let begin = begin_of(&place, tag)?;
            let matching: Vec<usize> = (0..triggers.len()).filter(|&at| begin.starts_with(&triggers[at])).collect();
            let [trigger] = matching[..] else {
                let reason = format!("{} triggers begin {begin:?}: one must", matching.len());
                return Err(place.field("begin").refusal(&reason));
            };
            let (rest, inside) = (literal(&begin[triggers[trigger].len()..]), self.behind_begin(&place, tag)?);
            // It is written twice where the first tag stands apart.
            let name = self.name();
            let _ = writeln!(self.text, "{name}: {inside}");
            behind[trigger].push(format!("{rest} {name}"));
            all.push(format!("{} {name}", literal(&begin)));
        }
        let ways = triggers.into_iter().zip(behind);
        if let Some((trigger, _)) = ways.clone().find(|(_, behind)| behind.is_empty()) {
            return Err(place.field("triggers").refusal(&format!("no tag begins with {trigger:?}")));
        }
        let ways = ways.map(|(trigger, behind)| (trigger, format!("({})", behind.join(" | ")))).collect();
        let (first, once) =
            (place.flag(format, "at_least_one", false)?, place.flag(format, "stop_after_first", false)?);
        let excludes = place.texts(format, "excludes")?;
        if first && once {
            let end = ends.map_or_else(String::new, any_of);
            return Ok(format!("({}) {end}", all.join(" | ")));
        }
        let free = self.free(place, &Free { ends, excludes, ways, is_loop: !once })?;
        Ok(if first { format!("(({}) {free})", all.join(" | ")) } else { free })
    }

    fn dispatch(&mut self, place: &Place, format: &Map<String, Value>, ends: Ends<'_>) -> Result<String> {
        place.check_fields(format, &["type", "rules", "loop", "excludes"])?;
        let (mut ways, is_loop) = (Vec::new(), place.flag(format, "loop", true)?);
        for (place, rule) in place.list(format, "rules")? {
            let Some([Value::String(pattern), Value::Object(inside)]) = rule.as_array().map(Vec::as_slice) else {
                return Err(place.wrong("a text and a format", rule));
            };
            if pattern.is_empty() || is_open(inside, MOST_DEPTH) {
                return Err(place.refusal("an empty text, and free text behind one, are not supported"));
            }
            ways.push((pattern.clone(), self.format(&place.item(1), inside, None)?));
        }
        let excludes = place.texts(format, "excludes")?;
        self.free(place, &Free { ends, excludes, ways, is_loop })
    }

    fn tags_with_separator(&mut self, place: &Place, format: &Map<String, Value>) -> Result<String> {
        place.check_fields(format, &["type", "tags", "separator", "at_least_one", "stop_after_first"])?;
        let tags = tags_of(place, format)?.into_iter();
        let tags = tags.map(|(place, tag)| self.tag(&place, tag)).collect::<Result<Vec<_>>>()?;
        let (separator, tag) = (literal(&place.text(format, "separator")?), self.name());
        let _ = writeln!(self.text, "{tag}: {}", tags.join(" | "));
        let (first, once) =
            (place.flag(format, "at_least_one", false)?, place.flag(format, "stop_after_first", false)?);
        let some = if once { tag } else { format!("{tag} ({separator} {tag})*") };
        Ok(if first { format!("({some})") } else { format!("({some})?") })
    }

    /// Returns an expression for free text, with all that may come in it, and its end.
    fn free(&mut self, place: &Place, free: &Free<'_>) -> Result<String> {
        let ends = free.ends.unwrap_or_default();
        let texts = ends.iter().chain(&free.excludes).chain(free.ways.iter().map(|(text, _)| text));
        let automaton = TextSearch::new(texts.map(String::as_str));
        if automaton.next.len() > MOST_STATES {
            return Err(
                place.refusal(&format!("the texts that lead out of free text have more than {MOST_STATES} characters"))
            );
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

/// Returns the beginning of a tag.
fn begin_of(place: &Place, format: &Map<String, Value>) -> Result<String> {
    place.check_fields(format, &["type", "begin", "content", "end"])?;
    let begin = format.get("begin").ok_or_else(|| place.missing("begin"))?;
    begin.as_str().map(str::to_owned).ok_or_else(|| place.field("begin").wrong("a text", begin))
}

fn tags_of<'v>(place: &Place, format: &'v Map<String, Value>) -> Result<Vec<(Place, &'v Map<String, Value>)>> {
    let tags = place.list(format, "tags")?.into_iter();
    tags.map(|(place, tag)| place.as_object(tag).map(|tag| (place, tag))).collect()
}

/// Free text: what ends it, what it must not contain, and what texts of it lead to.
struct Free<'e> {
    ends: Ends<'e>,
    excludes: Vec<String>,
    ways: Vec<(String, String)>,
    /// True if free text goes on behind what a text leads to.
    is_loop: bool,
}

/// Returns whether a format has free text at its end, so that what follows must be known in it.
fn is_open(format: &Map<String, Value>, deeper: usize) -> bool {
    let Some(deeper) = deeper.checked_sub(1) else { return true };
    let open = |value: &Value| value.as_object().is_some_and(|format| is_open(format, deeper));
    match format.get("type").and_then(Value::as_str) {
        Some("any_text" | "triggered_tags" | "dispatch") => true,
        Some("sequence") => {
            format.get("elements").and_then(Value::as_array).and_then(|all| all.last()).is_some_and(open)
        }
        Some("or") => format.get("elements").and_then(Value::as_array).is_some_and(|all| all.iter().any(open)),
        _ => false,
    }
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

fn any_of(texts: &[String]) -> String {
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
