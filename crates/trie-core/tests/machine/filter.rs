//! Filters over tries: against a trie that is made from the leaves that are left.

use crate::common::{Naive, id, ids};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use trie_core::{
    AnyConstraint, ByteTrie, Constraint, Ending, FilterError, FilteredTrie, Leaf, LeafId, LeafSet, NamedLeaf,
    NotListed, Scratch, Span, SpanRules, Status, TokenId, Trie,
};

const VOCABULARY: usize = 70;

/// What is left, as a set of its own.
fn rest(trie: &Trie, left: &BTreeSet<u32>) -> Naive {
    let leaf = |leaf: &u32| trie.leaf(LeafId::new(*leaf)).unwrap();
    let row = |leaf: trie_core::Leaf| (leaf.name.unwrap(), leaf.tokens.iter().map(|token| token.get()).collect());
    Naive { rows: left.iter().map(leaf).map(row).collect() }
}

/// At every prefix the filter allows what a trie of the rest does, whatever the end tokens.
fn alike(filtered: &FilteredTrie, rest: &Naive) -> Result<(), TestCaseError> {
    prop_assert_eq!(filtered.len(), rest.trie().len());
    walks_as(&filtered.clone().into(), rest, |leaf| {
        // Numbers stay those of the whole trie.
        prop_assert_eq!(filtered.trie().find(&leaf.tokens), Some(leaf.index));
        Ok(())
    })
}

/// At every prefix a constraint allows what a trie of these leaves does, whatever the end tokens.
pub(super) fn walks_as(
    constraint: &AnyConstraint,
    rest: &Naive,
    check: impl Fn(&Leaf) -> Result<(), TestCaseError>,
) -> Result<(), TestCaseError> {
    let twin = rest.trie();
    prop_assert_eq!(Constraint::to_trie(constraint, usize::MAX).unwrap(), twin.clone());
    for ends in [&[][..], &[60, 1]] {
        let span = |constraint: AnyConstraint| {
            let rules = SpanRules::for_constraint(constraint, VOCABULARY).unwrap().with_end_tokens(ids(ends)).unwrap();
            Span::new(Arc::new(rules))
        };
        for prefix in rest.prefixes() {
            let (mut one, mut other) = (span(constraint.clone()), span(twin.clone().into()));
            one.accept_all(&ids(&prefix)).unwrap();
            other.accept_all(&ids(&prefix)).unwrap();
            let (mut s, mut t) = (Scratch::default(), Scratch::default());
            prop_assert_eq!(one.allowed(&mut s), other.allowed(&mut t), "after {:?}", &prefix);
            prop_assert_eq!(one.forced().collect::<Vec<_>>(), other.forced().collect::<Vec<_>>());
            prop_assert_eq!(
                (one.status(), one.is_open(), one.ending()),
                (other.status(), other.is_open(), other.ending())
            );
            for token in TokenId::all(VOCABULARY) {
                prop_assert_eq!(one.role_of(token), other.role_of(token), "{} after {:?}", token, &prefix);
            }
            let value = |span: &Span| span.leaf().map(|leaf| (leaf.name, leaf.tokens));
            prop_assert_eq!(value(&one), value(&other));
            if let Some(leaf) = one.leaf() {
                check(&leaf)?;
            }
            let (before, back) = (one.state().clone(), prefix.len().div_ceil(2));
            one.rollback(back).unwrap();
            one.accept_all(&ids(&prefix[prefix.len() - back..])).unwrap();
            prop_assert_eq!(one.state(), &before);
        }
    }
    Ok(())
}

/// Few and many leaves, equally long or not, below few and many first tokens.
pub(super) fn sets() -> impl Strategy<Value = Naive> {
    let row = |tokens: std::ops::Range<u32>, length: std::ops::Range<usize>| {
        ("[a-d]{1,2}", prop::collection::vec(tokens, length))
    };
    prop_oneof![
        prop::collection::vec(row(0..4, 1..5), 1..30),
        prop::collection::vec(row(0..7, 3..4), 1..250),
        prop::collection::vec(row(0..5, 1..6), 100..250),
    ]
    .prop_map(|rows| Naive { rows })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(test_budget::cases(300)))]
    #[test]
    fn a_filter_is_a_set_of_what_is_left(
        set in sets(), picks in prop::collection::vec(any::<u32>(), 1..40), deny in any::<bool>(),
        whole in any::<bool>(),
    ) {
        let trie = set.trie();
        let len = trie.len() as u32;
        // Single leaves, or all that begin alike.
        let mut picked: BTreeSet<u32> = picks.iter().map(|pick| pick % len).collect();
        if whole {
            let first = |leaf: u32| trie.leaf(LeafId::new(leaf)).unwrap().tokens[0];
            let firsts: BTreeSet<TokenId> = picked.iter().take(2).map(|&leaf| first(leaf)).collect();
            picked.extend((0..len).filter(|&leaf| firsts.contains(&first(leaf))));
        }
        let named = LeafSet::from_leaves(trie.len(), picked.iter().rev().map(|&leaf| LeafId::new(leaf))).unwrap();
        let (allowed, left) = if deny {
            (!named, (0..len).filter(|leaf| !picked.contains(leaf)).collect())
        } else {
            (named, picked)
        };
        match trie.filter(&allowed) {
            Ok(filtered) => {
                prop_assert_eq!(filtered.leaves(), allowed.clone());
                prop_assert!((0..len + 2).all(|leaf| filtered.allows(LeafId::new(leaf)) == left.contains(&leaf)));
                alike(&filtered, &rest(&trie, &left))?;
            }
            Err(error) => prop_assert_eq!((error, left.len()), (FilterError::NothingLeft { leaves: trie.len() }, 0)),
        }
    }

    #[test]
    fn what_was_written_is_denied_one_after_the_other(
        set in sets(), base in prop::collection::vec(any::<u32>(), 0..8), deny in any::<bool>(),
        steps in prop::collection::vec(prop::collection::vec(any::<u32>(), 0..6), 1..6),
    ) {
        let trie = set.trie();
        let len = trie.len() as u32;
        let named = LeafSet::from_leaves(trie.len(), base.iter().map(|pick| LeafId::new(pick % len))).unwrap();
        let Ok(mut filtered) = trie.filter(&if deny { !named } else { named }) else { return Ok(()) };
        let mut left: BTreeSet<u32> = filtered.leaves().iter().map(LeafId::get).collect();
        for step in steps {
            let denied: Vec<LeafId> = step.iter().map(|pick| LeafId::new(pick % len)).collect();
            let before = filtered.clone();
            for leaf in &denied {
                left.remove(&leaf.get());
            }
            match filtered.deny(&denied) {
                Ok(fewer) => filtered = fewer,
                Err(error) => {
                    prop_assert_eq!((error, left.len()), (FilterError::NothingLeft { leaves: trie.len() }, 0));
                    return Ok(());
                }
            }
            prop_assert!(before.len() >= filtered.len());
            alike(&filtered, &rest(&trie, &left))?;
        }
    }

    /// Where several sequences stand for one leaf, all of them may come or none, and nothing is a dead end.
    #[test]
    fn graphs_have_no_dead_ends(
        texts in prop::collection::btree_set("[ab]{1,5}", 1..7), longer in prop::collection::vec("[ab]{1,3}", 0..6),
        picks in prop::collection::vec(any::<u32>(), 1..5),
    ) {
        let tokens: Vec<String> = ["a", "b"].into_iter().map(str::to_owned).chain(longer).collect();
        let vocab = ByteTrie::new(tokens.iter().zip(0..).map(|(text, token)| (text.as_bytes(), id(token)))).unwrap();
        let single = |text: &String| text.bytes().map(|byte| id(u32::from(byte - b'a'))).collect::<Vec<_>>();
        let canonical: Vec<Vec<TokenId>> = texts.iter().map(single).collect();
        let leaves = texts.iter().zip(&canonical).map(|(name, tokens)| NamedLeaf { name, tokens });
        let spell = |token: TokenId| tokens[token.index()].as_bytes();
        let leaves: Vec<_> = leaves.collect();
        let trie = Trie::with_partial_tokens(&leaves, &vocab, spell, &|| false).unwrap();
        let len = trie.len() as u32;
        let picked: BTreeSet<u32> = picks.iter().map(|pick| pick % len).collect();
        let all = sequences(&trie);
        for deny in [true, false] {
            let named = LeafSet::from_leaves(trie.len(), picked.iter().map(|&leaf| LeafId::new(leaf))).unwrap();
            let allowed = if deny { !named } else { named };
            let Ok(filtered) = trie.filter(&allowed) else { continue };
            let left: BTreeMap<_, _> =
                all.iter().filter(|(_, leaf)| allowed.contains(**leaf)).map(|(a, b)| (a.clone(), *b)).collect();
            prop_assert_eq!(sequences(&filtered), left.clone());
            if let Ok(fewer) = filtered.deny(&[LeafId::new(picks[0] % len)]) {
                let left = left.into_iter().filter(|(_, leaf)| leaf.get() != picks[0] % len).collect();
                prop_assert_eq!(sequences(&fewer), left);
            }
            if filtered.len() < trie.len() && !trie.is_tree() {
                prop_assert_eq!(Constraint::to_trie(&filtered, 1000).unwrap_err(), NotListed::NotATree);
            }
        }
    }
}

/// Every sequence that ends a value, and the value; none ends where nothing does.
fn sequences<C: Constraint>(constraint: &C) -> BTreeMap<Vec<TokenId>, LeafId> {
    let mut found = BTreeMap::new();
    let mut open = vec![(Vec::new(), constraint.start())];
    let mut scratch = Scratch::default();
    while let Some((tokens, at)) = open.pop() {
        let next = constraint.next(&at, &mut scratch);
        if matches!(next.ending, Ending::May | Ending::Must) {
            found.insert(tokens.clone(), constraint.values(&at, true)[0].index);
        }
        let follow: Vec<TokenId> = next.tokens.iter().collect();
        assert!(!follow.is_empty() || next.ending == Ending::Must, "a dead end after {tokens:?}");
        for token in follow {
            let step = constraint.step(&at, token).unwrap();
            open.push(([tokens.as_slice(), &[token]].concat(), step.state));
        }
    }
    found
}

#[test]
fn filters_that_cannot_be() {
    let trie = Naive { rows: vec![("a".into(), vec![1, 2]), ("b".into(), vec![1, 3])] }.trie();
    assert_eq!(trie.filter(&LeafSet::none(2)).unwrap_err(), FilterError::NothingLeft { leaves: 2 });
    assert_eq!(trie.filter(&LeafSet::full(3)).unwrap_err(), FilterError::OtherTrie { got: 3, leaves: 2 });
    let all = trie.filter(&LeafSet::full(2)).unwrap();
    assert_eq!(all.to_trie(1).unwrap_err(), NotListed::TooMany { limit: 1 });
    assert_eq!(Constraint::to_trie(&all, 2).unwrap(), trie);
    let error = all.deny(&[LeafId::new(0), LeafId::new(2)]).unwrap_err();
    assert_eq!(error, FilterError::NoSuchLeaf { entry: 1, leaf: 2, leaves: 2 });
    let both = [LeafId::new(0), LeafId::new(1)];
    assert_eq!(all.deny(&both).unwrap_err(), FilterError::NothingLeft { leaves: 2 });
    // A state is still a few bytes, and copied.
    let start = all.start();
    let copies = [start, start];
    assert_eq!((size_of_val(&copies), all.ending(&copies[1])), (40, Ending::No));
}

#[test]
fn one_leaf_is_left() {
    let rows = [[1, 2, 3], [1, 2, 4], [1, 5, 6], [7, 8, 9]].map(|row| (String::new(), row.to_vec()));
    let trie = Naive { rows: rows.into() }.trie();
    let left = trie.filter(&LeafSet::from_leaves(4, [LeafId::new(1)]).unwrap()).unwrap();
    let mut span = Span::new(SpanRules::for_constraint(left, 10).unwrap().into());
    assert_eq!(span.forced().collect::<Vec<_>>(), ids(&[1, 2, 4]));
    assert!(span.accept(id(7)).is_err());
    span.accept_all(&ids(&[1, 2])).unwrap();
    assert!(span.accept(id(3)).is_err());
    span.accept(id(4)).unwrap();
    assert_eq!((span.status(), span.leaf().unwrap().index), (Status::Complete, LeafId::new(1)));
}

/// What the cases of others call a ban at the last position, and what goes beyond it.
#[test]
fn bans_reach_up_as_far_as_nothing_else_is_left() {
    let item = |tokens: [u32; 3]| (String::new(), tokens.to_vec());
    let legal = |rows: Vec<(String, Vec<u32>)>, prefix: &[u32]| {
        let trie = Naive { rows }.trie();
        let ban = trie.find(&ids(&[10, 20, 30])).unwrap();
        let left = trie.filter(&!LeafSet::from_leaves(trie.len(), [ban]).unwrap()).unwrap();
        let mut span = Span::new(SpanRules::for_constraint(left, 40).unwrap().into());
        span.accept_all(&ids(prefix)).unwrap();
        span.allowed(&mut Scratch::default()).iter().map(TokenId::get).collect::<Vec<_>>()
    };
    let more = vec![item([10, 20, 29]), item([10, 20, 30]), item([10, 20, 31]), item([10, 21, 5])];
    assert_eq!((legal(more.clone(), &[10, 20]), legal(more, &[10])), (vec![29, 31], vec![20, 21]));
    let alone = vec![item([10, 20, 30]), item([10, 21, 5])];
    assert_eq!(legal(alone, &[10]), [21], "nothing is left below 20");
}
