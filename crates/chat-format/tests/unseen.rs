//! What templates do that no template of the repository did: one small template for each.

mod told;

use chat_format::analysis::{ContinuedPart, PromptOptions};
use chat_format::{ChatFormat, ChatTemplate, Message, ParserOptions, Tools};
use serde_json::{Value, json};

/// A template whose messages of the assistant are written so.
fn template(reply: &str, end: &str, prompt: &str) -> ChatFormat {
    let text = format!(
        "{{%- if tools -%}}{{{{ tools | tojson }}}}{{%- endif -%}}{{%- for m in messages -%}}\
         {{%- if m.role == 'assistant' -%}}<|bot|>{reply}{end}\
         {{%- else -%}}<|{{{{ m.role }}}}|>{{{{ m.content }}}}<|end|>\
         {{%- endif -%}}{{%- endfor -%}}{{%- if add_generation_prompt -%}}<|bot|>{prompt}{{%- endif -%}}"
    );
    let format = ChatFormat::new(ChatTemplate::new(text, "", "").unwrap()).unwrap();
    assert_eq!(format.analysis().degraded, None, "{}", format.analysis().to_json());
    format
}

fn read(format: &ChatFormat, reply: &str) -> Message {
    read_among(format, ["ring", "ring_twice"], reply)
}

/// A reply as it is read where there are tools of these names.
fn read_among(format: &ChatFormat, names: [&str; 2], reply: &str) -> Message {
    let mut options = ParserOptions::default();
    options.tools = Some(Tools::new(&names.map(|name| json!({"name": name}))).unwrap());
    let mut parser = format.parser(&options).unwrap();
    parser.push(reply.as_bytes());
    parser.finish(false).1
}

/// Content, reasoning, and calls with their arguments.
fn means(format: &ChatFormat, reply: &str, content: &str, reasoning: &str, calls: &[(&str, Value)]) {
    let message = read(format, reply);
    assert_eq!((message.content.trim(), message.reasoning.trim()), (content, reasoning), "{reply}: {message:?}");
    let found = message.tool_calls.iter();
    let found: Vec<_> = found.map(|c| (&c.name[..], serde_json::from_str(&c.arguments).unwrap_or_default())).collect();
    assert_eq!(found, calls, "{reply}: {message:?}");
}

const END: &str = "<|end|>";
const THINKS: &str = "{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}";
const SAYS: &str = "{{ m.content or '' }}";
const OBJECTS: &str = "{% for c in m.tool_calls %}<call>{{ c.function | tojson }}</call>{% endfor %}";

#[test]
fn reasoning_that_only_ends() {
    let thought = "{% if m.reasoning_content %}{{ m.reasoning_content }}<answer>{% endif %}";
    let format = template(&format!("{thought}{SAYS}{OBJECTS}"), END, "");
    means(&format, "It is 7.<answer>Seven.", "Seven.", "It is 7.", &[]);
    means(&format, "Seven.", "Seven.", "", &[]);
    let call = r#"<call>{"name": "ring", "arguments": {}}</call>"#;
    means(&format, &format!("Seven.{call}"), "Seven.", "", &[("ring", json!({}))]);
    means(&format, &format!("It is 7.<answer>{call}"), "", "It is 7.", &[("ring", json!({}))]);
}

#[test]
fn marked_content_in_a_turn_that_nothing_ends() {
    for end in ["", "\\n\\n"] {
        let says = "{% if m.content %}<out>{{ m.content }}</out>{% endif %}";
        let format = template(&format!("{says}{OBJECTS}"), &format!("{{{{ '{end}' }}}}"), "");
        means(&format, "<out>Seven.</out>", "Seven.", "", &[]);
        let call = r#"<call>{"name": "ring", "arguments": {}}</call>"#;
        means(&format, call, "", "", &[("ring", json!({}))]);
        means(&format, &format!("<out>Seven.</out>{call}"), "Seven.", "", &[("ring", json!({}))]);
    }
}

#[test]
fn an_empty_block_in_what_was_said_before() {
    let thought = format!("{THINKS}{{% if not m.reasoning_content %}}<think></think>{{% endif %}}");
    let format = template(&format!("{thought}{SAYS}{OBJECTS}"), END, "<think>\n");
    means(&format, "It is 7.\n</think>\n\nSeven.", "Seven.", "It is 7.", &[]);
}

#[test]
fn reasoning_that_the_template_cuts_off() {
    let format = template(&format!("{{{{ (m.content or '').split('<|/mind|>')[-1] }}}}{OBJECTS}"), END, "");
    means(&format, "<|mind|>It is 7.<|/mind|>Seven.", "Seven.", "It is 7.", &[]);
}

#[test]
fn reasoning_that_the_template_cuts_out_by_both_of_its_marks() {
    let cut = "{% set said = m.content or '' %}{% if '<mind:end>' in said %}\
        {% set said = said.split('<mind:start>')[0] ~ said.split('<mind:end>')[-1] %}{% endif %}{{ said }}";
    let format = template(&format!("{cut}{OBJECTS}"), END, "");
    means(&format, "<mind:start>It is 7.<mind:end>Seven.", "Seven.", "It is 7.", &[]);
}

#[test]
fn reasoning_that_the_prompt_opens_and_the_template_cuts_off() {
    let format =
        template(&format!("{{{{ (m.content or '').split('<mind:stop>')[-1] }}}}{OBJECTS}"), END, "<mind:start>");
    means(&format, "It is 7.<mind:stop>Seven.", "Seven.", "It is 7.", &[]);
}

#[test]
fn reasoning_that_the_prompt_opens_and_that_stays_before_the_last_answer() {
    let said = "{% if loop.last %}<think>\\n{{ m.content }}{% else %}{{ m.content.split('</think>')[-1] }}{% endif %}";
    let said = format!("{{% if m.tool_calls %}}{OBJECTS}{{% else %}}{said}{{% endif %}}");
    let format = template(&said.replace("\\n", "{{ '\\n' }}"), END, "<think>{{ '\\n' }}");
    means(&format, "It is 7.</think>Seven.", "Seven.", "It is 7.", &[]);
    let call = r#"<call>{"name": "ring", "arguments": {}}</call>"#;
    means(&format, &format!("It is 7.</think>{call}"), "", "It is 7.", &[("ring", json!({}))]);
}

#[test]
fn reasoning_that_the_template_cuts_off_in_earlier_turns() {
    let said = "{{ m.content if loop.last else (m.content or '').split('</think>')[-1] }}";
    let format = template(&format!("{said}{OBJECTS}"), END, "");
    means(&format, "<think>It is 7.</think>Seven.", "Seven.", "It is 7.", &[]);
    means(&format, "Seven.", "Seven.", "", &[]);
}

#[test]
fn marks_around_content_after_reasoning() {
    let said = "{% if m.reasoning_content %}<out>{{ m.content }}</out>{% else %}{{ m.content or '' }}{% endif %}";
    let format = template(&format!("{THINKS}{said}{OBJECTS}"), END, "");
    means(&format, "<think>It is 7.</think><out>Seven.</out>", "Seven.", "It is 7.", &[]);
    means(&format, "Seven.", "Seven.", "", &[]);
}

#[test]
fn a_turn_with_calls_that_ends_otherwise() {
    let calls = format!("{{% if m.tool_calls %}}<calls>{OBJECTS}</calls><|eom|>{{% else %}}<|end|>{{% endif %}}");
    let format = template(&format!("{SAYS}{calls}"), "", "");
    let call = r#"<call>{"name": "ring", "arguments": {"n": 2}}</call>"#;
    means(&format, &format!("<calls>{call}</calls>"), "", "", &[("ring", json!({"n": 2}))]);
}

#[test]
fn dicts_as_python_prints_them() {
    let calls = "{% for c in m.tool_calls %}<call>\
        {{ {'name': c.function.name, 'arguments': c.function.arguments} }}</call>{% endfor %}";
    let format = template(&format!("{SAYS}{calls}"), END, "");
    assert!(format.analysis().capabilities.object_arguments);
    let meant = json!({"n": ["it's", true, null], "of": {"a": "b\n"}});
    let call = "<call>{'name': 'ring', 'arguments': {'n': [\"it's\", True, None], 'of': {'a': 'b\\n'}}}</call>";
    means(&format, call, "", "", &[("ring", meant.clone())]);
    // As models write it beside.
    let json = r#"<call>{"name": "ring", "arguments": {"n": 2}}</call>"#;
    means(&format, json, "", "", &[("ring", json!({"n": 2}))]);
    let arguments = "{% if c.function.arguments is mapping %}{{ c.function.arguments }}{% endif %}";
    let calls =
        format!("{{% for c in m.tool_calls %}}<call>{{{{ c.function.name }}}} {arguments}</call>{{% endfor %}}");
    let format = template(&format!("{SAYS}{calls}"), END, "");
    let call = "<call>ring {'n': [\"it's\", True, None], 'of': {'a': 'b\\n'}}</call>";
    means(&format, call, "", "", &[("ring", meant)]);
}

#[test]
fn texts_in_quotes_between_tags_and_on_lines() {
    for (line, each, call) in [
        ("", "<a:{{ k }}>{{ v | tojson }}</a>", r#"<call>ring<a:n>"it's </a>"</a><a:m>[2]</a></call>"#),
        ("\n", "{{ k }}: {{ v | tojson }}{{ '\\n' }}", "<call>ring\nn: \"it's </a>\"\nm: [2]\n</call>"),
    ] {
        let items = "{% for k, v in c.function.arguments.items() %}";
        let name = format!("<call>{{{{ c.function.name ~ {line:?} }}}}");
        let calls = format!("{{% for c in m.tool_calls %}}{name}{items}{each}{{% endfor %}}</call>{{% endfor %}}");
        let format = template(&format!("{SAYS}{calls}"), END, "");
        means(&format, call, "", "", &[("ring", json!({"n": "it's </a>", "m": [2]}))]);
    }
}

#[test]
fn an_id_beside_the_name_in_the_object_of_the_function() {
    let calls = "{% for c in m.tool_calls %}<call>{\"function\": {\"name\": \"{{ c.function.name }}\", \"id\": \
        \"{{ c.id }}\", \"arguments\": {{ c.function.arguments | tojson }}}}</call>{% endfor %}";
    let format = template(&format!("{SAYS}{calls}"), END, "");
    let call = r#"<call>{"function": {"name": "ring", "id": "a1", "arguments": {"n": 2}}}</call>"#;
    means(&format, call, "", "", &[("ring", json!({"n": 2}))]);
    assert_eq!(read(&format, call).tool_calls[0].id, "a1");
}

#[test]
fn keys_apart_from_the_sign_after_them() {
    for joint in [" = ", ": "] {
        let calls = format!(
            "{{% for c in m.tool_calls %}}<call>{{{{ c.function.name }}}}({{% for k, v in c.function.arguments.items() \
             %}}{{{{ k }}}}{joint}{{{{ v | tojson }}}}{{% if not loop.last %}}, {{% endif %}}{{% endfor %}})</call>\
             {{% endfor %}}"
        );
        let format = template(&format!("{SAYS}{calls}"), END, "");
        let call = format!(r#"<call>ring(n{joint}"a \"b\"", m{joint}[2])</call>"#);
        means(&format, &call, "", "", &[("ring", json!({"n": "a \"b\"", "m": [2]}))]);
    }
}

#[test]
fn a_sign_before_the_name_where_a_mark_begins_content() {
    let calls = "{% for c in m.tool_calls %}@{{ c.function.name }}<|says|>{{ c.function.arguments | tojson }}\
        {% endfor %}{% if not m.tool_calls %}<|says|>{{ m.content }}{% endif %}";
    // Its check tries a name that there is not, which must be refused.
    let format = template(&format!("{}{calls}", THINKS.replace("think>", "@think>").replace("</@", "<@/")), END, "");
    means(&format, "@ring<|says|>{\"n\": 2}", "", "", &[("ring", json!({"n": 2}))]);
    means(&format, "<@think>Well.<@/think><|says|>Seven.", "Seven.", "Well.", &[]);
    means(&format, "<|says|>Seven @ 2.", "Seven @ 2.", "", &[]);
}

#[test]
fn a_sign_and_a_name_on_the_line_of_the_header() {
    let template = "{%- if tools -%}{{ tools | tojson }}{%- endif -%}{%- for m in messages -%}<|{{ m.role }}\
        {%- if m.tool_calls -%}{%- set f = m.tool_calls[0].function -%}{{ ' @' ~ f.name ~ '\n' }}\
        {{- f.arguments | tojson }}{%- else -%}{{ '\n' ~ m.content }}{%- endif -%}<|end|>{{ '\n' }}{%- endfor -%}\
        {%- if add_generation_prompt -%}<|assistant{%- endif -%}";
    // Its check tries a name that there is not, which must be refused.
    let format = ChatFormat::new(ChatTemplate::new(template, "", "").unwrap()).unwrap();
    assert_eq!(format.analysis().degraded, None);
    assert_eq!(format.analysis().dialect.content.start, "\n");
    means(&format, " @ring\n{\"n\": 2}", "", "", &[("ring", json!({"n": 2}))]);
    means(&format, "\nSeven @ring.", "Seven @ring.", "", &[]);
}

#[test]
fn what_the_prompt_ends_with_begins_the_one_call_or_content() {
    let reply = "{% if m.tool_calls %}{% set f = m.tool_calls[0].function %}>>>{{ f.name ~ '\n' }}{{ f.arguments | \
        tojson }}{% else %}>>>{{ 'all\n' ~ m.content }}{% endif %}";
    let format = template(reply, END, ">>>");
    means(&format, "ring\n{\"n\": 2}", "", "", &[("ring", json!({"n": 2}))]);
    means(&format, "all\nSeven.", "Seven.", "", &[]);
}

#[test]
fn arguments_that_the_template_prints() {
    let calls = "{% for c in m.tool_calls %}<call>{{ c.function.name }}\n{{ c.function.arguments }}</call>{% endfor %}";
    let format = template(&format!("{SAYS}{calls}"), END, "");
    assert!(!format.analysis().capabilities.object_arguments);
    means(&format, "<call>ring\n{\"n\": [\"it's\"]}</call>", "", "", &[("ring", json!({"n": ["it's"]}))]);
    // As models write it beside.
    means(&format, "<call>\nring\n{\"n\": 2}\n</call>", "", "", &[("ring", json!({"n": 2}))]);
}

#[test]
fn json_in_elements() {
    let calls = "{% for c in m.tool_calls %}<call name=\"{{ c.function.name }}\">{% for k, v in c.function.arguments\
        .items() %}<{{ k }}>{{ v | tojson }}</{{ k }}>\n{% endfor %}</call>{% endfor %}";
    let format = template(&format!("{SAYS}{calls}"), END, "");
    let call = "<call name=\"ring\"><n>\"a</n>\"</n>\n<m>[2]</m>\n</call>";
    means(&format, call, "", "", &[("ring", json!({"n": "a</n>", "m": [2]}))]);
}

#[test]
fn arguments_before_the_name() {
    let call = "<call>{\"input\": {{ c.function.arguments | tojson }}, \"tool\": \"{{ c.function.name }}\"}</call>";
    let format = template(&format!("{SAYS}{{% for c in m.tool_calls %}}{call}{{% endfor %}}"), END, "");
    let reply = r#"<call>{"input": {"n": 2}, "tool": "ring_twice"}</call>"#;
    means(&format, reply, "", "", &[("ring_twice", json!({"n": 2}))]);
}

#[test]
fn a_mark_between_calls() {
    let calls = "{% for c in m.tool_calls %}<call>{{ c.function | tojson }}</call>\
                 {% if not loop.last %}<|next|>{% endif %}{% endfor %}";
    let format = template(&format!("{SAYS}{calls}"), END, "");
    let call = r#"<call>{"name": "ring", "arguments": {}}</call>"#;
    means(&format, call, "", "", &[("ring", json!({}))]);
    means(&format, &format!("{call}<|next|>{call}"), "", "", &[("ring", json!({})), ("ring", json!({}))]);
}

#[test]
fn reasoning_again_and_a_call_without_its_end() {
    let format = template(&format!("{THINKS}{SAYS}{OBJECTS}"), END, "");
    means(&format, "<think>a</think>Seven. <think>b</think>Eight.", "Seven. Eight.", "ab", &[]);
    let call = r#"<call>{"name": "ring", "arguments": {}}"#;
    means(&format, &format!("{call}\n{call}</call>"), "", "", &[("ring", json!({})), ("ring", json!({}))]);
}

#[test]
fn reasoning_is_never_said_where_a_format_has_none() {
    let format = template(&format!("{SAYS}{OBJECTS}"), END, "");
    let messages = [
        json!({"role": "user", "content": "When?"}),
        json!({"role": "assistant", "content": "Hello", "reasoning_content": "I think"}),
    ];
    for (continued, end) in [(ContinuedPart::Content, "<|bot|>Hello"), (ContinuedPart::Reasoning, "<|bot|>")] {
        let (prompt, _) = format.prompt(&messages, None, &PromptOptions::default().continuing(continued)).unwrap();
        assert!(prompt.ends_with(end) && !prompt.contains("I think"), "{prompt}");
    }
}

#[test]
fn what_a_prompt_begins_is_no_content() {
    let text = include_str!("templates/recipients-on-lines.jinja");
    let format = ChatFormat::new(ChatTemplate::new(text, "", "").unwrap()).unwrap();
    for tools in [None, Some(Tools::default()), Some(Tools::new(&[json!({"name": "ring"})]).unwrap())] {
        let mut options = ParserOptions::default();
        options.tools = tools;
        for (reply, content) in [
            ("all\nSeven.", "Seven."),
            (" all\nSeven.", "Seven."),
            ("\nall\nSeven.", "Seven."),
            ("all", ""),
            ("Seven.", "Seven."),
            ("all right", "all right"),
        ] {
            let mut parser = format.parser(&options).unwrap();
            parser.push(reply.as_bytes());
            let (_, message) = parser.finish(false);
            assert_eq!((&message.content[..], message.tool_calls.len()), (content, 0), "{reply:?}: {message:?}");
        }
    }
}

#[test]
fn arguments_that_are_lines() {
    for (key, joint) in [("", ": "), ("", "="), ("- ", ": ")] {
        let value = "{% if v is string %}{{ v }}{% else %}{{ v | tojson }}{% endif %}";
        let lines = format!(
            "{{% for k, v in c.function.arguments.items() %}}{{{{ '{key}' ~ k ~ '{joint}' }}}}{value}\
             {{{{ '\\n' }}}}{{% endfor %}}"
        );
        let calls = format!(
            "{{% for c in m.tool_calls %}}<call>{{{{ c.function.name }}}}{{{{ '\\n' }}}}{lines}</call>{{% endfor %}}"
        );
        let format = template(&format!("{SAYS}{calls}"), END, "");
        assert!(format.analysis().warnings.iter().any(|warning| warning.contains("several lines")));
        let line = |name: &str, value: &str| format!("{key}{name}{joint}{value}\n");
        let call = format!("<call>ring\n{}{}</call>", line("place", "a: b = c"), line("times", "[1, 2]"));
        let arguments = json!({"place": "a: b = c", "times": [1, 2]});
        means(&format, &format!("Now.{call}"), "Now.", "", &[("ring", arguments.clone())]);
        let none = ("ring_twice", json!({}));
        means(&format, &format!("{call}<call>ring_twice\n</call>"), "", "", &[("ring", arguments), none]);
    }
}

#[test]
fn names_apart_from_what_begins_all_calls() {
    for space in ["\\n", " ", "\\n\\n"] {
        let arguments = "{% for k, v in c.function.arguments.items() %}{{ k }}={{ v | tojson }}\
            {% if not loop.last %}, {% endif %}{% endfor %}";
        let calls = format!(
            "{{% for c in m.tool_calls[:1] %}}<act>{{{{ '{space}' ~ c.function.name }}}}({arguments})</act>\
             {{% endfor %}}"
        );
        let format = template(&format!("{SAYS}{calls}"), END, "");
        let call = format!("<act>{}ring(n=\"x\")</act>", space.replace("\\n", "\n"));
        means(&format, &call, "", "", &[("ring", json!({"n": "x"}))]);
    }
}

#[test]
fn reasoning_that_one_of_many_literals_cuts_off() {
    let marker = |number| format!(r#"{{{{ "\"<m{number}>" if m.none_{number} }}}}"#);
    let markers: String = (0..40).map(marker).collect();
    let cut = "{% set said = (m.content or '').split('</think>')[-1] %}{{ said }}";
    let format = template(&format!("{markers}{cut}{OBJECTS}"), END, "");
    means(&format, "<think>It is 7.</think>Seven.", "Seven.", "It is 7.", &[]);
}

#[test]
fn code_blocks_after_a_word() {
    let calls = "{% for c in m.tool_calls %}{{ '\\nAction:\\n```tool\\n' }}{{ c.function | tojson }}\
        {{ '\\n```' }}{% endfor %}";
    let format = template(&format!("{SAYS}{calls}"), END, "");
    let call = "\nAction:\n```tool\n{\"name\": \"ring\", \"arguments\": {}}\n```";
    means(&format, call, "", "", &[("ring", json!({}))]);
    means(&format, &format!("Now.{call}"), "Now.", "", &[("ring", json!({}))]);
}

#[test]
fn markers_whose_words_close_nothing() {
    let call = "{% for c in m.tool_calls %}<call_0>{{ c.function | tojson }}<call_1>{% endfor %}";
    let end = "{% if m.tool_calls %}<|eom|>{% else %}<|end|>{% endif %}";
    for (calls, end, sections) in [(call.to_owned(), END, false), (format!("<calls_0>{call}<calls_1>"), end, true)] {
        let calls = format!("{{% if m.tool_calls %}}{calls}{{% endif %}}");
        let format = template(&format!("{SAYS}{calls}"), end, "");
        let one = r#"<call_0>{"name": "ring", "arguments": {}}<call_1>"#;
        let one = if sections { format!("<calls_0>{one}<calls_1>") } else { one.to_owned() };
        means(&format, &format!("Now.{one}"), "Now.", "", &[("ring", json!({}))]);
    }
}

#[test]
fn calls_without_arguments_and_with_other_keys_are_calls() {
    let nested = OBJECTS.replace("c.function | tojson", "{'type': 'function', 'function': c.function} | tojson");
    let list = "{% if m.tool_calls %}<call>[{% for c in m.tool_calls %}{{ c.function | tojson }}\
        {{ ', ' if not loop.last }}{% endfor %}]</call>{% endif %}";
    for (calls, around) in [
        (OBJECTS, ["<call>", "</call>"]),
        (&nested, ["<call>{\"type\": \"function\", \"function\": ", "}</call>"]),
        (list, ["<call>[", "]</call>"]),
    ] {
        let format = template(&format!("{SAYS}{calls}"), END, "");
        for (object, arguments) in [
            (r#"{"name": "ring", "arguments": null}"#, json!({})),
            (r#"{"name": "ring", "arguments": {}}"#, json!({})),
            (r#"{"name": "ring", "arguments": ""}"#, json!({})),
            (r#"{"name": "ring"}"#, json!({})),
            (r#"{ "name" : "ring" }"#, json!({})),
            (r#"{"name": "ring", "arguments": {"n": 2}, "id": "a1"}"#, json!({"n": 2})),
            (r#"{"name": "ring", "why": {"name": "}"}, "arguments": {"n": 2}}"#, json!({"n": 2})),
            (r#"{"id": 7, "of": ["name", "\"name\": "], "name": "ring", "arguments": {"n": 2}}"#, json!({"n": 2})),
            (r#"{"index": 0, "name": "ring", "arguments": null, "more": [1, {}]}"#, json!({})),
        ] {
            let [before, after] = around;
            let reply = format!("Now.{before}{object}{after}");
            means(&format, &reply, "Now.", "", &[("ring", arguments)]);
            assert_eq!(read(&format, &reply).warnings, Vec::<String>::new(), "{reply}");
        }
        // Arguments under another key are not taken for none.
        let [before, after] = around;
        let other = read(&format, &format!("{before}{{\"name\": \"ring\", \"args\": {{\"n\": 2}}}}{after}"));
        assert!(other.tool_calls.is_empty() && !other.warnings.is_empty(), "{other:?}");
    }
}
