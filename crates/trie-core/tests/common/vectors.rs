//! The language-neutral cases of `tests/vectors/`.

use serde_json::Value;

/// Those of a file that are of a kind, at least one.
pub fn cases_of(file: &str, kind: &str) -> Vec<Value> {
    let path = format!("{}/../../tests/vectors/{file}.json", env!("CARGO_MANIFEST_DIR"));
    let all: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let cases: Vec<Value> =
        all["cases"].as_array().unwrap().iter().filter(|case| case["kind"] == kind).cloned().collect();
    assert!(!cases.is_empty(), "no case of kind {kind}");
    cases
}

pub fn tokens(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|token| token.as_u64().unwrap() as u32).collect()
}
