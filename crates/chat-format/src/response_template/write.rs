//! A response template for a format that was found by analysis.

use super::error::ResponseError;
use super::follow::{Reading, readings_that_differ};
use super::pattern::syntax::escape;
use super::template::ResponseTemplate;
use crate::ChatFormat;
use crate::check::{RenderedReply, rendered_replies, reply_borders};
use crate::dialect::{
    Arguments, Calls, Content, ContentMode, Dialect, Field, ObjectCall, Part, Pattern, ReasoningMode, Style,
    TaggedArguments,
};
use serde_json::{Map, Value, json};

/// The name of a tool, or an id, in a pattern.
const NAME: &str = r#"[^\s"'<>(){}\[\],=]+?"#;

impl ChatFormat {
    /// Writes a response template: JSON by which other programs read the replies of this format. It is checked: it
    /// reads the replies that the chat template renders as this format does.
    ///
    /// # Errors
    /// A part of the format cannot be said by a response template, or the check fails.
    ///
    /// ```
    /// use chat_format::{ChatFormat, ChatTemplate};
    ///
    /// let template = ChatTemplate::new(
    ///     "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% for c in m.tool_calls %}<call>\
    ///      {{ c.function | tojson }}</call>{% endfor %}<|end|>{% endfor %}\
    ///      {% if add_generation_prompt %}<|assistant|>{% endif %}",
    ///     "",
    ///     "",
    /// )?;
    /// let written = ChatFormat::new(template)?.response_template()?;
    /// let reply = "Ding.<call>{\"name\": \"ring\", \"arguments\": {\"times\": 2}}</call><|end|>";
    /// let message = written.parse("<|assistant|>", reply, &[])?;
    /// assert_eq!(message["tool_calls"][0]["function"]["arguments"]["times"], 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn response_template(&self) -> Result<ResponseTemplate, ResponseError> {
        let unwritable = |reason: String| ResponseError::Unwritable { reason };
        if let Some(given) = self.given_response_template() {
            return Ok(given.clone());
        }
        let written = Writer::new(self).map_err(unwritable)?.write().map_err(unwritable)?;
        let written = ResponseTemplate::new(&written)?;
        let replies: Vec<RenderedReply> = rendered_replies(self);
        let differences = readings_that_differ(&written, &replies, &[Reading::Whole, Reading::Streamed]);
        match differences.into_iter().next() {
            Some(difference) => Err(unwritable(format!("replies would be read otherwise: {difference}"))),
            None => Ok(written),
        }
    }
}

struct Writer<'a> {
    dialect: &'a Dialect,
    starts: Vec<String>,
    ends: Vec<String>,
}

/// Patterns around a region of calls, and what is inside.
struct Region {
    open: String,
    close: String,
    content: Value,
    transform: Value,
    each: bool,
}

/// A text as a pattern, with any white space at its ends where it has some there.
fn loosely(text: &str) -> String {
    let blank = |is: bool| if is { r"\s*" } else { "" };
    let inner = text.trim();
    if inner.is_empty() {
        return blank(!text.is_empty()).to_owned();
    }
    let (before, after) = (text.starts_with(char::is_whitespace), text.ends_with(char::is_whitespace));
    format!("{}{}{}", blank(before), escape(inner), blank(after))
}

/// One of these patterns.
fn any_of(ways: &[String]) -> String {
    if let [way] = ways { way.clone() } else { format!("(?:{})", ways.join("|")) }
}

impl<'a> Writer<'a> {
    fn new(format: &'a ChatFormat) -> Result<Self, String> {
        let (starts, ends) = reply_borders(format);
        if starts.is_empty() {
            return Err("the prompt does not show where a reply begins".into());
        }
        Ok(Self { dialect: &format.analysis().dialect, starts, ends })
    }

    fn write(&self) -> Result<Value, String> {
        let mut fields = Map::new();
        if let Some(reasoning) = self.reasoning()? {
            fields.insert("reasoning_content".into(), reasoning);
        }
        if let Some(calls) = &self.dialect.calls {
            fields.insert("tool_calls".into(), self.calls(calls)?);
        }
        fields.insert("content".into(), self.content()?);
        let start = if let [start] = &self.starts[..] { json!(start) } else { json!(self.starts) };
        Ok(json!({"version": 1, "defaults": {"role": "assistant"}, "start_anchor": start, "fields": fields}))
    }

    /// The texts that end a reply, as patterns.
    fn end_patterns(&self) -> Vec<String> {
        self.ends.iter().map(|end| escape(end)).collect()
    }

    fn reasoning(&self) -> Result<Option<Value>, String> {
        let reasoning = &self.dialect.reasoning;
        let (start, end) = (reasoning.start.trim(), reasoning.end.trim());
        if reasoning.mode == ReasoningMode::None {
            return Ok(None);
        }
        if end.is_empty() {
            return Err("nothing ends the reasoning".into());
        }
        let mut close = vec![format!(r"{}\s*", escape(end))];
        if reasoning.calls_end_it
            && let Some(head) = self.call_head()
        {
            close.push(format!(r"(?=\s*{})", escape(&head)));
        }
        let close = close.join("|");
        let begun = self.starts.iter().any(|anchor| anchor.trim_end().ends_with(start));
        if reasoning.mode == ReasoningMode::OnlyEnded || start.is_empty() || begun {
            let ahead = format!(r"(?=[\s\S]*?{})", escape(end));
            return Ok(Some(json!({"open_pattern": ahead, "close_pattern": close})));
        }
        // Without thinking a prompt may write the end alone.
        let open = format!(r"\s*{}|(?=\s*{})", escape(start), escape(end));
        Ok(Some(json!({"open_pattern": open, "close_pattern": close})))
    }

    fn content(&self) -> Result<Value, String> {
        let Content { mode, start, end, other_starts } = &self.dialect.content;
        let mut ends = self.end_patterns();
        // What ends all calls follows a call, outside of its region: an end that may be missing would be cut where a
        // reply comes in parts.
        let section = self.dialect.calls.as_ref().filter(|calls| !calls.list).map(|calls| calls.section.end.trim());
        ends.extend(section.filter(|end| !end.is_empty()).map(escape));
        let end = Some(escape(end.trim())).filter(|end| !end.is_empty());
        if *mode == ContentMode::Plain {
            // Regions may be empty between others: joined, they leave what was there before.
            let mut content = json!({"repeats": true, "join": ""});
            if !ends.is_empty() {
                content["close_pattern"] = json!(format!(r"\s*{}\s*", any_of(&ends)));
            }
            return Ok(content);
        }
        if *mode == ContentMode::WrappedWithReasoning {
            return Err("content has marks only after reasoning".into());
        }
        let starts = std::iter::once(start).chain(other_starts).map(|text| text.trim()).filter(|text| !text.is_empty());
        let starts: Vec<&str> = starts.collect();
        if starts.is_empty() {
            return Err("nothing begins the content".into());
        }
        ends.splice(0..0, end);
        let joints = self.dialect.joints.iter().map(|joint| escape(joint.trim()));
        for joint in joints.filter(|joint| !joint.is_empty()) {
            if !ends.contains(&joint) {
                ends.push(joint);
            }
        }
        // A call ends the content that nothing else ends.
        ends.extend(self.call_head().map(|head| format!("(?={})", escape(&head))));
        let mut content = json!({"open": starts, "repeats": true, "join": ""});
        if !ends.is_empty() {
            content["close_pattern"] = json!(format!(r"\s*{}", any_of(&ends)));
        }
        Ok(content)
    }

    /// The text that begins calls, if it is a mark.
    fn call_head(&self) -> Option<String> {
        let calls = self.dialect.calls.as_ref()?;
        let section = calls.section.start.trim();
        let head = calls.patterns.first().and_then(Pattern::head).unwrap_or_default().trim();
        let head = if section.is_empty() { head } else { section };
        (head.len() > 2).then(|| head.to_owned())
    }

    fn calls(&self, calls: &Calls) -> Result<Value, String> {
        let region = if calls.list { self.listed(calls)? } else { self.single(calls)? };
        let mut field = json!({"open_pattern": region.open, "transform": region.transform});
        if !region.close.is_empty() {
            field["close_pattern"] = json!(region.close);
        }
        if let (Value::Object(field), Value::Object(content)) = (&mut field, region.content) {
            field.extend(content);
            let more = if region.each { "transform_each" } else { "repeats" };
            field.insert(more.into(), Value::Bool(true));
        }
        Ok(field)
    }

    /// The end of a region that nothing marks: the end of the reply, or the next call. It holds no `$`: at the end of
    /// what was read so far that would match before a longer way is tried, and cut a marker that came in part.
    fn open_end(&self, head: Option<&str>) -> String {
        let mut ends: Vec<String> = head.map(|head| format!("(?={})", escape(head))).into_iter().collect();
        ends.extend(self.end_patterns());
        if ends.is_empty() { String::new() } else { format!(r"\s*{}", any_of(&ends)) }
    }

    /// Calls in a list, which is one region.
    fn listed(&self, calls: &Calls) -> Result<Region, String> {
        let pattern = calls.patterns.first().ok_or("calls of no pattern")?;
        let start = calls.section.start.trim();
        let is_python = pattern.parts.iter().any(|part| matches!(part, Part::Arguments(Arguments::Keywords(_))));
        let open = match start {
            "" if is_python => r"^\s*(?=\[\s*\w+\()".to_owned(),
            "" => r"^\s*(?=\[\s*\{)".to_owned(),
            _ => format!(r"\s*{}\s*", escape(start)),
        };
        let close = match calls.section.end.trim() {
            "" => self.open_end(None),
            end => format!(r"\s*{}\s*", escape(end)),
        };
        let (content, transform) = match &pattern.parts[..] {
            [Part::Object(object)] => (json!({"content": "json"}), object_shape(object, "")?),
            [Part::Name, Part::Text(before), Part::Arguments(Arguments::Keywords(_)), Part::Text(after)]
                if before.trim() == "(" && after.trim() == ")" =>
            {
                let call = json!({"name": "{name}", "arguments": "{arguments}"});
                (json!({"content": "python-call-list"}), json!({"type": "function", "function": call}))
            }
            [Part::NameAsKey] => return Err("the name of a call is a key of JSON".into()),
            _ => return Err("the calls of a list are neither objects nor Python calls".into()),
        };
        Ok(Region { open, close, content, transform, each: true })
    }

    /// Calls that are a region each.
    fn single(&self, calls: &Calls) -> Result<Region, String> {
        let ways: Vec<Way> = calls.patterns.iter().map(Way::new).collect::<Result<_, _>>()?;
        let first = ways.first().ok_or("calls of no pattern")?;
        let mut opens: Vec<String> = Vec::new();
        let mut closes: Vec<String> = Vec::new();
        for (way, pattern) in ways.iter().zip(&calls.patterns) {
            if way.content != first.content || way.transform != first.transform {
                continue;
            }
            // A call of a pattern that only begins a reply, or comes after a joint, is as good after other text.
            let optional = way.head[..pattern.optional_head].concat();
            let mut rest = way.head[pattern.optional_head..].to_vec();
            // The mark of content may look like a call.
            let marked = self.dialect.content.start.trim();
            let other =
                pattern.head().and_then(|head| marked.strip_prefix(head.trim())).filter(|rest| !rest.is_empty());
            if let Some(other) = other.filter(|_| pattern.optional_head == 0 && rest.len() > 1) {
                rest.insert(1, format!("(?!{})", escape(other)));
            }
            let rest = rest.concat();
            let optional = if optional.is_empty() { optional } else { format!("(?:{optional})?") };
            let mut open = format!("{optional}{rest}");
            if open.is_empty() {
                open = format!(r"^{}", way.first);
            }
            if !opens.contains(&open) {
                opens.push(open);
            }
            let close = match &way.tail.concat()[..] {
                "" => self.open_end(self.call_head().as_deref().filter(|_| calls.parallel)),
                tail => tail.to_owned(),
            };
            if !closes.contains(&close) {
                closes.push(close);
            }
        }
        let start = calls.section.start.trim();
        // What only begins a reply begins a section there is.
        let is_bare = opens.iter().all(|open| open.starts_with('^'));
        if is_bare && !start.is_empty() {
            opens = vec![first.first.to_owned()];
        }
        let between = calls.between.trim();
        let marked = |text: &&str| (!text.is_empty()).then(|| format!(r"{}\s*", escape(text)));
        let before: Vec<String> = [start, between].iter().filter_map(marked).collect();
        let before = if before.is_empty() { String::new() } else { group(&before) };
        let before = if before.is_empty() || (is_bare && !start.is_empty()) { before } else { format!("{before}?") };
        let is_free = opens.iter().any(|open| !open.starts_with(r"\s*") && !open.starts_with('^'));
        let lead = if before.is_empty() && !is_free { "" } else { r"\s*" };
        let open = format!("{lead}{before}{}", any_of(&opens));
        closes.retain(|close| !close.is_empty());
        let close = if closes.is_empty() { String::new() } else { format!(r"{}\s*", any_of(&closes)) };
        Ok(Region { open, close, content: first.content.clone(), transform: first.transform.clone(), each: false })
    }
}

fn group(ways: &[String]) -> String {
    format!("(?:{})", ways.join("|"))
}

/// One way to write a call, as patterns.
#[derive(Default)]
struct Way {
    head: Vec<String>,
    /// The beginning of a region that no text begins.
    first: &'static str,
    tail: Vec<String>,
    content: Value,
    transform: Value,
}

impl Way {
    fn new(pattern: &Pattern) -> Result<Self, String> {
        let mut way = Self::default();
        let (mut has_id, mut in_id, mut inside) = (false, false, false);
        let parts = &without_braces(&pattern.parts)?;
        if matches!(parts.get(..2), Some([Part::Text(head), Part::Name]) if head.trim().len() < 2) {
            return Err("nothing but the name marks the beginning of a call".into());
        }
        for (number, part) in parts.iter().enumerate() {
            let is_last = !matches!(parts.get(number + 1), Some(Part::Text(text)) if !text.trim().is_empty());
            let any = if is_last { NAME.trim_end_matches('?') } else { NAME };
            let text = match part {
                Part::Text(text) => loosely(text),
                Part::Name | Part::Id if inside => format!("(?:{any})"),
                Part::Name => format!("(?P<name>{any})"),
                Part::Id => {
                    has_id = true;
                    format!("(?P<id>{any})")
                }
                Part::Index => r"\d+".into(),
                Part::Anything => r".*?".into(),
                Part::WholeId => {
                    in_id = !in_id;
                    has_id = true;
                    if in_id { "(?P<id>".into() } else { ")".into() }
                }
                Part::Object(object) => {
                    way.content = json!({"content": "json"});
                    way.transform = object_shape(object, "content.")?;
                    way.first = r"\s*(?=\{)";
                    inside = true;
                    continue;
                }
                Part::NameAsKey => return Err("the name of a call is a key of JSON".into()),
                Part::Arguments(arguments) => {
                    way.content = arguments_content(arguments)?;
                    inside = true;
                    continue;
                }
            };
            if inside { way.tail.push(text) } else { way.head.push(text) }
        }
        if !inside {
            return Err("calls have no arguments".into());
        }
        if in_id {
            return Err("an id has no end".into());
        }
        if way.transform.is_null() {
            way.transform = json!({"type": "function", "function": {"name": "{name}", "arguments": "{content}"}});
            if has_id {
                way.transform["id"] = json!("{id}");
            }
        }
        Ok(way)
    }
}

/// The parts with the braces around pairs left to the content parser.
fn without_braces(parts: &[Part]) -> Result<Vec<Part>, String> {
    let mut parts = parts.to_vec();
    if let Some(at) = parts.iter().position(|part| matches!(part, Part::Arguments(Arguments::Pairs(_)))) {
        let mut cut = |at: Option<usize>, brace: char| match at.and_then(|at| parts.get_mut(at)) {
            Some(Part::Text(text)) if brace == '{' && text.trim_end().ends_with('{') => {
                text.truncate(text.trim_end().len() - 1);
                Ok(())
            }
            Some(Part::Text(text)) if brace == '}' && text.trim_start().starts_with('}') => {
                *text = text.trim_start()[1..].to_owned();
                Ok(())
            }
            _ => Err(format!("pairs without the brace {brace}")),
        };
        cut(at.checked_sub(1), '{')?;
        cut(Some(at + 1), '}')?;
    }
    parts.retain(|part| !matches!(part, Part::Text(text) if text.is_empty()));
    Ok(parts)
}

/// The shape of a call that is an object.
fn object_shape(object: &ObjectCall, before: &str) -> Result<Value, String> {
    if object.python {
        return Err("calls are dicts as Python prints them".into());
    }
    let inside = if object.inside.is_empty() { String::new() } else { format!("{}.", object.inside) };
    let mut shape = json!({"type": "function", "function": {}});
    for field in &object.fields {
        let is_word = |key: &String| key.chars().all(|sign| sign.is_alphanumeric() || sign == '_');
        match field {
            Field::Name(key) | Field::Arguments(key) | Field::Id(key) if !is_word(key) => {
                return Err(format!("the key {key:?} of a call is not a word"));
            }
            Field::Name(key) => shape["function"]["name"] = json!(format!("{{{before}{inside}{key}}}")),
            Field::Arguments(key) => shape["function"]["arguments"] = json!(format!("{{{before}{inside}{key}}}")),
            Field::Id(key) => shape["id"] = json!(format!("{{{before}{key}}}")),
            Field::Constant(..) => {}
        }
    }
    Ok(shape)
}

/// The content parser of arguments.
fn arguments_content(arguments: &Arguments) -> Result<Value, String> {
    match arguments {
        Arguments::Json | Arguments::JsonText => Ok(json!({"content": "json"})),
        Arguments::Pairs(style) => quoted_content(style, true),
        Arguments::Literal(style) => quoted_content(style, style.bare_keys),
        Arguments::Tagged(tags) => tagged_content(tags),
        Arguments::Keywords(_) => Err("Python calls stand in no list".into()),
        Arguments::Elements { .. } => Err("elements are named after their keys, inside each other".into()),
    }
}

fn quoted_content(style: &Style, bare_keys: bool) -> Result<Value, String> {
    let mut marks = Vec::new();
    for quote in style.quotes.iter().filter(|quote| !(quote.escapes && quote.mark == "\"")) {
        if quote.escapes {
            return Err(format!("texts in {} with escapes", quote.mark));
        }
        marks.push(json!([quote.mark, quote.mark]));
    }
    let mut given = Map::new();
    if bare_keys {
        given.insert("unquoted_keys".into(), Value::Bool(true));
    }
    if !marks.is_empty() {
        given.insert("string_delims".into(), Value::Array(marks));
    }
    Ok(json!({"content": "json", "content_args": given}))
}

fn tagged_content(tags: &TaggedArguments) -> Result<Value, String> {
    if tags.is_lines() && tags.key_start.trim().is_empty() {
        let [opening] = &tags.opened[..] else { return Err("lines that state types".into()) };
        return Ok(json!({"content": "kv-lines", "content_args": {"kv_sep": opening.text.trim()}}));
    }
    if tags.key_start.trim().is_empty() || tags.value_end.trim().is_empty() {
        return Err("nothing marks a key or the end of a value".into());
    }
    let line = |text: &str, blank: &str| if text.is_empty() { "" } else { blank }.to_owned();
    let openings = tags.opened.iter().map(|opening| {
        let text = opening.text.trim_end();
        let after = line(&opening.text[text.len()..], r"\n?");
        format!("{}{after}", loosely(text))
    });
    let openings: Vec<String> = openings.collect();
    let end = tags.value_end.trim();
    let before_end = &tags.value_end[..tags.value_end.len() - tags.value_end.trim_start().len()];
    let before_end = line(before_end, r"\n?");
    let (cdata, cdata_end) = if tags.cdata { (r"(?:<!\[CDATA\[)?", r"(?:\]\]>)?") } else { ("", "") };
    let pattern = format!(
        "{}(?P<key>.+?){}{cdata}(?P<value>.*?){cdata_end}{before_end}{}",
        escape(tags.key_start.trim()),
        any_of(&openings),
        escape(end)
    );
    let mut given = json!({"tag_pattern": pattern});
    if tags.quoted {
        given["value_parser"] = json!({"name": "json", "args": {"allow_non_json": true}});
    }
    Ok(json!({"content": "xml-inline", "content_args": given}))
}
