//! Sorting by keys, on any number of threads, against comparing; and that against a map.

use super::order::{by_comparing, by_keys, gather};
use super::pack::pack;
use super::sequences::{Even, FixedRows, NameList, RaggedRows, Source};
use super::threads::Threads;
use super::{FlatSequences, TrieBuilder};
use crate::set::ids::TokenId;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Rows with names that collide, as a builder holds them.
struct Set {
    tokens: Vec<TokenId>,
    ends: Vec<usize>,
    names: String,
    name_ends: Vec<usize>,
}

impl Set {
    fn new(rows: &[Vec<u32>]) -> Self {
        let mut set = Self { tokens: Vec::new(), ends: Vec::new(), names: String::new(), name_ends: Vec::new() };
        for (number, row) in rows.iter().enumerate() {
            set.tokens.extend(row.iter().map(|&id| TokenId::new(id).unwrap()));
            set.ends.push(set.tokens.len());
            set.names.push_str(&(number * 7919 % 101).to_string());
            set.name_ends.push(set.names.len());
        }
        set
    }

    fn rows(&self) -> RaggedRows<'_> {
        RaggedRows { tokens: &self.tokens, ends: &self.ends }
    }

    fn names(&self) -> NameList<'_> {
        NameList { text: &self.names, ends: &self.name_ends }
    }
}

/// All arrays as text: what is equal here is equal in memory.
fn dump_arrays<S: Source>(source: &S, names: Option<NameList<'_>>) -> String {
    format!("{:?}", pack(names, &[by_comparing(source, names)], &Threads::new(1)).unwrap())
}

fn dump_keyed<S: Source>(source: &S, names: Option<NameList<'_>>, threads: usize) -> String {
    let threads = Threads::new(threads);
    format!("{:?}", pack(names, &by_keys(source, names, &threads), &threads).unwrap())
}

/// All ways agree on these rows.
fn check(rows: &[Vec<u32>]) {
    let set = Set::new(rows);
    for names in [None, Some(set.names())] {
        let expected = dump_arrays(&set.rows(), names);
        for threads in [1, 2, 3, 8] {
            assert!(
                dump_keyed(&set.rows(), names, threads) == expected,
                "{threads} threads, {} names",
                names.is_some()
            );
        }
    }
    let width = rows[0].len();
    if rows.iter().all(|row| row.len() == width) {
        let expected = dump_arrays(&set.rows(), None);
        assert_eq!(dump_keyed(&Even { tokens: &set.tokens, width }, None, 2), expected);
        assert!(width != 4 || dump_keyed(&FixedRows::<4>(set.tokens.as_chunks().0), None, 2) == expected);
    }
    against_map(rows, &set);
}

fn against_map(rows: &[Vec<u32>], set: &Set) {
    let mut map = BTreeMap::<&[u32], (&str, usize)>::new();
    for (number, row) in rows.iter().enumerate() {
        let name = set.names().get(number as u32);
        let leaf = map.entry(row).or_insert((name, number));
        leaf.0 = leaf.0.min(name);
    }
    let mut builder = TrieBuilder::default().threads(2);
    let mut begin = 0;
    for (number, &end) in set.ends.iter().enumerate() {
        builder.push(Some(set.names().get(number as u32)), &set.tokens[begin..end]);
        begin = end;
    }
    let trie = builder.build().unwrap();
    assert_eq!(trie.len(), map.len());
    for (leaf, (tokens, (name, row))) in trie.leaves().zip(map) {
        assert!(leaf.tokens.iter().map(|token| token.get()).eq(tokens.iter().copied()));
        assert_eq!((leaf.name.as_deref(), trie.input_row(leaf.index)), (Some(name), Some(row)));
    }
}

/// Numbers that look random and are the same in every run.
fn random(seed: u64) -> impl FnMut(u32) -> u32 + use<> {
    let mut state = seed;
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % u64::from(below)) as u32
    }
}

fn even(rows: usize, mut row: impl FnMut(usize) -> [u32; 4]) -> Vec<Vec<u32>> {
    (0..rows).map(|number| row(number).to_vec()).collect()
}

const MAX: u32 = TokenId::MAX.get();

#[test]
fn even_rows() {
    let mut r = random(1);
    let mut uniform = even(3000, |_| [r(8), r(8), r(8), r(8)]);
    check(&uniform);
    uniform[1234][2] = MAX;
    check(&uniform);
    uniform.sort();
    check(&uniform);
    uniform.reverse();
    check(&uniform);
    check(&even(3000, |_| [r(MAX), r(MAX), r(MAX), r(MAX)]));
    check(&even(3000, |_| [r(2) * MAX, r(2) * MAX, r(2) * MAX, r(3)]));
}

#[test]
fn shared_first_tokens_and_equal_rows() {
    let mut r = random(2);
    // A cut between threads falls inside a first token, and inside the first three.
    check(&even(3000, |_| [7, r(2), r(60), r(60)]));
    check(&even(3000, |_| [7, 7, 7, r(3000)]));
    check(&even(3000, |number| [number as u32 / 2000, 0, 0, number as u32]));
    check(&even(3000, |_| [5, 5, 5, 5]));
    // Equal keys stand on both sides of where parts would be cut, in order already.
    check(&even(3000, |number| [1, MAX * (number as u32 / 1600), MAX * (number as u32 / 1700), number as u32 / 1500]));
}

#[test]
fn ragged_rows() {
    let mut r = random(3);
    let mut row = |most: u32, ids: u32| (0..=r(most)).map(|_| r(ids)).collect::<Vec<_>>();
    check(&(0..3000).map(|_| row(7, 4)).collect::<Vec<_>>());
    check(&(0..3000).map(|_| row(12, 2)).collect::<Vec<_>>());
    check(&(0..3000).map(|_| row(4, 50_000)).collect::<Vec<_>>());
    check(&(0..3000).map(|_| row(40, 2)).collect::<Vec<_>>());
    check(&(0..3000).map(|_| row(3, 1)).collect::<Vec<_>>());
}

#[test]
fn outliers() {
    let mut r = random(6);
    // So few that a sample does not see them, or sees one; below and above what is common, in every position, several
    // in a row.
    for seldom in [7, 60, 900] {
        for middle in [0, 1, 70_000, MAX - 9] {
            let id = |r: &mut dyn FnMut(u32) -> u32| match r(seldom) {
                0 => r(3) * (MAX / 2),
                1 => r(MAX),
                _ => middle + r(9),
            };
            let rows = even(3000, |_| std::array::from_fn(|_| id(&mut r)));
            check(&rows);
            check(&rows.into_iter().map(|row| row[..=r(4) as usize % 4].to_vec()).collect::<Vec<_>>());
            check(&(0..3000).map(|_| (0..=r(12)).map(|_| id(&mut r)).collect()).collect::<Vec<_>>());
        }
    }
}

#[test]
fn deep_rows() {
    let mut r = random(4);
    // Each is a prefix of the next; then each leaves a long chain somewhere; then all leave it at its end.
    check(&(1..400).map(|length| vec![0; length]).collect::<Vec<_>>());
    check(&(1..400).map(|length| [vec![0; 3 * length], vec![1]].concat()).collect::<Vec<_>>());
    check(&(0..400).map(|_| [vec![9; 500], vec![r(MAX), r(4)]].concat()).collect::<Vec<_>>());
    check(&[vec![[3; 5000].to_vec()], vec![vec![3], vec![4]]].concat());
}

#[test]
fn few_rows() {
    check(&[vec![0]]);
    check(&[vec![MAX]]);
    check(&[vec![MAX], vec![0], vec![MAX, 0]]);
    check(&[vec![1, 2, 3], vec![1, 2], vec![9], vec![1, 2]]);
}

#[test]
fn shapes_are_checked() {
    let tokens = [TokenId::default(); 6];
    assert!(FlatSequences::even(&tokens, 4).is_none());
    assert!(FlatSequences::even(&tokens, 0).is_none());
    assert!(FlatSequences::even(&[], 4).unwrap().build().is_err());
    assert!(FlatSequences::from_ends(&tokens, &[4, 3, 6]).is_none());
    assert!(FlatSequences::from_ends(&tokens, &[3, 5]).is_none());
    let empty = FlatSequences::from_ends(&tokens, &[3, 3, 6]).unwrap().build().unwrap_err();
    assert_eq!(empty.to_string(), "row 1 is empty: a leaf needs at least one token");
    assert_eq!(FlatSequences::even(&tokens, 3).unwrap().threads(0).build().unwrap().len(), 1);
}

#[test]
fn memory_stays_below_three_times_that_of_the_trie() {
    let mut r = random(5);
    let tokens: Vec<TokenId> = (0..4 << 17).map(|_| TokenId::new(r(256)).unwrap()).collect();
    let mut bytes = 0;
    let build = || bytes = FlatSequences::even(&tokens, 4).unwrap().threads(1).build().unwrap().nbytes();
    let most = allocation_counter::measure(build).bytes_max;
    assert!(most < 3 * bytes as u64, "{most} bytes for a trie of {bytes}");
}

proptest! {
    #[test]
    fn a_bucket_is_sorted(
        bits in 1..=63u32,
        // Spread evenly, or most of them alike in front.
        skew in 0..20u32,
        parts in prop::collection::vec(prop::collection::vec(any::<u64>(), 0..300), 1..4),
    ) {
        let entry = |any: u64| any >> (64 - bits) >> if any.is_multiple_of(4) { 0 } else { skew.min(bits - 1) };
        let parts: Vec<Vec<u64>> = parts.into_iter().map(|part| part.into_iter().map(entry).collect()).collect();
        let mut expected = parts.concat();
        expected.sort_unstable();
        let mut sorted = vec![7; 3];
        gather(parts.iter().map(Vec::as_slice), bits, &mut sorted);
        prop_assert_eq!(sorted, expected);
    }

    #[test]
    fn any_rows(
        rows in prop::collection::vec(prop::collection::vec(prop_oneof![5 => 0..3u32, 1 => 0..=MAX],
        1..12), 1..300),
    ) {
        check(&rows);
    }

    #[test]
    fn any_order_gives_the_same(
        rows in prop::collection::vec(prop::collection::vec(0..4u32, 1..7), 1200..1500),
        by in 1..1000usize,
    ) {
        let turned = [&rows[by..], &rows[..by]].concat();
        let (a, b) = (Set::new(&rows), Set::new(&turned));
        let build = |set: &Set, threads| {
            FlatSequences::from_ends(&set.tokens, &set.ends).unwrap().threads(threads).build().unwrap()
        };
        prop_assert_eq!(build(&a, 1), build(&b, 2));
    }
}
