//! Templates that are no chat templates, or mean harm: analysis ends soon, with an analysis or an error.

use chat_format::{Analysis, ChatTemplate, TemplateError};
use std::time::Instant;

fn analysis(text: &str) -> Result<Analysis, TemplateError> {
    Analysis::of(&ChatTemplate::new(text, "<s>", "</s>").unwrap())
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
    assert!(before.elapsed().as_secs() < 10);
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
