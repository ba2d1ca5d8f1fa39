//! Gives the shared library a name of its own, so that programs find it by that and not by where it was built, and lets
//! it say whether it was compiled for more than the CPU level that is published.

use std::env::var;

/// Features of every processor of these levels: x86-64-v3, and aarch64 without extensions.
const LEVELS: [(&str, &[&str]); 2] = [
    (
        "x86_64",
        &[
            "avx",
            "avx2",
            "bmi1",
            "bmi2",
            "cmpxchg16b",
            "f16c",
            "fma",
            "fxsr",
            "lahfsahf",
            "lzcnt",
            "movbe",
            "popcnt",
            "sse",
            "sse2",
            "sse3",
            "sse4.1",
            "sse4.2",
            "ssse3",
            "x87",
            "xsave",
        ],
    ),
    ("aarch64", &["fp", "neon"]),
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(beyond_level)");
    let target = |name: &str| var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    let (os, arch, features) = (target("OS"), target("ARCH"), target("FEATURE"));
    let level = LEVELS.iter().find(|(of, _)| *of == arch && os != "macos" && os != "ios");
    if level.is_some_and(|(_, level)| features.split(',').any(|feature| !level.contains(&feature))) {
        println!("cargo::rustc-cfg=beyond_level");
    }
    let argument = match os.as_str() {
        "linux" | "android" | "freebsd" => "-Wl,-soname,libtokentrie.so",
        "macos" | "ios" => "-Wl,-install_name,@rpath/libtokentrie.dylib",
        _ => return,
    };
    println!("cargo::rustc-cdylib-link-arg={argument}");
}
