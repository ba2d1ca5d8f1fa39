//! Every token of real vocabularies at states of many kinds, against brute force.

use crate::common::{compare, vocab};
use trie_rules::{NumberOptions, Regular, StringOptions};

fn rules() -> Vec<Regular> {
    let regex = |pattern: &str| Regular::regex(pattern).unwrap();
    let names: Vec<String> =
        (0..3000).map(|n| format!("{} {}", ["The", "a", "été", "東京"][n % 4], n * 7919)).collect();
    let names = Regular::one_of([], &names).unwrap();
    let quote = regex("\"");
    vec![
        Regular::date(),
        Regular::integer(Some(-12), Some(1_234_567)).unwrap(),
        Regular::number_with(NumberOptions::default()).unwrap(),
        Regular::string(StringOptions::default().max_chars(3)).unwrap(),
        regex(r"[\w.+-]+@[\w-]+(\.[\w-]+)+"),
        regex(r"(?s).{0,5}é"),
        Regular::one_of([regex("[0-9a-f]{4}"), names.clone()], &["yes", "yes!"]).unwrap(),
        quote.followed_by(&names).unwrap().followed_by(&quote).unwrap(),
        regex("[a-z ]*").followed_by(&names).unwrap(),
    ]
}

#[test]
fn real_vocabularies() {
    for path in vocab::files() {
        let pieces = vocab::pieces(&path);
        let control: Vec<usize> = (0..pieces.len()).filter(|&token| pieces[token].is_empty()).collect();
        let mut states = 0;
        for rule in rules() {
            states += compare(rule, &pieces, &control, 3).unwrap();
        }
        eprintln!("{}: {} tokens at {states} states", path.display(), pieces.len());
        assert!(states >= 30);
    }
}

#[test]
fn an_odd_vocabulary() {
    let mut pieces: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
    let more = ["2024", "-0", "02-2", "é", "\u{20ac}", "\\u", "ud83d", "\\ud83d\\ude00", "\"", "12", "\"The 0\""];
    pieces.extend(more.iter().map(|piece| piece.as_bytes().to_vec()));
    pieces.extend([Vec::new(), b"12".to_vec(), b"a".repeat(1024), vec![0xC3], vec![0xE2, 0x82]]);
    for rule in rules() {
        compare(rule, &pieces, &[0, 266], 150).unwrap();
    }
}
