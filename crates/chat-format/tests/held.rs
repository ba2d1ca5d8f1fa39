//! What the constraint holds and what it leaves alone, on small templates,
//! with a vocabulary of bytes and control tokens.

use chat_format::{
    ChatFormat, ChatTemplate, ConstraintOptions, ControlTokens, FormatError, ReplyConstraint, ToolChoice, Tools,
    Whitespace,
};
use serde_json::json;
use std::sync::Arc;
use trie_core::{Constraint, Ending, Scratch, TokenId};
use trie_rules::{Spelling, TokenBytes};

const TAGS: &str = include_str!("templates/json-object-in-tags.jinja");
const LIST: &str = include_str!("templates/json-list-in-tags.jinja");
const RECIPIENTS: &str = include_str!("templates/recipients-on-lines.jinja");
const NAME_BEFORE_TAGS: &str = include_str!("templates/key-and-value-tags-without-lines.jinja");
const THINKS: &str = include_str!("templates/function-tags-with-reasoning.jinja");

/// Ids from 256 on: control tokens, and tokens of several bytes.
const OTHERS: [(&str, bool); 6] = [
    ("<tool_call>", true),
    ("</tool_call>", true),
    ("<fim>", true),
    (" <tool_call>x", false),
    ("text and more text", false),
    ("\", \"arguments\": {", false),
];

/// The same with the markers of thoughts.
const WITH_THOUGHTS: [(&str, bool); 8] =
    [OTHERS[0], OTHERS[1], OTHERS[2], OTHERS[3], OTHERS[4], OTHERS[5], ("<think>", true), ("</think>", true)];

fn id(n: usize) -> TokenId {
    TokenId::new(n as u32).unwrap()
}

fn spelling() -> (Spelling, ControlTokens) {
    spelling_of(&OTHERS)
}

fn spelling_of(others: &[(&str, bool)]) -> (Spelling, ControlTokens) {
    let mark = ControlTokens::BYTE;
    let mut pieces: Vec<Vec<u8>> = (0..=255).map(|byte| if byte == mark { Vec::new() } else { vec![byte] }).collect();
    for &(text, control) in others {
        let before: &[u8] = if control { &[mark] } else { &[] };
        pieces.push([before, text.as_bytes()].concat());
    }
    let tokens = pieces.iter().enumerate().map(|(n, piece)| (&piece[..], id(n)));
    let control = others.iter().enumerate().filter(|(_, (_, control))| *control);
    let control = ControlTokens::new(control.map(|(n, (text, _))| (text.as_bytes(), id(256 + n))));
    (Arc::new(TokenBytes::new(pieces.len(), tokens).unwrap()).into(), control)
}

fn token(text: &str) -> TokenId {
    id(256 + WITH_THOUGHTS.iter().position(|(known, _)| *known == text).unwrap())
}

fn constraint(template: &str, choice: ToolChoice, parallel: bool) -> ReplyConstraint {
    constraint_after(template, choice, parallel, None)
}

fn constraint_after(template: &str, choice: ToolChoice, parallel: bool, prompt: Option<String>) -> ReplyConstraint {
    constraint_over(&OTHERS, template, choice, parallel, prompt, Whitespace::Compact)
}

/// Over a vocabulary in which the markers of thoughts are control tokens.
fn with_thoughts(choice: ToolChoice, prompt: &str) -> ReplyConstraint {
    constraint_over(&WITH_THOUGHTS, THINKS, choice, true, Some(prompt.to_owned()), Whitespace::Compact)
}

fn constraint_over(
    others: &[(&str, bool)],
    template: &str,
    choice: ToolChoice,
    parallel: bool,
    prompt: Option<String>,
    whitespace: Whitespace,
) -> ReplyConstraint {
    let format = ChatFormat::new(ChatTemplate::new(template, "", "").unwrap()).unwrap();
    let mut options = ConstraintOptions::default();
    let tool = |name: &str| {
        json!({"name": name, "parameters": {"type": "object", "properties": {"times": {"type": "integer"}},
            "required": ["times"]}})
    };
    options.tools = Tools::new(&[tool("ring"), tool("ring_twice")]).unwrap();
    (options.choice, options.parallel, options.prompt) = (choice, parallel, prompt);
    options.whitespace = whitespace;
    let (spelling, control) = spelling_of(others);
    format.constraint(&options, &spelling, &control).unwrap()
}

/// The state after a text, byte by byte; where it is refused, how much was taken.
fn after(constraint: &ReplyConstraint, text: &str) -> Result<<ReplyConstraint as Constraint>::State, usize> {
    let mut state = constraint.start();
    for (at, byte) in text.bytes().enumerate() {
        constraint.advance(&mut state, id(usize::from(byte))).ok_or(at)?;
    }
    Ok(state)
}

fn may_end(constraint: &ReplyConstraint, text: &str) -> bool {
    let state = after(constraint, text).unwrap();
    constraint.next(&state, &mut Scratch::default()).ending != Ending::No
}

const RING: &str = "<tool_call>\n{\"name\": \"ring\", \"arguments\": {\"times\": 2}}\n</tool_call>";

#[test]
fn free_text_is_free_until_a_call_begins() {
    let auto = constraint(TAGS, ToolChoice::Auto, true);
    for text in
        ["", "Hello <tool_cal> <b> {\"name\": \"sing\"} </tool_call>", "functions.sing [sing()] tool_call", RING]
    {
        assert!(may_end(&auto, text), "{text}");
    }
    let text = "Hello. <tool_call>";
    assert_eq!(after(&auto, &format!("{text}x")).err(), Some(text.len()));
    let state = after(&auto, "Hello.").unwrap();
    // A token that begins a call wrongly in its middle may not come; one that is only text may.
    assert!(auto.step(&state, token(" <tool_call>x")).is_none());
    assert!(auto.step(&state, token("text and more text")).is_some());
    assert!(auto.step(&state, token("<fim>")).is_some());
    let mut scratch = Scratch::default();
    let next = auto.next(&state, &mut scratch);
    assert_eq!(next.ending, Ending::Free);
    assert!(!next.tokens.contains(token(" <tool_call>x")) && next.tokens.contains(token("text and more text")));
}

#[test]
fn control_tokens_are_markers_and_never_text_of_a_call() {
    let auto = constraint(TAGS, ToolChoice::Auto, true);
    let mut state = auto.start();
    auto.advance(&mut state, token("<tool_call>")).unwrap();
    for byte in "\n{\"name\": \"ring".bytes() {
        auto.advance(&mut state, id(usize::from(byte))).unwrap();
    }
    assert!(auto.step(&state, token("<fim>")).is_none());
    assert!(auto.step(&state, token("</tool_call>")).is_none());
    // A token that goes on from the name into what follows is legal, as all of its bytes are.
    auto.advance(&mut state, token("\", \"arguments\": {")).unwrap();
    for byte in "\"times\": 2}}\n".bytes() {
        auto.advance(&mut state, id(usize::from(byte))).unwrap();
    }
    let forced = auto.forced_token(&state, &mut Scratch::default());
    assert_eq!(forced, Some(token("</tool_call>")), "white space may come, and the template writes none here");
    auto.advance(&mut state, token("</tool_call>")).unwrap();
    assert_ne!(auto.next(&state, &mut Scratch::default()).ending, Ending::No);
}

#[test]
fn required_calls_come_at_once_and_white_space_has_an_end() {
    for choice in [ToolChoice::Required, ToolChoice::Tool("ring".into())] {
        let required = constraint(TAGS, choice.clone(), true);
        assert!(!may_end(&required, ""));
        assert_eq!(after(&required, "Hello").err(), Some(0));
        assert!(after(&required, &format!("\n\n{RING}")).is_ok());
        assert!(after(&required, &"\n".repeat(100)).is_err());
        assert!(after(&required, &" ".repeat(100)).is_err());
        assert!(may_end(&required, RING));
        let other = RING.replace("ring", "ring_twice");
        assert_eq!(after(&required, &other).is_ok(), choice == ToolChoice::Required);
    }
}

#[test]
fn no_call_comes_where_none_may() {
    let none = constraint(TAGS, ToolChoice::None, true);
    assert!(may_end(&none, "Hello {\"name\": \"ring\"}"));
    assert_eq!(after(&none, RING).err(), Some("<tool_call".len()));
    let one = constraint(TAGS, ToolChoice::Auto, false);
    assert!(may_end(&one, &format!("{RING}\nDone.")));
    assert_eq!(after(&one, &format!("{RING}\n{RING}")).err(), Some(RING.len() + 1 + "<tool_call".len()));
    let many = constraint(TAGS, ToolChoice::Auto, true);
    assert!(may_end(&many, &format!("{RING}\n{RING}\n")));
}

#[test]
fn nothing_is_held_inside_of_reasoning() {
    let auto = constraint(THINKS, ToolChoice::Auto, true);
    let open = if after(&auto, "<think>").is_ok() { "<think>" } else { "" };
    assert!(after(&auto, &format!("{open}I could write <function=sing> here")).is_ok());
    let required = constraint(THINKS, ToolChoice::Required, true);
    assert!(after(&required, &format!("{open}thinking</think>")).is_ok());
    assert!(after(&required, &format!("{open}thinking</think>Hello")).is_err());
}

#[test]
fn arguments_follow_the_schema() {
    let auto = constraint(TAGS, ToolChoice::Auto, true);
    let call =
        |arguments: &str| format!("<tool_call>\n{{\"name\": \"ring\", \"arguments\": {arguments}}}\n</tool_call>");
    for right in ["{\"times\": 2}", "{\"times\":-17}"] {
        assert!(may_end(&auto, &call(right)), "{right}");
    }
    let flexible = constraint_over(&OTHERS, TAGS, ToolChoice::Auto, true, None, Whitespace::Flexible);
    for spaced in ["{ \"times\" : -17 }", "{\n  \"times\": 0\n}", "{\"times\": 0\t\r\n     }"] {
        assert!(after(&auto, &call(spaced)).is_err(), "{spaced}");
        assert!(may_end(&flexible, &call(spaced)), "{spaced}");
    }
    assert!(after(&flexible, &call("{\"times\":         0}")).is_err());
    for wrong in
        ["{}", "{\"times\": \"2\"}", "{\"times\": 2.5}", "{\"time\": 2}", "{\"times\": 2, \"times\": 3}", "[2]"]
    {
        assert!(after(&auto, &call(wrong)).is_err(), "{wrong}");
    }
}

#[test]
fn before_a_required_call_nothing_begins_that_cannot_end() {
    // A header of content begins like nothing that may come.
    let prompt = Some("<|head|>assistant<|/head|>\n\n>>>".to_owned());
    let recipients = constraint_after(RECIPIENTS, ToolChoice::Required, true, prompt);
    assert_eq!(after(&recipients, "a").err(), Some(0));
    assert!(after(&recipients, "ring\n{\"times\": 1}").is_ok());
    // Reasoning comes once, and what ends it not without it.
    let required = constraint_after(THINKS, ToolChoice::Required, true, Some(String::new()));
    assert_eq!(after(&required, "</think>").err(), Some(1));
    let thought = "<think>A bell.</think>\n\n";
    assert!(after(&required, &format!("{thought}<tool_call>\n<function=ring>")).is_ok());
    assert_eq!(after(&required, &format!("{thought}<think>")).err(), Some(thought.len() + 2));
}

#[test]
fn the_last_call_of_a_list_is_followed_by_its_end() {
    let call = "<TOOLCALL>[{\"name\": \"ring\", \"arguments\": {\"times\": 2}}";
    for (parallel, may) in [(false, false), (true, true)] {
        let calls = constraint_after(LIST, ToolChoice::Required, parallel, Some(String::new()));
        assert_eq!(after(&calls, &format!("{call}, {{\"name")).is_ok(), may);
        assert!(may_end(&calls, &format!("{call}]</TOOLCALL>")));
    }
}

#[test]
fn a_name_may_stand_directly_before_its_arguments() {
    let required = constraint_after(NAME_BEFORE_TAGS, ToolChoice::Required, false, Some(String::new()));
    for whole in [
        "<tool_call>ring<arg_key>times</arg_key><arg_value>2</arg_value></tool_call>",
        "<tool_call>ring_twice\n<arg_key>times</arg_key><arg_value>2</arg_value></tool_call>",
    ] {
        assert!(may_end(&required, whole), "{whole}");
    }
}

/// Recipients, of which one is a tool of this name.
fn with_recipient(name: &str) -> Result<ReplyConstraint, FormatError> {
    let format = ChatFormat::new(ChatTemplate::new(RECIPIENTS, "", "").unwrap()).unwrap();
    let mut options = ConstraintOptions::default();
    options.tools = Tools::new(&[json!({"name": name})]).unwrap();
    let (spelling, control) = spelling();
    format.constraint(&options, &spelling, &control)
}

#[test]
fn a_tool_named_like_a_header_is_refused() {
    let refused = with_recipient("all").unwrap_err();
    assert!(matches!(refused, FormatError::Misread { ref tool, .. } if tool == "all"), "{refused}");
}

#[test]
fn at_a_recipient_nothing_comes_but_a_recipient() {
    let prompt = Some("<|head|>assistant<|/head|>\n\n>>>".to_owned());
    let auto = constraint_after(RECIPIENTS, ToolChoice::Auto, true, prompt);
    // The last byte of each leads elsewhere.
    for wrong in ["n", "alx", "all x", "rx", "ring_x"] {
        assert_eq!(after(&auto, wrong).err(), Some(wrong.len() - 1), "{wrong}");
    }
    for begun in ["", "al", "all", "ri"] {
        let state = after(&auto, begun).unwrap();
        assert!(auto.step(&state, token("<fim>")).is_none(), "{begun}");
        assert_eq!(auto.next(&state, &mut Scratch::default()).ending, Ending::No, "{begun}");
    }
    assert!(may_end(&auto, "all\nSeven <fim>"));
    assert!(may_end(&auto, "ring\n{\"times\": 2}"));
}

#[test]
fn a_tool_may_be_named_as_a_header_begins() {
    let auto = with_recipient("allow").unwrap();
    assert!(may_end(&auto, "allow\n{}") && may_end(&auto, "all\n{}"));
}

#[test]
fn reasoning_that_begins_again_has_no_budget_left() {
    let free = constraint_after(THINKS, ToolChoice::Auto, true, Some(String::new()));
    let bytes = |text: &str| text.bytes().map(|byte| id(usize::from(byte))).collect::<Vec<_>>();
    let reply = free.with_budget(1, bytes("</think>"));
    let mut state = reply.start();
    for token in bytes("<think>a</think><think>") {
        assert!(reply.advance(&mut state, token).is_some());
    }
    for token in bytes("</think>") {
        assert_eq!(reply.forced_token(&state, &mut Scratch::default()), Some(token));
        assert!(reply.advance(&mut state, token).is_some());
    }
    assert_ne!(reply.next(&state, &mut Scratch::default()).ending, Ending::No);
}

/// The state after texts and, between them, the control tokens named like this.
fn after_tokens(constraint: &ReplyConstraint, parts: &[&str]) -> Option<<ReplyConstraint as Constraint>::State> {
    let mut state = constraint.start();
    for part in parts {
        let control = WITH_THOUGHTS.iter().any(|(known, control)| known == part && *control);
        let tokens = if control { vec![token(part)] } else { part.bytes().map(|byte| id(usize::from(byte))).collect() };
        for token in tokens {
            constraint.advance(&mut state, token)?;
        }
    }
    Some(state)
}

#[test]
fn only_its_control_token_ends_a_thought() {
    let required = with_thoughts(ToolChoice::Required, "");
    let split = |text: &'static str| text.split_at(1);
    let (a, b) = split("</think>");
    assert!(after_tokens(&required, &["<think>", "use split(\"", a, b, "\") to cut", "</think>", "\n"]).is_some());
    assert!(after_tokens(&required, &["<think>", "well", "</think>", "Hello"]).is_none());
    // Nor does text begin one, where none but a call may come.
    assert!(after_tokens(&required, &["<", "thi"]).is_none());
    let auto = with_thoughts(ToolChoice::Auto, "");
    let state = after_tokens(&auto, &["In ", "<", "think> I think", ".\n<", "/think> "]).unwrap();
    assert_eq!(auto.next(&state, &mut Scratch::default()).ending, Ending::Free);
}

#[test]
fn a_thought_that_the_prompt_closed_begins_no_more() {
    for prompt in ["<think>\n\n</think>\n\n", "<think></think>"] {
        for choice in [ToolChoice::Required, ToolChoice::Auto, ToolChoice::None] {
            let held = with_thoughts(choice.clone(), prompt);
            let start = held.start();
            assert!(held.step(&start, token("<think>")).is_none(), "{choice:?} after {prompt:?}");
            assert!(!held.next(&start, &mut Scratch::default()).tokens.contains(token("<think>")));
            let call = after_tokens(&held, &["\n", "<tool_call>", "\n<function=ring>"]);
            assert_eq!(call.is_some(), choice != ToolChoice::None);
        }
    }
    let open = with_thoughts(ToolChoice::Required, "<think>\n");
    assert!(after_tokens(&open, &["Well", "</think>", "\n"]).is_some());
}

#[test]
fn what_ends_a_turn_with_calls_follows_the_call() {
    let text = "{%- for m in messages -%}<|{{ m.role }}|>{{ m.content or '' }}{%- for c in m.tool_calls -%}\
        {{- '<sep/>' if not loop.first -}}<call>{{ c.function | tojson }}</call>{%- endfor -%}\
        {{- '<|eom|>' if m.tool_calls else '<|end|>' -}}{%- endfor -%}\
        {%- if add_generation_prompt -%}<|assistant|>{%- endif -%}";
    let call = "<call>{\"name\": \"ring\", \"arguments\": {\"times\": 2}}</call>";
    for choice in [ToolChoice::Auto, ToolChoice::Required] {
        let held = constraint_after(text, choice, false, Some(String::new()));
        assert!(may_end(&held, &format!("{call}<|eom|>")));
    }
    let format = ChatFormat::new(ChatTemplate::new(text, "", "").unwrap()).unwrap();
    let mut parser = format.parser(&chat_format::ParserOptions::default()).unwrap();
    parser.push(format!("{call}<|eom|>").as_bytes());
    let (_, message) = parser.finish(false);
    assert_eq!((&message.content[..], message.tool_calls.len()), ("", 1));
}
