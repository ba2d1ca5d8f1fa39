//! Valid messages of a chat.

use serde_json::Value;

/// Roles that every chat API knows; others must be known to the template.
const ROLES: [&str; 6] = ["system", "developer", "user", "assistant", "tool", "function"];

/// Roles of [`ROLES`] whose messages have content.
const SPEAKING: [&str; 5] = ["system", "developer", "user", "tool", "function"];

/// Types of content parts that are not text.
const MEDIA: [&str; 4] = ["image", "audio", "video", "file"];

/// Checks that a message has a role and content of a shape that templates know. `template` may know more roles; `near`
/// says which known name is meant.
///
/// # Errors
/// A sentence that says what is wrong.
pub fn check_message(
    message: &Value,
    template: &str,
    near: &dyn Fn(&str, &[&str]) -> String,
) -> std::result::Result<(), String> {
    let Some(role) = message.get("role") else {
        return Err("it has no \"role\": a message is {\"role\": \"user\", \"content\": \"...\"}".into());
    };
    match role.as_str() {
        Some(role) if ROLES.contains(&role) || (!role.is_empty() && is_named(template, role)) => {}
        Some(role) => {
            let known = ROLES.map(|role| format!("{role:?}")).join(", ");
            let near = near(role, &ROLES);
            return Err(format!("the role {role:?} is unknown to the template{near}; it may be {known}"));
        }
        None => return Err(format!("the role is {role}: it must be a str")),
    }
    // An assistant may have called tools, or thought, and said nothing; a template may have roles without content.
    let may_be_silent = |role: &Value| !role.as_str().is_some_and(|role| SPEAKING.contains(&role));
    match message.get("content") {
        Some(Value::String(_)) => {}
        None | Some(Value::Null) if may_be_silent(role) => {}
        None => return Err(format!("it has no \"content\", which a message of the role {role} must have")),
        Some(Value::Null) => {
            return Err(format!("the content is null: with the role {role} it must be a str or a list of parts"));
        }
        Some(Value::Array(parts)) => parts.iter().try_for_each(|part| check_part(part, template))?,
        Some(other) if role == "tool" => {
            return Err(format!("the content is {}: write a tool's result as a str, with json.dumps", short(other)));
        }
        Some(other) => return Err(format!("the content is {}: it must be a str or a list of parts", short(other))),
    }
    let Some(calls) = message.get("tool_calls").filter(|calls| !calls.is_null()) else { return Ok(()) };
    let calls = calls.as_array().ok_or_else(|| "\"tool_calls\" must be a list".to_owned())?;
    for (number, call) in calls.iter().enumerate() {
        let custom = call.get("custom").filter(|custom| custom.is_object());
        let of = custom.or_else(|| call.get("function")).unwrap_or(call);
        if let Some(input) = custom.map(|custom| custom.get("input").unwrap_or(&Value::Null))
            && !input.is_string()
        {
            return Err(format!("tool_calls[{number}].custom.input is {}: it must be a str", short(input)));
        }
        if !of.get("name").is_some_and(Value::is_string) {
            let like = "{\"type\": \"function\", \"function\": {\"name\": ..., \"arguments\": ...}}";
            return Err(format!("tool_calls[{number}] has no name: a call is {like}"));
        }
    }
    Ok(())
}

/// Checks that a part of content is text, or of a type that the template knows and that is not media.
fn check_part(part: &Value, template: &str) -> Result<(), String> {
    const TEXT: &str = "{\"type\": \"text\", \"text\": \"...\"}";
    let Some(kind) = part.get("type").and_then(Value::as_str) else {
        return Err(format!("a part of the content has no \"type\": it is {TEXT}, not {}", short(part)));
    };
    if kind == "text" {
        return match part.get("text") {
            Some(Value::String(_)) => Ok(()),
            Some(other) => Err(format!("the text of a part of the content is {}: it must be a str", short(other))),
            None => Err(format!("a part of the content has no \"text\": it is {TEXT}")),
        };
    }
    match (is_media(kind), is_named(template, kind)) {
        (true, _) => Err(format!("a part of the content has the type {kind:?}: only text can be given to the model")),
        (false, true) => Ok(()),
        (false, false) => Err(format!(
            "a part of the content has the type {kind:?}, which the template does not know: it takes \"text\""
        )),
    }
}

/// Returns whether parts of content of this type are not text, as `image_url`.
pub(crate) fn is_media(kind: &str) -> bool {
    MEDIA.iter().any(|media| kind.contains(media))
}

/// Returns whether a template contains a word as a text of its own.
fn is_named(template: &str, word: &str) -> bool {
    ['"', '\''].iter().any(|quote| template.contains(&format!("{quote}{word}{quote}")))
}

fn short(value: &Value) -> String {
    value.to_string().chars().take(60).collect()
}
