//! Templates that render no calls: what their prompt shows the model, or what the vocabulary has, says how one is
//! written.

use chat_format::{ChatFormat, ChatTemplate, Message};
use serde_json::{Value, json};

/// A template that shows tools, says something of calls, and renders none.
fn template(told: &str) -> String {
    format!(
        "{{%- if tools -%}}<|system|>{{{{ '# Tools\\n' }}}}{{{{ tools | tojson }}}}{{{{ '\\n' }}}}{{% raw %}}{told}\
         {{% endraw %}}<|end|>{{%- endif -%}}\
         {{%- for m in messages -%}}<|{{{{ m.role }}}}|>{{{{ m.content or '' }}}}<|end|>{{%- endfor -%}}\
         {{%- if add_generation_prompt -%}}<|assistant|>{{%- endif -%}}"
    )
}

fn format(told: &str, control: &[&str]) -> ChatFormat {
    let template = ChatTemplate::new(template(told), "", "").unwrap();
    ChatFormat::with_control_tokens(template, control.iter().map(|&text| text.to_owned()).collect()).unwrap()
}

fn read(format: &ChatFormat, reply: &str) -> Message {
    super::read_among(format, ["ring", "ring-twice"], reply)
}

/// What prompts say, as those of models in use do; a call of `ring` as it is meant, and the marker it begins with.
const TOLD: [(&str, &str, &str, &str); 21] = [
    (
        "an object in tags",
        "Return a json object within <tool_call></tool_call> XML tags:\n<tool_call>\n\
         {\"name\": <function-name>, \"arguments\": <args-json-object>}\n</tool_call>. If a tool does not exist, say \
         so.",
        "<tool_call>\n{\"name\": \"ring\", \"arguments\": {\"place\": \"here\", \"times\": 2}}\n</tool_call>",
        "<tool_call>",
    ),
    (
        "an object alone",
        "Respond in the format {\"name\": function name, \"parameters\": dictionary of argument name and its value}.\
         Do not use variables.",
        "{\"name\": \"ring\", \"parameters\": {\"place\": \"here\", \"times\": 2}}",
        "",
    ),
    (
        "objects in a list",
        "Return all calls as a list of JSON objects within <tool_calls></tool_calls> XML tags:\n\
         \x20       <tool_calls>[\n            {\"name\": <function-name-1>, \"arguments\": <args-dict-1>},\n\
         \x20           {\"name\": <function-name-2>, \"arguments\": <args-dict-2>},\n            ...\n        \
         ]</tool_calls>\n",
        "<tool_calls>[{\"name\": \"ring\", \"arguments\": {\"place\": \"here\", \"times\": 2}}]</tool_calls>",
        "<tool_calls>",
    ),
    (
        "an object in an object, with an id, arguments as text",
        "Call so:\n[CALL]{\"id\": \"THE_ID\", \"type\": \"function\", \"function\": {\"name\": \"NAME\", \
         \"arguments\": \
         \"{\\\"key\\\": 1}\"}}[/CALL]\n",
        "[CALL]{\"id\": \"a1\", \"type\": \"function\", \"function\": {\"name\": \"ring\", \"arguments\": \
         \"{\\\"place\\\": \\\"here\\\", \\\"times\\\": 2}\"}}[/CALL]",
        "[CALL]",
    ),
    (
        "the name as the key",
        "Call so:\n<calls>[{\"tool_name\": {\"key\": \"value\"}}]</calls>\n",
        "<calls>[{\"ring\": {\"place\": \"here\", \"times\": 2}}]</calls>",
        "<calls>",
    ),
    (
        "a name in a tag, then an object",
        "ONLY reply in the following format:\n<{start_tag}={function_name}>{parameters}{end_tag}\nwhere\n\nstart_tag \
         => \
         `<function`\nparameters => a JSON dict\nend_tag => `</function>`\n\nHere is an example,\n\
         <function=example_function_name>{\"example_name\": \"example_value\"}</function>\n\nReminder: start with \
         <function=\n",
        "<function=ring>{\"place\": \"here\", \"times\": 2}</function>",
        "<function=",
    ),
    (
        "markers between id, name and arguments",
        "Enclose each call within <|tool_call:begin|> and <|tool_call:end|> tags: \n<|tool_call:begin|><tool-call-id>\
         <|tool_call:name|><tool-name><|tool_call:args|><args-json-object><|tool_call:end|>\n- The <tool-call-id> \
         must be\n",
        "<|tool_call:begin|>a1b2<|tool_call:name|>ring<|tool_call:args|>{\"place\": \"here\", \"times\": \
         2}<|tool_call:end|>",
        "<|tool_call:begin|>",
    ),
    (
        "a section around calls that nothing ends",
        "Call so:\n<|calls_start|><|call_start|>NAME<|args_start|>{\"key\": 1}<|calls_end|>\n",
        "<|calls_start|><|call_start|>ring<|args_start|>{\"place\": \"here\", \"times\": 2}<|calls_end|>",
        "<|calls_start|>",
    ),
    (
        "a numbered name",
        "Call so:\n<|calls|><|call|>functions.NAME:0<|args|>{\"key\": 1}<|/call|><|/calls|>\n",
        "<|calls|><|call|>functions.ring:0<|args|>{\"place\": \"here\", \"times\": 2}<|/call|><|/calls|>",
        "<|calls|>",
    ),
    (
        "a name before code",
        "Call so:\n<|call|>function<|sep|>get_weather\n```json\n{\"key\": 1}\n```<|/call|>\n",
        "<|call|>function<|sep|>ring\n```json\n{\"place\": \"here\", \"times\": 2}\n```<|/call|>",
        "<|call|>",
    ),
    (
        "keys and values in tags, words in braces",
        "Output the name and arguments within the following XML format:\n<tool_call>{function-name}\n\
         <arg_key>{arg-key-1}</arg_key>\n<arg_value>{arg-value-1}</arg_value>\n<arg_key>{arg-key-2}</arg_key>\n\
         <arg_value>{arg-value-2}</arg_value>\n...\n</tool_call>",
        "<tool_call>ring\n<arg_key>place</arg_key>\n<arg_value>here</arg_value>\n<arg_key>times</arg_key>\n\
         <arg_value>2</arg_value>\n</tool_call>",
        "<tool_call>",
    ),
    (
        "keys and values in tags, words alone",
        "Return an unescaped XML-like object within '<tool_call>' and '</tool_call>' tags, like here:\n\
         <tool_call>function-name\n<arg_key>argument-key</arg_key>\n<arg_value>value-of-argument-key</arg_value>\n</t\
         ool_call>\n",
        "<tool_call>ring\n<arg_key>place</arg_key>\n<arg_value>here</arg_value>\n<arg_key>times</arg_key>\n\
         <arg_value>2</arg_value>\n</tool_call>",
        "<tool_call>",
    ),
    (
        "keys in tags, values on lines",
        "ONLY reply in the following format with NO suffix:\n\n<tool_call>\n<function=example_function_name>\n\
         <parameter=example_parameter_1>\nvalue_1\n</parameter>\n<parameter=example_parameter_2>\nThis is the value \
         for \
         the second parameter\nthat can span\nmultiple lines\n</parameter>\n</function>\n</tool_call>\n\n<IMPORTANT>\n\
         an inner <function=...></function> block must be nested within <tool_call></tool_call> XML tags\n</IMPORTANT>",
        "<tool_call>\n<function=ring>\n<parameter=place>\nhere\n</parameter>\n<parameter=times>\n2\n</parameter>\n\
         </function>\n</tool_call>",
        "<tool_call>",
    ),
    (
        "keys as attributes",
        "use XML format to invoke tools and pass parameters:\n\n<minimax:tool_call>\n<invoke name=\"tool-name-1\">\n\
         <parameter name=\"param-key-1\">param-value-1</parameter>\n<parameter name=\"param-key-2\">param-value-2\
         </parameter>\n...\n</invoke>\n</minimax:tool_call>",
        "<minimax:tool_call>\n<invoke name=\"ring\">\n<parameter name=\"place\">here</parameter>\n\
         <parameter name=\"times\">2</parameter>\n</invoke>\n</minimax:tool_call>",
        "<minimax:tool_call>",
    ),
    (
        "attributes that say the type",
        "by writing a \"<calls>\" block like the following:\n<calls>\n<invoke name=\"$FUNCTION_NAME\">\n\
         <parameter name=\"$PARAMETER_NAME\" string=\"true|false\">$PARAMETER_VALUE</parameter>\n...\n</invoke>\n\
         <invoke name=\"$FUNCTION_NAME2\">\n...\n</invoke>\n</calls>\n\nString parameters should be specified as \
         is.\n\n\
         <calls>\n...\n</calls>\n",
        "<calls>\n<invoke name=\"ring\">\n<parameter name=\"place\" string=\"true\">here</parameter>\n\
         <parameter name=\"times\" string=\"false\">2</parameter>\n</invoke>\n</calls>",
        "<calls>",
    ),
    (
        "one tag on one line",
        "do not include any <function ... </function>.\n- When calling, return an XML object within <function ... \
         </function> using:\n<function name=\"function-name\"><param \
         name=\"param-name\">param-value</param></function>\n\
         - param-value may be multi-line.",
        "<function name=\"ring\"><param name=\"place\">here</param><param name=\"times\">2</param></function>",
        "<function name=\"",
    ),
    (
        "elements named as the keys",
        "Call so:\n<call>\n<name>tool_name</name>\n<key_1>value</key_1>\n</call>\n",
        "<call>\n<name>ring</name>\n<place>here</place>\n<times>2</times>\n</call>",
        "<call>",
    ),
    (
        "Python in a list",
        "Call so:\n[CALLS][get_weather(city='Paris'), get_time(zone='CET')][/CALLS]\n",
        "[CALLS][ring(place='here', times=2)][/CALLS]",
        "[CALLS]",
    ),
    (
        "lines in tags",
        "Call so:\n<call>\nNAME\n- THE_KEY: THE VALUE\n</call>\n",
        "<call>\nring\n- place: here\n- times: 2\n</call>",
        "<call>",
    ),
    (
        "lines in code",
        "Call so:\n```call\nNAME\nTHE_KEY=THE VALUE\n```\n",
        "```call\nring\nplace=here\ntimes=2\n```",
        "```call",
    ),
    (
        "pairs with quotes of their own",
        "Call so:\n<|call>call:NAME{key:<|\"|>value<|\"|>}<call|>\n",
        "<|call>call:ring{place:<|\"|>here<|\"|>,times:2}<call|>",
        "<|call>",
    ),
];

#[test]
fn calls_are_read_as_the_prompt_shows_them() {
    for (what, told, call, begins) in TOLD {
        let format = format(told, &[]);
        let analysis = format.analysis();
        assert_eq!(analysis.degraded, None, "{what}: {:?}", analysis.dialect.calls);
        assert!(analysis.warnings.iter().any(|said| said.contains("renders no calls of tools")), "{what}");
        assert!(!analysis.capabilities.tool_calls && analysis.capabilities.tools, "{what}");
        assert!(
            begins.is_empty() || analysis.triggers[0].trim().starts_with(begins),
            "{what}: {:?}",
            analysis.triggers
        );
        for (reply, content) in [(call.to_owned(), ""), (format!("Seven.{call}"), "Seven.")] {
            // What is marked by nothing is a call at the beginning alone.
            if begins.is_empty() && !content.is_empty() {
                continue;
            }
            let message = read(&format, &reply);
            assert_eq!((&message.content[..], message.tool_calls.len()), (content, 1), "{what}: {message:?}");
            let (name, arguments) = (&message.tool_calls[0].name, &message.tool_calls[0].arguments);
            let arguments: Value = serde_json::from_str(arguments).unwrap();
            assert_eq!((&name[..], arguments), ("ring", json!({"place": "here", "times": 2})), "{what}");
        }
    }
}

#[test]
fn what_was_called_is_written_into_the_text_and_read_back() {
    for (what, told, ..) in TOLD {
        let format = format(told, &[]);
        let call =
            json!({"id": "a1", "function": {"name": "ring", "arguments": "{\"place\": \"here\", \"times\": 2}"}});
        let messages = [
            json!({"role": "user", "content": "When?"}),
            json!({"role": "assistant", "content": "", "tool_calls": [call]}),
            json!({"role": "tool", "content": "done"}),
        ];
        let prompt = format.render(&messages, None, &chat_format::RenderOptions::default()).unwrap();
        let written = prompt.split("<|assistant|>").nth(1).unwrap().split("<|end|>").next().unwrap();
        let message = read(&format, written);
        assert_eq!((&message.content[..], message.tool_calls.len()), ("", 1), "{what}: {written}");
        assert_eq!(message.tool_calls[0].name, "ring", "{what}");
    }
}

#[test]
fn what_shows_no_call_is_none() {
    for told in [
        "",
        "You may call one or more functions to assist with the user query.",
        "Answer with {\"answer\": \"text\", \"sure\": true}, as follows: {\"answer\": \"Seven.\", \"sure\": true}",
        "Write <b>what is important</b> and (only) that.",
        // A marker that is named alone does not say what follows it.
        "respond only with <|tool_call|> followed by a JSON list of tools used.",
        "Results stand in <tool_response></tool_response>.",
        "Results are as follows:\n<result>\nit says: what\n</result>\n<b>\nText\n\nand: more\n</b>",
    ] {
        let format = format(told, &[]);
        assert_eq!(format.analysis().dialect.calls, None, "{told}");
        assert_eq!(format.analysis().warnings, Vec::<String>::new(), "{told}");
    }
}

#[test]
fn a_vocabulary_may_say_it() {
    let tokens = ["<|end|>", "<tool_response>", "</tool_response>", "</tool_call>", "<tool_call>"];
    let of_tokens = format("", &tokens);
    assert!(of_tokens.analysis().warnings[0].contains("a guess"), "{:?}", of_tokens.analysis().warnings);
    let message = read(&of_tokens, "<tool_call>\n{\"name\": \"ring\", \"arguments\": {}}\n</tool_call>");
    assert_eq!((&message.content[..], message.tool_calls.len()), ("", 1));
    // What the prompt shows comes first, and tokens that say nothing say nothing.
    assert_eq!(format(TOLD[1].1, &tokens).analysis(), format(TOLD[1].1, &[]).analysis());
    assert_eq!(format("", &tokens[..3]).analysis().dialect.calls, None);
    let plain =
        ChatTemplate::new("{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}", "", "").unwrap();
    let tokens = tokens.map(str::to_owned).to_vec();
    assert_eq!(ChatFormat::with_control_tokens(plain, tokens).unwrap().analysis().dialect.calls, None);
}

#[test]
fn a_vocabulary_with_markers_of_lists_says_that_calls_are_python() {
    let tokens = ["<|tool_list_start|>", "<|tool_list_end|>", "<|tool_call_start|>", "<|tool_call_end|>"];
    let format = format("", &tokens);
    let call = "<|tool_call_start|>[ring(place='here', times=2)]<|tool_call_end|>";
    let message = read(&format, &format!("Now.{call}"));
    assert_eq!((&message.content[..], message.tool_calls.len()), ("Now.", 1), "{:?}", format.analysis().dialect.calls);
    assert_eq!(
        message.tool_calls[0].arguments,
        r#"{"place": "here", "times": 2}"#.replace(": ", ":").replace(", ", ",")
    );
    let called = json!({"role": "assistant", "content": "", "tool_calls": [
        {"id": "a1", "function": {"name": "ring", "arguments": {"place": "here", "times": 2}}}]});
    let messages = [json!({"role": "user", "content": "When?"}), called];
    assert!(format.render(&messages, None, &chat_format::RenderOptions::default()).unwrap().contains(call));
}

#[test]
fn what_a_template_writes_counts_and_not_what_it_tells() {
    let template = "{% if tools %}{{ tools | tojson }}\n<call>{\"name\": \"x\", \"arguments\": {\"a\": 1}}</call>\n\
        {% endif %}{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% for c in m.tool_calls %}(I ring \
        {{ c.function.name }}: {% for k, v in c.function.arguments.items() %}{{ v }} as {{ k }};{% endfor %})\
        {% endfor %}<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}";
    let format = ChatFormat::new(ChatTemplate::new(template, "", "").unwrap()).unwrap();
    assert!(format.analysis().degraded.is_some(), "{}", format.analysis().to_json());
}

#[test]
fn prompts_of_strangers_cost_little() {
    let long = |piece: &str| piece.repeat(100_000 / piece.len());
    for told in [
        long("{\"a\":"),
        long("{\"name\": x, \"arguments\": {"),
        long("<a>b</a>"),
        long("<call>"),
        long("[f(a='b'), "),
        long("x{a:<q>"),
        long("<tool-call-id>"),
        long("```json\n{\"a\": 1}\n"),
        long("<arg_key>a</arg_key><arg_value>"),
        long("<a>b\nc: d\n"),
    ] {
        let started = std::time::Instant::now();
        let format = format(&told, &[]);
        // A quarter of a second of the processor; quadratic work would take an hour.
        assert!(started.elapsed().as_secs() < 60, "{:.40}: {:?}", told, format.analysis().degraded);
    }
}
