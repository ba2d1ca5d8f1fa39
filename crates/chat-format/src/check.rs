//! Check of an analysis. It renders conversations that the analysis did not use. The parser must read each rendered
//! reply back as its source, and the constraint must allow it.

mod otherwise;
mod probes;

use crate::ChatFormat;
use crate::analysis::own_marks::OwnMarks;
use crate::analysis::text::{common_prefix, length_of_last_marker};
use crate::analysis::with_usual_variables;
use crate::dialect::{Arguments, Part, ReasoningMode};
use crate::error::FormatError;
use crate::format::state_after_prompt;
use crate::lock::lock;
use crate::machine::{Nobody, ToolChoice};
use crate::reply::{Message, ParserOptions};
use crate::tools::Tools;
use chat_template::{Clock, Data, RenderOptions, Session};
use probes::{Conversation, Probe};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Mutex;

/// Result of a check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CheckResult {
    /// First probe that failed, and the failure, in one sentence.
    pub degraded: Option<String>,
    /// Output of the template that cannot be read back.
    pub warnings: Vec<String>,
    /// Number of probes that succeeded before the first failure.
    pub passed: usize,
}

/// Cached renderings for the next hypothesis.
pub(crate) type RenderingCache = Mutex<HashMap<String, Option<String>>>;

pub(crate) fn check(format: &ChatFormat, seen: &RenderingCache) -> CheckResult {
    if format.analysis().spent {
        return CheckResult {
            degraded: Some("nothing was checked: the template computes too much".into()),
            ..CheckResult::default()
        };
    }
    let done = format.template().in_session(|session| {
        let mut check = Check::new(format, session, seen);
        let degraded = check.run();
        CheckResult { degraded, warnings: check.warnings, passed: check.passed }
    });
    let failed =
        |error| CheckResult { degraded: Some(format!("nothing could be checked: {error}")), ..CheckResult::default() };
    done.unwrap_or_else(failed)
}

/// Returns the length of the end of a text that begins this mark.
fn begun_at_end(text: &str, mark: &str) -> usize {
    let lengths = mark.char_indices().map(|(at, sign)| at + sign.len_utf8());
    lengths.filter(|&length| text.ends_with(&mark[..length])).max().unwrap_or_default()
}

struct Check<'a> {
    format: &'a ChatFormat,
    session: &'a Session<'a>,
    tools: Tools,
    tools_given: Value,
    warnings: Vec<String>,
    passed: usize,
    seen: &'a RenderingCache,
}

/// A reply, cut out of a rendered conversation.
#[derive(Default)]
struct Reply {
    /// Part of the prompt before it, from the beginning of the turn.
    prompt: String,
    text: String,
    /// All of the conversation before it.
    before: String,
    /// The reply with the end of the turn.
    whole: String,
}

/// A reply that the template renders, and the message that it was rendered from.
#[derive(Debug, Clone)]
pub(crate) struct RenderedReply {
    /// Name of the probe.
    pub(crate) name: &'static str,
    pub(crate) message: Value,
    /// The conversation before the reply.
    pub(crate) prompt: String,
    /// The reply without the text that ends generation.
    pub(crate) text: String,
    /// The reply with that text.
    pub(crate) whole: String,
    /// The tools of the conversation.
    pub(crate) tools: Value,
}

/// The replies of the check that the template of a format renders.
pub(crate) fn rendered_replies(format: &ChatFormat) -> Vec<RenderedReply> {
    let seen = RenderingCache::default();
    let of = |session: &Session<'_>| {
        let check = Check::new(format, session, &seen);
        let probes = probes::all_probes(&|number, name| check.id(number, name));
        let rendered = |probe: &Probe| {
            let end = check.turn_end(probe.conversation).unwrap_or_default();
            let (message, reply) = check.shown_reply(probe, probe.conversation, &end)?;
            let Reply { before: prompt, text, whole, .. } = reply;
            let awkward = check.signs_without_escapes().is_some() && probe.is_unescaped(&text);
            let tools = if probe.conversation.tools { check.tools_given.clone() } else { Value::Null };
            (!awkward).then_some(RenderedReply { name: probe.name, message, prompt, text, whole, tools })
        };
        let only_at_start = format.analysis().dialect.calls_only_begin();
        probes.iter().filter(|probe| !(only_at_start && probe.is_late_call())).filter_map(rendered).collect()
    };
    format.template().in_session(of).unwrap_or_default()
}

/// The part of a message that was not read back unchanged.
pub(crate) fn difference(message: &Value, rendered: &str, got: &Message) -> Option<String> {
    probes::differs(message, rendered, got)
}

/// The texts that begin a reply in a prompt, and those that end it.
pub(crate) fn reply_borders(format: &ChatFormat) -> (Vec<String>, Vec<String>) {
    let seen = RenderingCache::default();
    let of = |session: &Session<'_>| Check::new(format, session, &seen).borders();
    format.template().in_session(of).unwrap_or_default()
}

impl Reply {
    fn describe(&self) -> String {
        format!("{:?} after {:?}", probes::shorten(&self.text), self.prompt)
    }
}

impl<'a> Check<'a> {
    fn new(format: &'a ChatFormat, session: &'a Session<'a>, seen: &'a RenderingCache) -> Self {
        let tools_given = probes::tools();
        let tools = Tools::new(tools_given.as_array().map_or(&[], Vec::as_slice)).unwrap_or_default();
        Self { format, session, tools, tools_given, warnings: Vec::new(), passed: 0, seen }
    }

    fn run(&mut self) -> Option<String> {
        let asked = self.render(Conversation::ALL[0], None, true).unwrap_or_default();
        if !asked.contains(probes::ASKED) {
            self.warnings.push("the template leaves out or changes what the user says".into());
        }
        let dialect = &self.format.analysis().dialect;
        let conversations = Conversation::ALL.map(|conversation| (conversation, self.turn_end(conversation)));
        let probes = probes::all_probes(&|number, name| self.id(number, name));
        // Calls that are known by where they begin have nothing before them.
        let only_at_start = dialect.calls_only_begin();
        probes.iter().filter(|probe| !(only_at_start && probe.is_late_call())).find_map(|probe| {
            let of = |(conversation, _): &&(Conversation, _)| *conversation == probe.conversation;
            let (conversation, end) = conversations.iter().find(of)?;
            // Without an end known, all that is rendered is the reply.
            let Some(how) = self.probe(probe, *conversation, end.as_deref().unwrap_or_default()) else {
                self.passed += 1;
                return None;
            };
            Some(format!("{}: {how}", probe.name))
        })
    }

    /// The id of a call, in the shape that this format writes.
    fn id(&self, number: usize, name: &str) -> String {
        let parts = self.format.analysis().dialect.calls.iter().flat_map(|calls| &calls.patterns).next();
        let parts = parts.map_or(&[][..], |pattern| &pattern.parts);
        let mut marks = parts.iter().enumerate().filter(|(_, part)| **part == Part::WholeId).map(|(at, _)| at);
        let (Some(from), Some(to)) = (marks.next(), marks.next()) else { return format!("k7Jd93Lq{number}") };
        let text = |part: &Part| match part {
            Part::Text(text) => text.trim().to_owned(),
            Part::Name => name.to_owned(),
            Part::Index => number.to_string(),
            _ => String::new(),
        };
        parts[from..to].iter().map(text).collect()
    }

    fn render(&self, conversation: Conversation, reply: Option<&Value>, prompt: bool) -> Option<String> {
        let mut messages = vec![json!({"role": "user", "content": probes::ASKED})];
        let analysis = self.format.analysis();
        // Calls that are only told of become content when they are shaped.
        let as_is = |reply: &Value| analysis.told.is_some() && reply["tool_calls"].is_array();
        messages.extend(reply.map(|reply| if as_is(reply) { reply.clone() } else { analysis.shape_message(reply) }));
        let key = format!("{conversation:?} {prompt} {}", Value::Array(messages.clone()));
        if let Some(known) = lock(self.seen).get(&key) {
            return known.clone();
        }
        let clock = Clock::from_local_time(2025, 3, 9, 8, 30, 0).unwrap_or_default();
        let options = RenderOptions::default().with_clock(clock).with_generation_prompt(prompt);
        let options = options.with_variable("enable_thinking", conversation.thinking);
        let tools = conversation.tools.then_some(&self.tools_given);
        let options = with_usual_variables(options, tools);
        let tools = tools.map(Data::from);
        let text = self.session.render(&Data::from(&Value::Array(messages)), tools.as_ref(), &options).ok();
        lock(self.seen).insert(key, text.clone());
        text
    }

    /// Returns the text after a reply that only has content; `None` if the template takes no reply.
    fn turn_end(&self, conversation: Conversation) -> Option<String> {
        let said = json!({"role": "assistant", "content": probes::SAID});
        let text = self.render(conversation, Some(&said), false)?;
        let end = text.rfind(probes::SAID)? + probes::SAID.len();
        Some(text[end..].to_owned())
    }

    /// Removes the text that ends generation, which is not part of the reply.
    fn without_end<'t>(&self, reply: &'t str, turn_end: &str) -> &'t str {
        let analysis = self.format.analysis();
        let dialect = &analysis.dialect;
        let mut end = turn_end.trim();
        for own in [dialect.content.end.trim(), dialect.turns.end.trim()] {
            end = end.strip_prefix(own).unwrap_or(end).trim_start();
        }
        let mut reply = reply.trim_end();
        for end in [end, analysis.end_of_calls()] {
            reply = reply.strip_suffix(end).unwrap_or(reply).trim_end();
        }
        reply
    }

    /// The reply of a conversation, if the template renders it. Calls that the template only describes are written as
    /// in its example.
    fn reply(&self, conversation: Conversation, message: &Value, turn_end: &str) -> Option<Reply> {
        let calls = message["tool_calls"].as_array().filter(|calls| !calls.is_empty());
        let rendered = || self.render_reply(conversation, message, turn_end);
        let Some((example, calls)) = self.format.analysis().told.as_ref().zip(calls) else { return rendered() };
        // What the template writes itself counts, not what it tells.
        let written = |reply: &Reply| calls.iter().all(|call| reply.text.contains(probes::name_of(call)));
        if let Some(reply) = rendered().filter(written) {
            return Some(reply);
        }
        let mut said = message.clone();
        said.as_object_mut()?.shift_remove("tool_calls");
        let mut reply = self.render_reply(conversation, &said, turn_end)?;
        reply.text.push_str(&example.write(calls, &OwnMarks::default()));
        reply.whole = format!("{}{}", reply.text, turn_end.trim_end());
        Some(reply)
    }

    fn render_reply(&self, conversation: Conversation, message: &Value, turn_end: &str) -> Option<Reply> {
        // A template may leave out what the user says.
        let tail = |text: String| match text.rfind(probes::ASKED) {
            Some(at) => text[at + probes::ASKED.len()..].to_owned(),
            None => text,
        };
        let before = self.render(conversation, Some(message), false)?;
        let asked = tail(self.render(conversation, None, false)?);
        let opened = tail(self.render(conversation, None, true)?);
        let whole = tail(before.clone());
        let begins = common_prefix(&opened, &asked).len();
        let same = common_prefix(&opened, &whole).len();
        let prompt = opened.get(begins..same).unwrap_or_default().to_owned();
        let text = self.without_end(&whole[same..], turn_end);
        // Without a prompt to answer after, the header of the turn is not part of the reply.
        let dialect = &self.format.analysis().dialect;
        let header = dialect.turns.assistant.trim();
        let header = header.strip_suffix(dialect.content.start.trim()).unwrap_or(header).trim_end();
        let header = Some(header).filter(|header| opened == asked && !header.is_empty());
        let after = header.and_then(|header| text.trim_start().strip_prefix(header));
        let begin = same + after.map_or(0, |after| text.len() - after.len());
        let before = before[..before.len() - (whole.len() - begin)].to_owned();
        let mut rest = whole[begin..].trim_end().to_owned();
        let mut text = after.unwrap_or(text).to_owned();
        let reasoning = &self.format.analysis().dialect.reasoning;
        // Where the prompt has begun to think, the model ends that also where the template leaves it out.
        let opened =
            reasoning.mode == ReasoningMode::OpenedByPrompt && prompt.trim_end().ends_with(reasoning.start.trim());
        if opened && !text.contains(reasoning.end.trim()) {
            text.insert_str(0, &reasoning.end);
            rest.insert_str(0, &reasoning.end);
        }
        Some(Reply { prompt, text, before, whole: rest })
    }

    /// The reply of a probe with its message, if the template shows all of it.
    fn shown_reply(&self, probe: &Probe, conversation: Conversation, turn_end: &str) -> Option<(Value, Reply)> {
        let shapes = probe.messages();
        let written = self.format.analysis().dialect.calls.is_some();
        let shown = |reply: &Reply| {
            let witnesses = probe.witnesses.iter().all(|witness| reply.text.contains(witness));
            // Some write a missing content as Python shows it, or what is said as another turn.
            witnesses
                && !(written && reply.text.contains("None") && !probe.has_nothing())
                && !self.is_two(&reply.text, turn_end)
        };
        shapes.into_iter().find_map(|message| {
            let reply = self.reply(conversation, &message, turn_end).filter(shown)?;
            Some((message, reply))
        })
    }

    /// The texts that begin a reply in a prompt, and those that end it.
    fn borders(&self) -> (Vec<String>, Vec<String>) {
        let analysis = self.format.analysis();
        let dialect = &analysis.dialect;
        let mut ends: Vec<String> = Vec::new();
        let turn_ends = Conversation::ALL.iter().filter_map(|conversation| self.turn_end(*conversation));
        let turn_ends = turn_ends.map(|end| {
            let end = end.trim();
            end.strip_prefix(dialect.content.end.trim()).unwrap_or(end).trim().to_owned()
        });
        let own = [analysis.end_of_calls(), &dialect.turns.end, &dialect.turns.end_of_calls];
        let own = own.into_iter().chain(dialect.stops.iter().map(String::as_str)).map(|end| end.trim().to_owned());
        for end in turn_ends.chain(own).filter(|end| !end.is_empty()) {
            if !ends.contains(&end) {
                ends.push(end);
            }
        }
        let common = common_prefix(&analysis.prompt_thinking, &analysis.prompt_not_thinking);
        let reasoning = &dialect.reasoning;
        let opener = Some(reasoning.start.trim()).filter(|start| !start.is_empty());
        let header = opener.and_then(|start| common.find(start)).map_or(common, |at| &common[..at]);
        // Without a header before it, what opens the reasoning begins the turn.
        let turn = if dialect.turns.assistant.trim().is_empty() { common } else { &dialect.turns.assistant[..] };
        let header = if header.trim().is_empty() { turn } else { header };
        // What the prompt writes of a mark of the reply is part of the reply.
        let heads = dialect.calls.iter().flat_map(|calls| &calls.patterns).filter_map(|pattern| pattern.head());
        let begun = heads.chain([&dialect.content.start[..]]).map(|mark| begun_at_end(header, mark.trim())).max();
        let header = &header[..header.len() - begun.unwrap_or_default()];
        let header = Some(header).filter(|header| !header.trim().is_empty());
        let answered = self.render_answer().unwrap_or_default();
        let mut starts: Vec<String> = header.map(str::to_owned).into_iter().collect();
        let asked = self.render(Conversation::ALL[2], None, true).unwrap_or_default();
        for text in [(asked, probes::ASKED), (answered, probes::RESULT)] {
            let (text, said) = text;
            let Some(tail) = text.rfind(said).map(|at| &text[at + said.len()..]) else { continue };
            if starts.iter().any(|start| tail.contains(&start[..])) {
                continue;
            }
            let tail = opener.and_then(|start| tail.find(start)).map_or(tail, |at| &tail[..at]);
            let marker = &tail[tail.len() - length_of_last_marker(tail)..];
            starts.extend(Some(marker.to_owned()).filter(|marker| !marker.trim().is_empty()));
        }
        (starts, ends)
    }

    /// The prompt after the result of a tool.
    fn render_answer(&self) -> Option<String> {
        let analysis = self.format.analysis();
        let id = self.id(0, "find_song");
        let call = json!({"role": "assistant", "content": "", "tool_calls": [{"id": id, "type": "function",
            "function": {"name": "find_song", "arguments": {"title": "Am Hafen 9"}}}]});
        let result = json!({"role": "tool", "tool_call_id": id, "name": "find_song", "content": probes::RESULT});
        let messages =
            [json!({"role": "user", "content": probes::ASKED}), analysis.shape_message(&call), result].to_vec();
        let options = RenderOptions::default().with_generation_prompt(true);
        let options = with_usual_variables(options.with_variable("enable_thinking", false), Some(&self.tools_given));
        self.session.render(&Data::from(&Value::Array(messages)), Some(&Data::from(&self.tools_given)), &options).ok()
    }

    fn probe(&mut self, probe: &Probe, conversation: Conversation, turn_end: &str) -> Option<String> {
        // What a template does not show is not a failure of the analysis.
        let (message, reply) = self.shown_reply(probe, conversation, turn_end)?;
        let message = &message;
        if let Some(signs) = self.signs_without_escapes().filter(|_| probe.is_unescaped(&reply.text)) {
            let what =
                "the template writes texts of arguments without escapes: in later prompts a call whose texts hold";
            self.warnings.push(format!("{what} {signs} does not look as the model wrote it"));
            return None;
        }
        let tools = if conversation.tools { self.tools.clone() } else { Tools::default() };
        let got = match self.read(&tools, &reply, false) {
            Ok(got) => got,
            Err(error) => return Some(format!("no parser: {error}")),
        };
        if let Some(how) = probes::differs(message, &reply.text, &got) {
            return Some(format!("{how}; read from {}", reply.describe()));
        }
        if !conversation.tools {
            return None;
        }
        if let Some(how) = self.find_refusal(&reply, &ToolChoice::Auto) {
            return Some(how);
        }
        self.otherwise(&got, &reply, &tools)
    }

    /// A reply as the format reads it, whole or cut short.
    fn read(&self, tools: &Tools, reply: &Reply, cut: bool) -> Result<Message, FormatError> {
        let (tools, prompt) = (Some(tools.clone()), Some(reply.prompt.clone()));
        let mut parser = self.format.parser(&ParserOptions { tools, prompt, ..ParserOptions::default() })?;
        parser.push(reply.text.as_bytes());
        Ok(parser.finish(cut).1)
    }

    /// Returns whether a rendering contains the end of a turn, and so holds more than one reply.
    fn is_two(&self, reply: &str, turn_end: &str) -> bool {
        let dialect = &self.format.analysis().dialect;
        let end = turn_end.trim().strip_prefix(dialect.content.end.trim()).unwrap_or_default().trim();
        !end.is_empty() && reply.contains(end) && !dialect.joints.iter().any(|joint| joint == end)
    }

    /// Returns the signs of texts that calls must escape: quotes if a backslash escapes them, or the end of a line.
    fn signs_without_escapes(&self) -> Option<&'static str> {
        let calls = self.format.analysis().dialect.calls.iter().flat_map(|calls| &calls.patterns);
        calls.flat_map(|pattern| &pattern.parts).find_map(|part| match part {
            Part::Arguments(Arguments::Tagged(keyed)) => keyed.is_lines().then_some("several lines"),
            Part::Arguments(Arguments::Keywords(style) | Arguments::Pairs(style)) => {
                style.quotes.iter().any(|quote| quote.escapes).then_some("quotes")
            }
            Part::Object(object) if object.python => None,
            Part::Arguments(Arguments::Json) | Part::Object(_) | Part::NameAsKey => Some("quotes"),
            _ => None,
        })
    }

    /// The reason why the constraint refuses the reply, and the place.
    fn find_refusal(&self, reply: &Reply, choice: &ToolChoice) -> Option<String> {
        let at_byte = |at: usize| format!("the constraint refuses it at byte {at} of {}", reply.describe());
        let machine = match self.format.machine(Some(&self.tools), choice, true, true) {
            Ok(made) => made.machine,
            Err(error) => return Some(format!("there is no constraint: {error}")),
        };
        let mut state = state_after_prompt(&machine, &reply.prompt, self.format.prelude_length(&reply.prompt));
        for (at, byte) in reply.text.bytes().enumerate() {
            if machine.step(&mut state, byte, false, &mut Nobody).is_err() {
                return Some(at_byte(at));
            }
        }
        (!machine.is_end(&state)).then(|| at_byte(reply.text.len()))
    }
}
