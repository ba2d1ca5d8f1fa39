//! Quick figures: `cargo test --release -- --ignored --nocapture speed`.

use super::{Case, after, qwen, read};
use crate::dialect::Arguments;
use crate::values::{ArgsState, JsonOut, Nobody, Reader, Step};
use serde_json::json;
use std::hint::black_box;
use std::time::Instant;
use trie_schema::Values;

/// The nanoseconds of the fastest of several runs.
fn best<T>(run: impl Fn() -> T) -> f64 {
    let timed = |_| {
        let begun = Instant::now();
        black_box(run());
        begun.elapsed().as_secs_f64() * 1e9
    };
    (0..12).map(timed).fold(f64::INFINITY, f64::min)
}

/// Reads at once what can be.
fn run(reader: &Reader, case: &Case, text: &[u8]) -> String {
    let mut out = JsonOut::new(&case.values);
    let (mut state, mut at) = (reader.begin(&case.values, case.id), 0);
    while at < text.len() {
        at += reader.run(&mut state, &text[at..], &mut out);
        reader.step(&case.values, &mut state, text[at], &mut out);
        at += 1;
    }
    out.text().to_owned()
}

#[test]
#[ignore = "figures, nothing to fail"]
fn speed() {
    let schema = json!({"type": "object", "properties": {"code": {"type": "string"}, "n": {"type": "integer"}}});
    let body = "some text of a program, as long as it is; ".repeat(20_000);
    let json = json!({"code": body, "n": 1}).to_string();
    let tagged = format!("<parameter=code>\n{body}\n</parameter>\n</function>");
    for (name, case, text) in [
        ("json", Case::new(&Arguments::Json, "", &schema), &json),
        ("tagged", Case::new(&qwen(), "</function>", &schema), &tagged),
    ] {
        for (kind, reader) in [("lenient", &case.lenient), ("strict", &case.strict)] {
            if kind == "lenient" {
                let ns = best(|| run(reader, &case, text.as_bytes())) / text.len() as f64;
                println!("{name} in runs: {ns:.1} ns a byte, {:.0} MB/s", 1e3 / ns);
            }
            let ns = best(|| read(reader, &case.values, case.id, text.as_bytes())) / text.len() as f64;
            println!("{name} {kind}: {ns:.1} ns a byte, {:.0} MB/s", 1e3 / ns);
        }
    }
    for (name, case, text) in [
        ("json", Case::new(&Arguments::Json, "", &schema), "{\"code\": \"abc"),
        ("tagged", Case::new(&qwen(), "</function>", &schema), "<parameter=code>\nabc"),
        ("number", Case::new(&qwen(), "</function>", &schema), "<parameter=n>\n12"),
    ] {
        let state = after(&case.strict, &case.values, case.id, text.as_bytes()).unwrap();
        let ends = || {
            let step = |byte: u8| case.strict.step(&case.values, &mut state.clone(), byte, &mut Nobody) != Step::Dead;
            (0..=254).filter(|byte| step(*byte)).count()
        };
        println!("{name}: {:.1} ns for each byte that may come or not", best(ends) / 255.0);
        let clones = || (0..10_000).for_each(|_| drop(black_box(state.clone())));
        println!("{name}: a state is {} bytes, a clone {:.1} ns", size_of_val(&state), best(clones) / 1e4);
    }
    let tools: Vec<_> = (0..300)
        .map(|n| {
            json!({"type": "object", "required": ["path"], "properties": {
                "path": {"type": "string", "description": "where"}, format!("limit{n}"): {"type": "integer",
                    "minimum": n},
                "mode": {"type": "string", "enum": ["a", "b", format!("c{n}")]}, "flag": {"type": "boolean"},
                "tags": {"type": "array", "items": {"type": "string"}}, "when": {"type": "string",
                    "format": "date-time"},
                "filter": {"anyOf": [{"type": "null"}, {"type": "object", "properties": {"k": {"type": "string"}}}]},
            }})
        })
        .collect();
    let begun = Instant::now();
    let mut values = Values::new(None);
    for tool in &tools {
        assert!(values.add(tool).is_ok());
    }
    println!("300 tools: {:.2} ms", begun.elapsed().as_secs_f64() * 1e3);
}

/// A state after a piece of text, if it may come.
fn takes(case: &Case, state: &ArgsState, piece: &[u8]) -> bool {
    let mut state = state.clone();
    piece.iter().all(|&byte| case.strict.step(&case.values, &mut state, byte, &mut Nobody) == Step::Inside)
}

#[test]
#[ignore = "figures, nothing to fail"]
fn speed_of_long_enums() {
    for count in [1_000, 10_000, 100_000] {
        let texts: Vec<String> = (0..count).map(|n: u32| format!("{:x}-{n}", n.wrapping_mul(2_654_435_761))).collect();
        let pieces: Vec<&[u8]> =
            texts.iter().step_by(count as usize / 1000).map(|text| &text.as_bytes()[..3.min(text.len())]).collect();
        let schema = json!({"type": "object", "properties": {"a": {"type": "string", "enum": texts}}});
        let begun = Instant::now();
        let case = Case::new(&qwen(), "</function>", &schema);
        let made = begun.elapsed().as_secs_f64() * 1e3;
        let state = after(&case.strict, &case.values, case.id, b"<parameter=a>\n").unwrap();
        let bytes = best(|| (0..=254).filter(|byte| takes(&case, &state, &[*byte])).count());
        let walk = best(|| pieces.iter().filter(|piece| takes(&case, &state, piece)).count());
        println!("{count} values: {made:.1} ms to make, {:.0} ns a byte, {:.0} ns a piece", bytes / 255.0, walk / 1e3);
    }
}
