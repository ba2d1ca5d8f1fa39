//! Values between tags that hold what ends a value: what a template renders is read as what it was made of, and
//! allowed.

use crate::support::random::Random;
use chat_format::{
    ChatFormat, ChatTemplate, ConstraintOptions, ControlTokens, ParserOptions, RenderOptions, ToolChoice, Tools,
};
use serde_json::{Value, json};
use std::sync::Arc;
use trie_core::{Constraint, TokenId};
use trie_rules::{Spelling, TokenBytes};

/// Arguments between tags: on lines of their own, in one line, with a tag of its own for the value; texts between marks
/// that open and close; elements that are named as their keys.
const WRITTEN: [(&str, &str); 5] = [
    (
        "<tool_call>\\n<function={{ c.function.name }}>\\n{% for k, v in c.function.arguments.items() \
         %}<parameter={{ k }}>\\n{{ v }}\\n</parameter>\\n{% endfor %}</function>\\n</tool_call>",
        "</parameter>",
    ),
    (
        "<call>\\n<invoke name=\"{{ c.function.name }}\">\\n{% for k, v in c.function.arguments.items() \
         %}<p name=\"{{ k }}\">{{ v }}</p>\\n{% endfor %}</invoke>\\n</call>",
        "</p>",
    ),
    (
        "<tool_call>{{ c.function.name }}\\n{% for k, v in c.function.arguments.items() %}<arg_key>{{ k }}</arg_key>\\n\
         <arg_value>{{ v }}</arg_value>\\n{% endfor %}</tool_call>",
        "</arg_value>",
    ),
    (
        "<|tool_call>call:{{ c.function.name }}{{ '{' }}{% for k, v in c.function.arguments.items() %}{{ k }}:\
         {% if v is string %}<|\"|>{{ v }}<|\"|>{% else %}{{ v }}{% endif %}{% if not loop.last %},{% endif %}\
         {% endfor %}{{ '}' }}<tool_call|>",
        "<|\"|>",
    ),
    (
        "]<]m[>[<tool_call>\\n]<]m[>[<invoke name=\"{{ c.function.name }}\">{% for k, v in \
         c.function.arguments.items() %}]<]m[>[<{{ k }}>{{ v }}]<]m[>[</{{ k }}>{% endfor %}]<]m[>[</invoke>\\n\
         ]<]m[>[</tool_call>",
        "]<]m[>[</text>",
    ),
];

fn bytes() -> Spelling {
    let all: Vec<[u8; 1]> = (0..ControlTokens::BYTE).map(|byte| [byte]).collect();
    let tokens = all.iter().map(|byte| (&byte[..], TokenId::new(u32::from(byte[0])).unwrap()));
    Arc::new(TokenBytes::new(256, tokens).unwrap()).into()
}

#[test]
fn what_ends_a_value_may_stand_in_one() {
    let mut random = Random(7);
    for (call, end) in WRITTEN {
        let call = call.replace("\\n", "{{ '\\n' }}");
        let text = format!(
            "{{%- for m in messages -%}}<|{{{{ m.role }}}}|>{{{{ m.content or '' }}}}{{%- for c in m.tool_calls -%}}\
             {call}{{%- endfor -%}}<|end|>{{%- endfor -%}}\
             {{%- if add_generation_prompt -%}}<|assistant|>{{%- endif -%}}"
        );
        let format = ChatFormat::new(ChatTemplate::new(text, "", "").unwrap()).unwrap();
        assert_eq!(format.analysis().degraded, None, "{}", format.analysis().to_json());
        let tools = [json!({"name": "edit", "parameters": {"type": "object", "properties": {
            "path": {"type": "string"}, "text": {"type": "string"}, "line": {"type": "integer"}}}})];
        let mut options = ConstraintOptions::default();
        options.tools = Tools::new(&tools).unwrap();
        let choices = [ToolChoice::Auto, ToolChoice::Required];
        let held = choices.map(|choice| {
            let mut options = options.clone();
            (options.choice, options.prompt) = (choice, Some(String::new()));
            format.constraint(&options, &bytes(), &ControlTokens::default()).unwrap()
        });
        let pieces = [end, "x", " ", "y\n z", "<b>", "</b>", "\"", "</", "<", "\u{e9}", "/>", "\n "];
        for number in 0..300 {
            let count = 1 + random.below(7);
            let middle: String = (0..count).map(|_| *random.pick(&pieces)).collect();
            // White space at the ends is what templates trim.
            let value = format!("a{middle}b");
            let arguments = json!({"path": "p", "text": value, "line": 3});
            let message = json!({"role": "assistant", "content": "", "tool_calls": [
                {"id": "a1", "type": "function", "function": {"name": "edit", "arguments": arguments}}]});
            let messages = [json!({"role": "user", "content": "Hi"}), message];
            let rendered = format.render(&messages, None, &RenderOptions::default()).unwrap();
            let reply = rendered.split("<|assistant|>").nth(1).unwrap().strip_suffix("<|end|>").unwrap();
            let mut given = ParserOptions::default();
            given.tools = Some(options.tools.clone());
            let mut parser = format.parser(&given).unwrap();
            // In portions, as it comes.
            for part in reply.as_bytes().chunks(1 + number % 9) {
                parser.push(part);
            }
            let (_, got) = parser.finish(false);
            assert_eq!(got.tool_calls.len(), 1, "{reply}: {got:?}");
            let read: Value = serde_json::from_str(&got.tool_calls[0].arguments).unwrap();
            assert_eq!((read, &got.content[..], got.warnings.len()), (arguments, "", 0), "{reply}: {got:?}");
            for constraint in &held {
                let mut state = constraint.start();
                for (at, byte) in reply.bytes().enumerate() {
                    let token = TokenId::new(u32::from(byte)).unwrap();
                    assert!(constraint.advance(&mut state, token).is_some(), "{:?} refused of {reply}", &reply[..at]);
                }
            }
        }
    }
}
