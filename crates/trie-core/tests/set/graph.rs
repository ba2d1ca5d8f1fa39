//! Sets in which several sequences stand for one leaf, against lists of all these sequences.

use crate::common::id;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use trie_core::{
    BuildError, ByteTrie, Cursor, ForcedText, LeafId, NamedLeaf, Scratch, Span, SpanRules, TokenId, TokenizationError,
    TokenizedLeaf, Trie,
};

type Sequence = Vec<TokenId>;

/// Tokens by their bytes; a token is its index in the list.
#[derive(Debug, Clone)]
struct Vocab(Vec<Vec<u8>>);

impl Vocab {
    fn by_bytes(&self) -> ByteTrie {
        ByteTrie::new(self.0.iter().enumerate().map(|(token, bytes)| (&bytes[..], id(token as u32)))).unwrap()
    }

    fn bytes(&self, tokens: &[TokenId]) -> Vec<u8> {
        tokens.iter().flat_map(|token| self.0[token.index()].clone()).collect()
    }

    /// Every sequence that spells a text.
    fn tokenizations(&self, text: &[u8]) -> Vec<Sequence> {
        if text.is_empty() {
            return vec![Vec::new()];
        }
        let begins = self.0.iter().enumerate().filter(|(_, bytes)| !bytes.is_empty() && text.starts_with(bytes));
        begins
            .flat_map(|(token, bytes)| {
                let rest = self.tokenizations(&text[bytes.len()..]);
                rest.into_iter().map(move |rest| [vec![id(token as u32)], rest].concat())
            })
            .collect()
    }

    /// A tokenizer of some kind: the fewest tokens, then the smallest.
    fn canonical(&self, text: &[u8]) -> Option<Sequence> {
        self.tokenizations(text).into_iter().min_by_key(|tokens| (tokens.len(), tokens.clone()))
    }

    fn first(&self, texts: &[ForcedText<'_>]) -> Vec<Option<TokenId>> {
        texts.iter().map(|text| self.canonical(text.text.as_bytes()).map(|tokens| tokens[0])).collect()
    }

    fn set(&self, texts: &[String]) -> Result<Trie, TokenizationError> {
        let canonical: Vec<Sequence> =
            texts.iter().map(|text| self.canonical(text.as_bytes()).unwrap_or_default()).collect();
        let leaves: Vec<TokenizedLeaf<'_>> = texts
            .iter()
            .zip(&canonical)
            .map(|(text, canonical)| TokenizedLeaf { name: text, bytes: text.as_bytes(), canonical })
            .collect();
        Trie::all_tokenizations(&leaves, &self.by_bytes(), |texts| self.first(texts), &|| false)
    }
}

/// What a set must do: every sequence and its leaf.
fn check_walks(trie: &Trie, sequences: &BTreeMap<Sequence, usize>) {
    let prefixes: BTreeSet<&[TokenId]> =
        sequences.keys().flat_map(|tokens| (0..=tokens.len()).map(|end| &tokens[..end])).collect();
    for prefix in prefixes {
        let below: Vec<(&Sequence, usize)> = sequences
            .iter()
            .filter(|(tokens, _)| tokens.starts_with(prefix))
            .map(|(tokens, leaf)| (tokens, *leaf))
            .collect();
        let children: BTreeSet<TokenId> =
            below.iter().filter_map(|(tokens, _)| tokens.get(prefix.len()).copied()).collect();
        let at = trie.walk(prefix).unwrap();
        assert_eq!(trie.children(at), Vec::from_iter(children), "after {prefix:?}");
        assert_eq!(at.depth(), prefix.len());
        assert_eq!(trie.leaf_at(at).map(LeafId::index), sequences.get(prefix).copied());
        assert_eq!(trie.is_terminal(at), sequences.contains_key(prefix));
        let range = trie.leaves_below(at);
        assert!(below.iter().all(|(_, leaf)| range.contains(&(*leaf as u32))), "{range:?} after {prefix:?}: {below:?}");
        assert_eq!(trie.ancestor(at, 1).is_some(), prefix.is_empty(), "unknown, but for the root");
    }
}

fn texts(pattern: &'static str, most: usize) -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(pattern, 1..most)
}

/// All single characters, or not; and some longer tokens, some of them twice.
fn vocab() -> impl Strategy<Value = Vocab> {
    (any::<bool>(), prop::collection::vec("[abcé]{1,4}", 1..12)).prop_map(|(bytes, texts)| {
        let singles = if bytes { [b'a', b'b', b'c', 0xc3, 0xa9].map(|byte| vec![byte]).to_vec() } else { Vec::new() };
        Vocab(singles.into_iter().chain(texts.into_iter().map(String::into_bytes)).collect())
    })
}

proptest! {
    #[test]
    fn tokenizations_are_all_sequences_that_spell_a_text(vocab in vocab(), texts in texts("[abcé]{1,6}", 7)) {
        let unspelled = texts.iter().position(|text| vocab.canonical(text.as_bytes()).is_none());
        let trie = match (vocab.set(&texts), unspelled) {
            (Err(TokenizationError::NoTokenization { row }), Some(_)) => {
                prop_assert!(vocab.canonical(texts[row].as_bytes()).is_none(), "row {row} has a tokenisation");
                return Ok(());
            }
            (made, None) => made.unwrap(),
            (made, Some(row)) => panic!("row {row} has no tokenisation: {made:?}"),
        };
        let distinct: Vec<&String> = BTreeSet::from_iter(&texts).into_iter().collect();
        let mut sequences = BTreeMap::new();
        for (leaf, text) in distinct.iter().enumerate() {
            sequences.extend(vocab.tokenizations(text.as_bytes()).into_iter().map(|tokens| (tokens, leaf)));
        }
        prop_assert!(!trie.is_tree());
        prop_assert_eq!(trie.len(), distinct.len());
        prop_assert_eq!(trie.max_depth(), sequences.keys().map(Vec::len).max().unwrap());
        check_walks(&trie, &sequences);
        for (leaf, text) in trie.leaves().zip(&distinct) {
            prop_assert_eq!(leaf.name.as_ref(), Some(*text));
            prop_assert_eq!(Some(leaf.tokens), vocab.canonical(text.as_bytes()));
            let row = trie.input_row(leaf.index);
            prop_assert_eq!(row, texts.iter().position(|other| other == *text));
        }
        // What is forced is text that must come anyway, and takes no text away.
        let reach = |at: &[TokenId]| -> BTreeSet<usize> {
            sequences.iter().filter(|(tokens, _)| tokens.starts_with(at)).map(|(_, leaf)| *leaf).collect()
        };
        for sequence in sequences.keys() {
            for end in 0..=sequence.len() {
                let at = trie.walk(&sequence[..end]).unwrap();
                let mut tokens = sequence[..end].to_vec();
                for token in trie.forced(at) {
                    let before = reach(&tokens);
                    prop_assert!(!sequences.contains_key(&tokens), "passes the end of a leaf");
                    tokens.push(token);
                    prop_assert_eq!(before, reach(&tokens), "loses a text");
                }
            }
        }
        // From the root, what the canonical sequences of all texts have in common.
        let canonical: Vec<Sequence> = trie.leaves().map(|leaf| leaf.tokens).collect();
        let common = (0..canonical[0].len()).take_while(|&at| {
            canonical.iter().all(|tokens| tokens.get(at) == canonical[0].get(at))
        }).count();
        let forced: Sequence = trie.forced(Cursor::ROOT).collect();
        prop_assert!(forced.starts_with(&canonical[0][..common]), "{:?} {:?}", forced, canonical);

        let mut other = texts.clone();
        other.reverse();
        prop_assert!(vocab.set(&other).unwrap() == trie, "another order");
    }

    #[test]
    fn partial_tokens_go_on_beyond_a_leaf(
        vocab in vocab(),
        rows in prop::collection::vec(prop::collection::vec(0usize..12, 1..5), 1..7),
    ) {
        let rows: Vec<Sequence> = rows
            .into_iter()
            .map(|row| row.into_iter().map(|token| id((token % vocab.0.len()) as u32)).collect())
            .collect();
        let names: Vec<String> = (0..rows.len()).map(|row| format!("{row}")).collect();
        let leaves: Vec<NamedLeaf<'_>> =
            rows.iter().zip(&names).map(|(tokens, name)| NamedLeaf { name, tokens }).collect();
        let piece = |token: TokenId| &vocab.0[token.index()][..];
        let trie = Trie::with_partial_tokens(&leaves, &vocab.by_bytes(), piece, &|| false).unwrap();

        let own: Vec<&Sequence> = BTreeSet::from_iter(&rows).into_iter().collect();
        let mut sequences: BTreeMap<Sequence, usize> =
            own.iter().enumerate().map(|(leaf, tokens)| ((*tokens).clone(), leaf)).collect();
        let prefixes: BTreeSet<Sequence> =
            own.iter().flat_map(|tokens| (0..=tokens.len()).map(|end| tokens[..end].to_vec())).collect();
        let mut longest: BTreeMap<Sequence, (usize, usize)> = BTreeMap::new();
        for (leaf, tokens) in own.iter().enumerate() {
            for kept in 0..tokens.len() {
                let rest = vocab.bytes(&tokens[kept..]);
                for (token, bytes) in vocab.0.iter().enumerate() {
                    let sequence = [&tokens[..kept], &[id(token as u32)]].concat();
                    if bytes.len() > rest.len() && bytes.starts_with(&rest) && !prefixes.contains(&sequence) {
                        let best = longest.entry(sequence).or_insert((0, leaf));
                        if rest.len() > best.0 {
                            *best = (rest.len(), leaf);
                        }
                    }
                }
            }
        }
        sequences.extend(longest.into_iter().map(|(tokens, (_, leaf))| (tokens, leaf)));
        prop_assert_eq!(trie.len(), own.len());
        // A leaf that another one goes on from ends for good after such a token: nothing may follow it.
        check_walks(&trie, &sequences);
        for (leaf, tokens) in trie.leaves().zip(own) {
            prop_assert_eq!(&leaf.tokens, tokens);
        }
        for tokens in sequences.keys() {
            let at = trie.walk(&tokens[..tokens.len() - 1]).unwrap();
            let only = trie.children(at).len() == 1 && !trie.is_terminal(at);
            prop_assert_eq!(trie.forced(at).next().is_some(), only);
        }
    }

    #[test]
    fn a_span_goes_back_by_its_own_path(
        vocab in vocab(),
        texts in texts("[abc]{1,6}", 5),
        picks in prop::collection::vec(0usize..9, 1..9),
        back in 0usize..9,
    ) {
        let Ok(trie) = vocab.set(&texts) else { return Ok(()) };
        let rules = SpanRules::for_constraint(trie, vocab.0.len()).unwrap();
        let mut span = Span::new(rules.into());
        let mut seen = vec![span.clone()];
        for pick in picks {
            let allowed: Vec<TokenId> = span.allowed(&mut Scratch::default()).iter().collect();
            if allowed.is_empty() {
                break;
            }
            span.accept(allowed[pick % allowed.len()]).unwrap();
            seen.push(span.clone());
        }
        let back = back.min(seen.len() - 1);
        span.rollback(back).unwrap();
        let then = &seen[seen.len() - 1 - back];
        prop_assert_eq!(span.state(), then.state());
        prop_assert_eq!(span.accepted(), then.accepted());
        span.rollback(span.accepted()).unwrap();
        prop_assert_eq!(span.state().position().as_trie().unwrap().cursor(), Cursor::ROOT);
    }
}

#[test]
fn what_makes_no_set_is_named() {
    let vocab = Vocab(vec![b"a".to_vec(), b"b".to_vec()]);
    let set = |texts: &[&str]| vocab.set(&texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>()).unwrap_err();
    assert_eq!(set(&[]), TokenizationError::Build(BuildError::NoLeaves));
    assert_eq!(set(&["a", ""]), TokenizationError::Build(BuildError::EmptySequence { row: 1 }));
    assert_eq!(set(&["ab", "b", "axa"]), TokenizationError::NoTokenization { row: 2 });
}

#[test]
fn size_does_not_grow_with_the_number_of_tokenizations() {
    let vocab = Vocab((1..=8).map(|length| vec![b'a'; length]).collect());
    let text = "a".repeat(1000);
    let leaf = TokenizedLeaf { name: &text, bytes: text.as_bytes(), canonical: &vec![id(7); 125] };
    let trie = Trie::all_tokenizations(&[leaf], &vocab.by_bytes(), |texts| vec![None; texts.len()], &|| false).unwrap();
    assert_eq!((trie.len(), trie.nodes(), trie.max_depth()), (1, 1001, 1000));
    assert!(trie.nbytes() < 80_000, "{}", trie.nbytes());
    assert_eq!(trie.forced(Cursor::ROOT).collect::<Vec<_>>(), vec![id(7); 125]);
    assert_eq!(trie.find(&vec![id(0); 1000]), Some(LeafId::new(0)));
    assert_eq!(trie.find(&vec![id(0); 999]), None);
}

#[test]
fn whoever_waits_can_stop_it() {
    let vocab = Vocab(vec![b"a".to_vec(), b"aa".to_vec()]);
    let text = "a".repeat(10_000);
    let leaf = TokenizedLeaf { name: "a", bytes: text.as_bytes(), canonical: &[id(1)].repeat(5000) };
    let asked = std::cell::Cell::new(0);
    let stop = || {
        asked.set(asked.get() + 1);
        asked.get() == 2
    };
    let made = Trie::all_tokenizations(&[leaf], &vocab.by_bytes(), |texts| vec![None; texts.len()], &stop);
    assert_eq!(made, Err(TokenizationError::Build(BuildError::Stopped)));
    assert_eq!(asked.get(), 2);
    let leaf = NamedLeaf { name: "a", tokens: &[id(0)].repeat(5000) };
    let made = Trie::with_partial_tokens(&[leaf], &vocab.by_bytes(), |token| &vocab.0[token.index()], &|| true);
    assert_eq!(made, Err(BuildError::Stopped));
}
