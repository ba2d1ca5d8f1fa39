//! Capabilities of a template.

use super::probe::{Ask, Probe};
use crate::dialect::{Dialect, Pattern};
use serde_json::json;

/// Features that a template supports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
#[allow(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub struct Capabilities {
    /// Arguments of calls as dicts.
    pub object_arguments: bool,
    /// Several calls in a turn.
    pub parallel_tool_calls: bool,
    /// Reasoning of turns before the last message of the user stays.
    pub preserve_reasoning: bool,
    /// True if it reads the variable `reasoning_effort`.
    pub reasoning_effort: bool,
    /// Content as a text.
    pub string_content: bool,
    /// True if it renders a system message.
    pub system_role: bool,
    /// True if it renders tool calls.
    pub tool_calls: bool,
    /// A list of tools.
    pub tools: bool,
    /// Content as a list of parts.
    pub typed_content: bool,
}

pub(super) fn find(probe: &Probe, dialect: &Dialect) -> Capabilities {
    let needles = &probe.needles;
    let shows = |ask: &Ask, needle: &str| {
        let text = probe.render(ask).or_else(|| probe.render(&ask.clone().with_tools()));
        text.is_some_and(|text| text.contains(needle))
    };
    let user = || vec![probe.user()];
    let call = |number: usize| probe.call(number, json!({&needles.keys[0]: &needles.values[number]}));
    let message = |calls| json!({"role": "assistant", "content": "", "tool_calls": calls});
    let tool_calls =
        dialect.calls.is_some() && shows_call(probe, message(json!([call(0)])), true, true, &needles.values[0]);
    // A dict that is printed is not a call, unless calls are dicts as Python prints them.
    let printed = dialect.calls.iter().flat_map(|calls| &calls.patterns).any(Pattern::is_printed);
    let as_dict = shows_call(probe, message(json!([call(0)])), printed, false, &needles.values[0]);
    let again = json!({"role": "user", "content": needles.next_user});
    let remembered = vec![probe.user(), probe.add_reasoning(probe.assistant()), again];
    let system = vec![json!({"role": "system", "content": needles.system}), probe.user()];
    Capabilities {
        object_arguments: tool_calls && as_dict,
        parallel_tool_calls: tool_calls && dialect.calls.as_ref().is_some_and(|calls| calls.parallel),
        preserve_reasoning: shows(&Ask::new(remembered), &needles.reason),
        reasoning_effort: effort(probe),
        string_content: shows(&Ask::new(user()).without_adapting(), &needles.user),
        system_role: shows(&Ask::new(system).without_adapting(), &needles.system),
        tool_calls,
        tools: probe.render(&Ask::new(user()).with_tools()).is_some_and(|text| text.contains(&needles.names[0])),
        typed_content: takes_typed_content(probe),
    }
}

/// Returns whether it shows tools given as a text under the name `functions`.
pub(super) fn shows_functions(probe: &Probe) -> bool {
    let name = &probe.needles.names[0];
    let ask = Ask::new(vec![probe.user()]).with_variable("functions", name.as_str());
    probe.template.contains("functions") && probe.render(&ask).is_some_and(|text| text.contains(name))
}

/// Returns whether it shows a call; `printed` also counts a dict as Python prints it.
fn shows_call(probe: &Probe, message: serde_json::Value, printed: bool, adapt: bool, value: &str) -> bool {
    let mut null = message.clone();
    null["content"] = serde_json::Value::Null;
    [message, null].into_iter().any(|message| {
        let mut ask = Ask::new(vec![probe.user(), message]).with_tools();
        ask.adapt = adapt;
        probe.render(&ask).is_some_and(|text| text.contains(value) && (printed || !probe.is_printed(&text)))
    })
}

/// Returns whether the output depends on the effort.
fn effort(probe: &Probe) -> bool {
    let at = |name: &'static str, effort: &str| {
        probe.render_somehow(&Ask::new(vec![probe.user()]).with_prompt().with_variable(name, effort))
    };
    ["reasoning_effort", "reasoning_strength"].into_iter().any(|name| {
        let low = at(name, "low");
        low.is_some() && ["high", "none"].iter().any(|other| at(name, other).is_some_and(|text| Some(text) != low))
    })
}

/// Returns whether parts of content are rendered as one text is.
fn takes_typed_content(probe: &Probe) -> bool {
    let parts = json!({"role": "user", "content": [{"type": "text", "text": probe.needles.user}]});
    let as_parts = probe.render_somehow(&Ask::new(vec![parts]).without_adapting());
    as_parts.is_some() && as_parts == probe.render_somehow(&Ask::new(vec![probe.user()]).without_adapting())
}
