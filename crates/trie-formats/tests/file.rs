//! Saved tries: what comes back is what was saved, and whatever else is in a file is an error or a wrong set, never a
//! crash.

use crate::common::{Naive, id, ids};
use proptest::prelude::*;
use std::borrow::Cow;
use std::fs;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trie_core::{
    ByteTrie, Cursor, LeafId, Mode, NamedLeaf, Sampler, SamplerOptions, SetOperation, SpanRules, TokenizedLeaf, Trie,
    VocabularyId,
};
use trie_formats::{FileError, FileOptions, FileProblem, OutlineLimits, TextGrammar, TrieFile as _, TrieOutline as _};

const VOCABULARY: usize = 48;

fn verified() -> FileOptions<'static> {
    FileOptions::default().with_verify(true)
}

fn sets() -> impl Strategy<Value = Naive> {
    let sized = |rows| {
        let tokens = prop::collection::vec(prop_oneof![3 => 0..4u32, 1 => 0..40u32], 1..6);
        prop::collection::vec(("[a-dé]{0,3}", tokens), rows)
    };
    // A few leaves below each other can be the last nodes, too.
    prop_oneof![sized(1..4), sized(1..40)].prop_map(|rows| Naive { rows })
}

fn small(named: bool) -> Trie {
    let mut builder = Trie::builder();
    let rows: [(&str, &[u32]); 6] = [
        ("REPLY", &[1, 2]),
        ("REPLY_THREAD", &[1, 2, 3]),
        ("STÖP", &[9]),
        ("A", &[4, 4, 4, 4]),
        ("B", &[4, 5]),
        ("", &[4, 6]),
    ];
    for (name, tokens) in rows {
        builder.push(named.then_some(name), &ids(tokens));
    }
    builder.build().unwrap()
}

fn equally_long() -> Trie {
    let rows = (0..20).map(|row| (format!("row {row}"), vec![row % 3, row, 7])).collect();
    Naive { rows }.trie()
}

fn bytes(trie: &Trie, vocabulary: Option<VocabularyId<'_>>) -> Vec<u8> {
    let mut bytes = Vec::new();
    trie.write_to(&mut bytes, vocabulary).unwrap();
    bytes
}

fn problem(bytes: &[u8], options: FileOptions<'_>) -> FileProblem {
    match Trie::from_bytes(bytes, options) {
        Err(FileError::Content { problem, .. }) => problem,
        other => panic!("{other:?}"),
    }
}

fn word(bytes: &mut [u8], at: usize, word: u32) {
    bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
}

fn read(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// The header's checksum, as somebody would compute it who forges a file.
fn sign(bytes: &mut [u8]) {
    let table = 64 + 32 * (read(bytes, 44) as usize).min(16);
    if bytes.len() >= table {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&bytes[..60]);
        hasher.update(&bytes[64..table]);
        word(bytes, 60, hasher.finalize());
    }
}

/// Everything that can be asked of a trie, bounded by its size.
fn use_all(trie: &Trie) -> usize {
    let mut seen = trie.nbytes() + trie.max_depth() + trie.levels().map_or(0, |levels| levels.len());
    for leaf in trie.leaves() {
        seen += trie.name(leaf.index).map_or(0, |name| name.len());
        seen += trie.find(&leaf.tokens).map_or(0, LeafId::index);
        assert!(trie.input_row(leaf.index).is_none());
    }
    let mut open = vec![trie.root()];
    for _ in 0..200 {
        let Some(at) = open.pop() else { break };
        let children = trie.children(at);
        assert!(children.iter().all(|&token| token <= trie.max_token()));
        seen += trie.forced(at).count() + trie.leaves_below(at).len();
        seen += trie.leaf_at(at).map_or(0, LeafId::index);
        seen += usize::from(trie.is_terminal(at));
        for up in [1, 2, 99] {
            seen += trie.ancestor(at, up).map_or(0, Cursor::depth);
        }
        open.extend(children.iter().filter_map(|&token| trie.step(at, token)));
    }
    seen + walk(trie, Mode::Greedy, &[]) + walk(trie, Mode::Sampled, &[5, 47])
}

/// A sampler's life on it: rows, masks, rollback.
fn walk(trie: &Trie, mode: Mode, ends: &[u32]) -> usize {
    let Ok(rules) = SpanRules::for_constraint(trie.clone(), VOCABULARY) else { return 0 };
    let rules = Arc::new(rules.with_end_tokens(ids(ends)).unwrap());
    let options = SamplerOptions { mode, seed: Some(3), ..SamplerOptions::default() };
    let mut sampler = Sampler::new(rules, options).unwrap();
    let row: Vec<f32> = (0..VOCABULARY).map(|id| (id * 7 % 11) as f32).collect();
    let (mut tokens, mut words) = (Vec::new(), [0; 2]);
    for _ in 0..6 {
        // A damaged set is refused, by all alike.
        let refused = sampler.mask(&mut row.clone()).is_err();
        assert_eq!(sampler.mask(&mut [f32::NAN; VOCABULARY]).is_err(), refused);
        assert_eq!(sampler.fill_bitmask(&mut words).is_err(), refused);
        let _ = sampler.advance(&row, &mut tokens);
        let _ = sampler.span().leaf();
        sampler.span_mut().observe(id(40));
        let _ = sampler.span_mut().rollback(1);
        let _ = sampler.span_mut().rollback(usize::from(tokens.len() > 4));
    }
    tokens.len()
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tokentrie-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Three texts in all tokenisations.
fn tokenized() -> Trie {
    let tokens = ["a", "b", "ab", "ba", "aba", "bab"];
    let vocab = ByteTrie::new(tokens.iter().zip(0..).map(|(text, token)| (text.as_bytes(), id(token)))).unwrap();
    let texts = [("ab", ids(&[2])), ("abab", ids(&[2, 2])), ("bba", ids(&[1, 3]))];
    let leaves =
        texts.each_ref().map(|(text, tokens)| TokenizedLeaf { name: text, bytes: text.as_bytes(), canonical: tokens });
    Trie::all_tokenizations(&leaves, &vocab, |texts| vec![Some(id(1)); texts.len()], &|| false).unwrap()
}

/// Two leaves, one the beginning of the other, which a partial token may end.
fn partial() -> Trie {
    let tokens = ["a", "b", "ab", "aba", "bb", "abab"];
    let vocab = ByteTrie::new(tokens.iter().zip(0..).map(|(text, token)| (text.as_bytes(), id(token)))).unwrap();
    let (one, other) = (ids(&[2]), ids(&[2, 0]));
    let leaves = [NamedLeaf { name: "ab", tokens: &one }, NamedLeaf { name: "aba", tokens: &other }];
    Trie::with_partial_tokens(&leaves, &vocab, |token| tokens[token.index()].as_bytes(), &|| false).unwrap()
}

#[test]
fn sets_of_many_sequences_come_back() {
    for (trie, more) in [(tokenized(), ids(&[0, 1])), (partial(), ids(&[5]))] {
        let file = bytes(&trie, None);
        for verify in [true, false] {
            let opened = Trie::from_bytes(&file, FileOptions::default().with_verify(verify)).unwrap();
            assert!(opened == trie && !opened.is_tree());
            assert_eq!(bytes(&opened, None), file, "saved again");
            assert!(opened.leaves().eq(trie.leaves()));
            assert!(opened.find(&more).is_some(), "another tokenisation");
            assert_eq!(opened.find(&more), trie.find(&more));
            assert_eq!(opened.levels(), trie.levels());
        }
    }
}

proptest! {
    #[test]
    fn what_was_saved_comes_back(
        naive in sets(),
        named in any::<bool>(),
        fingerprint in prop::option::of("[a-f0-9]{1,64}"),
    ) {
        let mut builder = Trie::builder();
        for (name, tokens) in &naive.rows {
            builder.push(named.then_some(name.as_str()), &ids(tokens));
        }
        let trie = builder.build().unwrap();
        let vocabulary = fingerprint.as_deref().map(|text| VocabularyId { size: 40, fingerprint: Some(text) });
        let file = bytes(&trie, vocabulary);
        for verify in [true, false] {
            let options = FileOptions::default().with_vocabulary(vocabulary).with_verify(verify);
            let opened = Trie::from_bytes(&file, options).unwrap();
            prop_assert_eq!(&opened, &trie);
            let shape = |trie: &Trie| (trie.len(), trie.nodes(), trie.max_depth());
            prop_assert_eq!(shape(&opened), shape(&trie));
            prop_assert_eq!(opened.max_token(), trie.max_token());
            prop_assert!(opened.leaves().eq(trie.leaves()));
            for (index, leaf) in trie.leaves().enumerate() {
                prop_assert_eq!(opened.find(&leaf.tokens), Some(LeafId::new(index as u32)));
            }
            for prefix in naive.prefixes() {
                let at = trie.walk(&ids(&prefix)).unwrap();
                prop_assert_eq!(opened.walk(&ids(&prefix)).unwrap(), at);
                prop_assert_eq!(opened.children(at), trie.children(at));
                prop_assert_eq!(opened.leaves_below(at), trie.leaves_below(at));
                prop_assert_eq!(opened.ancestor(at, 1), trie.ancestor(at, 1));
                prop_assert_eq!(opened.forced(at).collect::<Vec<_>>(), trie.forced(at).collect::<Vec<_>>());
            }
            prop_assert_eq!(bytes(&opened, vocabulary), file.clone(), "saved again");
        }
    }

    #[test]
    fn any_bytes_are_an_error_or_a_trie(
        mut file in prop::collection::vec(any::<u8>(), 1..400),
        signed in any::<bool>(),
    ) {
        if signed && file.len() >= 64 {
            file[..16].copy_from_slice(&bytes(&small(true), None)[..16]);
            word(&mut file, 44, 3);
            sign(&mut file);
        }
        for options in [FileOptions::default(), verified()] {
            if let Ok(trie) = Trie::from_bytes(&file, options) {
                std::hint::black_box(use_all(&trie));
            }
        }
    }
}

/// Bytes change at random offsets, and the header is signed again, as no accident would.
#[test]
fn damaged_files_are_an_error_or_a_wrong_set() {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut random = move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let vocabulary = Some(VocabularyId { size: 40, fingerprint: Some("abc") });
    let files = [
        bytes(&small(true).with_heal_bytes(3), vocabulary),
        bytes(&small(false), None),
        bytes(&equally_long(), None),
        bytes(&Naive { rows: vec![("x".into(), (0..39).collect()), ("y".into(), vec![0, 1, 2])] }.trie(), None),
        bytes(&tokenized(), None),
        bytes(&partial(), vocabulary),
    ];
    let (mut opened, mut refused, mut noticed) = (0u64, 0u64, 0u64);
    for round in 0..test_budget::cases(160_000) as usize {
        let original = &files[round % files.len()];
        let mut file = original.clone();
        for _ in 0..=random(4) {
            match random(4) {
                // Whole numbers near the ones that mean something, in the arrays or anywhere.
                0 | 1 => {
                    let at = random(file.len() / 4) * 4;
                    let value = [0, 1, 2, 3, 7, 39, 64, u32::MAX, u32::MAX - 1, 1 << 31, file.len() as u32];
                    let near = read(&file, at).wrapping_add(random(5) as u32).wrapping_sub(2);
                    let value = if random(2) == 0 { near } else { value[random(value.len())] };
                    word(&mut file, at, value);
                }
                2 => {
                    let at = random(file.len());
                    file[at] ^= 1 << random(8);
                }
                _ => {
                    let (from, to) = (random(file.len() - 4), random(file.len() - 4));
                    let moved = read(&file, from);
                    word(&mut file, to, moved);
                }
            }
        }
        if random(3) > 0 {
            sign(&mut file);
        }
        let verified = Trie::from_bytes(&file, verified());
        if let Ok(trie) = &verified {
            let content = |file| Trie::from_bytes(file, FileOptions::default()).unwrap();
            assert!(trie == &content(original), "damage that verifying did not see");
        }
        if let Ok(trie) = Trie::from_bytes(&file, FileOptions::default()) {
            std::hint::black_box(use_all(&trie));
            opened += 1;
            noticed += u64::from(verified.is_err());
        } else {
            assert!(verified.is_err());
            refused += 1;
        }
    }
    let share = |all| u64::from(test_budget::cases(all));
    assert!(
        opened > share(48_000) && refused > share(19_000) && noticed > share(38_000),
        "{opened} opened, {refused} refused, {noticed}"
    );
}

/// Contents that only a forger can sign: every section's checksum is right, too.
#[test]
fn forged_contents_are_seen_when_verified() {
    let (mut seen, mut sound, files) =
        (0, 0, [small(true).with_heal_bytes(3), equally_long(), tokenized(), partial()].map(|trie| bytes(&trie, None)));
    for original in &files {
        let sections = read(original, 44) as usize;
        for entry in (0..sections).map(|section| 64 + 32 * section) {
            let (begin, length) = (read(original, entry + 8) as usize, read(original, entry + 16) as usize);
            // The token of the root leads nowhere: it may be anything. So does the edge to it.
            let first = begin + 4 * usize::from([1, 9].contains(&read(original, entry)));
            for at in (first..begin + length).step_by(if read(original, entry) == 6 { 1 } else { 4 }) {
                for change in [1, 2, 0x80, 0xFF] {
                    let mut file = original.clone();
                    file[at] ^= change;
                    let sum = crc32fast::hash(&file[begin..begin + length]);
                    word(&mut file, entry + 4, sum);
                    sign(&mut file);
                    match Trie::from_bytes(&file, verified()) {
                        Ok(other) => {
                            // Another set, but a sound one: another token, name or boundary between children.
                            let leaves: Vec<_> = other.leaves().collect();
                            assert!(!other.is_tree() || leaves.is_sorted_by(|a, b| a.tokens < b.tokens));
                            assert!(leaves.iter().all(|leaf| other.find(&leaf.tokens) == Some(leaf.index)));
                            assert!(leaves.iter().all(|leaf| leaf.tokens.len() <= other.max_depth()));
                            sound += 1;
                        }
                        Err(_) => seen += 1,
                    }
                }
            }
        }
    }
    assert!(seen > 300 && sound > 0, "{seen} seen, {sound} sound");
}

#[test]
fn a_set_that_begins_inside_the_prompt() {
    let plain = bytes(&small(true), None);
    for heal in [1, 7, u32::MAX] {
        let trie = small(true).with_heal_bytes(heal);
        assert_ne!(trie, small(true));
        let file = bytes(&trie, Some(VocabularyId { size: 40, fingerprint: Some("abc") }));
        for options in [FileOptions::default(), verified()] {
            let opened = Trie::from_bytes(&file, options).unwrap();
            assert_eq!((opened.heal_bytes(), &opened), (heal as usize, &trie));
        }
    }
    assert_eq!(
        bytes(&small(true).with_heal_bytes(0), None),
        plain,
        "older programs read sets that begin after the prompt"
    );
    let mut file = bytes(&small(true).with_heal_bytes(1), None);
    let (entry, at) = (64 + 32 * (read(&file, 44) as usize - 1), file.len() - 4);
    word(&mut file, at, 0);
    word(&mut file, entry + 4, crc32fast::hash(&[0; 4]));
    sign(&mut file);
    assert!(problem(&file, verified()).to_string().contains("heal_bytes"));
}

#[test]
fn end_tokens_of_a_set() {
    for trie in [small(true), tokenized().with_heal_bytes(2)] {
        let with = trie.clone().with_end_tokens(ids(&[40, 7, 40]));
        assert!(with != trie && with.end_tokens() == ids(&[7, 40]) && trie.end_tokens().is_empty());
        let mut file = bytes(&with, None);
        for verify in [true, false] {
            let opened = Trie::from_bytes(&file, FileOptions::default().with_verify(verify)).unwrap();
            assert_eq!((opened.end_tokens(), opened.heal_bytes()), (with.end_tokens(), trie.heal_bytes()));
            assert!(opened == with && bytes(&opened, None) == file);
        }
        let vocabulary = VocabularyId { size: 40, fingerprint: None };
        let narrow = FileOptions::default().with_vocabulary(vocabulary);
        assert!(Trie::from_bytes(&file, narrow).is_err(), "40 is no token of 40");
        assert_eq!(bytes(&with.clone().with_end_tokens([]), None), bytes(&trie, None));

        // In another order, as only somebody who forges a file writes them.
        let (entry, at) = (64 + 32 * (read(&file, 44) as usize - 1), file.len() - 8);
        word(&mut file, at, 40);
        word(&mut file, at + 4, 7);
        let sum = crc32fast::hash(&file[at..at + 8]);
        word(&mut file, entry + 4, sum);
        sign(&mut file);
        assert!(problem(&file, verified()).to_string().contains("end_tokens"));
        assert_eq!(Trie::from_bytes(&file, FileOptions::default()).unwrap().end_tokens(), ids(&[7, 40]));
    }
    let (one, other) = (small(true).with_end_tokens(ids(&[7])), small(true));
    assert!(one.combine(SetOperation::Union, &other).unwrap_err().to_string().contains("end with"));
}

#[test]
fn a_chain_of_leaves_is_sound() {
    let rows = (1..5).map(|length| (length.to_string(), vec![3; length])).collect();
    let trie = Naive { rows }.trie();
    assert_eq!(Trie::from_bytes(&bytes(&trie, None), verified()).unwrap(), trie);
}

#[test]
fn what_comes_after_the_last_parent_takes_one_word() {
    let rows = (0..20).map(|token| (String::new(), vec![token])).chain([(String::new(), vec![3, 1])]).collect();
    for (trie, parents) in [(Naive { rows }.trie(), 5), (equally_long(), 24), (small(false), 10)] {
        let file = bytes(&trie, None);
        assert_eq!(read(&file, 64 + 32), 2, "the second section is first_child");
        assert_eq!(read(&file, 64 + 32 + 16), 4 * (parents + 1));
        assert_eq!(Trie::from_bytes(&file, verified()).unwrap(), trie);
        // One more item says the same, but equal tries are equal files.
        let mut longer = file.clone();
        word(&mut longer, 64 + 32 + 16, 4 * (parents + 2));
        sign(&mut longer);
        assert!(Trie::from_bytes(&longer, verified()).is_err());
    }
}

#[test]
fn every_cut_is_told() {
    let file = bytes(&small(true), None);
    for end in 1..file.len() {
        assert!(
            matches!(problem(&file[..end], FileOptions::default()),
                FileProblem::Truncated { bytes, need }
                    if bytes == end && need > end as u64),
            "{end} bytes"
        );
    }
    let longer = [&file[..], &[0]].concat();
    assert!(problem(&longer, FileOptions::default()).to_string().contains("length"));
    assert!(Trie::from_bytes(&[], FileOptions::default()).is_err());
}

#[test]
fn what_is_no_file_of_this_program_is_told_apart() {
    let file = bytes(&small(true), None);
    let changed = |at: usize, value: u32| {
        let mut file = file.clone();
        word(&mut file, at, value);
        sign(&mut file);
        problem(&file, FileOptions::default())
    };
    assert!(matches!(problem(b"{\"json\": 1}", FileOptions::default()),
            FileProblem::NotATrie { found } if found == b"{\"json\":"));
    assert_eq!(changed(8, 0x0403_0201), FileProblem::ByteOrder);
    assert_eq!(changed(12, 1), FileProblem::Version { found: 1, known: 2 });
    for (at, value) in [
        (8, 7),
        (16, 9),
        (24, 0),
        (24, 99),
        (28, 0),
        (28, 1),
        (28, u32::MAX),
        (32, 1 << 31),
        (36, 0),
        (36, 1000),
        (44, 16),
        (44, 0),
        (44, 2),
        (64, 16),
        (64, 2),
        (72, 65),
        (72, 0),
        (76, 1),
        (80, 1),
        (84, u32::MAX),
    ] {
        let found = changed(at, value);
        assert!(
            matches!(found, FileProblem::Damaged { .. } | FileProblem::Truncated { .. }),
            "{value} at {at}: {found}"
        );
    }
    let mut unsigned = file.clone();
    unsigned[60] ^= 1;
    assert!(problem(&unsigned, FileOptions::default()).to_string().contains("checksum"));
}

#[test]
fn a_file_belongs_to_its_vocabulary() {
    let of = |size, fingerprint| Some(VocabularyId { size, fingerprint });
    let with = |vocabulary| FileOptions::default().with_vocabulary(vocabulary);
    let file = bytes(&small(true), of(48, Some("one")));
    assert!(Trie::from_bytes(&file, with(None)).is_ok());
    assert!(Trie::from_bytes(&file, with(of(48, Some("one")))).is_ok());
    assert!(Trie::from_bytes(&file, with(of(10, None))).is_ok(), "a size alone is not compared: rows are padded");
    assert_eq!(
        problem(&file, with(of(48, Some("two")))),
        FileProblem::OtherVocabulary { found: "one".into(), expected: "two".into() }
    );
    assert_eq!(problem(&file, with(of(9, None))), FileProblem::OutsideVocabulary { max_token: id(9), n_vocab: 9 });
    let (mut out, long) = (Vec::new(), "x".repeat(257));
    for vocabulary in [of(9, None), of(48, Some("")), of(48, Some(&long))] {
        assert!(small(true).write_to(&mut out, vocabulary).is_err());
    }
    assert!(out.is_empty());
}

#[test]
fn saving_replaces_the_file_and_leaves_nothing_else() {
    let folder = Folder::new("save");
    let path = folder.0.join("set.ttrie");
    small(true).save(&path, None).unwrap();
    let old = Trie::open(&path, verified()).unwrap();
    equally_long().save(&path, None).unwrap();
    assert_eq!(Trie::open(&path, FileOptions::default()).unwrap(), equally_long());
    assert_eq!(old, small(true), "what is open stays what it was");
    old.save(&path, None).unwrap();
    let copy = std::thread::spawn(move || old.leaves().count());
    assert_eq!(copy.join().unwrap(), 6);
    fs::remove_file(&path).unwrap();
    assert!(folder.names().is_empty());
}

/// Everything that is made of names.
fn export_all(trie: &Trie) -> Vec<Option<String>> {
    let names: Vec<Option<String>> =
        (0..trie.len()).map(|leaf| trie.name(LeafId::new(leaf as u32)).map(Cow::into_owned)).collect();
    assert!(trie.leaves().map(|leaf| leaf.name).eq(names.iter().cloned()));
    let grammar = TextGrammar::new(names.iter().flatten());
    assert_eq!(grammar.is_ok(), names.iter().any(Option::is_some));
    std::hint::black_box(grammar.map(|grammar| (grammar.regex(), grammar.gbnf().is_ok())).ok());
    let _ = std::hint::black_box(trie.outline(OutlineLimits::choose(trie, None, None)));
    // Some leaves without a name among leaves with one are an error.
    let selected = [trie.select(|_| true), trie.combine(SetOperation::Union, trie)];
    let alike = names.iter().all(|name| name.is_some() == names[0].is_some());
    assert!(selected.iter().all(|made| made.is_ok() == (trie.is_tree() && alike)));
    assert_eq!(trie.canonical().is_ok(), trie.is_tree() || alike);
    std::hint::black_box((bytes(trie, None).len(), use_all(trie), trie == &small(true)));
    names
}

/// Writes into a file where others have it mapped.
fn write_at(path: &Path, at: usize, bytes: &[u8]) {
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(bytes, at as u64).unwrap();
}

#[test]
fn names_are_checked_after_the_file_was_changed_in_place() {
    let folder = Folder::new("names");
    for trie in [small(true), tokenized()] {
        let path = folder.0.join("set.ttrie");
        trie.save(&path, Some(VocabularyId { size: VOCABULARY, fingerprint: Some("abc") })).unwrap();
        let file = fs::read(&path).unwrap();
        let section = |kind| {
            let entry = (0..16).map(|section| 64 + 32 * section).find(|&at| read(&file, at) == kind).unwrap();
            (read(&file, entry + 8) as usize, read(&file, entry + 16) as usize)
        };
        let ((text, length), (ends, _), (fingerprint, _)) = (section(6), section(7), section(8));
        for options in [FileOptions::default(), verified()] {
            fs::write(&path, &file).unwrap();
            let opened = Trie::open(&path, options).unwrap();
            let expected: Vec<_> = trie.leaves().map(|leaf| leaf.name).collect();
            let lent = opened.name(LeafId::new(0)).unwrap();
            assert_eq!(export_all(&opened), expected);
            for (at, bytes) in [
                (text, vec![b'x'; length]),
                (text, vec![0xFF; length]),
                (text, [0xC3, 0x28].repeat(length / 2)),
                (ends, vec![0xFF; 4]),
                (ends, vec![0; 4]),
                (fingerprint, vec![0xFF; 3]),
            ] {
                write_at(&path, at, &bytes);
                let names = (0..opened.len()).map(|leaf| opened.name(LeafId::new(leaf as u32)));
                let names: Vec<Option<String>> = names.map(|name| name.map(Cow::into_owned)).collect();
                if bytes[0] == b'x' {
                    let replaced = expected.iter().map(|name| name.as_ref().map(|name| "x".repeat(name.len())));
                    assert!(names.iter().cloned().eq(replaced));
                } else if at == text && bytes[0] == 0xFF {
                    assert!(
                        names.iter().zip(&expected).all(|(name, old)| old.as_deref() == Some("") || name.is_none())
                    );
                }
                assert_eq!(export_all(&opened), names);
                assert_eq!(opened.fingerprint(), Some("abc"), "it was copied");
                assert_eq!(Some(&*lent), expected[0].as_deref(), "so was this name");
            }
        }
    }
}

/// What a check of the whole file found is not trusted later: rows of logits are indexed with these ids.
#[test]
fn ids_are_looked_at_after_a_verified_file_was_changed_in_place() {
    let folder = Folder::new("ids");
    let path = folder.0.join("set.ttrie");
    equally_long().save(&path, None).unwrap();
    let opened = Trie::open(&path, verified()).unwrap();
    let entry = 64;
    let file = fs::read(&path).unwrap();
    assert_eq!(read(&file, entry), 1, "the first section is tokens");
    write_at(&path, read(&file, entry + 8) as usize + 8, &u32::MAX.to_le_bytes());
    assert_eq!(opened.children(opened.root()), ids(&[0]));
    assert!(use_all(&opened) > 0);
}

#[test]
fn a_stamp_tells_contents_apart() {
    let folder = Folder::new("stamp");
    let path = folder.0.join("set.ttrie");
    let stamp = |trie: &Trie, fingerprint| {
        trie.save(&path, Some(VocabularyId { size: VOCABULARY, fingerprint })).unwrap();
        let (opened, stamp) = Trie::open_stamped(&path, FileOptions::default()).unwrap();
        assert_eq!(opened, *trie);
        stamp
    };
    let stamps = [
        stamp(&small(true), None),
        stamp(&small(false), None),
        stamp(&equally_long(), None),
        stamp(&small(true), Some("a")),
        stamp(&small(true), Some("b")),
    ];
    assert!((0..5).all(|one| (0..one).all(|other| stamps[one] != stamps[other])));
    assert_eq!(stamp(&small(true), None), stamps[0]);
}

#[test]
fn the_system_has_its_say() {
    let folder = Folder::new("errors");
    let open = |name: &str| Trie::open(folder.0.join(name), FileOptions::default()).unwrap_err();
    let kind = |error: FileError| match error {
        FileError::Io { source, .. } => source.kind(),
        error @ FileError::Content { .. } => panic!("{error}"),
    };
    assert_eq!(kind(open("missing.ttrie")), std::io::ErrorKind::NotFound);
    assert_eq!(kind(open(".")), std::io::ErrorKind::IsADirectory);
    fs::write(folder.0.join("empty.ttrie"), []).unwrap();
    assert!(open("empty.ttrie").to_string().contains("empty.ttrie: cut off: it has 0 bytes"));
    assert!(Trie::open("/dev/null", FileOptions::default()).is_err());
    let save = |path: PathBuf| small(true).save(path, None).unwrap_err();
    let nowhere = save(folder.0.join("nowhere/set.ttrie"));
    assert!(matches!(&nowhere, FileError::Io { source, .. } if source.raw_os_error().is_some()), "{nowhere}");
    assert_eq!(kind(nowhere), std::io::ErrorKind::NotFound);
    let _socket = UnixListener::bind(folder.0.join("socket")).unwrap();
    assert_eq!(kind(save(folder.0.join("socket"))), std::io::ErrorKind::InvalidInput);
    fs::create_dir(folder.0.join("folder")).unwrap();
    assert!(matches!(save(folder.0.join("folder")), FileError::Io { action: "replace", .. }));
    assert_eq!(folder.names(), ["empty.ttrie", "folder", "socket"], "no temporary file stays");
}

#[test]
fn a_cursor_of_another_trie_is_harmless() {
    let (small, large) = (small(true), equally_long());
    let far = large.walk(&ids(&[2, 5, 7])).unwrap();
    assert!(small.children(far).is_empty() && small.leaf_at(far).is_none());
    assert_eq!(small.ancestor(far, 3), Some(Cursor::ROOT));
}
