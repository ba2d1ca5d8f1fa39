//! Templates that are no chat templates, or mean harm: analysis ends soon, with an analysis or an error.

use chat_format::{Analysis, ChatTemplate, TemplateError};
use std::time::Instant;

fn analysis(text: &str) -> Result<Analysis, TemplateError> {
    Analysis::from_template(&ChatTemplate::new(text, "<s>", "</s>").unwrap())
}

#[test]
fn templates_that_print_nothing_or_always_the_same() {
    for text in ["", "Hello", "{# nothing #}", "{% for m in messages %}{% endfor %}", "[]<>{}"] {
        let found = analysis(text).unwrap();
        assert!(found.dialect.calls.is_none(), "{text}");
        assert_eq!(found.names().reasoning, "none", "{text}");
    }
}

#[test]
fn templates_that_refuse_everything() {
    let error = analysis("{{ raise_exception('never') }}").unwrap_err();
    assert_eq!(error, TemplateError::Refused { line: 1, message: "never".into() });
}

#[test]
fn templates_that_compute_for_long_or_print_megabytes() {
    let before = Instant::now();
    let loops = "{% for i in range(99999) %}{% for j in range(99) %}{% endfor %}{% endfor %}";
    assert!(matches!(analysis(loops), Err(TemplateError::Limit { .. })));
    let nearly = "{% for i in range(99999) %}{{ '' }}{% endfor %}{% for m in messages %}{{ m.content }}{% endfor %}";
    let found = analysis(nearly).unwrap();
    assert!(found.warnings.iter().any(|warning| warning.contains("so much")), "{:?}", found.warnings);
    let prints = "{% for m in messages %}{{ m.content * 100000 }}{% endfor %}";
    assert!(analysis(prints).is_ok_and(|found| found.dialect.calls.is_none()));
    let deep = "{% macro f(n) %}{{ f(n) }}{% endmacro %}{{ f(1) }}";
    assert!(analysis(deep).is_err());
    assert!(before.elapsed().as_secs() < 60, "{:?}", before.elapsed());
}

#[test]
fn templates_that_hide_or_change_the_needles() {
    // Everything that a needle could be is in the template.
    let stems: String =
        (b'a'..=b'z').flat_map(|a| (b'a'..=b'z').map(move |b| format!("q{}x{}", a as char, b as char))).collect();
    for text in [
        format!("{{# {stems} #}}{{% for m in messages %}}{{{{ m.content }}}}{{% endfor %}}"),
        "{% for m in messages %}{{ m.content|reverse }}{{ m.content|upper }}{% endfor %}".to_owned(),
        "{% for m in messages %}{{ m }}{% endfor %}".to_owned(),
        "{{ messages }}{{ tools }}".to_owned(),
        "{% for m in messages %}{{ m|tojson }}{% endfor %}".to_owned(),
    ] {
        let found = analysis(&text).unwrap();
        let again = analysis(&text).unwrap();
        assert_eq!(found, again);
        let shown = found.to_json().to_string();
        assert!(!shown.contains("asks") && !shown.contains("says") && !shown.contains("because"), "{shown}");
    }
}

#[test]
fn changed_lists_are_told() {
    let text = "{% for m in messages %}{{ m.content }}{% set l = [] %}{% set _ = l.append(1) %}{% endfor %}";
    let found = analysis(text).unwrap();
    assert!(found.warnings.iter().any(|warning| warning.contains("changes lists")), "{:?}", found.warnings);
    let template = ChatTemplate::new(text, "", "").unwrap();
    let messages = chat_format::Data::from(&serde_json::json!([{"role": "user", "content": "a"}]));
    let rendered = template.render(&messages, None, &chat_format::RenderOptions::default());
    assert!(matches!(rendered, Err(TemplateError::Forbidden { .. })), "rendering forbids it still: {rendered:?}");
}

/// What templates of strangers may do, each beside a loop over the messages that shows them.
const HOSTILE: [&str; 12] = [
    "{% for i in range(9999999) %}{% endfor %}",
    "{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}",
    "{{ raise_exception('always') }}",
    "",
    "{% for m in messages %}{{ m.content }}{% for i in range(2000) %}{{ 'x' * 1000 }}{% endfor %}{% endfor %}",
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}{{ m.content }}{% for c in m.tool_calls %}\
     {{ c|tojson }}{{ c|tojson }}{% endfor %}{% endfor %}",
    "{{ strftime_now('%f') }}{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{{ \
    strftime_now('%H%M%S%f') }}",
    "{% for m in messages[:1] %}<{{ m.role }}>{{ m.content }}{% endfor %}",
    "{% for m in messages %}{% if m.role == 'assistant' %}{{ raise_exception('no') }}{% endif %}{{ m.content }}{% \
    endfor %}",
    "{% for m in messages|reverse %}<{{ m.role }}>{{ m.content }}{% for c in m.tool_calls %}<c>{{ c.function|tojson \
    }}</c>\
     {% endfor %}{% endfor %}",
    "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls %}{{ c.function.name[:3] }}{{ \
    c.function.arguments }}\
     {% endfor %}{% endfor %}",
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% for c in m.tool_calls %}<call>{\"name\": \"{{ \
    c.function.name\
     |replace('_', '-') }}\", \"arguments\": {{ c.function.arguments|tojson }}}</call>{% endfor %}{% endfor %}",
];

#[test]
fn formats_of_hostile_templates_end_soon_and_are_always_the_same() {
    for text in HOSTILE {
        let made = || chat_format::ChatFormat::new(ChatTemplate::new(text, "<s>", "</s>").unwrap());
        let before = Instant::now();
        let first = made().map(|format| format.analysis().clone());
        let taken = before.elapsed();
        assert!(taken.as_secs() < 5, "{text}: {taken:?}");
        let times = if taken.as_millis() < 200 { 20 } else { 2 };
        for _ in 1..times {
            let again = made().map(|format| format.analysis().clone());
            match (&first, again) {
                (Ok(one), Ok(other)) => assert_eq!(*one, other, "{text}"),
                (Err(_), Err(_)) => {}
                (one, other) => panic!("{text}: {one:?}, {other:?}"),
            }
        }
        if let Ok(found) = &first {
            println!("{taken:?} {:?} {:?} {:.60}", found.degraded, found.warnings, text);
        }
    }
}

#[test]
fn calls_that_cannot_be_read_back_are_told() {
    let degraded = |text: &str| {
        let template = ChatTemplate::new(text, "<s>", "</s>").unwrap();
        chat_format::ChatFormat::new(template).unwrap().analysis().degraded.clone()
    };
    for text in [HOSTILE[10], HOSTILE[11]] {
        let told = degraded(text).expect("its calls cannot be read back");
        assert!(told.starts_with("a call"), "{told}");
    }
    let good = HOSTILE[11].replace("|replace('_', '-')", "");
    assert_eq!(degraded(&good), None);
}
