//! The model's own chat template, filled in without letting text pose as control tokens.
//!
//! Templates are Jinja (`tokenizer.chat_template` in the GGUF), written for Hugging Face's renderer, whose settings and
//! functions are repeated here.

use super::Model;
use crate::runtime::error::RuntimeError;
use minijinja::value::{Kwargs, ViaDeserialize};
use minijinja::{Environment, Error, ErrorKind, context};
use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};
use std::io::{self, Write};
use trie_core::TokenId;
use trie_text::ControlTextGuard;

impl Model {
    /// A prompt from messages, and tools where there are any, in the model's own chat format.
    ///
    /// `messages` is a list of objects with `role` and `content`, `tools` a list of tool definitions, both as the
    /// model's template expects them. What they contain is plain text: the name of a control token in it stays text.
    ///
    /// # Errors
    /// The file has no template, the template is faulty, or it refuses the messages.
    pub fn chat_prompt(
        &self,
        messages: &Value,
        tools: Option<&Value>,
        add_generation_prompt: bool,
    ) -> Result<Vec<TokenId>, RuntimeError> {
        let template = self.llama().chat_template(None).ok().and_then(|template| template.to_string().ok());
        let template = template.ok_or_else(|| RuntimeError::NoTemplate { path: self.path().to_owned() })?;
        let vocab = self.vocab();
        let guard = ControlTextGuard::new(vocab, [Some(messages), tools].into_iter().flatten().map(Value::to_string));
        let text = |token| vocab.piece(token).and_then(|piece| std::str::from_utf8(piece).ok()).unwrap_or_default();
        let (begin, end) = self.ends_of_text();
        let begin = begin.map(text).unwrap_or_default();
        let rendered = render(
            &template,
            context! {
                messages => protected(&guard, messages),
                tools => tools.map(|tools| protected(&guard, tools)),
                add_generation_prompt,
                bos_token => begin,
                eos_token => end.map(text).unwrap_or_default(),
            },
        );
        let rendered = rendered.map_err(|error| RuntimeError::Template { reason: format!("{error:#}") })?;
        Ok(guard.tokenize(&rendered, begin.is_empty() || !rendered.starts_with(begin))?)
    }
}

fn protected(guard: &ControlTextGuard<'_>, value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(guard.protect(text)),
        Value::Array(values) => values.iter().map(|value| protected(guard, value)).collect(),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(key, value)| (guard.protect(key), protected(guard, value))).collect())
        }
        other => other.clone(),
    }
}

fn render(template: &str, values: minijinja::Value) -> Result<String, Error> {
    let mut environment = Environment::new();
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.set_fuel(Some(10_000_000));
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    environment.add_function("raise_exception", |message: String| -> Result<String, Error> {
        Err(Error::new(ErrorKind::InvalidOperation, message))
    });
    environment.add_filter("tojson", to_json);
    environment.render_str(template, values)
}

/// As Python's `json.dumps(value, ensure_ascii=False, indent=indent)`, which models were trained on.
#[expect(clippy::needless_pass_by_value, reason = "minijinja hands filters their arguments by value")]
fn to_json(value: ViaDeserialize<Value>, options: Kwargs) -> Result<minijinja::Value, Error> {
    let indent: Option<usize> = options.get("indent")?;
    options.get::<Option<bool>>("ensure_ascii")?;
    options.assert_all_used()?;
    let failed = |error: &dyn std::fmt::Display| Error::new(ErrorKind::BadSerialization, error.to_string());
    let mut bytes = Vec::new();
    let written = match indent {
        Some(indent) => {
            let indent = " ".repeat(indent);
            value
                .0
                .serialize(&mut Serializer::with_formatter(&mut bytes, PrettyFormatter::with_indent(indent.as_bytes())))
        }
        None => value.0.serialize(&mut Serializer::with_formatter(&mut bytes, Spaced)),
    };
    written.map_err(|error| failed(&error))?;
    String::from_utf8(bytes).map(minijinja::Value::from_safe_string).map_err(|error| failed(&error))
}

/// One line with a space after each comma and colon.
struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_is_written_as_python_does() {
        let values = || minijinja::Value::from_serialize(json!({"x": {"b": [1, "ü", null], "a": true}}));
        assert_eq!(render("{{ x | tojson }}", values()).unwrap(), r#"{"b": [1, "ü", null], "a": true}"#);
        assert_eq!(render("{{ x.b | tojson(indent=2) }}", values()).unwrap(), "[\n  1,\n  \"ü\",\n  null\n]");
    }

    #[test]
    fn templates_call_python_methods_and_refuse() {
        let values = || minijinja::Value::from_serialize(json!({"text": " a b "}));
        assert_eq!(render("{{ text.strip().split(' ')[1] }}", values()).unwrap(), "b");
        let error = render("{{ raise_exception('roles must alternate') }}", values()).unwrap_err();
        assert!(error.to_string().contains("roles must alternate"));
        assert!(
            render("{% for i in range(100000) %}{% for j in range(100000) %}x{% endfor %}{% endfor %}", values())
                .is_err()
        );
    }
}
