//! An analysis as JSON.

use super::Analysis;
use crate::dialect::{Arguments, Calls, Field, Part, Pattern, Style};
use serde_json::{Value, json};

impl Analysis {
    /// All of it as JSON, for people and other programs.
    ///
    /// ```
    /// use chat_format::{Analysis, ChatTemplate};
    ///
    /// let text = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}";
    /// let analysis = Analysis::from_template(&ChatTemplate::new(text, "", "")?)?;
    /// assert_eq!(analysis.to_json()["reasoning"]["mode"], "none");
    /// # Ok::<(), chat_format::TemplateError>(())
    /// ```
    pub fn to_json(&self) -> Value {
        let (dialect, names) = (&self.dialect, self.names());
        let (reasoning, content) = (&dialect.reasoning, &dialect.content);
        let able = &self.capabilities;
        json!({
            "reasoning": {
                "mode": names.reasoning,
                "start": reasoning.start,
                "end": reasoning.end,
                "calls_end_it": reasoning.calls_end_it,
                "in_tool_turns_only": reasoning.in_tool_turns_only,
            },
            "content": {
                "mode": names.content,
                "start": content.start,
                "end": content.end,
                "other_starts": content.other_starts,
            },
            "tool_calls": dialect.calls.as_ref().map(|calls| of_calls(calls, names.function, names.arguments)),
            "generation_prompt": {
                "thinking": self.prompt_thinking,
                "not_thinking": self.prompt_not_thinking,
                "not_thinking_closes_reasoning": self.closes_reasoning,
            },
            "turns": {"user": dialect.turns.user, "assistant": dialect.turns.assistant},
            "joints": dialect.joints,
            "stops": dialect.stops,
            "triggers": self.triggers,
            "preserved_tokens": self.preserved,
            "capabilities": {
                "object_arguments": able.object_arguments,
                "parallel_tool_calls": able.parallel_tool_calls,
                "preserve_reasoning": able.preserve_reasoning,
                "reasoning_effort": able.reasoning_effort,
                "string_content": able.string_content,
                "system_role": able.system_role,
                "tool_calls": able.tool_calls,
                "tools": able.tools,
                "typed_content": able.typed_content,
            },
            "families": self.families,
            "warnings": self.warnings,
            "degraded": self.degraded,
            "differences": self.differences,
        })
    }
}

fn of_calls(calls: &Calls, function: &str, arguments: &str) -> Value {
    json!({
        "function": function,
        "arguments": arguments,
        "section": {"start": calls.section.start, "end": calls.section.end},
        "list": calls.list,
        "between": calls.between,
        "parallel": calls.parallel,
        "lines": calls.lines,
        "patterns": calls.patterns.iter().map(of_pattern).collect::<Vec<_>>(),
    })
}

fn of_pattern(pattern: &Pattern) -> Value {
    json!({
        "parts": pattern.parts.iter().map(of_part).collect::<Vec<_>>(),
        "at_start_only": pattern.at_start_only,
        "optional_head": pattern.optional_head,
    })
}

fn of_part(part: &Part) -> Value {
    match part {
        Part::Text(text) => json!({"text": text}),
        Part::Name => "name".into(),
        Part::Id => "id".into(),
        Part::Index => "index".into(),
        Part::Anything => "anything".into(),
        Part::WholeId => "whole-id".into(),
        Part::NameAsKey => "name-as-key".into(),
        Part::Object(object) => {
            let field = |field: &Field| match field {
                Field::Name(key) => json!({"name": key}),
                Field::Arguments(key) => json!({"arguments": key}),
                Field::Id(key) => json!({"id": key}),
                Field::Constant(key, value) => json!({"constant": {key: value}}),
            };
            let fields: Vec<Value> = object.fields.iter().map(field).collect();
            let (inside, beside) = (&object.inside, &object.beside);
            json!({"object": {
                "fields": fields, "inside": inside, "beside": beside, "text": object.text, "python": object.python,
            }})
        }
        Part::Arguments(arguments) => json!({"arguments": of_arguments(arguments)}),
    }
}

fn of_arguments(arguments: &Arguments) -> Value {
    match arguments {
        Arguments::Json => "json".into(),
        Arguments::JsonText => "json-text".into(),
        Arguments::Literal(style) => json!({"literal": of_style(style)}),
        Arguments::Tagged(keyed) => {
            let opened = keyed.opened.iter().map(|opened| json!({"text": opened.text, "types": opened.types}));
            json!({"tagged": {
                "key_start": keyed.key_start,
                "between_key_and_value": opened.collect::<Vec<_>>(),
                "value_end": keyed.value_end,
                "between": keyed.between,
                "cdata": keyed.cdata,
                "quoted": keyed.quoted,
            }})
        }
        Arguments::Keywords(style) => json!({"keywords": of_style(style)}),
        Arguments::Pairs(style) => json!({"pairs": of_style(style)}),
        Arguments::Elements { mark, quoted } => json!({"elements": {"mark": mark, "quoted": quoted}}),
    }
}

fn of_style(style: &Style) -> Value {
    let quotes = style.quotes.iter().map(|quote| json!({"mark": quote.mark, "escapes": quote.escapes}));
    json!({"quotes": quotes.collect::<Vec<_>>(), "bare_keys": style.bare_keys, "keys_apart": style.keys_apart})
}
