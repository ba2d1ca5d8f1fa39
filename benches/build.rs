//! Compiles the plain C loops that the kernels are measured against.

fn main() {
    println!("cargo:rerun-if-changed=src/limits.c");
    cc::Build::new().file("src/limits.c").opt_level(3).flag_if_supported("-march=native").compile("limits");
}
