//! Words for what was found, for reports.

use super::Analysis;
use super::text::{Segment, segments};
use crate::dialect::{Arguments, ContentMode, Dialect, Part, ReasoningMode};

/// Words for what was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Names {
    /// One of `none`, `optional`, `opened-by-prompt`.
    pub reasoning: &'static str,
    /// One of `plain`, `wrapped`, `wrapped-with-reasoning`.
    pub content: &'static str,
    /// `none`, `json-object`, `code-block`, `name-as-key`, `tag-with-name`, `tag-is-name`, `prefixed-indexed`,
    /// `bracket-tag`, `recipient`, `channel`, `python`.
    pub function: &'static str,
    /// `none`, `json`, `literal`, `tagged`, `key-value-tags`, `elements`, `keywords`, `pairs`.
    pub arguments: &'static str,
}

impl Analysis {
    /// Returns the findings in words.
    pub fn names(&self) -> Names {
        let dialect = &self.dialect;
        Names {
            reasoning: match dialect.reasoning.mode {
                ReasoningMode::None => "none",
                ReasoningMode::Optional => "optional",
                ReasoningMode::OpenedByPrompt => "opened-by-prompt",
                ReasoningMode::OnlyEnded => "only-ended",
            },
            content: match dialect.content.mode {
                ContentMode::Plain => "plain",
                ContentMode::Wrapped => "wrapped",
                ContentMode::WrappedWithReasoning => "wrapped-with-reasoning",
            },
            function: function(dialect),
            arguments: arguments(dialect),
        }
    }
}

fn function(dialect: &Dialect) -> &'static str {
    let Some(calls) = &dialect.calls else { return "none" };
    let Some(pattern) = calls.patterns.first() else { return "none" };
    let has = |wanted: fn(&Part) -> bool| pattern.parts.iter().any(wanted);
    if has(|part| matches!(part, Part::NameAsKey)) {
        return "name-as-key";
    }
    if has(|part| matches!(part, Part::Object(_))) {
        return if calls.section.start.contains("```") { "code-block" } else { "json-object" };
    }
    if has(|part| matches!(part, Part::WholeId)) {
        return "prefixed-indexed";
    }
    if has(|part| matches!(part, Part::Arguments(Arguments::Keywords(_)))) {
        return "python";
    }
    let head = pattern.head().unwrap_or_default();
    if pattern.at_start_only {
        let after = pattern.parts.iter().skip_while(|part| **part != Part::Name).nth(1);
        let channel = dialect.reasoning.start.trim().split('>').next().unwrap_or_default();
        let is_channel = matches!(after, Some(Part::Text(text)) if !channel.is_empty() && text.starts_with(channel));
        return if is_channel { "channel" } else { "recipient" };
    }
    if pattern.parts.iter().filter(|part| **part == Part::Name).count() > 1 {
        return "tag-is-name";
    }
    match segments(head)[..] {
        [Segment::Marker(marker)] if marker.starts_with('[') => "bracket-tag",
        [Segment::Text(text)] if !text.contains('<') && calls.section.is_empty() => "recipient",
        _ => "tag-with-name",
    }
}

fn arguments(dialect: &Dialect) -> &'static str {
    let Some(pattern) = dialect.calls.as_ref().and_then(|calls| calls.patterns.first()) else { return "none" };
    let written = pattern.parts.iter().find_map(|part| match part {
        Part::Arguments(arguments) => Some(arguments),
        _ => None,
    });
    if pattern.parts.iter().any(|part| matches!(part, Part::Object(object) if object.python)) {
        return "literal";
    }
    match written {
        None | Some(Arguments::Json | Arguments::JsonText) => "json",
        Some(Arguments::Tagged(keyed)) => {
            let marker = |segment: &Segment| matches!(segment, Segment::Marker(marker) if !marker.starts_with("</"));
            let valued = keyed
                .opened
                .iter()
                .any(|opened| opened.text.trim_start().starts_with("</") && segments(&opened.text).iter().any(marker));
            if valued { "key-value-tags" } else { "tagged" }
        }
        Some(Arguments::Literal(_)) => "literal",
        Some(Arguments::Elements { .. }) => "elements",
        Some(Arguments::Keywords(_)) => "keywords",
        Some(Arguments::Pairs(_)) => "pairs",
    }
}

/// Returns the beginnings of calls.
pub(super) fn triggers(dialect: &Dialect) -> Vec<String> {
    let Some(calls) = &dialect.calls else { return Vec::new() };
    let mut found = Vec::new();
    if !calls.section.start.trim().is_empty() {
        found.push(calls.section.start.trim_start().to_owned());
    }
    for pattern in &calls.patterns {
        let texts = pattern.parts.iter().take(pattern.optional_head + 1);
        let heads = texts.filter_map(|part| match part {
            Part::Text(text) => Some(text.clone()),
            _ => None,
        });
        // A section that may be missing: its calls begin calls too.
        let whole = pattern.parts.contains(&Part::WholeId);
        if found.is_empty() || whole || pattern.at_start_only {
            found.extend(heads);
        }
    }
    found.dedup();
    found
}

/// All markers of a dialect, and of what is around it.
pub(super) fn preserved_markers<'a>(dialect: &'a Dialect, around: [&'a str; 3]) -> Vec<String> {
    let mut texts: Vec<&str> = vec![&dialect.reasoning.start, &dialect.reasoning.end];
    texts.extend([dialect.content.start.as_str(), &dialect.content.end]);
    texts.extend(dialect.content.other_starts.iter().map(String::as_str));
    let mut words: Vec<&str> = Vec::new();
    if let Some(calls) = &dialect.calls {
        words.extend([calls.section.start.trim(), calls.section.end.trim()]);
        texts.extend([calls.section.start.as_str(), &calls.section.end]);
        for part in calls.patterns.iter().flat_map(|pattern| &pattern.parts) {
            match part {
                Part::Text(text) => texts.push(text),
                Part::Arguments(Arguments::Tagged(keyed)) => {
                    texts.push(&keyed.key_start);
                    texts.extend(keyed.opened.iter().map(|opened| opened.text.as_str()));
                    texts.push(&keyed.value_end);
                }
                Part::Arguments(Arguments::Elements { mark, .. }) => words.push(mark),
                Part::Arguments(Arguments::Pairs(style)) => {
                    texts.extend(style.quotes.iter().map(|quote| quote.mark.as_str()));
                }
                _ => {}
            }
        }
    }
    texts.extend(dialect.joints.iter().chain(&dialect.stops).map(String::as_str));
    texts.extend([dialect.turns.user.as_str(), &dialect.turns.assistant, &dialect.turns.end]);
    texts.extend(around);
    let mut found: Vec<String> = Vec::new();
    let mut add = |marker: &str| {
        if !marker.is_empty() && !found.iter().any(|other| other == marker) {
            found.push(marker.to_owned());
        }
    };
    for text in texts {
        for segment in segments(text) {
            match segment {
                Segment::Marker(marker) => add(marker),
                Segment::Text(text) if text.contains(['<', '>', '[', ']', '`']) => add(text.trim()),
                Segment::Text(_) => {}
            }
        }
    }
    words.into_iter().filter(|word| segments(word).len() == 1).for_each(add);
    found
}
