//! 256 rows over a vocabulary of 175,000: masks, a beam step, and moving beams; beside what must be written at least,
//! the same over whole masked rows, and lists of prefixes.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokentrie_benches::{Random, row};
use trie_core::{
    Batch, BatchMask, Child, FlatSequences, Rows, RowsMut, SamplerOptions, ScoreMode, Scratch, SpanRules, TokenId, Trie,
};

mod common;
use common::{id, table};

const V: usize = 175_000;
const ROWS: usize = 256;
const WORDS: usize = V.div_ceil(32);
const BEST: usize = 50;

/// Rows of four with so many ids in each place, spread over the vocabulary.
fn set(rows: usize, ids: [u64; 4]) -> Trie {
    // 7,919 and 175,000 have no common factor: different numbers stay different.
    let spread = |token: TokenId| id((u64::from(token.get()) * 7_919 % V as u64) as u32);
    let tokens: Vec<TokenId> = table(rows, ids).into_iter().map(spread).collect();
    FlatSequences::even(&tokens, 4).expect("rows of four").build().expect("usable rows")
}

fn batch(trie: &Trie) -> Batch {
    let rules = SpanRules::for_constraint(trie, V).expect("ids inside the vocabulary");
    Batch::new(Arc::new(rules), ROWS, SamplerOptions::default()).expect("usable settings")
}

/// Each row one token further, at a child of its own where there are so many.
fn spread_out(batch: &mut Batch) {
    let mut scratch = Scratch::default();
    let nth = |row: usize, legal: Vec<TokenId>| legal[row * 31 % legal.len()];
    let tokens = (0..ROWS).map(|row| nth(row, batch.allowed(row, &mut scratch).expect("a row").iter().collect()));
    let tokens: Vec<TokenId> = tokens.collect();
    batch.accept(&tokens).expect("children");
}

fn most_children(batch: &Batch) -> usize {
    let mut scratch = Scratch::default();
    let count = |row| batch.allowed(row, &mut scratch).expect("a row").iter().count();
    (0..ROWS).map(count).max().unwrap_or_default()
}

fn fill(batch: &mut Batch, words: &mut [i32]) {
    batch.fill_bitmask(RowsMut::new(words, ROWS, WORDS, WORDS).expect("a shape")).expect("a sound set");
}

/// Every bit is what the row allows.
fn check_bits(batch: &Batch, words: &[i32]) {
    let mut scratch = Scratch::default();
    for (row, words) in words.chunks(WORDS).enumerate() {
        let mut want = vec![0; WORDS];
        let allowed = batch.allowed(row, &mut scratch).expect("a row");
        allowed.iter().for_each(|token| want[token.index() / 32] |= 1 << (token.index() % 32));
        assert!(words == want, "row {row}");
    }
}

fn bitmask(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group(format!("batch/bitmask/{ROWS}x{V}"));
    let mut words = vec![0; ROWS * WORDS];
    group.bench_function("limit/zero-all-words", |b| b.iter(|| black_box(&mut words).fill(0)));
    let narrow = set(1_000_000, [32; 4]);
    let root = set(1_000_000, [65_536, 8, 8, 8]);
    let apart = set(2_000_000, [256, 4_096, 4, 4]);
    let cases = [("k-32", &narrow, true), ("one-wide-node", &root, false), ("wide-nodes", &apart, true)];
    for (name, trie, spread) in cases {
        let mut one = batch(trie);
        if spread {
            spread_out(&mut one);
        }
        let mut other = one.clone();
        if spread {
            // As it is after a step of a beam search: other nodes of the same width.
            let parents: Vec<usize> = (0..ROWS).map(|row| (row * 77 + 5) % ROWS).collect();
            other.reorder(&parents).expect("rows");
        } else {
            spread_out(&mut other);
        }
        println!("batch/bitmask/{name}: at most {} children", most_children(&one));
        let mut mask = BatchMask::default();
        for batch in [&mut one, &mut other] {
            fill(batch, &mut words);
            check_bits(batch, &words);
            batch.update(&mut mask).expect("a sound set");
            assert!(mask.words() == words);
        }
        group.bench_function(BenchmarkId::new("fill", name), |b| b.iter(|| fill(&mut one, &mut words)));
        let mut turn = false;
        group.bench_function(BenchmarkId::new("update", name), |b| {
            b.iter(|| {
                turn = !turn;
                let batch = if turn { &mut one } else { &mut other };
                batch.update(&mut mask).expect("a sound set");
                black_box(mask.words().len())
            });
        });
    }
    group.finish();
}

/// Masks all of it, lists what is left, sorts, cuts.
fn masked_top(batch: &mut Batch, logits: &mut [f32], scores: &[f64]) -> Vec<Child> {
    batch.apply(RowsMut::new(logits, ROWS, V, V).expect("a shape")).expect("a sound set");
    let mut all = Vec::new();
    for (parent, row) in logits.chunks(V).enumerate() {
        for (token, &logit) in (0u32..).zip(row) {
            if logit > f32::NEG_INFINITY {
                all.push(Child { parent, token: id(token), score: scores[parent] + f64::from(logit) });
            }
        }
    }
    all.sort_by(|a, b| b.score.total_cmp(&a.score).then((a.parent, a.token).cmp(&(b.parent, b.token))));
    all.truncate(BEST);
    all
}

fn top(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group(format!("batch/top-children/{ROWS}x{V}"));
    let mut random = Random(3);
    let one = row(V);
    let logits: Vec<f32> =
        (0..ROWS).flat_map(|at| one.iter().map(move |logit| logit + (at % 7) as f32 / 9.0)).collect();
    let scores: Vec<f64> = (0..ROWS).map(|_| -f64::from(random.unit())).collect();
    for width in [32, 64] {
        let mut batch = batch(&set(4_000_000, [256, width, width, 2]));
        spread_out(&mut batch);
        println!("batch/top-children/{width}: at most {} children", most_children(&batch));
        let rows = Rows::new(&logits, ROWS, V, V).expect("a shape");
        let mut work = logits.clone();
        let want = masked_top(&mut batch, &mut work, &scores);
        assert_eq!(batch.top_children(rows, BEST, Some(&scores), ScoreMode::AsGiven).expect("usable"), want);
        for mode in [ScoreMode::AsGiven, ScoreMode::Renormalised, ScoreMode::Model] {
            group.bench_function(BenchmarkId::new(format!("{mode:?}"), width), |b| {
                b.iter(|| batch.top_children(rows, BEST, Some(&scores), mode).expect("usable"));
            });
        }
        // The second time the rows are masked already: the same work, the same answer.
        group.sample_size(10).bench_function(BenchmarkId::new("masked-rows", width), |b| {
            b.iter(|| masked_top(&mut batch, &mut work, &scores));
        });
        group.sample_size(100);
    }
    group.finish();
}

/// Four steps of 256 beams: which token each takes, and from which beam each goes on.
fn steps(batch: &mut Batch) -> Vec<(Vec<TokenId>, Vec<usize>)> {
    let mut steps = Vec::new();
    for step in 0..4 {
        let mut scratch = Scratch::default();
        let nth = |row: usize, legal: Vec<TokenId>| legal[(row * 31 + step) % legal.len()];
        let token = |row| nth(row, batch.allowed(row, &mut scratch).expect("a row").iter().collect());
        let tokens: Vec<TokenId> = (0..ROWS).map(token).collect();
        let parents: Vec<usize> = (0..ROWS).map(|row| (row * 77 + step) % ROWS / 2).collect();
        batch.accept(&tokens).expect("children");
        batch.reorder(&parents).expect("rows");
        steps.push((tokens, parents));
    }
    steps
}

fn beams(criterion: &mut Criterion) {
    let trie = set(1_000_000, [32; 4]);
    let mut batch = batch(&trie);
    let steps = steps(&mut batch);
    let prefixes = || {
        let mut prefixes = vec![Vec::new(); ROWS];
        for (tokens, parents) in &steps {
            prefixes.iter_mut().zip(tokens).for_each(|(prefix, &token)| prefix.push(token));
            prefixes = parents.iter().map(|&parent| prefixes[parent].clone()).collect();
        }
        prefixes
    };
    for (row, prefix) in prefixes().iter().enumerate() {
        assert_eq!(&batch.leaf(row).expect("a row").expect("complete").tokens, prefix);
    }
    let mut group = criterion.benchmark_group(format!("batch/accept-and-reorder/{ROWS}"));
    for (name, accept, reorder) in [("both", true, true), ("accept", true, false), ("reorder", false, true)] {
        group.bench_function(name, |b| {
            b.iter_custom(|count| {
                let mut spent = Duration::ZERO;
                for _ in 0..count.div_ceil(4) {
                    batch.reset();
                    let start = Instant::now();
                    for (tokens, parents) in &steps {
                        let (tokens, parents) = (black_box(tokens), black_box(parents));
                        let between = Instant::now();
                        batch.accept(tokens).expect("children");
                        let middle = Instant::now();
                        batch.reorder(parents).expect("rows");
                        if !reorder {
                            spent += middle - between;
                        } else if !accept {
                            spent += middle.elapsed();
                        }
                    }
                    if accept && reorder {
                        spent += start.elapsed();
                    }
                }
                spent.mul_f64(count as f64 / (4 * count.div_ceil(4)) as f64)
            });
        });
    }
    group.bench_function("list-of-prefixes/four-steps", |b| b.iter(prefixes));
    group.finish();
}

criterion_group!(benches, bitmask, top, beams);
criterion_main!(benches);
