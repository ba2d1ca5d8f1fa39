//! Templates that want to end the process, or to use all of a machine. Python measures the same file's memory.

use chat_template::{ChatTemplate, Data, RenderOptions, TemplateError};
use serde_json::{Value, json};

const VECTORS: &str = include_str!("vectors/hostile_templates.json");

fn render(template: &str) -> Result<String, TemplateError> {
    let messages = Data::from(&json!([{"role": "user", "content": "x"}]));
    ChatTemplate::new(template, "<s>", "</s>")?.render(&messages, None, &RenderOptions::default())
}

/// The share of cases that tests try.
fn budget() -> Option<f64> {
    std::env::var("TOKENTRIE_TEST_BUDGET").ok()?.parse().ok()
}

#[test]
fn every_hostile_template_ends_in_a_typed_error() {
    let cases: Vec<Value> = serde_json::from_str(VECTORS).unwrap();
    assert!(cases.len() >= 60);
    // On a push a third of them, another one in each process: Python's tests render all.
    let every = if budget().is_some_and(|share| share >= 1.0) { 1 } else { 3 };
    for case in cases.iter().skip(std::process::id() as usize % every).step_by(every) {
        let parts = case["parts"].as_array().unwrap().iter();
        let template: String =
            parts.map(|part| part[0].as_str().unwrap().repeat(part[1].as_u64().unwrap() as usize)).collect();
        let rendered = render(&template);
        let may_render = case["may_render"].as_bool().unwrap_or_default();
        assert!(rendered.is_err() || may_render, "{}: {:.80}", case["name"], rendered.unwrap());
        if let Err(error) = rendered {
            assert!(!matches!(error, TemplateError::Thread { .. }), "{}: {error}", case["name"]);
        }
    }
}

#[test]
fn a_small_stack_is_enough_for_the_caller() {
    let deep = format!("{{{{ {}1{}|length }}}}", "[".repeat(110), "]".repeat(110));
    let small = std::thread::Builder::new().stack_size(256 << 10);
    let rendered = small.spawn(move || render(&deep)).unwrap().join().unwrap();
    assert_eq!(rendered.unwrap(), "1");
}

#[test]
fn macros_as_deep_as_python_has_them_are_fine() {
    let template = "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{% endif %}x{% endmacro %}{{ f(200) }}";
    assert_eq!(render(template).unwrap().len(), 201);
}

#[test]
fn long_conversations_are_no_attack() {
    let message = json!({"role": "user", "content": "word ".repeat(2000)});
    let messages = Data::from(&Value::Array(vec![message; 500]));
    let template = "{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}\
        {{ '<|' ~ m.role ~ '|>' + m.content | trim + eos_token }}{% endfor %}";
    let template = ChatTemplate::new(template, "", "</s>").unwrap();
    let text = template.render(&messages, None, &RenderOptions::default()).unwrap();
    assert!(text.len() > 4_900_000);
}

#[test]
fn data_is_bounded_too() {
    let mut deep = Data::None;
    for _ in 0..300 {
        deep = Data::List(vec![deep]);
    }
    let template = ChatTemplate::new("{{ messages }}", "", "").unwrap();
    let error = template.render(&deep, None, &RenderOptions::default()).unwrap_err();
    assert!(matches!(error, TemplateError::Limit { .. }), "{error}");
    let large = Data::List(vec![Data::Text("x".repeat(17 << 20))]);
    let error = template.render(&large, None, &RenderOptions::default()).unwrap_err();
    assert!(matches!(error, TemplateError::Limit { .. }), "{error}");
}

#[test]
fn many_threads_render_one_template() {
    let template = ChatTemplate::new("{% for i in range(999) %}{{ i }}{% endfor %}", "", "").unwrap();
    let alone = template.render(&[].into(), None, &RenderOptions::default()).unwrap();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| template.render(&[].into(), None, &RenderOptions::default()).unwrap()))
            .collect();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), alone);
        }
    });
}
