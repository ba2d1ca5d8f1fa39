//! Opening a set that lies in a file, whose pages are in memory: a `.ttrie` file, and a mapped set of the `fst` crate.

use criterion::{Criterion, criterion_group, criterion_main};
use memmap2::Mmap;
use std::fs::{self, File};
use std::path::Path;
use trie_core::{FlatSequences, Trie};
use trie_formats::{FileOptions, TrieFile as _};

mod common;
use common::{check_fst, fst, table};

fn trie(path: &Path) -> Trie {
    Trie::open(path, FileOptions::default()).expect("a .ttrie file")
}

fn map_file(path: &Path) -> fst::Set<Mmap> {
    let file = File::open(path).expect("the file that was written");
    // SAFETY: the file is this benchmark's own, and nothing writes to it after this.
    let pages = unsafe { Mmap::map(&file) }.expect("pages");
    fst::Set::new(pages).expect("a set")
}

fn open(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a folder");
    let (ours, theirs) = (folder.path().join("set.ttrie"), folder.path().join("set.fst"));
    for rows in [30, 1_000_000, 10_000_000] {
        let tokens = table(rows, [256; 4]);
        let built = FlatSequences::even(&tokens, 4).expect("rows of four").build().expect("usable rows");
        built.save(&ours, None).expect("a disk");
        let set = fst(&tokens);
        fs::write(&theirs, set.as_fst().as_bytes()).expect("a disk");
        assert!(trie(&ours) == built);
        check_fst(&map_file(&theirs), &built);
        drop((tokens, built, set));
        let size = |path| fs::metadata(path).expect("a file").len();
        println!("open/{rows}-rows: {} bytes, fst {} bytes", size(&ours), size(&theirs));
        let mut group = criterion.benchmark_group(format!("open/{rows}-rows"));
        group.bench_function("tokentrie", |b| b.iter_with_large_drop(|| trie(&ours)));
        group.bench_function("fst", |b| b.iter_with_large_drop(|| map_file(&theirs)));
        group.finish();
    }
}

criterion_group!(benches, open);
criterion_main!(benches);
