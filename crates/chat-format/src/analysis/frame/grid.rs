//! Frame of a reply, by dependence: messages with and without reasoning, content and calls are rendered, and each text
//! between needles belongs to the parts that it comes with.

use super::{Frame, ReasoningSource, skip_reasoning};
use crate::analysis::probe::{Ask, Probe};
use crate::analysis::reasoning::add_hidden_reasoning;
use crate::analysis::text::{closes, common_prefix, common_suffix, first_tag, last_tag};
use crate::dialect::{Content, ContentMode, Reasoning, ReasoningMode};
use serde_json::{Value, json};

/// Renderings from the end of the user's turn on.
struct Grid {
    /// Text of the generation prompt.
    added: String,
    said: String,
    thought: Option<String>,
    called: Option<String>,
    thought_called: Option<String>,
    said_called: Option<String>,
}

/// The frame as dependence shows it; `first` is what is known otherwise.
pub(in crate::analysis) fn frame(probe: &Probe, first: &Frame) -> Option<Frame> {
    let grid = grid(probe, first)?;
    let mut frame = first.clone();
    (frame.reasoning, frame.content) = (Reasoning::default(), Content::default());
    (frame.header_again, frame.shared) = (false, None);
    let needles = &probe.needles;
    let before_said = grid.said.split(needles.reply.as_str()).next()?;
    let after_said = &grid.said[grid.said.find(needles.reply.as_str())? + needles.reply.len()..];
    frame.header.clone_from(&grid.added);
    if grid.added.is_empty() {
        let other = grid.thought.as_deref().or(grid.called.as_deref()).unwrap_or(before_said);
        common_prefix(before_said, other).clone_into(&mut frame.header);
        let marks = last_tag(&frame.header, None).len();
        if marks > 0 && closes(last_tag(&frame.header, None), first_tag(after_said, None)) {
            frame.header.truncate(frame.header.len() - marks);
        }
    }
    let content_start = if let Some(thought) = &grid.thought {
        Some(add_rendered_reasoning(probe, &grid, thought, before_said, &mut frame)?)
    } else {
        add_hidden_reasoning(probe, before_said, &mut frame);
        None
    };
    let begin = before_said.strip_prefix(frame.header.as_str()).unwrap_or(before_said);
    let plain = skip_reasoning(begin, &frame.reasoning);
    let (mode, start) = match content_start {
        Some(start) if start.trim().is_empty() => (ContentMode::Plain, String::new()),
        Some(start) if plain.trim() == start.trim() => (ContentMode::Wrapped, start),
        Some(start) => (ContentMode::WrappedWithReasoning, start),
        None if plain.trim().is_empty() => (ContentMode::Plain, String::new()),
        None => (ContentMode::Wrapped, plain.to_owned()),
    };
    if mode != ContentMode::Plain {
        // What ends it stands after it, whatever follows.
        let after_thought = grid.thought.as_deref().and_then(|text| text.split_once(needles.reply.as_str()));
        let after = after_thought.map_or(after_said, |(_, after)| after);
        let tag = first_tag(after, None);
        let end = if closes(&start, tag) {
            tag.trim_end()
        } else {
            let called = grid.said_called.as_deref().and_then(|text| text.split_once(needles.reply.as_str()));
            called.filter(|_| mode == ContentMode::Wrapped).map_or("", |(_, called)| common_prefix(after, called))
        };
        frame.content = Content { mode, start, end: end.to_owned(), other_starts: Vec::new() };
    }
    let marks = [frame.reasoning.start.trim(), frame.content.start.trim()];
    let cut = marks.iter().filter(|mark| !mark.is_empty()).filter_map(|mark| frame.header.find(mark)).min();
    frame.header[..cut.unwrap_or(frame.header.len())].clone_into(&mut frame.turns.assistant);
    Some(frame)
}

fn grid(probe: &Probe, first: &Frame) -> Option<Grid> {
    let needles = &probe.needles;
    let bare = probe.render_somehow(&Ask::new(vec![probe.user()]))?;
    let asked = probe.after_user(&bare)?.to_owned();
    let rest = |message: Value, tools: bool| {
        let ask = Ask::new(vec![probe.user(), message]);
        let text = if tools { probe.render(&ask.with_tools()) } else { probe.render_somehow(&ask) }?;
        let text = probe.after_user(&text)?;
        let end = if text.starts_with(&asked) { asked.as_str() } else { first.user_end.as_str() };
        text.strip_prefix(end).map(str::to_owned)
    };
    let call = || json!([probe.call(0, json!({&needles.keys[0]: &needles.values[0]}))]);
    let with_call = |mut message: Value| {
        message["tool_calls"] = call();
        if let Some(text) = rest(message.clone(), true).filter(|text| text.contains(&needles.names[0])) {
            return Some(text);
        }
        let arguments = &mut message["tool_calls"][0]["function"]["arguments"];
        *arguments = arguments.to_string().into();
        rest(message, true).filter(|text| text.contains(&needles.names[0]))
    };
    let nothing = || json!({"role": "assistant", "content": ""});
    let said = rest(probe.assistant(), false).filter(|text| text.contains(&needles.reply))?;
    let reasoned = |text: &String| text.contains(&needles.reason);
    let both = |text: &String| reasoned(text) && text.contains(&needles.reply);
    Some(Grid {
        added: first.prompts.thinking.clone(),
        said,
        thought: rest(probe.add_reasoning(probe.assistant()), false).filter(both),
        called: with_call(nothing()),
        thought_called: with_call(probe.add_reasoning(nothing())).filter(reasoned),
        said_called: with_call(probe.assistant()).filter(|text| text.contains(&needles.reply)),
    })
}

/// Reasoning that the template renders: fills it in; what content after it begins with.
fn add_rendered_reasoning(
    probe: &Probe,
    grid: &Grid,
    thought: &str,
    before_said: &str,
    frame: &mut Frame,
) -> Option<String> {
    let needles = &probe.needles;
    let (before, after) = thought.split_once(needles.reason.as_str())?;
    let (between, _) = after.split_once(needles.reply.as_str())?;
    let called = grid.thought_called.as_deref().and_then(|text| text.split_once(needles.reason.as_str()));
    let called = called.and_then(|(_, after)| Some(after.split_once(needles.names[0].as_str())?.0));
    let opened = last_tag(&grid.added, None);
    let tag = first_tag(between, None);
    frame.taken = ReasoningSource::Field;
    let reasoning = &mut frame.reasoning;
    let own = last_tag(before, None);
    if grid.added.is_empty() && closes(own, tag) {
        // Also where the template always writes it.
        reasoning.mode = ReasoningMode::Optional;
        own.clone_into(&mut reasoning.start);
        before[..before.len() - own.len()].clone_into(&mut frame.header);
    } else if closes(opened, tag) {
        reasoning.mode = ReasoningMode::OpenedByPrompt;
        opened.clone_into(&mut reasoning.start);
        grid.added[..grid.added.len() - opened.len()].clone_into(&mut frame.header);
    } else if let Some(start) = before.strip_prefix(frame.header.as_str()).filter(|start| !start.trim().is_empty()) {
        reasoning.mode = ReasoningMode::Optional;
        start.clone_into(&mut reasoning.start);
    } else if before.trim() != frame.header.trim() {
        frame.header = common_prefix(&frame.header, before).to_owned();
        reasoning.mode = ReasoningMode::Optional;
        before[frame.header.len()..].clone_into(&mut reasoning.start);
    } else {
        reasoning.mode = ReasoningMode::OpenedByPrompt;
    }
    // With a tag like its start; else what comes after reasoning whatever follows it.
    let pair = closes(&reasoning.start, tag);
    let shared = called.map(|called| common_prefix(between, called)).filter(|shared| !shared.trim().is_empty());
    // What marks the content after it is none of it.
    let marks = last_tag(between, None);
    let after_said = after.split_once(needles.reply.as_str()).map_or("", |(_, after)| after);
    let marked = closes(marks, first_tag(after_said, None)) && marks.len() < between.len();
    let end = if pair {
        tag
    } else if marked {
        &between[..between.len() - marks.len()]
    } else if let Some(shared) = shared {
        shared
    } else {
        let begin = before_said.strip_prefix(frame.header.as_str()).unwrap_or(before_said);
        let shared = common_suffix(between, begin);
        let end = &between[..between.len() - shared.len()];
        if end.trim().is_empty() { between } else { end }
    };
    if end.trim().is_empty() {
        return None;
    }
    end.clone_into(&mut reasoning.end);
    if reasoning.start.trim().is_empty() && !before_said.contains(end.trim()) {
        reasoning.mode = ReasoningMode::OnlyEnded;
    }
    Some(between[end.len()..].to_owned())
}
