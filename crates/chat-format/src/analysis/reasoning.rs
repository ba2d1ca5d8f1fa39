//! Finds how the model writes its reasoning.

use super::frame::{Frame, ReasoningSource, TurnContext, as_part, begun_with, split_at, text_around};
use super::probe::{Ask, Probe};
use super::text::{
    Segment, closes, closing, common_prefix, common_suffix, diff, first_tag, last_tag, literals, open_marker, opening,
    segments, word_of,
};
use crate::dialect::{Content, ContentMode, ReasoningMode};
use serde_json::{Value, json};

/// Fills in reasoning, and content that is marked only after it.
pub(super) fn find(probe: &Probe, frame: &mut Frame) {
    let reason = &probe.needles.reason;
    let reasoned = vec![probe.user(), probe.add_reasoning(probe.assistant())];
    if let Some(thought) = text_around(probe, reason, reasoned) {
        frame.taken = ReasoningSource::Field;
        let said = frame.said.before.clone();
        let until = thought.after.find(&probe.needles.reply).unwrap_or(thought.after.len());
        fill(frame, &thought.before, &thought.after[..until], &said);
    } else if let Some((thought, called)) = in_tool_turns(probe, &frame.turn_end) {
        frame.taken = ReasoningSource::Field;
        frame.reasoning.in_tool_turns_only = true;
        fill(frame, &thought.before, &thought.after, &called);
        marks_after_hidden(probe, frame);
    } else if let Some(thought) = as_part(probe) {
        frame.taken = ReasoningSource::Part;
        let said = frame.said.before.clone();
        let until = thought.after.find(&probe.needles.reply).unwrap_or(thought.after.len());
        fill(frame, &thought.before, &thought.after[..until], &said);
    }
    by_prompts(frame);
    if frame.reasoning.mode == ReasoningMode::None {
        by_opened_prompt(probe, frame);
    }
    if frame.reasoning.mode == ReasoningMode::None {
        told_in_system(probe, frame);
    }
    if frame.reasoning.mode == ReasoningMode::None {
        let before = frame.said.before.clone();
        add_hidden_reasoning(probe, &before, frame);
    }
}

/// A tag at the end of the prompt that replies in the history do not have: the template drops their reasoning.
fn by_opened_prompt(probe: &Probe, frame: &mut Frame) {
    let said = frame.said.before.as_str();
    let begin = said.strip_prefix(frame.user_end.as_str()).unwrap_or(said);
    let prompt = frame.prompts.thinking.as_str();
    let rest = prompt[common_prefix(prompt, begin).len()..].trim_start();
    let [Segment::Marker(start)] = segments(rest.trim_end())[..] else { return };
    if begin.trim().is_empty() || begin.contains(start) {
        return;
    }
    // What the template itself says closes it is more than a guess.
    let known = literals(probe.template).into_iter().find(|literal| closes(start, literal));
    let Some(end) = known.or_else(|| closing(start)) else { return };
    frame.reasoning.mode = ReasoningMode::OpenedByPrompt;
    (frame.reasoning.start, frame.reasoning.end) = (rest.to_owned(), end);
}

/// Reasoning of a turn with a call, and what stands before the call's name without reasoning.
fn in_tool_turns(probe: &Probe, turn_end: &str) -> Option<(TurnContext, String)> {
    let name = &probe.needles.names[0];
    let call = || probe.call(0, json!({&probe.needles.keys[0]: &probe.needles.values[0]}));
    let result = || json!({"role": "tool", "content": "0", "tool_call_id": probe.needles.ids[0], "name": name});
    let message = |content: Value| json!({"role": "assistant", "content": content, "tool_calls": [call()]});
    for content in [Value::Null, "".into()] {
        for last in [vec![], vec![result()]] {
            let ask = |message: Value| {
                let messages = [vec![probe.user(), message], last.clone()].concat();
                probe.render(&Ask::new(messages).with_tools())
            };
            let Some(with) = ask(probe.add_reasoning(message(content.clone()))) else { continue };
            let thought = probe.after_user(&with).and_then(|text| split_at(text, &probe.needles.reason));
            let Some(mut thought) = thought else { continue };
            // Without a call in it the turn goes on to its end.
            let until =
                |text: &str| text.find(name.as_str()).unwrap_or(text.len() - common_suffix(text, turn_end).len());
            thought.after.truncate(until(&thought.after));
            let Some(without) = ask(message(content.clone())) else { continue };
            let Some(called) = probe.after_user(&without) else { continue };
            return Some((thought, called[..until(called)].to_owned()));
        }
    }
    None
}

/// Finds the marks of content after reasoning that the template does not show.
fn marks_after_hidden(probe: &Probe, frame: &mut Frame) {
    let reasoned = vec![probe.user(), probe.add_reasoning(probe.assistant())];
    let Some(thought) = text_around(probe, &probe.needles.reply, reasoned) else { return };
    let (said, same) = (&frame.said, common_prefix(&thought.before, &frame.said.before));
    let start = &thought.before[same.len()..];
    let end = thought.after.strip_suffix(said.after.as_str()).unwrap_or_default();
    if same.len() == said.before.len() && !start.trim().is_empty() {
        let mode = ContentMode::WrappedWithReasoning;
        frame.content = Content { mode, start: start.into(), end: end.into(), other_starts: Vec::new() };
    }
}

/// Fills in the markers. `before` and `after` are the texts around the reasoning. `plain` is the text before the next
/// part of a reply without reasoning.
fn fill(frame: &mut Frame, before: &str, after: &str, plain: &str) {
    frame.shared = Some(common_prefix(&frame.said.before, before).to_owned());
    let same = common_prefix(before, plain);
    // A bracket that begins calls is none of the marker of reasoning.
    let same = &same[..open_marker(before, same.len()).filter(|_| same.len() < before.len()).unwrap_or(same.len())];
    let prompted = format!("{}{}", frame.user_end, frame.prompts.thinking);
    let is_prompted =
        !frame.prompts.thinking.is_empty() && before.starts_with(&prompted) && plain.starts_with(&prompted);
    let header = if is_prompted { prompted.as_str() } else { same };
    let turn = header.strip_prefix(frame.user_end.as_str()).unwrap_or(header);
    if !turn.trim().is_empty()
        && let Some(at) = after.find(turn.trim())
    {
        frame.header_again = true;
        let (start, tag) = (&before[header.len()..], first_tag(after, None));
        let end = if closes(start, tag) { tag } else { &after[..at] };
        end.clone_into(&mut frame.reasoning.end);
        start.clone_into(&mut frame.reasoning.start);
    } else if same.len() == before.len() {
        let rest = &plain[same.len()..];
        if rest.trim().is_empty() {
            // Reasoning begins where any reply would.
            after.clone_into(&mut frame.reasoning.end);
        } else {
            // The template writes an empty block of reasoning: its end is the first tag, its start the tag like it.
            let word = word_of(after).filter(|word| word_of(last_three(before)) == Some(*word));
            let end = first_tag(after, word);
            let end = if end.is_empty() { after } else { end };
            begun_with(before, end).clone_into(&mut frame.reasoning.start);
            end.clone_into(&mut frame.reasoning.end);
        }
    } else {
        let start = &before[header.len().min(same.len())..];
        let marked = &plain[same.len()..];
        let end = match common_suffix(after, marked) {
            shared if !shared.trim().is_empty() && shared.len() < after.trim_end().len() => {
                let end = &after[..after.len() - shared.len()];
                if end.trim().is_empty() { after } else { end }
            }
            _ => after,
        };
        start.clone_into(&mut frame.reasoning.start);
        end.clone_into(&mut frame.reasoning.end);
    }
    frame.reasoning.mode = ReasoningMode::Optional;
    let start = frame.reasoning.start.trim();
    let prompt = frame.prompts.thinking.trim_end();
    let begun = frame.user_end.clone() + prompt;
    let opened = if start.is_empty() { before.trim_end() != begun } else { prompt.ends_with(start) };
    if opened && !prompt.is_empty() {
        frame.reasoning.mode = ReasoningMode::OpenedByPrompt;
    }
}

fn last_three(text: &str) -> &str {
    let found = segments(text.trim_end());
    let before: usize = found[..found.len().saturating_sub(3)].iter().map(|segment| segment.text().len()).sum();
    &text[before..]
}

/// Compares the prompts with thinking on and off.
fn by_prompts(frame: &mut Frame) {
    if frame.reasoning.mode != ReasoningMode::None {
        return;
    }
    let (on, off) = (frame.prompts.thinking.clone(), frame.prompts.not_thinking.clone());
    let reasoning = &mut frame.reasoning;
    let split = diff(&on, &off);
    let added = format!("{}{}", split.right, split.suffix);
    if let Some(closed) = off.strip_prefix(on.trim_end()).filter(|closed| !closed.trim().is_empty()) {
        let end = last_tag(closed, None);
        let before = &closed[..closed.len() - end.len()];
        let opens = first_tag(before, None);
        if opens.is_empty() {
            // The prompt opens it, and only its end is added.
            let start = last_tag(&on, None);
            if closes(start, end) {
                (reasoning.start, reasoning.end) = (start.into(), closed.trim_start().into());
                reasoning.mode = ReasoningMode::OpenedByPrompt;
            }
        } else if closes(opens, end) {
            (reasoning.start, reasoning.end) = (opens.trim().into(), end.into());
            reasoning.mode = ReasoningMode::Optional;
        }
    } else {
        let (start, end) = (last_tag(&on, None), last_tag(&added, None));
        if closes(start, end) {
            (reasoning.start, reasoning.end) = (start.into(), end.into());
            reasoning.mode = ReasoningMode::OpenedByPrompt;
        }
    }
}

/// Empty pairs of tags that the system prompt explains when thinking is on: reasoning, then content.
fn told_in_system(probe: &Probe, frame: &mut Frame) {
    let ask = Ask::new(vec![probe.user()]).with_prompt();
    let (Some(on), Some(off)) = (
        probe.render(&ask.clone().with_variable("thinking", true)),
        probe.render(&ask.with_variable("thinking", false)),
    ) else {
        return;
    };
    let told = diff(&on, &off).left;
    let found = segments(told);
    let pairs: Vec<_> = found
        .windows(2)
        .filter_map(|pair| match pair {
            [Segment::Marker(start), Segment::Marker(end)] => Some((*start, *end)),
            _ => None,
        })
        .filter(|(start, end)| closes(start, end))
        .collect();
    let Some((start, end)) = pairs.first() else { return };
    (frame.reasoning.start, frame.reasoning.end) = ((*start).into(), (*end).into());
    frame.reasoning.mode = ReasoningMode::Optional;
    if let Some((start, end)) = pairs.get(1) {
        let mode = ContentMode::WrappedWithReasoning;
        frame.content = Content { mode, start: (*start).into(), end: (*end).into(), other_starts: Vec::new() };
    }
}

/// Literals of a template that are tried as the end of reasoning one by one.
const MOST_LITERALS: usize = 24;

/// Reasoning that the template leaves out. The literals at which the template cuts content show the end marker.
pub(super) fn add_hidden_reasoning(probe: &Probe, before_said: &str, frame: &mut Frame) {
    let needles = &probe.needles;
    let literals = literals(probe.template);
    let added = frame.prompts.thinking.clone();
    let added = added.as_str();
    // Whether what is thought stays where it stands so, and whether what is said does.
    let stays_in = |content: String| {
        let said = |content: &str| json!({"role": "assistant", "content": content});
        let stays = |messages: Vec<Value>| {
            let text = probe.render_somehow(&Ask::new(messages))?;
            Some((text.contains(&needles.reason), text.contains(&needles.reply)))
        };
        let last = stays(vec![probe.user(), said(&content)]);
        // Some leave out only what was thought in earlier turns.
        let earlier = || {
            let next = json!({"role": "user", "content": needles.next_user});
            stays(vec![probe.user(), said(&content), next, said("0")]).filter(|stays| *stays == (false, true))
        };
        if last == Some((true, true)) { earlier().or(last) } else { last }
    };
    let stays = |literals: &[String]| stays_in(format!("{}{}{}", needles.reason, literals.concat(), needles.reply));
    let cuts = |literals: &[String]| stays(literals) == Some((false, true));
    // Cut out from its start to its end.
    let cut_out = |start: &str, end: &str| {
        let content = format!("{start}{}{end}{}", needles.reason, needles.reply);
        closes(start, end) && stays_in(content) == Some((false, true))
    };
    let pair = || {
        let few = || literals.iter().take(MOST_LITERALS);
        let mut pairs = few().flat_map(|end| few().map(move |start| (start, end)));
        pairs.find(|(start, end)| cut_out(start, end)).map(|(_, end)| end.clone())
    };
    let opened = last_tag(added, None);
    let is_opened = !opened.trim().is_empty() && !before_said.contains(opened.trim());
    let end = match stays(&literals) {
        Some((true, true)) => None,
        // The shortest beginning of them that cuts ends with the one that does.
        Some((false, true)) => {
            let (mut none, mut some) = (0, literals.len());
            while some - none > 1 {
                let middle = none.midpoint(some);
                *(if cuts(&literals[..middle]) { &mut some } else { &mut none }) = middle;
            }
            literals.get(none).filter(|literal| cuts(std::slice::from_ref(*literal)))
        }
        _ => literals.iter().take(MOST_LITERALS).find(|literal| cuts(std::slice::from_ref(*literal))),
    };
    let end = end.cloned().or_else(pair);
    let reasoning = &mut frame.reasoning;
    match &end {
        Some(end) => reasoning.end.clone_from(end),
        None if is_opened => {
            let guess = literals.iter().find(|literal| closes(opened, literal));
            let guess = guess.cloned().or_else(|| closing(opened.trim()));
            let Some(end) = guess else { return };
            reasoning.end = end;
        }
        None => return,
    }
    let closed = |start: &str| closes(start, &reasoning.end);
    let is_cut = end.is_some() && !opened.trim().is_empty() && closed(opened);
    if is_cut || (is_opened && end.is_none()) {
        reasoning.mode = ReasoningMode::OpenedByPrompt;
        opened.clone_into(&mut reasoning.start);
        added[..added.len() - opened.len()].clone_into(&mut frame.header);
        return;
    }
    let start = literals.iter().find(|literal| **literal != reasoning.end && closed(literal)).cloned();
    let off = || {
        let tag =
            frame.prompts.not_thinking.strip_prefix(added).map(|closed| first_tag(closed, None).trim().to_owned());
        tag.filter(|tag| closed(tag) && *tag != reasoning.end)
    };
    let start = start.or_else(off).or_else(|| opening(&reasoning.end));
    match start {
        Some(start) => (reasoning.mode, reasoning.start) = (ReasoningMode::Optional, start),
        None => reasoning.mode = ReasoningMode::OnlyEnded,
    }
}
