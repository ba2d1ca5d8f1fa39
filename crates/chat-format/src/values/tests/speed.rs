//! Quick figures: `cargo test --release -- --ignored --nocapture speed`.

use super::{Case, qwen, read};
use crate::dialect::Arguments;
use crate::values::Shapes;
use serde_json::json;
use std::time::Instant;

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
            let begun = Instant::now();
            std::hint::black_box(read(reader, &case.shapes, case.shape, text.as_bytes()));
            let ns = begun.elapsed().as_secs_f64() * 1e9 / text.len() as f64;
            println!("{name} {kind}: {ns:.1} ns a byte, {:.0} MB/s", 1e3 / ns);
        }
    }
    let tools: Vec<_> = (0..300)
        .map(|n| {
            json!({"type": "object", "required": ["path"], "properties": {
                "path": {"type": "string", "description": "where"}, format!("limit{n}"): {"type": "integer", "minimum": n},
                "mode": {"type": "string", "enum": ["a", "b", format!("c{n}")]}, "flag": {"type": "boolean"},
                "tags": {"type": "array", "items": {"type": "string"}}, "when": {"type": "string", "format": "date-time"},
                "filter": {"anyOf": [{"type": "null"}, {"type": "object", "properties": {"k": {"type": "string"}}}]},
            }})
        })
        .collect();
    let begun = Instant::now();
    let mut shapes = Shapes::new();
    tools.iter().for_each(|tool| assert!(shapes.add(tool).is_ok()));
    println!("300 tools: {:.2} ms", begun.elapsed().as_secs_f64() * 1e3);
}
