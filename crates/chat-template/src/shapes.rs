//! Other shapes of a conversation, for templates that refuse the one they are given.

use crate::data::Data;
use crate::error::{Fault, Kind};
use crate::value::{TracedText, json};

type Shape = fn(&Data) -> Data;

/// Changes of shape in the order in which they are tried. Later ones lose more of the meaning.
const SHAPES: [Shape; 7] = [
    arguments_as_dicts,
    arguments_as_text,
    no_null_content,
    parts_as_text,
    text_as_parts,
    developer_as_system,
    system_in_first_user_message,
];

/// Returns whether the template might accept the conversation in another shape.
pub(crate) fn may_help(fault: &Fault) -> bool {
    matches!(fault.kind(), Kind::Refused | Kind::Undefined | Kind::Value)
}

/// All other shapes, each once: first those with one change, then with two, then with three.
pub(crate) fn other_shapes(messages: &Data) -> Vec<Data> {
    let mut found: Vec<Data> = Vec::new();
    let mut last: Vec<(usize, Data)> = vec![(0, messages.clone())];
    for _ in 0..3 {
        let mut next = Vec::new();
        for (from, data) in &last {
            for (index, shape) in SHAPES.iter().enumerate().skip(*from) {
                let changed = shape(data);
                if changed != *messages && !found.contains(&changed) {
                    found.push(changed.clone());
                    next.push((index + 1, changed));
                }
            }
        }
        last = next;
    }
    found
}

fn each_message(messages: &Data, change: impl Fn(&mut Data)) -> Data {
    let mut messages = messages.clone();
    if let Data::List(list) = &mut messages {
        list.iter_mut().for_each(change);
    }
    messages
}

fn each_arguments(messages: &Data, change: impl Fn(&mut Data)) -> Data {
    each_message(messages, |message| {
        let Some(Data::List(calls)) = message.get_mut("tool_calls") else { return };
        for call in calls {
            let of = if call.get("function").is_some() { call.get_mut("function") } else { Some(call) };
            if let Some(arguments) = of.and_then(|function| function.get_mut("arguments")) {
                change(arguments);
            }
        }
    })
}

fn arguments_as_dicts(messages: &Data) -> Data {
    each_arguments(messages, |arguments| {
        let parsed = arguments.as_text().and_then(|text| serde_json::from_str::<serde_json::Value>(text).ok());
        if let Some(parsed) = parsed.filter(serde_json::Value::is_object) {
            *arguments = Data::from(&parsed);
        }
    })
}

fn arguments_as_text(messages: &Data) -> Data {
    each_arguments(messages, |arguments| {
        let (item, key) = (", ".to_owned(), ": ".to_owned());
        let options = json::Options { ensure_ascii: false, indent: None, item, key, sort_keys: false };
        let text = match arguments {
            Data::Dict(_) => arguments.to_value().and_then(|value| json::dumps(&value, &options)).ok(),
            _ => None,
        };
        if let Some(text) = text {
            *arguments = Data::Text(text);
        }
    })
}

fn no_null_content(messages: &Data) -> Data {
    each_message(messages, |message| match message.get_mut("content") {
        Some(content @ Data::None) => *content = Data::Text(String::new()),
        Some(_) => {}
        None => {
            if let Data::Dict(entries) = message {
                entries.push(("content".into(), Data::Text(String::new())));
            }
        }
    })
}

fn parts_as_text(messages: &Data) -> Data {
    each_message(messages, |message| {
        if let Some(content) = message.get_mut("content")
            && let Some(text) = text_of_parts(content)
        {
            *content = Data::Traced(text);
        }
    })
}

/// The texts of content parts, if they are all texts.
fn text_of_parts(content: &Data) -> Option<TracedText> {
    let Data::List(parts) = content else { return None };
    let mut whole = TracedText::default();
    for part in parts {
        whole.push(&part.get("text").unwrap_or(part).as_traced()?);
    }
    Some(whole)
}

fn text_as_parts(messages: &Data) -> Data {
    each_message(messages, |message| {
        if let Some(content @ (Data::Text(_) | Data::Traced(_))) = message.get_mut("content") {
            let text = std::mem::replace(content, Data::None);
            let part = Data::Dict(vec![("type".into(), Data::Text("text".into())), ("text".into(), text)]);
            *content = Data::List(vec![part]);
        }
    })
}

fn is_role(message: &Data, role: &str) -> bool {
    message.get("role").and_then(Data::as_text) == Some(role)
}

fn developer_as_system(messages: &Data) -> Data {
    each_message(messages, |message| {
        if is_role(message, "developer")
            && let Some(role) = message.get_mut("role")
        {
            *role = Data::Text("system".into());
        }
    })
}

fn system_in_first_user_message(messages: &Data) -> Data {
    let mut messages = messages.clone();
    let Data::List(list) = &mut messages else { return messages };
    if !list.first().is_some_and(|first| is_role(first, "system")) {
        return messages;
    }
    let text = |message: &Data| {
        let content = message.get("content")?;
        content.as_traced().or_else(|| text_of_parts(content))
    };
    let Some(mut system) = text(&list[0]) else { return messages };
    let Some(user) = list.iter_mut().find(|message| is_role(message, "user")) else { return messages };
    let Some(asked) = text(user) else { return messages };
    if let Some(content) = user.get_mut("content") {
        system.push_foreign("\n\n");
        system.push(&asked);
        *content = Data::Traced(system);
        list.remove(0);
    }
    messages
}
