//! Every single bit of small unverified files is flipped: no walk may end in "everything is allowed" where no leaf
//! ends.

use crate::common::{Naive, id, ids};
use std::sync::Arc;
use trie_core::{
    Allowed, ByteTrie, NamedLeaf, Sampler, SamplerError, SamplerOptions, Scratch, SpanError, SpanRules, SpanState,
    Status, TokenizedLeaf, Trie, TrieState,
};
use trie_formats::{FileOptions, TrieFile as _};

const VOCABULARY: usize = 64;
/// States that are looked at in one damaged set: more than any undamaged one has.
const MOST: usize = 400;

fn tree(rows: &[(&str, &[u32])]) -> Trie {
    Naive { rows: rows.iter().map(|&(name, tokens)| (name.to_owned(), tokens.to_vec())).collect() }.trie()
}

fn unnamed(rows: &[&[u32]]) -> Trie {
    let mut builder = Trie::builder();
    for tokens in rows {
        builder.push(None, &ids(tokens));
    }
    builder.build().unwrap()
}

fn byte_trie(tokens: &[&str]) -> ByteTrie {
    ByteTrie::new(tokens.iter().zip(0..).map(|(text, token)| (text.as_bytes(), id(token)))).unwrap()
}

fn graph(texts: &[(&str, &[u32])]) -> Trie {
    let vocab = byte_trie(&["a", "b", "ab", "ba", "aba", "bab"]);
    let canonical: Vec<_> = texts.iter().map(|(_, tokens)| ids(tokens)).collect();
    let leaves: Vec<_> = texts
        .iter()
        .zip(&canonical)
        .map(|((text, _), canonical)| TokenizedLeaf { name: text, bytes: text.as_bytes(), canonical })
        .collect();
    Trie::all_tokenizations(&leaves, &vocab, |texts| vec![Some(id(1)); texts.len()], &|| false).unwrap()
}

fn partial_tokens() -> Trie {
    let tokens = ["a", "b", "ab", "aba", "bb", "abab"];
    let (one, other) = (ids(&[2]), ids(&[2, 0]));
    let leaves = [NamedLeaf { name: "ab", tokens: &one }, NamedLeaf { name: "aba", tokens: &other }];
    Trie::with_partial_tokens(&leaves, &byte_trie(&tokens), |token| tokens[token.index()].as_bytes(), &|| false)
        .unwrap()
}

/// A dozen sets: with and without names, one leaf and many, prefixes of leaves, deep and wide, trees and graphs.
fn sets() -> Vec<Trie> {
    let wide: Vec<(String, Vec<u32>)> = (0..20).map(|row| (format!("row {row}"), vec![row % 3, row, 7])).collect();
    vec![
        tree(&[("only", &[3])]),
        tree(&[("deep", &[1, 2, 3, 4, 5, 6])]),
        tree(&[("REPLY", &[1, 2]), ("REPLY_THREAD", &[1, 2, 3]), ("STÖP", &[9]), ("A", &[4, 4, 4]), ("", &[4, 6])]),
        unnamed(&[&[1], &[1, 1], &[1, 1, 1], &[1, 1, 1, 1]]),
        unnamed(&[&[5, 6], &[5, 7], &[8, 9]]),
        unnamed(&[&[5, 6], &[5, 7, 8], &[63]]),
        Naive { rows: wide }.trie(),
        tree(&[("x", &[0, 1, 2]), ("y", &[0, 1]), ("z", &[0]), ("w", &[62])]).with_heal_bytes(3),
        graph(&[("ab", &[2])]),
        graph(&[("ab", &[2]), ("abab", &[2, 2]), ("bba", &[1, 3])]),
        graph(&[("a", &[0]), ("aa", &[0, 0])]),
        partial_tokens(),
    ]
}

fn bytes(trie: &Trie) -> Vec<u8> {
    let mut bytes = Vec::new();
    trie.write_to(&mut bytes, None).unwrap();
    bytes
}

/// The header's checksum, as somebody would compute it who forges a file.
fn sign(bytes: &mut [u8]) {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let table = 64 + 32 * (word(44) as usize).min(16);
    if bytes.len() >= table {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&bytes[..60]);
        hasher.update(&bytes[64..table]);
        let sum = hasher.finalize();
        bytes[60..64].copy_from_slice(&sum.to_le_bytes());
    }
}

/// Looks at every state that a walk can reach. Returns how many of them allowed nothing.
fn look_everywhere(trie: &Trie, ends: &[u32], what: &str) -> usize {
    let rules = SpanRules::new(vec![(String::new(), trie.clone())], VOCABULARY).unwrap();
    let rules = rules.with_end_tokens(ids(ends)).unwrap();
    let mut open: Vec<SpanState<TrieState>> = vec![rules.start()];
    let (mut looked, mut closed) = (0, 0);
    while let Some(state) = open.pop().filter(|_| looked < MOST) {
        looked += 1;
        let at = state.position().cursor();
        let mut scratch = Scratch::default();
        let allowed = rules.allowed(&state, &mut scratch);
        match (state.status(), allowed) {
            (Status::Complete, _) => {
                assert!(trie.leaf_at(at).is_some(), "{what}: complete without a leaf");
                continue;
            }
            (Status::Active, Allowed::Open { .. }) => {
                assert!(trie.leaf_at(at).is_some(), "{what}: open without a leaf");
            }
            (Status::Active, Allowed::Only { ends, .. }) => {
                assert!(ends.is_empty() || trie.leaf_at(at).is_some(), "{what}: ends without a leaf");
            }
            (Status::Active, Allowed::Nothing) => closed += 1,
            (status, allowed) => panic!("{what}: {status:?} {allowed:?}"),
        }
        for token in allowed.iter() {
            let step = rules.step(&state, token);
            open.push(step.unwrap_or_else(|| panic!("{what}: {token} is allowed and refused")).state);
        }
    }
    closed
}

/// The same by the faces: a greedy walk that follows a row of logits. Where nothing may come, all refuse and write
/// nothing.
fn walk_faces(trie: &Trie, seed: u32, what: &str) {
    let rules = Arc::new(SpanRules::for_constraint(trie.clone(), VOCABULARY).unwrap());
    let mut sampler = Sampler::new(rules, SamplerOptions::default()).unwrap();
    for depth in 0..12u32 {
        let row: Vec<f32> =
            (0..VOCABULARY as u32).map(|token| (token.wrapping_mul(seed + depth) % 61) as f32).collect();
        let nothing = sampler.allowed() == Allowed::Nothing;
        let (mut masked, mut words) = (row.clone(), [7; 2]);
        let refused =
            |error: Result<(), SamplerError>| matches!(error, Err(SamplerError::Span(SpanError::Damaged { .. })));
        assert_eq!(refused(sampler.mask(&mut masked)), nothing, "{what}");
        assert_eq!(refused(sampler.fill_bitmask(&mut words)), nothing, "{what}");
        assert_eq!(refused(sampler.sample(&row).map(|_| ())), nothing, "{what}");
        assert_eq!(refused(sampler.advance(&row, &mut Vec::new())), nothing, "{what}");
        if nothing {
            assert!(masked == row && words == [7; 2], "{what}: something was written");
            // A host that cannot be refused changes nothing either.
            sampler.span_mut().observe(id(1));
            assert!(sampler.allowed() == Allowed::Nothing, "{what}");
            return;
        }
        if sampler.status() == Status::Complete {
            assert!(sampler.span().leaf().is_some(), "{what}");
            return;
        }
    }
}

#[test]
fn one_flipped_bit_never_opens_a_set() {
    let (mut opened, mut refused, mut closed) = (0, 0, 0);
    for (number, set) in sets().iter().enumerate() {
        let original = bytes(set);
        for bit in 0..original.len() * 8 {
            let mut file = original.clone();
            file[bit / 8] ^= 1 << (bit % 8);
            sign(&mut file);
            let what = format!("set {number}, bit {bit}");
            match Trie::from_bytes(&file, FileOptions::default()) {
                Err(_) => refused += 1,
                Ok(trie) if trie.max_token().index() >= VOCABULARY => refused += 1,
                Ok(trie) => {
                    opened += 1;
                    closed += usize::from(look_everywhere(&trie, &[], &what) > 0);
                    look_everywhere(&trie, &[5, 61], &what);
                    walk_faces(&trie, bit as u32 % 59 + 1, &what);
                }
            }
        }
    }
    assert!(opened > 10_000 && refused > 1_000, "{opened} opened, {refused} refused");
    assert!(closed > 500, "{closed} had a state in which nothing may come");
}

/// Inner nodes lose all of their children, one after the other.
#[test]
fn nodes_without_children_are_closed() {
    for (number, set) in sets().iter().enumerate() {
        let original = bytes(set);
        let section = |kind: u32| {
            let read = |at: usize| u32::from_le_bytes(original[at..at + 4].try_into().unwrap());
            let entries = (0..read(44) as usize).map(|entry| 64 + 32 * entry);
            let entry = entries.into_iter().find(|&at| read(at) == kind).expect("every set has it");
            read(entry + 8) as usize..(read(entry + 8) + read(entry + 16)) as usize
        };
        let first_child = section(2);
        for at in first_child.step_by(4).skip(1) {
            let mut file = original.clone();
            // The children of the node before begin where they end.
            let before: [u8; 4] = file[at - 4..at].try_into().unwrap();
            file[at..at + 4].copy_from_slice(&before);
            sign(&mut file);
            let what = format!("set {number}, byte {at}");
            if let Ok(trie) = Trie::from_bytes(&file, FileOptions::default()) {
                look_everywhere(&trie, &[], &what);
                look_everywhere(&trie, &[5, 61], &what);
                (1..20).for_each(|seed| walk_faces(&trie, seed, &what));
            }
        }
    }
}
