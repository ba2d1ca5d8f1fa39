//! Gives the shared library a name of its own, so that programs find it by that and not by where it was built.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let argument = match std::env::var("CARGO_CFG_TARGET_OS").as_deref() {
        Ok("linux" | "android" | "freebsd") => "-Wl,-soname,libtokentrie.so",
        Ok("macos" | "ios") => "-Wl,-install_name,@rpath/libtokentrie.dylib",
        _ => return,
    };
    println!("cargo::rustc-cdylib-link-arg={argument}");
}
