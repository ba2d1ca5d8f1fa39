//! Replies that no template writes but models do: cut short, with other white space, with a call of an unknown tool, or
//! without a required call.

use super::{Check, Reply};
use crate::analysis::text::{floor, length_of_last_marker};
use crate::dialect::{Part, ReasoningMode};
use crate::machine::{ToolChoice, is_set_off};
use crate::reply::Message;
use crate::tools::Tools;

/// A tool of the check, and a name that none of them has.
const TOOL: &str = "find_song";
const NO_TOOL: &str = "find_sonq";

/// Number of places at which a reply is cut.
const CUTS: usize = 6;

impl Check<'_> {
    /// Checks variations of a correctly read reply, as models produce them.
    pub(super) fn otherwise(&self, got: &Message, reply: &Reply, tools: &Tools) -> Option<String> {
        if got.tool_calls.is_empty() {
            return self.without_call(reply);
        }
        let short = self.check_prefixes(got, reply, tools);
        let marked = || self.after_marker(reply);
        let spaced = || self.check_white_space(got, reply, marked()?, tools);
        short.or_else(spaced).or_else(|| self.check_unknown_tool(reply, marked().or_else(|| self.recipient_start())?))
    }

    fn without_call(&self, reply: &Reply) -> Option<String> {
        self.format.machine(Some(&self.tools), &ToolChoice::Required, true, true).ok()?;
        let refused = self.find_refusal(reply, &ToolChoice::Required).is_some();
        (!refused).then(|| format!("where a call is required, the constraint allows {}", reply.describe()))
    }

    /// Checks that the parser reads nothing from a prefix of a reply that is missing from the whole.
    fn check_prefixes(&self, got: &Message, reply: &Reply, tools: &Tools) -> Option<String> {
        // Only its end tells reasoning that nothing begins.
        let reasoning = &self.format.analysis().dialect.reasoning;
        if !got.reasoning.is_empty() && reasoning.mode == ReasoningMode::OnlyEnded {
            return None;
        }
        (1..CUTS).find_map(|part| {
            let at = floor(&reply.text, reply.text.len() * part / CUTS);
            let cut = Reply { prompt: reply.prompt.clone(), text: reply.text[..at].to_owned(), ..Reply::default() };
            let begun = self.read(tools, &cut, true).ok()?;
            let of = [(&got.content, &begun.content), (&got.reasoning, &begun.reasoning)];
            let (_, wrong) = of.into_iter().find(|(whole, begun)| !whole.trim_start().starts_with(begun.trim()))?;
            Some(format!("cut short it says {wrong:?}: {}", cut.describe()))
        })
    }

    /// Returns the start of a reply that names its recipient: with the mark of content, or with a call.
    fn recipient_start(&self) -> Option<usize> {
        let dialect = &self.format.analysis().dialect;
        let pattern = dialect.calls.iter().flat_map(|calls| &calls.patterns).next()?;
        let [Part::Text(_), Part::Name, ..] = &pattern.parts[..] else { return None };
        dialect.content.is_addressed().then_some(0)
    }

    /// Returns the end of the marker that begins calls.
    fn after_marker(&self, reply: &Reply) -> Option<usize> {
        let triggers = self.format.analysis().triggers.iter().map(|trigger| trigger.trim());
        let is_marker = |text: &str| length_of_last_marker(text) == text.len() || is_set_off(text.as_bytes());
        let marked = triggers.filter(|trigger| is_marker(trigger) && !trigger.is_empty());
        marked.filter_map(|trigger| Some(reply.text.find(trigger)? + trigger.len())).min()
    }

    /// Checks white space after the marker, and its absence.
    fn check_white_space(&self, got: &Message, reply: &Reply, at: usize, tools: &Tools) -> Option<String> {
        let (before, after) = reply.text.split_at(at);
        let other = if after.starts_with(char::is_whitespace) {
            format!("{before}{}", after.trim_start())
        } else if after.starts_with(['{', '[', '<']) {
            format!("{before}\n{after}")
        } else {
            return None;
        };
        let spaced = Reply { prompt: reply.prompt.clone(), text: other, ..Reply::default() };
        if let Some(how) = self.find_refusal(&spaced, &ToolChoice::Auto) {
            return Some(format!("with other white space {how}"));
        }
        let read = self.read(tools, &spaced, false).ok()?;
        let same = read.content.trim() == got.content.trim() && read.tool_calls == got.tool_calls;
        (!same).then(|| format!("other white space is read otherwise: {}", spaced.describe()))
    }

    /// Checks a call of an unknown tool.
    fn check_unknown_tool(&self, reply: &Reply, at: usize) -> Option<String> {
        let (before, after) = reply.text.split_at(at);
        let text = format!("{before}{}", after.replacen(TOOL, NO_TOOL, 1));
        let misnamed = Reply { prompt: reply.prompt.clone(), text, ..Reply::default() };
        let allowed = misnamed.text != reply.text && self.find_refusal(&misnamed, &ToolChoice::Auto).is_none();
        allowed.then(|| format!("the constraint allows a call of a tool that there is not: {}", misnamed.describe()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ChatFormat, ChatTemplate};

    #[test]
    fn each_says_what_it_found_and_in_which_reply() {
        let template = "{% for t in tools %}{{ t | tojson }}{% endfor %}{% for m in messages %}<|{{ m.role }}|>\
            {% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}\
            {% for c in m.tool_calls %}<call>{{ c.function | tojson }}</call>{% endfor %}<|end|>{% endfor %}\
            {% if add_generation_prompt %}<|assistant|>{% endif %}";
        let format = ChatFormat::new(ChatTemplate::new(template, "", "").unwrap()).unwrap();
        assert_eq!(format.analysis().degraded, None);
        let call = r#"<call>{"name": "find_song", "arguments": {"title": "x"}}</call>"#;
        let reply = |text: &str| Reply { prompt: "<|assistant|>".into(), text: text.into(), ..Reply::default() };
        let seen = crate::check::RenderingCache::default();
        format
            .template()
            .in_session(|session| {
                let check = Check::new(&format, session, &seen);
                let tools = check.tools.clone();
                let read = |text: &str| check.read(&tools, &reply(text), false).unwrap();
                let (said, called) = (read("Seven."), read(call));
                // What is right is said to be.
                for text in [
                    "Seven.",
                    call,
                    "<think>Well.</think>Seven.",
                    "<think>Well.</think>So:<call>\n{\"name\": \
                    \"find_song\", \"arguments\": {}}\n</call>",
                ] {
                    assert_eq!(check.otherwise(&read(text), &reply(text), &tools), None, "{text}");
                }
                let told = |found: Option<String>, what: &str, text: &str| {
                    let found = found.unwrap();
                    assert!(found.contains(what) && found.contains(text), "{found}");
                };
                told(check.without_call(&reply(call)), "a call is required", "find_song");
                told(check.check_prefixes(&said, &reply("Eight times two."), &tools), "cut short", "\"Ei\" after");
                told(check.check_white_space(&said, &reply(call), 6, &tools), "other white space", "<call>\\n{");
                let late = call.find("_song").unwrap();
                let broken = call.replace("_song", "{song");
                told(
                    check.check_white_space(&called, &reply(&broken), late, &tools),
                    "refuses it at byte",
                    "find\\n{song",
                );
                told(check.check_unknown_tool(&reply("<invoke>find_song"), 8), "a tool that there is not", "find_sonq");
            })
            .unwrap();
    }
}
