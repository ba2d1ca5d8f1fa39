//! Building by sorted runs in temporary files: the same bytes as building in memory, whatever the order and the budget.

use crate::common::{id, ids};
use proptest::prelude::*;
use std::fs;
use std::path::Path;
use trie_core::{BuildError, Trie, TrieBuilder, VocabularyId};
use trie_formats::{ExternalBuilder, ExternalError, FileError, FileOptions, TrieFile as _};

type Row = (Option<String>, Vec<u32>);

fn external(rows: &[Row], budget: usize, folder: &Path) -> ExternalBuilder {
    let mut builder = ExternalBuilder::new(budget).in_folder(folder);
    for (name, tokens) in rows {
        builder.push(name.as_deref(), &ids(tokens)).unwrap();
    }
    assert_eq!(builder.len(), rows.len());
    builder
}

fn in_memory(rows: &[Row]) -> Trie {
    let mut builder = TrieBuilder::default();
    for (name, tokens) in rows {
        builder.push(name.as_deref(), &ids(tokens));
    }
    builder.build().unwrap()
}

fn bytes(trie: &Trie, vocabulary: Option<VocabularyId<'_>>) -> Vec<u8> {
    let mut bytes = Vec::new();
    trie.write_to(&mut bytes, vocabulary).unwrap();
    bytes
}

fn input_rows(trie: &Trie) -> Vec<Option<usize>> {
    trie.leaves().map(|leaf| trie.input_row(leaf.index)).collect()
}

fn check(rows: &[Row], budget: usize, vocabulary: Option<VocabularyId<'_>>) {
    let folder = tempfile::tempdir().unwrap();
    let expected = in_memory(rows);
    let trie = external(rows, budget, folder.path()).finish().unwrap();
    assert_eq!(bytes(&trie, vocabulary), bytes(&expected, vocabulary));
    assert_eq!(input_rows(&trie), input_rows(&expected));
    assert!(trie == expected && trie.leaves().eq(expected.leaves()));

    let path = folder.path().join("set.ttrie");
    external(rows, budget, folder.path()).finish_to(&path, vocabulary).unwrap();
    assert_eq!(fs::read(&path).unwrap(), bytes(&expected, vocabulary));
    assert!(Trie::open(&path, FileOptions::default().with_vocabulary(vocabulary).with_verify(true)).is_ok());
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "no temporary file stays");
}

fn unnamed(rows: Vec<Vec<u32>>) -> Vec<Row> {
    rows.into_iter().map(|tokens| (None, tokens)).collect()
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let token = || prop_oneof![8 => 0..3u32, 1 => 0..40u32];
    // Of any length, of one, and each one longer than the one before: then leaves are the last nodes.
    let tokens = prop_oneof![
        prop::collection::vec(prop::collection::vec(token(), 1..7), 1..80),
        prop::collection::vec(prop::collection::vec(token(), 3..=3), 1..80),
        (1..9u32, 1..9u32).prop_map(|(rows, from)| (0..rows).map(|row| vec![row / 2; (from + row) as usize]).collect()),
    ];
    let name = |(row, tokens): (usize, Vec<u32>)| (Some(format!("{}é", row * 7919 % 13)), tokens);
    (tokens, any::<bool>()).prop_map(move |(rows, named)| {
        if named { rows.into_iter().enumerate().map(name).collect() } else { unnamed(rows) }
    })
}

proptest! {
    #[test]
    fn the_same_bytes_as_in_memory(
        rows in rows(),
        budget in prop_oneof![Just(0), 0..2000usize],
        fingerprint in prop::option::of("[a-f0-9]{1,64}"),
    ) {
        check(&rows, budget, fingerprint.as_deref().map(|text| VocabularyId { size: 40, fingerprint: Some(text) }));
    }
}

/// More runs than are merged at once, and than are merged at once of those.
#[test]
fn runs_of_runs() {
    let rows = |count: u32| unnamed((0..count).map(|row| vec![row * 7919 % 31, row * 31 % 7, row % 90]).collect());
    check(&rows(32), 0, None);
    check(&rows(33), 0, None);
    check(&rows(1200), 0, None);
    check(&rows(40_000), 1 << 14, None);
}

#[test]
fn deep_rows() {
    let chain = (1..300).map(|length| vec![3; length]).collect::<Vec<_>>();
    check(&unnamed(chain.iter().rev().cloned().collect()), 10_000, None);
    check(&unnamed(chain), 10_000, None);
    check(&unnamed(vec![vec![1; 5000], vec![1; 70_000], vec![2]]), 0, None);
}

#[test]
fn memory_stays_within_the_budget() {
    const BUDGET: usize = 1 << 20;
    let (folder, mut trie) = (tempfile::tempdir().unwrap(), None);
    let path = folder.path().join("set.ttrie");
    let push = || {
        let mut builder = ExternalBuilder::new(BUDGET);
        for row in 0..300_000u32 {
            let tokens = [row * 13 % 101, row.wrapping_mul(0x9E37_79B9) >> 16, row % 50_000, row % 7].map(id);
            builder.push(Some("name"), &tokens).unwrap();
        }
        assert!(builder.has_spilled());
        builder
    };
    let most = allocation_counter::measure(|| push().finish_to(&path, None).unwrap()).bytes_max;
    let size = fs::metadata(&path).unwrap().len();
    assert!(most < 2 << 20 && size > 8_000_000, "{most} bytes for a file of {size}");
    // In memory it holds the set once: in pages of its own, which are not counted here, and the rows.
    let most = allocation_counter::measure(|| trie = Some(push().finish().unwrap())).bytes_max;
    assert!(most < 4 << 20, "{most} bytes");
    assert_eq!(trie.unwrap(), Trie::open(&path, FileOptions::default().with_verify(true)).unwrap());
}

#[test]
fn bad_rows_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let build = |error| match error {
        ExternalError::Build(error) => error,
        error @ ExternalError::File(_) => panic!("{error}"),
    };
    for budget in [0, 1 << 20] {
        let builder = || ExternalBuilder::new(budget).in_folder(folder.path());
        assert_eq!(build(builder().finish().unwrap_err()), BuildError::NoLeaves);
        let path = folder.path().join("set.ttrie");
        assert_eq!(build(builder().finish_to(&path, None).unwrap_err()), BuildError::NoLeaves);
        let mut empty = builder();
        empty.push(None, &[id(1)]).unwrap();
        assert_eq!(build(empty.push(None, &[]).unwrap_err()), BuildError::EmptySequence { row: 1 });
        empty.push(None, &[id(2)]).unwrap();
        assert_eq!(empty.finish().unwrap().len(), 2, "a refused row changes nothing");

        let mut mixed = builder();
        let found = mixed.push(Some("a"), &[id(1)]).and_then(|()| mixed.push(None, &[id(2)]));
        let found = found.and_then(|()| mixed.finish().map(drop)).unwrap_err();
        assert_eq!(build(found), BuildError::MixedNames { names: 1, rows: 2 });

        let mut outside = builder();
        outside.push(None, &[id(9)]).unwrap();
        outside.push(None, &[id(3)]).unwrap();
        let nine = VocabularyId { size: 9, fingerprint: None };
        let problem = outside.finish_to(&path, Some(nine)).unwrap_err().to_string();
        assert!(problem.ends_with("set.ttrie: token id 9 is outside the vocabulary of 9 tokens"), "{problem}");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "nothing is left");
    }
}

#[test]
fn the_system_has_its_say() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("nowhere");
    let mut builder = ExternalBuilder::new(0).in_folder(&nowhere);
    match builder.push(None, &[id(1)]) {
        Err(ExternalError::File(FileError::Io { path, action, source })) => {
            assert_eq!((path, action), (nowhere.clone(), "write a temporary file there"));
            assert_eq!(source.kind(), std::io::ErrorKind::NotFound);
        }
        other => panic!("{other:?}"),
    }
    let builder = external(&unnamed(vec![vec![1], vec![2]]), 0, folder.path());
    let error = builder.finish_to(nowhere.join("set.ttrie"), None).unwrap_err();
    assert!(error.to_string().contains("nowhere: cannot create a file there"), "{error}");
}
