//! An example of a call: what of it is always there, and how it is written again with another name and other arguments.

use crate::analysis::own_marks::OwnMarks;
use serde_json::Value;

/// Syntax of calls in the prompt of a template.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Example {
    /// Before all of them.
    pub(crate) start: String,
    /// Pieces of one call.
    pub(crate) call: Vec<Piece>,
    /// Text between two calls.
    pub(crate) between: String,
    /// After all of them.
    pub(crate) end: String,
}

/// A piece of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    Name,
    Id,
    /// The number of the call.
    Index,
    Arguments(ArgumentSyntax),
}

/// Syntax in which an example writes the arguments of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ArgumentSyntax {
    Json,
    /// JSON in a JSON string.
    JsonText,
    /// Text before a key, between it and its value, and after the value.
    Tagged {
        key: String,
        value: String,
        end: String,
    },
    /// Elements named as the keys, and what stands after each.
    Elements {
        after: String,
    },
    /// Python's keyword arguments, texts in such quotes.
    Keywords {
        quote: char,
    },
    /// Keys and values, texts between two of these.
    Pairs {
        quote: String,
    },
}

impl Example {
    /// JSON objects with name and arguments, each between two marks.
    pub(crate) fn json(start: &str, end: &str) -> Self {
        let call = vec![
            Piece::Text(format!("{start}{{\"name\": \"")),
            Piece::Name,
            Piece::Text("\", \"arguments\": ".into()),
            Piece::Arguments(ArgumentSyntax::Json),
            Piece::Text(format!("}}{end}")),
        ];
        Self { call, between: "\n".into(), ..Self::default() }
    }

    /// Python calls with keywords in one list between two marks.
    pub(crate) fn python_list(start: &str, end: &str) -> Self {
        let text = |text: &str| Piece::Text(text.into());
        let call = vec![Piece::Name, text("("), Piece::Arguments(ArgumentSyntax::Keywords { quote: '\'' }), text(")")];
        Self { start: format!("{start}["), call, between: ", ".into(), end: format!("]{end}") }
    }

    /// The text of these calls, with marks around all that is not part of them.
    pub(crate) fn write(&self, calls: &[Value], marks: &OwnMarks) -> String {
        let mut text = marks.wrap(&self.start);
        for (number, call) in calls.iter().enumerate() {
            if number > 0 {
                text.push_str(&marks.wrap(&self.between));
            }
            let function = call.get("function").unwrap_or(call);
            let given = &function["arguments"];
            let parsed = given.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
            let arguments = parsed.as_ref().unwrap_or(given);
            for piece in &self.call {
                match piece {
                    Piece::Text(piece) => text.push_str(&marks.wrap(piece)),
                    Piece::Name => text.push_str(function["name"].as_str().unwrap_or_default()),
                    Piece::Id => text.push_str(call["id"].as_str().unwrap_or_default()),
                    Piece::Index => text.push_str(&number.to_string()),
                    Piece::Arguments(how) => text.push_str(&how.write(arguments, marks)),
                }
            }
        }
        text + &marks.wrap(&self.end)
    }
}

impl ArgumentSyntax {
    fn write(&self, arguments: &Value, marks: &OwnMarks) -> String {
        let none = serde_json::Map::new();
        let fields = || arguments.as_object().unwrap_or(&none).iter();
        let plain = |value: &Value| value.as_str().map_or_else(|| to_spaced_json(value), str::to_owned);
        match self {
            Self::Json => to_spaced_json(arguments),
            Self::JsonText => Value::String(to_spaced_json(arguments)).to_string(),
            Self::Tagged { key, value, end } => {
                let opened = |given: &Value| {
                    if given.is_string() { value.clone() } else { value.replace("string=\"true\"", "string=\"false\"") }
                };
                let (key, end) = (marks.wrap(key), marks.wrap(end));
                let field = |name: &str, given: &Value| {
                    format!("{key}{name}{}{}{end}", marks.wrap(&opened(given)), plain(given))
                };
                join_texts(fields().map(|(name, given)| field(name, given)), "")
            }
            Self::Elements { after } => {
                let after = marks.wrap(after);
                join_texts(fields().map(|(name, given)| format!("<{name}>{}</{name}>{after}", plain(given))), "")
            }
            Self::Keywords { quote } => {
                join_texts(fields().map(|(name, given)| format!("{name}={}", literal(given, *quote))), ", ")
            }
            Self::Pairs { quote } => {
                let quote = marks.wrap(quote);
                let text = |given: &Value| given.as_str().map(|text| format!("{quote}{text}{quote}"));
                let each = fields()
                    .map(|(name, given)| format!("{name}:{}", text(given).unwrap_or_else(|| to_spaced_json(given))));
                join_texts(each, ",")
            }
        }
    }
}

/// JSON with blanks after commas and colons, as Python's `json` writes it.
pub(crate) fn to_spaced_json(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields =
                fields.iter().map(|(key, value)| format!("{}: {}", Value::from(key.as_str()), to_spaced_json(value)));
            format!("{{{}}}", join_texts(fields, ", "))
        }
        Value::Array(items) => format!("[{}]", join_texts(items.iter().map(to_spaced_json), ", ")),
        other => other.to_string(),
    }
}

fn join_texts(texts: impl Iterator<Item = String>, between: &str) -> String {
    texts.collect::<Vec<_>>().join(between)
}

/// A value as Python writes it.
fn literal(value: &Value, quote: char) -> String {
    let text = |text: &str| {
        let escaped = text.replace('\\', "\\\\").replace('\n', "\\n").replace(quote, &format!("\\{quote}"));
        format!("{quote}{escaped}{quote}")
    };
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::String(given) => text(given),
        Value::Array(items) => {
            format!("[{}]", join_texts(items.iter().map(|item| literal(item, quote)), ", "))
        }
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| format!("{}: {}", text(key), literal(value, quote)));
            format!("{{{}}}", join_texts(fields, ", "))
        }
        Value::Number(number) => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn calls_are_written_as_the_example_shows() {
        let calls = [
            json!({"id": "a1", "function": {"name": "ring", "arguments": {"x": "it's", "n": [1, true]}}}),
            json!({"function": {"name": "stop", "arguments": "{}"}}),
        ];
        let text = |text: &str| Piece::Text(text.into());
        let written = |given: ArgumentSyntax| {
            let call = vec![text("<"), Piece::Name, text("|"), Piece::Id, text("|"), Piece::Index, text(">")];
            let call = [call, vec![Piece::Arguments(given)]].concat();
            Example { start: "[".into(), call, between: "; ".into(), end: "]".into() }
                .write(&calls, &OwnMarks::default())
        };
        let tags =
            ArgumentSyntax::Tagged { key: "<k>".into(), value: "</k string=\"true\"><v>".into(), end: "</v>".into() };
        for (given, one, other) in [
            (ArgumentSyntax::Json, r#"{"x": "it's", "n": [1, true]}"#, "{}"),
            (ArgumentSyntax::JsonText, r#""{\"x\": \"it's\", \"n\": [1, true]}""#, "\"{}\""),
            (tags, r#"<k>x</k string="true"><v>it's</v><k>n</k string="false"><v>[1, true]</v>"#, ""),
            (ArgumentSyntax::Elements { after: "\n".into() }, "<x>it's</x>\n<n>[1, true]</n>\n", ""),
            (ArgumentSyntax::Keywords { quote: '\'' }, "x='it\\'s', n=[1, True]", ""),
            (ArgumentSyntax::Pairs { quote: "|".into() }, "x:|it's|,n:[1, true]", ""),
        ] {
            assert_eq!(written(given), format!("[<ring|a1|0>{one}; <stop||1>{other}]"));
        }
    }
}
