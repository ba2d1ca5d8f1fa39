//! The check after an analysis: on the real templates where their folder is there, and how long both take.

use chat_format::{Analysis, ChatFormat, ChatTemplate};
use std::time::{Duration, Instant};

fn made(text: &str) -> (ChatFormat, Duration) {
    let template = ChatTemplate::new(text, "<s>", "</s>").unwrap();
    let before = Instant::now();
    let format = ChatFormat::new(template).unwrap();
    (format, before.elapsed())
}

#[test]
fn real_templates_are_not_degraded() {
    let Some(templates) = crate::support::templates() else { return };
    let mut wrong = Vec::new();
    let mut times = Vec::new();
    for (name, text) in templates {
        let analysed = Instant::now();
        Analysis::from_template(&ChatTemplate::new(&text[..], "<s>", "</s>").unwrap()).unwrap();
        let analysed = analysed.elapsed();
        let (_, all) = made(&text);
        times.push((all, analysed, name.clone()));
        for other in [("", ""), ("<s>", "</s>")] {
            let format = ChatFormat::new(ChatTemplate::new(&text[..], other.0, other.1).unwrap()).unwrap();
            if let Some(degraded) = &format.analysis().degraded {
                wrong.push(format!("{name} {other:?}: {degraded}"));
            }
        }
    }
    times.sort();
    for (all, analysed, name) in times.iter().rev().take(8) {
        println!("{name}: {all:?}, for the analysis alone {analysed:?}");
    }
    assert!(wrong.is_empty(), "{} degraded:\n{}", wrong.len(), wrong.join("\n"));
}
