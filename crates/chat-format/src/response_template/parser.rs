//! Reading a reply by its response template, as `transformers` reads it.

use super::error::ResponseError;
use super::template::{Field, Inner, ResponseTemplate};
use super::typed::ToolTypes;
use serde_json::{Map, Value};
use std::sync::Arc;

/// An event of a reply.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum RegionEvent {
    /// A region of a field begins.
    Opens {
        /// Name of the field.
        field: String,
    },
    /// More text of a region.
    Text {
        /// Name of the field.
        field: String,
        /// More text of the region.
        text: String,
        /// True if the value of the field is parsed from the text, and not the text itself.
        raw: bool,
    },
    /// A region of a field ends.
    Closes {
        /// Name of the field.
        field: String,
        /// The value of the region.
        value: Value,
    },
}

impl RegionEvent {
    /// Returns the event as JSON, in the words of `transformers`.
    pub fn to_json(&self) -> Value {
        use serde_json::json;
        match self {
            Self::Opens { field } => json!({"type": "region_open", "field": field}),
            Self::Text { field, text, raw } => {
                json!({"type": "region_chunk", "field": field, "text": text, "dirty": raw})
            }
            Self::Closes { field, value } => json!({"type": "region_close", "field": field, "value": value}),
        }
    }
}

/// Parser of one reply by its response template. It gives the events and the message of `transformers`'
/// `ResponseParser`.
#[derive(Debug, Clone)]
pub struct ResponseParser {
    template: Arc<Inner>,
    tools: ToolTypes,
    text: Vec<char>,
    at: usize,
    message: Map<String, Value>,
    current: Option<usize>,
    captures: Map<String, Value>,
    body: String,
    opened: bool,
    over: bool,
    first: Vec<RegionEvent>,
}

/// An anchor that may come.
#[derive(Clone, Copy)]
struct WatchedAnchor {
    field: usize,
    opens: bool,
}

impl ResponseTemplate {
    /// A parser for the reply to a prompt. The end of the prompt counts as the beginning of the reply, from the last
    /// `start_anchor` on. Arguments of calls are read by the types of `tools`, which may be empty.
    ///
    /// # Errors
    /// The prompt holds a region that is not a value of its field.
    pub fn parser(&self, prompt: &str, tools: &[Value]) -> Result<ResponseParser, ResponseError> {
        let template = Arc::clone(self.inner());
        let prompt: Vec<char> = prompt.chars().collect();
        let text = prompt[template.reply_in(&prompt)..].to_vec();
        let mut parser = ResponseParser {
            message: template.defaults.clone(),
            current: template.implicit,
            tools: ToolTypes::new(tools),
            template,
            text,
            at: 0,
            captures: Map::new(),
            body: String::new(),
            opened: false,
            over: false,
            first: Vec::new(),
        };
        if !parser.text.is_empty() {
            let mut events = Vec::new();
            parser.read(&mut events, false)?;
            parser.first = events;
        }
        Ok(parser)
    }

    /// A whole reply as a message.
    ///
    /// # Errors
    /// A region is not a value of its field, or a field that is not optional is missing.
    pub fn parse(&self, prompt: &str, reply: &str, tools: &[Value]) -> Result<Value, ResponseError> {
        let mut parser = self.parser(prompt, tools)?;
        parser.push(reply)?;
        parser.finish().map(|(message, _)| message)
    }
}

impl ResponseParser {
    /// The events of the regions that the prompt begins.
    pub fn first_events(&self) -> &[RegionEvent] {
        &self.first
    }

    /// Reads more text.
    ///
    /// # Errors
    /// A region that ended is not a value of its field, or the reply is over.
    pub fn push(&mut self, text: &str) -> Result<Vec<RegionEvent>, ResponseError> {
        if self.over {
            return Err(ResponseError::Over);
        }
        self.text.extend(text.chars());
        let mut events = Vec::new();
        self.read(&mut events, false)?;
        Ok(events)
    }

    /// Ends the reply: its message, and the last events.
    ///
    /// # Errors
    /// The last region is not a value of its field, a field that is not optional is missing, or the reply is over.
    pub fn finish(&mut self) -> Result<(Value, Vec<RegionEvent>), ResponseError> {
        if self.over {
            return Err(ResponseError::Over);
        }
        let mut events = Vec::new();
        self.read(&mut events, true)?;
        let missing = |field: &&Field| !field.optional && !self.message.contains_key(&field.name);
        if let Some(field) = self.template.fields.iter().find(missing) {
            return Err(ResponseError::Missing { field: field.name.clone() });
        }
        let is_empty = |value: &Value| match value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(list) => list.is_empty(),
            Value::Object(map) => map.is_empty(),
            _ => false,
        };
        let defaults = &self.template.defaults;
        self.message.retain(|key, value| defaults.contains_key(key) || !is_empty(value));
        self.over = true;
        Ok((Value::Object(std::mem::take(&mut self.message)), events))
    }

    fn read(&mut self, events: &mut Vec<RegionEvent>, over: bool) -> Result<(), ResponseError> {
        loop {
            let (best, held) = self.scan(over);
            let Some((watched, found)) = best else {
                let until = if over { self.text.len() } else { held };
                if until > self.at {
                    self.take(events, until);
                    self.at = until;
                }
                if over {
                    self.close(events)?;
                }
                return Ok(());
            };
            if found.start > self.at {
                self.take(events, found.start);
            }
            self.at = found.end;
            let field = &self.template.fields[watched.field];
            let anchor = if watched.opens { &field.open } else { &field.close };
            let captures: Vec<(String, String)> =
                anchor.as_ref().map_or_else(Vec::new, |anchor| anchor.pattern.captures(&found, &self.text));
            let captures = captures.into_iter().map(|(name, text)| (name, Value::String(text)));
            if watched.opens {
                let name = field.name.clone();
                let captures = captures.collect();
                self.close(events)?;
                self.current = Some(watched.field);
                self.captures = captures;
                self.opened = true;
                events.push(RegionEvent::Opens { field: name });
            } else {
                let had_text = self.opened;
                self.captures.extend(captures);
                self.close(events)?;
                // An empty end of an empty region would come again for ever.
                if !had_text && found.start == found.end {
                    return Ok(());
                }
            }
        }
    }

    /// The anchors that may come: the end of the region, or outside of all, the beginnings.
    fn watch_anchors(&self) -> Vec<WatchedAnchor> {
        let fields = &self.template.fields;
        if let Some(field) = self.current.filter(|_| self.current != self.template.implicit) {
            return fields[field].close.iter().map(|_| WatchedAnchor { field, opens: false }).collect();
        }
        let begins = (0..fields.len()).filter(|&field| fields[field].open.is_some());
        let ends = self.template.implicit.filter(|&field| fields[field].close.is_some());
        let begins = begins.map(|field| WatchedAnchor { field, opens: true });
        begins.chain(ends.map(|field| WatchedAnchor { field, opens: false })).collect()
    }

    /// The first anchor that is certain, and the position from which on the text may begin another.
    fn scan(&mut self, over: bool) -> (Option<(WatchedAnchor, super::pattern::PatternMatch)>, usize) {
        let template = Arc::clone(&self.template);
        let mut held = self.text.len();
        let mut best: Option<(WatchedAnchor, super::pattern::PatternMatch)> = None;
        for watched in self.watch_anchors() {
            let field = &template.fields[watched.field];
            let Some(anchor) = (if watched.opens { &field.open } else { &field.close }) else { continue };
            let Some(found) = anchor.pattern.search(&self.text, self.at, !over) else { continue };
            if !over && (found.partial || anchor.may_change(&found, &mut self.text)) {
                held = held.min(found.start);
                continue;
            }
            let key = |watched: WatchedAnchor, found: &super::pattern::PatternMatch| {
                let length = std::cmp::Reverse(found.end - found.start);
                (found.start, length, !watched.opens, template.fields[watched.field].name.clone())
            };
            if best.as_ref().is_none_or(|(other, known)| key(watched, &found) < key(*other, known)) {
                best = Some((watched, found));
            }
        }
        (best.filter(|(_, found)| found.start < held), held)
    }

    /// Adds the text up to a position to the region.
    fn take(&mut self, events: &mut Vec<RegionEvent>, until: usize) {
        let Some(current) = self.current.filter(|_| until > self.at) else { return };
        let field = &self.template.fields[current];
        if !self.opened {
            events.push(RegionEvent::Opens { field: field.name.clone() });
            self.opened = true;
        }
        let text: String = self.text[self.at..until].iter().collect();
        self.body.push_str(&text);
        events.push(RegionEvent::Text { field: field.name.clone(), text, raw: !field.content.is_streamed() });
    }

    /// Ends the region, and adds its value to the message.
    fn close(&mut self, events: &mut Vec<RegionEvent>) -> Result<(), ResponseError> {
        let body = std::mem::take(&mut self.body);
        let captures = std::mem::take(&mut self.captures);
        let current = std::mem::replace(&mut self.current, self.template.implicit);
        let opened = std::mem::take(&mut self.opened);
        let Some(field) = current.filter(|_| opened).map(|current| &self.template.fields[current]) else {
            return Ok(());
        };
        let wrong = |reason: String| ResponseError::Field { field: field.name.clone(), reason };
        let mut value = field.content.parse(&body).map_err(wrong)?;
        if let Some(transform) = &field.transform {
            value = transform.apply(value, &captures).map_err(wrong)?;
        }
        self.tools.read(&mut value);
        let known = self.message.get_mut(&field.name);
        let shown = value.clone();
        if let Some(join) = &field.join {
            let Value::String(text) = value else { return Err(wrong(format!("join needs a text, got {value}"))) };
            match known {
                Some(Value::String(known)) => {
                    known.push_str(join);
                    known.push_str(&text);
                }
                None | Some(Value::Null) => drop(self.message.insert(field.name.clone(), Value::String(text))),
                Some(other) => return Err(wrong(format!("join needs a text, and the default is {other}"))),
            }
        } else if field.repeats {
            match known {
                Some(Value::Array(known)) => known.push(value),
                None => drop(self.message.insert(field.name.clone(), Value::Array(vec![value]))),
                Some(other) => return Err(wrong(format!("repeats needs a list, and the default is {other}"))),
            }
        } else {
            self.message.insert(field.name.clone(), value);
        }
        events.push(RegionEvent::Closes { field: field.name.clone(), value: shown });
        Ok(())
    }
}
