//! Files that nobody verified: an error or the right answer, never a quiet wrong one.

use crate::common::ids;
use crate::scoring::table::{Model, Stopped, Table, VOCABULARY};
use crate::scoring::twin::{graph, partial_token, set};
use std::collections::BTreeSet;
use trie_core::{
    AnyConstraint, Choice, ChooseError, ChooseOptions, Constraint, Damage, Ending, LeafId, Next, NotListed, Role,
    Scratch, Sequence, Special, TokenId, Tokens, Trie, VocabularyId, choose,
};
use trie_formats::{FileOptions, TrieFile as _};

fn unnamed(leaves: &[&[u32]]) -> Trie {
    let mut builder = Trie::builder();
    for tokens in leaves {
        builder.push(None, &ids(tokens));
    }
    builder.build().unwrap()
}

fn bytes(trie: &Trie, fingerprint: Option<&str>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let vocabulary = fingerprint.map(|text| VocabularyId { size: VOCABULARY, fingerprint: Some(text) });
    trie.write_to(&mut bytes, vocabulary).unwrap();
    bytes
}

/// The header's checksum, as somebody would compute it who forges a file.
fn sign(bytes: &mut [u8]) {
    let sections = u32::from_le_bytes(bytes[44..48].try_into().unwrap()) as usize;
    let table = 64 + 32 * sections.min(16);
    if bytes.len() >= table {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&bytes[..60]);
        hasher.update(&bytes[64..table]);
        bytes[60..64].copy_from_slice(&hasher.finalize().to_le_bytes());
    }
}

/// Small sets of every shape that a file has.
fn files() -> Vec<Vec<u8>> {
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<BTreeSet<String>>();
    vec![
        bytes(&set(&[("one", &[7])]), None),
        bytes(&set(&[("REPLY", &[1, 2]), ("REPLY_THREAD", &[1, 2, 3]), ("STÖP", &[9])]), None),
        bytes(&set(&[("a", &[1, 2]), ("b", &[1, 3]), ("c", &[4, 5])]), None),
        bytes(&set(&[("a", &[1]), ("b", &[1, 1]), ("c", &[1, 1, 1])]), Some("f00d")),
        bytes(&set(&[("", &[1, 2, 3, 4]), ("x", &[23])]).with_heal_bytes(3), None),
        bytes(&set(&[("a", &[0]), ("b", &[2]), ("c", &[4]), ("d", &[8]), ("e", &[16])]), None),
        bytes(&unnamed(&[&[1, 2], &[1, 2, 3], &[5]]), None),
        bytes(&unnamed(&[&[3, 3], &[4, 4]]), Some("x")),
        bytes(&graph(&texts(&["ab", "aba"]), true).0, None),
        bytes(&graph(&texts(&["abab", "bab"]), false).0, Some("y")),
        bytes(&graph(&texts(&["a", "b", "ab"]), false).0.with_heal_bytes(1), None),
        bytes(&partial_token(), None),
    ]
}

/// Every bit of a dozen files is flipped, the header signed again, and nobody verifies.
#[test]
fn a_damaged_file_gives_an_error_or_the_same_probabilities() {
    let model = Model { seed: 5, odd: false, starved: false };
    let prompt = ids(&[2, 3]);
    let ends = ids(&[11, 12]);
    let options = [
        ChooseOptions::new(),
        ChooseOptions::new().with_end_tokens(&ends),
        ChooseOptions::new().with_top(1),
        ChooseOptions::new().with_max_rows(3),
    ];
    let answers = |trie: &Trie| {
        let choice = |options| {
            let choice = choose(&mut Table::new(model), &prompt, trie, options)?;
            // All but the time that it took.
            let Choice { logprobs, logprobs_high, ranking, is_certain, mass_low, mass_high, stats, .. } = choice;
            let known = format!("{logprobs:?} {logprobs_high:?} {ranking:?} {is_certain} {mass_low} {mass_high}");
            Ok::<_, ChooseError<Stopped>>(format!("{known} {} {}", stats.rows, stats.healed_bytes))
        };
        options.iter().map(choice).collect::<Result<Vec<String>, _>>()
    };
    let (mut refused, mut noticed, mut wrong, mut same) = (0, 0, 0, 0);
    for original in files() {
        let expected = answers(&Trie::from_bytes(&original, FileOptions::default()).unwrap()).unwrap();
        let built = Trie::from_bytes(&original, FileOptions::default().with_verify(true)).unwrap();
        assert_eq!(answers(&built).unwrap(), expected);
        for bit in (0..8 * original.len()).step_by(test_budget::every()) {
            let mut file = original.clone();
            file[bit / 8] ^= 1 << (bit % 8);
            sign(&mut file);
            let Ok(trie) = Trie::from_bytes(&file, FileOptions::default()) else {
                refused += 1;
                continue;
            };
            match answers(&trie) {
                Ok(found) => {
                    assert_eq!(found, expected, "bit {bit} of a file of {} bytes", original.len());
                    same += 1;
                }
                Err(error) => {
                    assert!(matches!(error, ChooseError::Damaged(_)), "{error}");
                    noticed += 1;
                    wrong += usize::from(!trie.leaves().eq(built.leaves()));
                }
            }
        }
    }
    let least = [3000, 1000].map(|least| least / test_budget::every());
    assert!(
        refused > least[0] && noticed > least[0] && wrong > least[1] && same > least[1],
        "{refused} {noticed} {wrong} {same}"
    );
}

#[test]
fn a_file_is_read_whole_once() {
    let trie = set(&[("a", &[1, 2]), ("b", &[3])]);
    assert_eq!(trie.verify(), Ok(()));
    let good = bytes(&trie, None);
    for verify in [true, false] {
        let opened = Trie::from_bytes(&good, FileOptions::default().with_verify(verify)).unwrap();
        assert_eq!((opened.verify(), opened.verify()), (Ok(()), Ok(())));
    }
    let mut bad = good.clone();
    *bad.last_mut().unwrap() ^= 1;
    let opened = Trie::from_bytes(&bad, FileOptions::default()).unwrap();
    let said = opened.verify().unwrap_err();
    assert!(matches!(said, Damage { .. }));
    assert_eq!(opened.clone().with_heal_bytes(2).verify(), Err(said.clone()), "clones know it, too");
    let part = Sequence::new([AnyConstraint::from(&trie), AnyConstraint::from(&opened)]).unwrap();
    let mut table = Table::new(Model { seed: 1, odd: false, starved: false });
    for constraint in [AnyConstraint::from(&opened), AnyConstraint::new(part)] {
        let error = choose(&mut table, &ids(&[1]), constraint, &ChooseOptions::new()).unwrap_err();
        assert_eq!(error, ChooseError::Damaged(said.clone()));
    }
    assert!(table.asked.is_empty());
    assert_eq!(
        opened.leaf(LeafId::new(0)).map(|leaf| leaf.tokens),
        Some(ids(&[1, 2])),
        "what is not read is not refused"
    );
}

/// A constraint that reads its set from a file when it is asked for it.
#[derive(Debug)]
struct Late(Vec<u8>);

impl Constraint for Late {
    type State = ();

    fn start(&self) {}

    fn next<'a>(&'a self, (): &'a (), _: &'a mut Scratch) -> Next<'a> {
        Next { tokens: Tokens::default(), ending: Ending::No }
    }

    fn advance(&self, (): &mut (), _: TokenId) -> Option<Role> {
        None
    }

    fn max_token(&self) -> Option<TokenId> {
        None
    }

    fn to_trie(&self, _: usize) -> Result<Trie, NotListed> {
        Trie::from_bytes(&self.0, FileOptions::default()).map_err(|_| NotListed::Damaged)
    }
}

impl Special for Late {}

#[test]
fn a_set_that_comes_late_is_read_whole_as_well() {
    let mut file = bytes(&set(&[("a", &[1, 2]), ("b", &[3])]), None);
    let mut table = Table::new(Model { seed: 1, odd: false, starved: false });
    let mut choose = |file: &[u8]| {
        let late = AnyConstraint::new(Late(file.to_vec()));
        choose(&mut table, &ids(&[1]), late, &ChooseOptions::new()).map(|choice| choice.ranking.len())
    };
    assert_eq!(choose(&file), Ok(2));
    *file.last_mut().unwrap() ^= 1;
    assert!(matches!(choose(&file), Err(ChooseError::Damaged(_))));
    file.pop();
    assert_eq!(choose(&file), Err(ChooseError::NotListed(NotListed::Damaged)));
}
