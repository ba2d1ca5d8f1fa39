//! Frame of a reply: the boundaries of turns, reasoning, and marked content.

pub(super) mod grid;

use super::probe::{Ask, Probe, with_reasoning_part};
use super::text::{closes, common_prefix, common_suffix, first_tag, last_tag, segments, strip_loosely, word_of};
use crate::dialect::{Content, ContentMode, Reasoning, ReasoningMode, Turns};
use chat_template::TemplateError;
use serde_json::{Value, json};

/// The text before and after the reply of a rendering, from the user's text on.
#[derive(Debug, Clone, Default)]
pub(super) struct TurnContext {
    pub(super) before: String,
    pub(super) after: String,
}

/// Message field from which a template reads reasoning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum ReasoningSource {
    /// Not supported by it.
    #[default]
    Nowhere,
    /// In a field of the message.
    Field,
    /// As a part of its content.
    Part,
}

/// The findings that come before the search for calls.
#[derive(Debug, Clone, Default)]
pub(super) struct Frame {
    /// Text after a message of the user.
    pub(super) user_end: String,
    /// Text after that, before a message of the model: the header of its turn.
    pub(super) header: String,
    /// Text after a message of the model that is the last one.
    pub(super) turn_end: String,
    pub(super) prompts: Prompts,
    pub(super) turns: Turns,
    pub(super) reasoning: Reasoning,
    pub(super) taken: ReasoningSource,
    pub(super) content: Content,
    /// Around a message that only says something.
    pub(super) said: TurnContext,
    /// Common beginning of replies with and without reasoning, if the template takes reasoning.
    pub(super) shared: Option<String>,
    /// True if a new header comes after reasoning.
    pub(super) header_again: bool,
}

/// Generation prompts of a template.
#[derive(Debug, Clone, Default)]
pub(super) struct Prompts {
    pub(super) thinking: String,
    pub(super) not_thinking: String,
}

pub(super) fn frame(probe: &Probe) -> Result<Frame, TemplateError> {
    let none = || probe.refusal().unwrap_or(TemplateError::Thread { reason: "the template said nothing".into() });
    let user = || vec![probe.user()];
    let bare = probe.render_somehow(&Ask::new(user())).ok_or_else(none)?;
    let bare_end = probe.after_user(&bare).unwrap_or_default().to_owned();
    let prompts = Prompts { thinking: prompt(probe, true), not_thinking: prompt(probe, false) };
    let mut frame = Frame { prompts, ..Frame::default() };
    let said = text_around(probe, &probe.needles.reply, vec![probe.user(), probe.assistant()]);
    let Some(said) = said else {
        // Templates that have no place for what the model said still say how it begins.
        frame.header.clone_from(&frame.prompts.thinking);
        frame.turns.assistant.clone_from(&frame.header);
        return Ok(frame);
    };
    frame.turns.user = user_turn(probe, &bare, &said);
    frame.turn_end.clone_from(&said.after);
    frame.user_end = user_end(&frame, &bare_end, &said);
    frame.said = said;
    super::reasoning::find(probe, &mut frame);
    frame.header = header(&frame, &bare_end);
    frame.content = content(&frame);
    frame.turns.assistant = assistant_turn(&frame, &bare_end);
    Ok(frame)
}

/// Returns the text that `add_generation_prompt` adds.
fn prompt(probe: &Probe, thinking: bool) -> String {
    let ask = Ask::new(vec![probe.user()]).thinking(thinking);
    let with = probe.render_somehow(&ask.clone().with_prompt());
    let without = probe.render_somehow(&ask);
    match (with, without) {
        (Some(with), Some(without)) => with.strip_prefix(without.as_str()).unwrap_or_default().to_owned(),
        _ => String::new(),
    }
}

/// Returns the text around a needle in the last turn.
pub(super) fn text_around(probe: &Probe, needle: &str, messages: Vec<Value>) -> Option<TurnContext> {
    let text = probe.render_somehow(&Ask::new(messages))?;
    split_at(probe.after_user(&text)?, needle)
}

pub(super) fn split_at(text: &str, needle: &str) -> Option<TurnContext> {
    let at = text.find(needle)?;
    Some(TurnContext { before: text[..at].to_owned(), after: text[at + needle.len()..].to_owned() })
}

/// Returns the end of the user's turn: the text after it, without the beginning of an answer.
fn user_end(frame: &Frame, bare_end: &str, said: &TurnContext) -> String {
    if !frame.prompts.thinking.is_empty() && said.before.starts_with(bare_end) {
        return bare_end.to_owned();
    }
    if frame.turns.user.is_empty() {
        return common_prefix(bare_end, &said.before).to_owned();
    }
    // The template begins an answer whether it is asked to or not: the turn ends where the next begins.
    let first = segments(&frame.turns.user).first().map_or("", |segment| segment.text());
    match said.before.rfind(first) {
        Some(at) => said.before[..at].to_owned(),
        None => common_prefix(bare_end, &said.before).to_owned(),
    }
}

/// Returns the text before the user's message, in the first turn and in later ones.
fn user_turn(probe: &Probe, bare: &str, said: &TurnContext) -> String {
    let next = json!({"role": "user", "content": probe.needles.next_user});
    let messages = vec![probe.user(), probe.assistant(), next];
    let Some(text) = probe.render_somehow(&Ask::new(messages)) else { return String::new() };
    let first = bare.rfind(&probe.needles.user).map_or("", |at| &bare[..at]);
    let reply = text.rfind(&probe.needles.reply).map(|at| at + probe.needles.reply.len());
    let Some((from, to)) = reply.zip(text.rfind(&probe.needles.next_user)) else { return String::new() };
    let Some(between) = text.get(from..to) else { return String::new() };
    let mut turn = if first.is_empty() { between } else { common_suffix(between, first) };
    // What ends the turn before is not part of it.
    if let Some(rest) = between.strip_prefix(said.after.as_str()).filter(|rest| rest.len() < turn.len()) {
        turn = rest;
    }
    let end = segments(&said.before).first().map_or("", |segment| segment.text());
    if let Some(rest) = turn.strip_prefix(end).filter(|rest| !rest.trim().is_empty() && !end.trim().is_empty()) {
        turn = rest;
    }
    turn.trim_start().to_owned()
}

/// Returns the header of each turn of the model.
fn header(frame: &Frame, bare_end: &str) -> String {
    let said = &frame.said.before;
    let begin = said.strip_prefix(frame.user_end.as_str()).unwrap_or(said);
    let reasoning = &frame.reasoning;
    let prompt = &frame.prompts.thinking;
    if prompt.is_empty() {
        // Without a prompt: what replies with and without reasoning begin with.
        let shared = frame.shared.as_deref().unwrap_or(said);
        let shared = shared.strip_prefix(frame.user_end.as_str()).unwrap_or_default();
        // A marker that is closed right after what is said marks that.
        let marks = last_tag(shared, None);
        let is_closed = !marks.is_empty() && closes(marks, first_tag(&frame.said.after, None));
        return shared[..shared.len() - if is_closed { marks.len() } else { 0 }].to_owned();
    }
    let opened = reasoning.mode == ReasoningMode::OpenedByPrompt && !reasoning.start.is_empty();
    let closed = prompt.rfind(reasoning.start.trim()).filter(|_| opened);
    let header = closed.map_or(prompt.as_str(), |at| &prompt[..at]);
    if begin.starts_with(header) || bare_end.ends_with(header) {
        return header.to_owned();
    }
    common_prefix(header, begin).to_owned()
}

fn content(frame: &Frame) -> Content {
    let said = &frame.said.before;
    let begin = said.strip_prefix(frame.user_end.as_str()).unwrap_or(said);
    let begin =
        begin.strip_prefix(frame.header.as_str()).unwrap_or_else(|| strip_loosely(begin, &frame.header).unwrap_or(""));
    let start = skip_reasoning(begin, &frame.reasoning);
    if start.trim().is_empty() {
        return frame.content.clone();
    }
    let after = &frame.turn_end;
    let end = match word_of(start) {
        Some(word) if word_of(after) == Some(word) => first_tag(after, Some(word)).trim_end(),
        _ => first_tag(after, None).trim_end(),
    };
    Content { mode: ContentMode::Wrapped, start: start.to_owned(), end: end.to_owned(), other_starts: Vec::new() }
}

/// Returns the text after an empty block of reasoning, or after its end alone.
pub(super) fn skip_reasoning<'a>(text: &'a str, reasoning: &Reasoning) -> &'a str {
    if reasoning.end.trim().is_empty() {
        return text;
    }
    let (start, end) = (reasoning.start.trim(), reasoning.end.trim());
    let opened = text.trim_start().strip_prefix(start).unwrap_or(text).trim_start();
    // What the prompt opens some templates write before what is said too, and never its end.
    if reasoning.mode == ReasoningMode::OpenedByPrompt && opened.is_empty() {
        return "";
    }
    opened.strip_prefix(end).map_or(text, |rest| if rest.trim().is_empty() { "" } else { rest })
}

/// Returns the end of a turn beside the token that ends generation: a tag of three segments before it.
pub(super) fn end_of_turn(frame: &Frame) -> String {
    let after = frame.turn_end.as_str();
    let after = after.strip_prefix(frame.content.end.as_str()).unwrap_or(after);
    match word_of(after) {
        Some(word) if after.trim_start().starts_with('<') => first_tag(after, Some(word)).trim().to_owned(),
        _ => String::new(),
    }
}

/// Returns the text that the template writes before the model's message, for searches of turns in a text.
fn assistant_turn(frame: &Frame, bare_end: &str) -> String {
    let said = &frame.said.before;
    // Some templates begin the answer whether they are asked to or not.
    let always = frame.prompts.thinking.is_empty();
    let rest = said.strip_prefix(common_prefix(bare_end, said)).filter(|rest| always && !rest.trim().is_empty());
    let begin = rest.or_else(|| said.strip_prefix(frame.user_end.as_str())).unwrap_or(said);
    let reasoning = &frame.reasoning;
    let marks = [reasoning.start.trim(), reasoning.end.trim()];
    let cut = marks.iter().filter(|mark| !mark.is_empty()).filter_map(|mark| begin.find(mark)).min();
    let mut turn = &begin[..cut.unwrap_or(begin.len())];
    let one = matches!(segments(frame.content.start.trim())[..], [super::text::Segment::Marker(_)]);
    if frame.header_again
        && one
        && let Some(header) = turn.strip_suffix(frame.content.start.as_str()).filter(|header| !header.is_empty())
    {
        turn = header;
    }
    turn.to_owned()
}

/// Returns the text around reasoning that is a part of the content.
pub(super) fn as_part(probe: &Probe) -> Option<TurnContext> {
    let message = with_reasoning_part(&probe.assistant(), &probe.needles.reason);
    let text = probe.render_somehow(&Ask::new(vec![probe.user(), message]).without_adapting())?;
    let found = split_at(probe.after_user(&text)?, &probe.needles.reason)?;
    // A dict that is printed is not a place for reasoning.
    (!found.before.contains("thinking'") && !found.before.contains("thinking\"")).then_some(found)
}

/// The last tag of a text: what reasoning begins with, where something else begins with the same.
pub(super) fn begun_with<'a>(before: &'a str, end: &str) -> &'a str {
    last_tag(before, word_of(end))
}
