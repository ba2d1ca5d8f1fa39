//! Building large sets on one thread and two, beside one sort of as many integers and the `fst` crate; small sets; and
//! a step
//! in each.

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use std::collections::BTreeSet;
use std::hint::black_box;
use std::time::Duration;
use tokentrie_benches::Random;
use trie_core::{FlatSequences, TokenId, Trie, TrieBuilder};

mod common;
use common::{check_fst, fst, fst_step, id, table};

const ROWS: usize = 1_000_000;

/// Rows of one to seven; ids are as unevenly frequent as those of words.
fn text(rows: usize) -> (Vec<TokenId>, Vec<usize>) {
    let mut random = Random(7);
    let (mut tokens, mut ends) = (Vec::new(), Vec::new());
    for _ in 0..rows {
        for _ in 0..=random.number_below(7) {
            tokens.push(id(50_000f32.powf(random.unit()) as u32));
        }
        ends.push(tokens.len());
    }
    (tokens, ends)
}

fn check(trie: &Trie, rows: FlatSequences<'_>, of: &[&[TokenId]]) {
    assert_eq!(trie.len(), of.iter().collect::<BTreeSet<_>>().len());
    assert!(trie.leaves().step_by(997).all(|leaf| leaf.tokens == of[trie.input_row(leaf.index).expect("a row")]));
    assert!(*trie == rows.threads(3).build().expect("usable rows"));
}

fn large(criterion: &mut Criterion) {
    let (text, ends) = text(ROWS);
    let [uniform, wide] = [[256; 4], [151_936; 4]].map(|ids| table(ROWS, ids));
    let mut outlier = uniform.clone();
    outlier[4000] = TokenId::MAX;
    let mut sorted: Vec<&[TokenId]> = uniform.chunks(4).collect();
    sorted.sort_unstable();
    let sorted = sorted.concat();
    let even = |tokens| FlatSequences::even(tokens, 4).expect("rows of four");
    let sets = [
        ("uniform", even(&uniform)),
        ("presorted", even(&sorted)),
        ("outlier", even(&outlier)),
        ("wide", even(&wide)),
        ("text", FlatSequences::from_ends(&text, &ends).expect("ends of rows")),
    ];
    let mut group = criterion.benchmark_group("build/1000000");
    group.sample_size(20).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    for (name, rows) in sets {
        let trie = rows.threads(1).build().expect("usable rows");
        let tokens = if name == "text" { text.len() } else { 4 * ROWS };
        println!("build/1000000/{name}: {tokens} ids, {} nodes, {} bytes", trie.nodes(), trie.nbytes());
        for threads in [1, 2] {
            group.bench_function(format!("{name}/{threads}-threads"), |b| {
                b.iter_with_large_drop(|| black_box(rows).threads(threads).build());
            });
        }
    }
    let trie = even(&uniform).build().expect("usable rows");
    check(&trie, even(&uniform), &uniform.chunks(4).collect::<Vec<_>>());
    check_fst(&fst(&uniform), &trie);
    println!("build/{ROWS}/fst: {} bytes", fst(&uniform).as_fst().size());
    let mut random = Random(9);
    let keys: Vec<u64> = (0..ROWS).map(|_| random.next()).collect();
    group.bench_function("one-u64-sort", |b| {
        b.iter_batched_ref(|| keys.clone(), |keys| keys.sort_unstable(), BatchSize::LargeInput);
    });
    group.sample_size(10).bench_function("fst", |b| b.iter_with_large_drop(|| fst(black_box(&uniform))));
    group.finish();
}

fn small(criterion: &mut Criterion) {
    let tokens = table(30, [8, 100, 1000, 1000]);
    criterion.bench_function("build/30/named", |b| {
        b.iter(|| {
            let mut builder = TrieBuilder::with_capacity(30, tokens.len());
            tokens.chunks(4).for_each(|row| builder.push(Some("SEND_MESSAGE"), row));
            builder.build()
        });
    });
}

/// From the root into one child of eight, in sets of any size: what a step costs does not depend on the rest of the
/// set.
fn step(criterion: &mut Criterion) {
    for rows in [30, 1_000_000, 10_000_000] {
        let tokens = table(rows, [8, 256, 256, 256]);
        let trie = FlatSequences::even(&tokens, 4).expect("rows of four").build().expect("usable rows");
        let wanted: Vec<TokenId> = trie.children(trie.root()).to_vec();
        let set = fst(&tokens);
        let (set, root) = (set.as_fst(), set.as_fst().root().addr());
        assert!(
            wanted.iter().all(|&token| trie.step(trie.root(), token).is_some() && fst_step(set, root, token).is_some())
        );
        assert!((0..1000).all(|raw| fst_step(set, root, id(raw)).is_some() == wanted.contains(&id(raw))));
        let mut group = criterion.benchmark_group(format!("step/{rows}-rows/{}-children", wanted.len()));
        let mut next = wanted.iter().copied().cycle();
        let mut next = || next.next().expect("a cycle");
        group.bench_function("tokentrie", |b| b.iter(|| trie.step(trie.root(), next())));
        group.bench_function("fst", |b| b.iter(|| fst_step(set, root, next())));
        group.finish();
    }
}

criterion_group!(benches, large, small, step);
criterion_main!(benches);
