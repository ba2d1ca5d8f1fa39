//! Names, keys and values of lists in the tokenizer's own tokens, with a small vocabulary whose tokens are known.

use crate::support::{small_templates, templates};
use chat_format::analysis::PromptOptions;
use chat_format::{
    CallSpelling, ChatFormat, ChatTemplate, ConstraintOptions, ControlTokens, ReplyConstraint, ToolChoice, Tools,
};
use serde_json::{Value, json};
use std::sync::Arc;
use trie_core::{Constraint, Scratch, TokenId};
use trie_rules::{Spelling, TokenBytes};

const TAGS: &str = include_str!("templates/json-object-in-tags.jinja");
const WORDS: [&str; 17] = [
    "ring", "ri", "_twice", "_tw", "ice", "sta", "stop", "\", \"", "loud", "lo", "how", "very", "ver", "\"lo",
    "quietly", "quiet", "\"}",
];

fn id(n: usize) -> TokenId {
    TokenId::new(n as u32).unwrap()
}

fn pieces() -> Vec<Vec<u8>> {
    let bytes = (0..=255).map(|byte| if byte == ControlTokens::BYTE { Vec::new() } else { vec![byte] });
    bytes.chain(WORDS.iter().map(|word| word.as_bytes().to_vec())).collect()
}

/// Takes the longest token at each place.
fn spelling() -> Spelling {
    let pieces = pieces();
    let tokens = pieces.iter().enumerate().map(|(n, piece)| (&piece[..], id(n)));
    let tokens = Arc::new(TokenBytes::new(pieces.len(), tokens).unwrap());
    Spelling::with_tokenizer(tokens, move |text| {
        let (mut rest, mut found) = (text.as_bytes(), Vec::new());
        while !rest.is_empty() {
            let begins = |piece: &&Vec<u8>| !piece.is_empty() && rest.starts_with(piece);
            let best = pieces.iter().filter(begins).max_by_key(|piece| piece.len())?;
            found.push(id(pieces.iter().position(|piece| piece == best)?));
            rest = &rest[best.len()..];
        }
        Some(found)
    })
}

fn constraint(spelled: CallSpelling, others: bool, spelling: &Spelling) -> ReplyConstraint {
    let format = ChatFormat::new(ChatTemplate::new(TAGS, "", "").unwrap()).unwrap();
    let tool = |name: &str| {
        json!({"name": name, "parameters": {"type": "object", "properties": {
            "loud": {"enum": ["very", "quietly", "quiet"]}, "how": {"type": "integer"},
        }, "required": ["loud"], "additionalProperties": others}})
    };
    let mut options = ConstraintOptions::default();
    options.tools = Tools::new(&[tool("ring"), tool("ring_twice"), tool("stop")]).unwrap();
    (options.choice, options.spelling) = (ToolChoice::Required, spelled);
    format.constraint(&options, spelling, &ControlTokens::default()).unwrap()
}

/// What may come after a text that was written in bytes up to `|`, and in its longest tokens from there on; letters and
/// words of them alone.
fn words(constraint: &ReplyConstraint, text: &str) -> Vec<String> {
    let (pieces, mut state) = (pieces(), constraint.start());
    let (bytes, rest) = text.split_once('|').unwrap_or((text, ""));
    let free = self::constraint(CallSpelling::Any, false, &spelling());
    let mut twin = free.start();
    for byte in bytes.bytes() {
        constraint.advance(&mut state, id(byte.into())).unwrap_or_else(|| panic!("{text}"));
        free.advance(&mut twin, id(byte.into()));
    }
    let mut rest = rest.as_bytes();
    while !rest.is_empty() {
        let begins = |piece: &&Vec<u8>| !piece.is_empty() && rest.starts_with(piece);
        let best = pieces.iter().filter(begins).max_by_key(|piece| piece.len()).unwrap();
        let token = id(pieces.iter().position(|piece| piece == best).unwrap());
        constraint.advance(&mut state, token).unwrap_or_else(|| panic!("{text}"));
        rest = &rest[best.len()..];
    }
    let mut scratch = Scratch::default();
    let next = constraint.next(&state, &mut scratch).tokens;
    let mut found = Vec::new();
    for token in (0..pieces.len()).map(id) {
        let piece = &pieces[token.index()];
        let takes = !piece.is_empty() && constraint.step(&state, token).is_some();
        assert_eq!(takes, next.names(token) && !piece.is_empty(), "mask and accept: {text}, {piece:?}");
        if takes && piece.iter().any(u8::is_ascii_alphabetic) {
            found.push(String::from_utf8(piece.clone()).unwrap());
        }
    }
    found.sort();
    found
}

const CALL: &str = "<tool_call>\n{\"name\": \"";

#[test]
fn only_the_tokenizers_tokens_begin_a_name() {
    let spelling = spelling();
    let canonical = constraint(CallSpelling::Canonical, false, &spelling);
    assert_eq!(words(&canonical, CALL), ["ring", "stop"]);
    assert_eq!(words(&canonical, &format!("{CALL}|ring")), ["_twice"]);
    let any = constraint(CallSpelling::Any, false, &spelling);
    assert_eq!(words(&any, CALL), ["r", "ri", "ring", "s", "stop"]);
    assert_eq!(words(&any, &format!("{CALL}|ring")), ["_tw", "_twice"]);
    // Without a tokenizer no spelling is known.
    let bytes = constraint(CallSpelling::Canonical, false, &Arc::clone(spelling.tokens()).into());
    assert_eq!(words(&bytes, CALL), words(&any, CALL));
}

#[test]
fn named_keys_and_values_of_enums_too() {
    let spelling = spelling();
    let canonical = constraint(CallSpelling::Canonical, false, &spelling);
    let arguments = format!("{CALL}|stop\", \"arguments\": {{");
    // A token that begins before the key, and is not the tokenizer's for the rest, does not come.
    assert_eq!(words(&canonical, &arguments), ["\"lo"]);
    assert_eq!(words(&canonical, &format!("{arguments}\"")), ["how", "loud"]);
    let value = format!("{arguments}\"how\": 1, \"");
    assert_eq!(words(&canonical, &value), ["loud"]);
    assert_eq!(words(&canonical, &format!("{value}loud\": \"")), ["quiet", "quietly", "very"]);
    assert_eq!(words(&canonical, &format!("{value}loud\": \"quiet")), ["l"]);
}

#[test]
fn keys_of_open_objects_come_in_any_tokens() {
    let spelling = spelling();
    let open = constraint(CallSpelling::Canonical, true, &spelling);
    let arguments = format!("{CALL}|stop\", \"arguments\": {{\"");
    let found = words(&open, &arguments);
    assert!(found.contains(&"lo".to_owned()) && found.contains(&"sta".to_owned()), "{found:?}");
}

/// What must come is what the template writes there, white space included: a model has seen calls written so.
#[test]
fn forced_text_is_what_the_template_writes() {
    let (pieces, spelling) = (pieces(), spelling());
    let tool = json!({"type": "function", "function": {"name": "ring", "description": "Rings.", "parameters": {
        "type": "object", "properties": {"loud": {"enum": ["very"]}}, "required": ["loud"],
        "additionalProperties": false}}});
    let call = json!({"role": "assistant", "content": "", "tool_calls": [
        {"id": "abcde1234", "type": "function", "function": {"name": "ring", "arguments": {"loud": "very"}}}]});
    let user = json!({"role": "user", "content": "Ring!"});
    let result = json!({"role": "tool", "content": "done", "name": "ring", "tool_call_id": "abcde1234"});
    let (mut told, mut forced, mut wrong) = (0, 0, Vec::new());
    for (name, text) in small_templates().into_iter().chain(templates().unwrap_or_default()) {
        let Ok(format) =
            ChatTemplate::new(text, "", "").map_err(|_| ()).and_then(|it| ChatFormat::new(it).map_err(|_| ()))
        else {
            continue;
        };
        let tools = Value::Array(vec![tool.clone()]);
        let rendered = |messages: &[&Value]| {
            let messages: Vec<Value> = messages.iter().copied().cloned().collect();
            format.prompt(&messages, Some(&tools), &PromptOptions::default()).ok()
        };
        let (Some((prompt, start)), Some((whole, _))) = (rendered(&[&user]), rendered(&[&user, &call, &result])) else {
            continue;
        };
        let Some(reply) = whole.strip_prefix(&prompt) else { continue };
        let mut options = ConstraintOptions::default();
        options.tools = Tools::new(std::slice::from_ref(&tool)).unwrap();
        options.choice = ToolChoice::Required;
        options.prompt = Some(prompt[start..].to_owned());
        let Ok(constraint) = format.constraint(&options, &spelling, &ControlTokens::default()) else { continue };
        let (mut state, mut scratch) = (constraint.start(), Scratch::default());
        for (at, byte) in reply.bytes().enumerate() {
            if reply.is_char_boundary(at)
                && let Some(token) = constraint.forced_token(&state, &mut scratch)
            {
                let (piece, rest) = (&pieces[token.index()], &reply.as_bytes()[at..]);
                // From its marker on up to its arguments, which are written in several ways.
                if at > 1 && !rest.starts_with(piece) && reply[at..].contains("very") {
                    let piece = String::from_utf8_lossy(piece);
                    wrong.push(format!("{name}: {piece:?} must come, and {:?} is written", &reply[at..]));
                    break;
                }
                forced += 1;
            }
            if constraint.advance(&mut state, id(byte.into())).is_none() {
                break;
            }
            told += usize::from(at == 0);
        }
    }
    // White space inside of a list is not known.
    wrong.retain(|one| !one.contains("\"{\" must come"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(told >= 15 && forced >= 100, "{told} templates, {forced} forced tokens");
}
