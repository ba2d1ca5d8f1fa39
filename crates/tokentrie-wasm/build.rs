//! A stack for templates and grammars as deep as their limits allow: in WebAssembly it cannot grow.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-link-arg-cdylib=-zstack-size=8388608");
}
