//! The header is what the crate says, and compilers take it.
#![forbid(unsafe_code)]
#![cfg(test)]

use std::path::{Path, PathBuf};
use std::process::Command;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// The header of the names that one agent runtime looks for, around its functions.
const ELIZA: (&str, &str) = (
    "/* Sessions of tokentrie under the names that one agent runtime looks for in a library; docs/c.md tells of them.
 *
 * Made by cbindgen from crates/tokentrie-c: do not edit.
 *
 * The handle of that runtime is the number of a session, in a pointer: all functions of tokentrie.h work on it too.
 * What they give is what its interface says, so that it needs no code of ours. They are in libraries with llama.cpp
 * alone.
 */

#ifndef TOKENTRIE_ELIZA_H
#define TOKENTRIE_ELIZA_H

#include \"tokentrie.h\"

#ifdef __cplusplus
extern \"C\" {
#endif // __cplusplus
",
    "#ifdef __cplusplus
}  // extern \"C\"
#endif  // __cplusplus

#endif  /* TOKENTRIE_ELIZA_H */
",
);

/// The headers of the crate and their names.
fn headers() -> [(&'static str, String); 2] {
    let all = made();
    let is_eliza =
        |block: &&str| block.lines().any(|line| !line.starts_with(" *") && line.contains("eliza_inference_"));
    let blocks: Vec<&str> = all.split("\n\n").collect();
    let (eliza, own): (Vec<&str>, Vec<&str>) = blocks.into_iter().partition(is_eliza);
    let eliza = [&[ELIZA.0], &*eliza, &[ELIZA.1]].concat().join("\n\n").replace("\n\n\n", "\n\n");
    [("tokentrie.h", own.join("\n\n")), ("tokentrie_eliza.h", eliza)]
}

/// Generates the header of the crate with cbindgen.
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

/// With `TOKENTRIE_WRITE_HEADER=1` they are written instead of compared.
#[test]
fn the_headers_are_those_of_the_crate() {
    for (name, made) in headers() {
        let path = repository().join("include").join(name);
        if std::env::var_os("TOKENTRIE_WRITE_HEADER").is_some() {
            std::fs::write(&path, &made).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap();
        let differs = made.lines().zip(kept.lines()).position(|(made, kept)| made != kept);
        let line = differs.unwrap_or(made.lines().count().min(kept.lines().count()));
        assert!(
            made == kept,
            "include/{name} differs from the crate in line {}: TOKENTRIE_WRITE_HEADER=1 cargo test -p \
             tokentrie-c-header writes it",
            line + 1
        );
    }
}

/// Checks which functions each header declares, and that each operation is declared once.
#[test]
fn every_function_stands_in_one_header() {
    let functions = |text: &str| -> Vec<String> {
        let declared =
            text.split("\n\n").filter(|block| block.trim_end().ends_with(");") && !block.contains("typedef"));
        let name = |block: &str| {
            let code: String = block.lines().filter(|line| !line.trim_start().starts_with(['/', '*'])).collect();
            code.split('(').next().and_then(|head| head.split([' ', '*']).next_back()).unwrap_or_default().to_owned()
        };
        declared.map(name).collect()
    };
    let [own, eliza] = headers().map(|(_, text)| functions(&text));
    assert!(
        own.iter().all(|name| name.starts_with("tokentrie_") || name == "llama_sampler_init_token_trie"),
        "{own:?}"
    );
    assert!(eliza.len() == 10 && eliza.iter().all(|name| name.starts_with("eliza_inference_")), "{eliza:?}");
    let twins: Vec<&String> = own.iter().filter(|name| own.contains(&format!("{name}_json"))).collect();
    assert!(twins.is_empty(), "one form for each operation: {twins:?}");
}

const C: (&str, &str, &str) = ("cc", "c", "c11");
const CPP: (&str, &str, &str) = ("c++", "c++", "c++17");

/// Checks that these compilers take this source without a warning.
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
fn compilers_take_the_headers() {
    for (name, _) in headers() {
        compile(&format!("#include \"{name}\"\n#include \"{name}\"\nint main(void) {{ return 0; }}\n"), &[C, CPP]);
    }
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
