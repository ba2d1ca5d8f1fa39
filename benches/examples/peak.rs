//! The peak memory of making a set of rows of four, beyond the rows: one build in a process of its own.
//!
//! `peak tokentrie|fst|sort ROWS` prints the peak and the finished set, in bytes. Linux only.

use std::fs;
use std::hint::black_box;
use trie_core::{FlatSequences, TokenId};

#[path = "../benches/common/mod.rs"]
mod common;

/// A line of `/proc/self/status`, in bytes.
fn status(name: &str) -> usize {
    let text = fs::read_to_string("/proc/self/status").expect("Linux");
    let line = text.lines().find(|line| line.starts_with(name)).expect("a line of this name");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<usize>().ok()).expect("a number") * 1024
}

/// Builds, checks the number of leaves, and returns the bytes of the finished set.
fn build(who: &str, tokens: &[TokenId]) -> usize {
    match who {
        "tokentrie" => {
            let rows = FlatSequences::even(tokens, 4).expect("rows of four");
            black_box(rows.build()).expect("usable rows").nbytes()
        }
        "fst" => black_box(common::fst(tokens)).as_fst().size(),
        "sort" => {
            let pack = |row: &[TokenId]| row.iter().fold(0u64, |key, token| key << 16 | u64::from(token.get()));
            let mut keys: Vec<u64> = tokens.chunks_exact(4).map(pack).collect();
            keys.sort_unstable();
            keys.dedup();
            size_of_val(black_box(&*keys))
        }
        _ => panic!("who is tokentrie, fst or sort, not {who}"),
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().expect("usage: peak tokentrie|fst|sort ROWS");
    let (who, rows) = (next(), next().parse().expect("a number of rows"));
    let tokens = common::table(rows, [256; 4]);
    // Sets the peak back to what is held now.
    fs::write("/proc/self/clear_refs", "5").expect("Linux");
    let before = status("VmRSS:");
    let finished = build(&who, &tokens);
    println!("{} {finished}", status("VmHWM:") - before);
}
