//! The header is what the crate says, and compilers take it.
#![forbid(unsafe_code)]
#![cfg(test)]

use std::path::{Path, PathBuf};
use std::process::Command;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// What cbindgen makes of the crate.
fn made() -> String {
    let folder = &repository().join("crates/tokentrie-c");
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml")).unwrap();
    let bindings = cbindgen::Builder::new().with_crate(folder).with_config(config).generate().unwrap();
    let mut text = Vec::new();
    bindings.write(&mut text);
    plain(&String::from_utf8(text).unwrap())
}

/// Without the names that cbindgen gives to `In` and `Out`: they are pointers.
fn plain(text: &str) -> String {
    let is_pointer = |name: &str| name.starts_with("In_") || name.starts_with("Out_");
    let (mut pointers, mut parts) = (Vec::new(), Vec::new());
    // Each item is a block between empty lines; the comment of a typedef has an empty line of its own, as ` *`.
    for block in text.split("\n\n") {
        let last = block.lines().last().unwrap_or_default();
        match last
            .strip_prefix("typedef ")
            .and_then(|rest| rest.strip_suffix(';'))
            .and_then(|rest| rest.rsplit_once('*'))
        {
            Some((of, name)) if is_pointer(name) => pointers.push((name.to_owned(), format!("{of}*"))),
            _ => parts.push(block),
        }
    }
    let mut text = parts.join("\n\n");
    // The longest names first: one may begin with another.
    pointers.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    for (name, pointer) in pointers {
        text = text.replace(&format!("{name} "), &pointer);
    }
    text
}

/// With `TOKENTRIE_WRITE_HEADER=1` it is written instead of compared.
#[test]
fn the_header_is_that_of_the_crate() {
    let path = repository().join("include/tokentrie.h");
    let made = made();
    if std::env::var_os("TOKENTRIE_WRITE_HEADER").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    let differs = made.lines().zip(kept.lines()).position(|(made, kept)| made != kept);
    let line = differs.unwrap_or(made.lines().count().min(kept.lines().count()));
    assert!(
        made == kept,
        "include/tokentrie.h differs from the crate in line {}: TOKENTRIE_WRITE_HEADER=1 cargo test -p \
         tokentrie-c-header writes it",
        line + 1
    );
}

const C: (&str, &str, &str) = ("cc", "c", "c11");
const CPP: (&str, &str, &str) = ("c++", "c++", "c++17");

/// That these compilers take this source without a warning.
fn compile(text: &str, compilers: &[(&str, &str, &str)]) {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    std::fs::write(&source, text).unwrap();
    for (compiler, language, standard) in compilers {
        let mut command = Command::new(compiler);
        command.args(["-x", language, &format!("-std={standard}"), "-Wall", "-Wextra", "-Wpedantic", "-Werror"]);
        command.arg("-fsyntax-only").arg("-I").arg(repository().join("include")).arg(&source);
        let Ok(done) = command.output() else {
            println!("skipped {standard}: there is no {compiler}");
            continue;
        };
        assert!(done.status.success(), "{standard}: {}\n{text}", String::from_utf8_lossy(&done.stderr));
    }
}

#[test]
fn compilers_take_the_header() {
    compile("#include \"tokentrie.h\"\n#include \"tokentrie.h\"\nint main(void) { return 0; }\n", &[C, CPP]);
}

#[test]
fn compilers_take_the_code_of_the_documentation() {
    let pages = ["docs/c.md", "docs/c-sessions.md"].map(|page| repository().join(page));
    let text = pages.map(|page| std::fs::read_to_string(page).unwrap()).concat();
    let blocks: Vec<&str> = text.split("```c\n").skip(1).filter_map(|block| block.split("```").next()).collect();
    assert!(blocks.len() >= 4, "the documentation has code");
    for block in blocks {
        compile(block, &[C]);
    }
}
