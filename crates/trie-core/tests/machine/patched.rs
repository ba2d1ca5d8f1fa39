//! Sets that are changed: against a trie that is made anew from what is there.

use super::filter::{sets, walks_as};
use crate::common::{Naive, ids};
use proptest::prelude::*;
use std::collections::BTreeMap;
use trie_core::{Changes, Constraint, PatchError, PatchedTrie, TokenId, Trie};

type Leaves = BTreeMap<Vec<u32>, String>;

fn naive(leaves: &Leaves) -> Naive {
    Naive { rows: leaves.iter().map(|(tokens, name)| (name.clone(), tokens.clone())).collect() }
}

/// Leaves that go, by their places among those that are there or by tokens of any kind, and leaves that come.
type Change = (Vec<u32>, Vec<Vec<u32>>, Vec<(String, Vec<u32>)>);

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let tokens = || prop::collection::vec(0u32..5, 1..5);
    let change = (
        prop::collection::vec(any::<u32>(), 0..8),
        prop::collection::vec(tokens(), 0..3),
        prop::collection::vec(("[a-d]{1,2}", tokens()), 0..8),
    );
    prop::collection::vec(change, 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(test_budget::cases(300)))]
    #[test]
    fn it_is_the_set_of_what_is_there(set in sets(), changes in changes()) {
        let mut leaves: Leaves = set.leaves().into_iter().map(|(tokens, (name, _))| (tokens, name)).collect();
        let mut patched = PatchedTrie::new(set.trie()).unwrap();
        for (places, others, come) in changes {
            let places = places.iter().map(|place| leaves.keys().nth(*place as usize % leaves.len()).unwrap().clone());
            let go: Vec<Vec<u32>> = places.chain(others).collect();
            let (before, mut after, mut count) = (patched.clone(), leaves.clone(), Changes::default());
            for tokens in &go {
                let went = after.remove(tokens).is_some();
                *(if went { &mut count.removed } else { &mut count.unchanged }) += 1;
            }
            for (name, tokens) in &come {
                let is_new = !after.contains_key(tokens);
                *(if is_new { &mut count.added } else { &mut count.unchanged }) += 1;
                after.entry(tokens.clone()).or_insert_with(|| name.clone());
            }
            let go: Vec<Vec<TokenId>> = go.iter().map(|tokens| ids(tokens)).collect();
            let come: Vec<_> = come.iter().map(|(name, tokens)| (name, ids(tokens))).collect();
            let (go, come): (Vec<_>, Vec<_>) = (
                go.iter().map(|tokens| &tokens[..]).collect(),
                come.iter().map(|(name, tokens)| (Some(name.as_str()), &tokens[..])).collect(),
            );
            match patched.apply_changes(&go, &come) {
                Ok((now, counted)) => {
                    prop_assert_eq!(counted, count);
                    (patched, leaves) = (now, after);
                }
                Err(error) => {
                    prop_assert_eq!(error, PatchError::NothingLeft);
                    prop_assert!(after.is_empty());
                }
            }
            prop_assert_eq!(patched.len(), leaves.len());
            for (tokens, name) in &leaves {
                prop_assert!(patched.contains(&ids(tokens)));
                prop_assert!(patched.tokens_by_name(name).contains(&ids(tokens)));
            }
            prop_assert!(go.iter().all(|tokens| patched.contains(tokens) == leaves.contains_key(&numbers(tokens))));
            // Whoever walks the set of before goes on in it.
            prop_assert!(before.len() == before.to_trie(usize::MAX).unwrap().len());
            let base = patched.base().len() as u32;
            walks_as(&patched.clone().into(), &naive(&leaves), |leaf| {
                let of_base = patched.base().find(&leaf.tokens);
                prop_assert!(of_base == Some(leaf.index) || leaf.index.get() >= base);
                Ok(())
            })?;
        }
    }
}

fn numbers(tokens: &[TokenId]) -> Vec<u32> {
    tokens.iter().map(|token| token.get()).collect()
}

fn of(rows: &[&[u32]]) -> Trie {
    let mut builder = Trie::builder();
    for tokens in rows {
        builder.push(None, &ids(tokens));
    }
    builder.build().unwrap()
}

#[test]
fn what_cannot_be_changes_nothing() {
    let set = PatchedTrie::new(of(&[&[1, 2], &[1, 3]])).unwrap();
    let (go, come) = (ids(&[1, 2]), ids(&[7]));
    let error = |add: &[(Option<&str>, &[TokenId])]| set.apply_changes(&[&go], add).unwrap_err();
    assert_eq!(error(&[(None, &come), (None, &[])]), PatchError::NoTokens { entry: 1 });
    let named = error(&[(Some("seven"), &come)]);
    assert_eq!(named, PatchError::HalfNamed { entry: 0, set: false });
    assert_eq!(named.to_string(), "entry 0 that is added has a name: the values of the set have none");
    let all: [&[TokenId]; 2] = [&ids(&[1, 2]), &ids(&[1, 3])];
    assert_eq!(set.apply_changes(&all, &[]).unwrap_err(), PatchError::NothingLeft);
    assert_eq!((set.len(), set.patches()), (2, 0));
    let (other, _) = set.apply_changes(&all, &[(None, &come)]).unwrap();
    assert_eq!((other.len(), other.patches(), other.max_token()), (1, 3, TokenId::new(7)));
}

#[test]
fn a_thousand_changes_of_a_large_set_look_at_them_alone() {
    let mut builder = Trie::builder();
    let leaf = |number: u32| ids(&[number % 100, number / 100 % 100, number / 10_000]);
    for number in 0..200_000 {
        builder.push(None, &leaf(number));
    }
    let set = PatchedTrie::new(builder.build().unwrap()).unwrap();
    let go: Vec<_> = (0..500).map(|number| leaf(number * 397)).collect();
    let come: Vec<_> = (0..500).map(|number| leaf(200_000 + number)).collect();
    let (go, come): (Vec<_>, Vec<_>) =
        (go.iter().map(|tokens| &tokens[..]).collect(), come.iter().map(|tokens| (None, &tokens[..])).collect());
    let change = || set.apply_changes(&go, &come).unwrap();
    let (few, _) = test_budget::computed(|| set.apply_changes(&go[..5], &come[..5]).unwrap());
    let (many, (now, changes)) = test_budget::computed(change);
    assert_eq!((now.len(), changes), (200_000, Changes { added: 500, removed: 500, unchanged: 0 }));
    let (whole, twin) = test_budget::computed(|| now.to_trie(usize::MAX).unwrap());
    assert_eq!(twin.len(), now.len());
    println!("ten changes {few:?}, a thousand {many:?}, a trie of all {whole:?}");
    assert!(many < whole);
}
