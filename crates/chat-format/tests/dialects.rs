//! Small templates, one a format, and what analysis finds in them.

use crate::support::small_templates;
use chat_format::dialect::{Arguments, Field, Part, Pattern};
use chat_format::{Analysis, ChatTemplate};
use std::fmt::Write;
use std::path::PathBuf;

fn analysis(text: &str) -> Analysis {
    Analysis::from_template(&ChatTemplate::new(text, "", "").unwrap()).unwrap()
}

/// An analysis in a few lines.
fn shown(analysis: &Analysis) -> String {
    let (dialect, names) = (&analysis.dialect, analysis.names());
    let mut lines = Vec::new();
    let reasoning = &dialect.reasoning;
    if names.reasoning != "none" {
        let mut line = format!("reasoning {} {:?} {:?}", names.reasoning, reasoning.start, reasoning.end);
        for (is, word) in [
            (reasoning.calls_end_it, " calls-end-it"),
            (reasoning.in_tool_turns_only, " in-tool-turns"),
            (analysis.closes_reasoning, " closed-without-thinking"),
        ] {
            line.push_str(if is { word } else { "" });
        }
        lines.push(line);
    }
    if names.content != "plain" {
        let content = &dialect.content;
        lines.push(format!(
            "content {} {:?} {:?} {:?}",
            names.content, content.start, content.end, content.other_starts
        ));
    }
    if let Some(calls) = &dialect.calls {
        let mut line = format!("calls {} {}", names.function, names.arguments);
        if !calls.section.is_empty() {
            let _ = write!(line, " in {:?} {:?}", calls.section.start, calls.section.end);
        }
        line.push_str(if calls.list { " list" } else { "" });
        line.push_str(if calls.parallel { "" } else { " single" });
        lines.push(line);
        lines.extend(calls.patterns.iter().map(shown_pattern));
    }
    if !dialect.joints.is_empty() {
        lines.push(format!("joints {:?}", dialect.joints));
    }
    if !dialect.stops.is_empty() {
        lines.push(format!("stops {:?}", dialect.stops));
    }
    lines.extend(analysis.families.iter().map(|family| format!("by family: {family}")));
    lines.push(format!("turns {:?} {:?} {:?}", dialect.turns.user, dialect.turns.assistant, dialect.turns.end));
    lines.join("\n")
}

fn shown_pattern(pattern: &Pattern) -> String {
    let part = |part: &Part| match part {
        Part::Text(text) => format!("{text:?}"),
        Part::Object(object) => {
            let field = |field: &Field| match field {
                Field::Name(key) => format!("{key}=name"),
                Field::Arguments(key) => format!("{key}=arguments"),
                Field::Id(key) => format!("{key}=id"),
                Field::Constant(key, value) => format!("{key}={value:?}"),
                _ => String::new(),
            };
            let fields: Vec<String> = object.fields.iter().map(field).collect();
            format!("{}{{{}}}", object.inside, fields.join(", "))
        }
        Part::Arguments(Arguments::Tagged(keyed)) => {
            let opened = |(text, types): (&String, &Vec<String>)| format!("{text:?}{}", types.join(","));
            let opened: Vec<String> = keyed.opened.iter().map(|one| opened((&one.text, &one.types))).collect();
            let cdata = if keyed.cdata { " cdata" } else { "" };
            format!("({:?} {} {:?}{cdata})", keyed.key_start, opened.join(" | "), keyed.value_end)
        }
        Part::Arguments(Arguments::Keywords(style)) => format!("keywords{}", style.quotes[0].mark),
        Part::Arguments(Arguments::Pairs(style)) => format!("pairs{}", style.quotes[0].mark),
        Part::Arguments(Arguments::Elements { mark, .. }) => format!("elements{mark:?}"),
        Part::Arguments(_) => "json".into(),
        Part::Name => "NAME".into(),
        other => format!("{other:?}").to_uppercase(),
    };
    let parts: Vec<String> = pattern.parts.iter().map(part).collect();
    let head =
        if pattern.optional_head > 0 { format!(" head-optional-{}", pattern.optional_head) } else { String::new() };
    format!("  {}{}{head}", parts.join(" "), if pattern.at_start_only { " at-start" } else { "" })
}

/// The text with other words in its markers, `<x>` becoming `<zzx>`.
fn renamed(text: &str, markers: &[String]) -> String {
    let mut text = text.to_owned();
    for marker in markers {
        text = text.replace(marker, &rename(marker));
    }
    text
}

fn rename(marker: &str) -> String {
    let at = marker.find(char::is_alphanumeric).unwrap();
    format!("{}zz{}", &marker[..at], &marker[at..])
}

/// Markers of an analysis that stand in the template as they are, none inside another.
fn markers_in(analysis: &Analysis, text: &str) -> Vec<String> {
    let whole = |marker: &&String| {
        let inner = marker.trim_matches(['<', '>', '[', ']', '/', '|']);
        let closed =
            (marker.starts_with('<') && marker.ends_with('>')) || (marker.starts_with('[') && marker.ends_with(']'));
        closed && inner.contains(char::is_alphanumeric) && !inner.contains(['<', '>', '"', '\'', '=', ' '])
    };
    analysis.preserved.iter().filter(whole).filter(|marker| text.contains(marker.as_str())).cloned().collect()
}

/// Checks that a template with other words in its markers is found to be the same, but for those words.
fn follows_renaming(name: &str, text: &str) -> usize {
    let before = analysis(text);
    let markers = markers_in(&before, text);
    let after = analysis(&renamed(text, &markers));
    let expected = renamed(&before.to_json().to_string(), &markers);
    assert_eq!(after.to_json().to_string(), expected, "{name} with other words in {markers:?}");
    markers.len()
}

#[test]
fn other_words_in_markers_are_followed() {
    let mut all = 0;
    for (name, text) in small_templates() {
        all += follows_renaming(&name, &text);
    }
    assert!(all > 100, "only {all} markers were renamed");
}

#[test]
fn other_words_in_real_templates_are_followed() {
    let Some(templates) = crate::support::templates() else { return };
    let fails = |(name, text): &&(String, String)| std::panic::catch_unwind(|| follows_renaming(name, text)).is_err();
    let failed: Vec<&String> = templates.iter().filter(fails).map(|(name, _)| name).collect();
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn each_family_has_a_template() {
    let mut found: Vec<&str> = small_templates().iter().flat_map(|(_, text)| analysis(text).families).collect();
    found.sort_unstable();
    found.dedup();
    assert_eq!(found.len(), Analysis::FAMILIES, "{found:?}");
}

#[test]
fn each_format_is_found() {
    let known = include_str!("templates/analyses.txt");
    let mut all = String::new();
    for (name, text) in small_templates() {
        let found = analysis(&text);
        assert!(found.warnings.is_empty(), "{name}: {:?}", found.warnings);
        let name = name.trim_end_matches(".jinja");
        let _ = write!(all, "# {name}\n{}\n\n", shown(&found));
    }
    if std::env::var_os("TOKENTRIE_WRITE_ANALYSES").is_some() {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/templates/analyses.txt");
        std::fs::write(path, &all).unwrap();
        return;
    }
    for (found, known) in all.split("\n\n").zip(known.split("\n\n")) {
        assert_eq!(found, known);
    }
    assert_eq!(all, known);
}
