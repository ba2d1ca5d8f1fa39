//! The sampler on hand-made candidate arrays, and against a naive twin. They come through the callbacks, from a
//! llama.cpp in Rust.

use crate::common::fake_llama::TWELVE;
use crate::common::plain::{Applied, id, ids, in_id_order, rules, shared_rules};
use llama_callbacks::{SamplerInit, TokenTrieSampler, abi::TokenData};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use trie_core::storage::{LeafTable, PackedInts, Store};
use trie_core::{
    After, AnyConstraint, Budget, Mode, Scratch, Sequence, Span, SpanRules, Status, ThinkGate, ThinkOptions, TokenId,
    Trie, Unconstrained,
};

const LEAVES: &[(&str, &[u32])] = &[("THINK", &[5, 6]), ("STOP", &[2]), ("WAIT", &[5, 7])];

type Sampler = crate::common::fake_llama::Sampler<TWELVE>;

fn with_leaves(mode: Mode) -> (Sampler, llama_callbacks::SamplerHandle) {
    with_rules(shared_rules(10, LEAVES), mode)
}

fn with_rules(rules: Arc<SpanRules>, mode: Mode) -> (Sampler, llama_callbacks::SamplerHandle) {
    let sampler = TokenTrieSampler::new(rules, mode);
    let handle = sampler.handle();
    // SAFETY: it does what `llama_sampler_init` does, and never goes away.
    let init = unsafe { SamplerInit::new(Sampler::INIT) };
    (crate::common::fake_llama::Sampler(sampler.into_raw(init)), handle)
}

fn apply(sampler: &mut Sampler, candidates: &[(i32, f32)], sorted: bool) -> Applied {
    let mut data: Vec<TokenData> = candidates.iter().map(|&(id, logit)| TokenData { id, logit, p: 0.0 }).collect();
    let after = sampler.apply_to(&mut data, sorted);
    let backing: Vec<(i32, f32)> = data.iter().map(|one| (one.id, one.logit)).collect();
    let selected = usize::try_from(after.selected).ok();
    Applied { kept: backing[..after.size].to_vec(), backing, sorted: after.sorted, selected }
}

#[test]
fn id_order_shrinks_to_the_allowed() {
    let (mut sampler, handle) = with_leaves(Mode::Sampled);
    let logits: Vec<f32> = (0..10).map(|n| n as f32 / 4.0).collect();
    let after = apply(&mut sampler, &in_id_order(&logits), false);
    assert_eq!(after.kept, [(2, 0.5), (5, 1.25)]);
    assert!(!after.sorted && after.selected.is_none());
    assert_eq!((handle.counts().applied, handle.counts().starved), (1, 0));

    let (mut sampler, _) = with_leaves(Mode::Greedy);
    let after = apply(&mut sampler, &in_id_order(&logits), false);
    assert_eq!((after.kept.as_slice(), after.token(), after.sorted), (&[(5, 1.25)][..], Some(5), true));
}

#[test]
fn other_orders_are_scanned_and_keep_theirs() {
    for mode in [Mode::Sampled, Mode::Greedy] {
        let (mut sampler, _) = with_leaves(mode);
        let after = apply(&mut sampler, &[(9, 9.0), (5, 4.0), (1, 3.0), (2, 2.0)], true);
        assert!(after.sorted);
        assert_eq!(after.kept_ids(), if mode == Mode::Sampled { vec![5, 2] } else { vec![5] });
        assert_eq!((after.logit(5), after.logit(2)), (4.0, 2.0));
        assert_eq!((after.logit(9), after.logit(1)), (f32::NEG_INFINITY, f32::NEG_INFINITY));
    }
    // In id order by accident at one of the two: the order is lost, and the flag says so.
    let (mut sampler, _) = with_leaves(Mode::Sampled);
    let after = apply(&mut sampler, &[(7, 9.0), (1, 8.0), (2, 7.0), (5, 6.0)], false);
    assert_eq!(BTreeSet::from_iter(after.kept_ids()), BTreeSet::from([2, 5]));
    assert!(!after.sorted);
}

#[test]
fn ties_and_infinities() {
    let (mut greedy, _) = with_leaves(Mode::Greedy);
    assert_eq!(apply(&mut greedy, &[(5, 1.0), (2, 1.0)], false).token(), Some(2));
    assert_eq!(apply(&mut greedy, &[(5, -0.0), (2, 0.0)], false).token(), Some(2));
    let after = apply(&mut greedy, &[(2, 1.0), (5, f32::INFINITY)], false);
    assert_eq!(after.kept, [(5, 0.0)]);

    let (mut sampled, handle) = with_leaves(Mode::Sampled);
    assert_eq!(apply(&mut sampled, &[(2, 3.0), (5, f32::INFINITY)], false).kept, [(5, 0.0)]);
    assert_eq!(apply(&mut sampled, &[(2, f32::NAN), (5, -7.0)], false).kept, [(5, -7.0)]);
    assert_eq!(apply(&mut sampled, &[(2, f32::NEG_INFINITY), (5, -7.0)], false).kept, [(5, -7.0)]);
    assert_eq!(handle.counts().starved, 0);
}

#[test]
fn starved_arrays_get_the_lowest_legal_token() {
    for mode in [Mode::Greedy, Mode::Sampled] {
        let (mut sampler, handle) = with_leaves(mode);
        let cases: [&[(i32, f32)]; 4] = [
            &[(3, 1.0), (4, 2.0)],
            &[(3, 1.0), (2, f32::NAN), (5, f32::NEG_INFINITY)],
            &[(5, f32::NAN)],
            &[(8, f32::NAN)],
        ];
        for (index, case) in cases.into_iter().enumerate() {
            assert_eq!(apply(&mut sampler, case, false).kept, [(2, 0.0)], "{case:?}");
            assert_eq!(handle.counts().starved, index as u64 + 1);
        }
        // Nothing can be put into an array without room.
        assert!(apply(&mut sampler, &[], false).kept.is_empty());
        assert_eq!(handle.counts().starved, 5);
    }
}

#[test]
fn wide_rows_have_no_legal_tail() {
    let leaves: &[(&str, &[u32])] = &[("A", &[1]), ("AB", &[1, 2])];
    let (mut sampler, handle) = with_rules(shared_rules(4, leaves), Mode::Greedy);
    handle.accept_all(&[id(1)]).unwrap();
    assert!(handle.span().is_open());
    let row = in_id_order(&[0.0, 1.0, 2.0, 3.0, 50.0, 60.0]);
    assert_eq!(apply(&mut sampler, &row, false).token(), Some(3));
    assert_eq!(apply(&mut sampler, &[(0, f32::NAN), (5, 1.0)], false).kept, [(0, 0.0)]);
    assert_eq!(apply(&mut sampler, &[(5, 1.0)], false).kept, [(0, 0.0)]);
    let (mut sampler, handle) = with_rules(shared_rules(4, leaves), Mode::Sampled);
    handle.accept_all(&[id(1)]).unwrap();
    assert_eq!(apply(&mut sampler, &row, false).kept_ids(), [0, 1, 2, 3]);
    assert_eq!(apply(&mut sampler, &row[..4], false).kept_ids(), [0, 1, 2, 3]);
}

/// What an earlier sampler left of a padded row may be as long as the vocabulary by chance.
#[test]
fn what_is_left_of_a_padded_row_is_not_taken_for_the_vocabulary() {
    let options =
        ThinkOptions { begin: ids([9]), end: ids([9]), budget: Some(Budget::tokens(2)), ..ThinkOptions::default() };
    let gate = ThinkGate::new(options, AnyConstraint::new(Unconstrained)).unwrap();
    let rules = Arc::new(SpanRules::for_constraint(AnyConstraint::new(gate), 10).unwrap());
    let left: Vec<(i32, f32)> =
        [0, 1, 2, 3, 4, 5, 6, 7, 9, 11].map(|id| (id, if id == 11 { 50.0 } else { 1.0 })).into();
    for mode in [Mode::Sampled, Mode::Greedy] {
        let (mut sampler, _) = with_rules(Arc::clone(&rules), mode);
        let kept = apply(&mut sampler, &left, false).kept_ids();
        assert!(!kept.contains(&11), "{kept:?}");
        assert!(mode == Mode::Greedy || kept.len() > 5);
    }
}

#[test]
fn tokens_that_cannot_be_refused() {
    let (mut sampler, handle) = with_leaves(Mode::Sampled);
    for token in [3, -1, i32::MAX, i32::MIN] {
        sampler.accept(token);
    }
    assert_eq!((handle.counts().ignored, handle.state()), (4, Status::Active));
    sampler.accept(5);
    sampler.accept(3);
    assert_eq!((handle.counts().turned_off, handle.state()), (1, Status::Off));
    let row = in_id_order(&[f32::NAN; 10]);
    assert_eq!(apply(&mut sampler, &row, false).kept.len(), 10, "off: logits are left alone");
    sampler.reset();
    assert_eq!((handle.state(), handle.status().depth), (Status::Active, 0));
    assert_eq!(handle.counts().turned_off, 1, "a reset does not forget");
}

#[test]
fn after_the_span_only_what_the_rules_say() {
    let stop = rules(10, LEAVES).with_end_of_generation(ids([8, 9])).unwrap().with_after(After::Stop).unwrap();
    let (mut sampler, handle) = with_rules(Arc::new(stop), Mode::Sampled);
    sampler.accept(2);
    assert_eq!(handle.leaf().unwrap().name.as_deref(), Some("STOP"));
    let row = in_id_order(&[1.0; 10]);
    assert_eq!(apply(&mut sampler, &row, false).kept_ids(), [8, 9]);
    handle.deactivate();
    assert_eq!(apply(&mut sampler, &row, false).kept.len(), 10);
    handle.activate("action").unwrap();
    assert_eq!(apply(&mut sampler, &row, false).kept_ids(), [2, 5]);
    assert!(handle.activate("nothing").unwrap_err().to_string().contains("nothing"));

    let ends = rules(10, LEAVES).with_end_tokens(ids([1, 6])).unwrap();
    let (mut sampler, handle) = with_rules(Arc::new(ends), Mode::Sampled);
    for token in [5, 6] {
        sampler.accept(token);
    }
    assert_eq!((handle.state(), apply(&mut sampler, &row, false).kept_ids()), (Status::Active, vec![1, 6]));
    sampler.accept(1);
    assert_eq!((handle.state(), handle.leaf().unwrap().name.as_deref()), (Status::Complete, Some("THINK")));
}

/// What should remain, computed from maps: the tokens with their logits, and whether the array starved.
fn naive(span: &Span, mode: Mode, array: &[(i32, f32)]) -> Option<(BTreeMap<i32, u32>, bool)> {
    let n_vocab = span.rules().n_vocab();
    let legal: BTreeSet<i32> = match span.allowed(&mut Scratch::default()) {
        trie_core::Allowed::All => return None,
        trie_core::Allowed::Open { .. } => (0..n_vocab as i32).collect(),
        trie_core::Allowed::Only { tokens, ends } => {
            tokens.iter().chain(ends.iter().copied()).map(TokenId::as_i32).collect()
        }
        trie_core::Allowed::Nothing => unreachable!("no set here is damaged"),
    };
    if array.is_empty() {
        return Some((BTreeMap::new(), true));
    }
    let kept = array.iter().filter(|(id, _)| legal.contains(id)).map(|&(id, logit)| (id, logit.to_bits()));
    let kept: BTreeMap<i32, u32> = kept.collect();
    if span.is_open() && mode == Mode::Sampled && !kept.is_empty() {
        return (kept.len() < array.len()).then_some((kept, false));
    }
    let usable: BTreeMap<i32, f32> =
        array.iter().copied().filter(|(id, logit)| legal.contains(id) && *logit > f32::NEG_INFINITY).collect();
    let best = usable.values().copied().fold(f32::NEG_INFINITY, f32::max);
    if usable.is_empty() {
        return Some((BTreeMap::from([(*legal.first().unwrap(), 0.0f32.to_bits())]), true));
    }
    let finite = |logit: f32| if logit.is_finite() { logit.to_bits() } else { 0.0f32.to_bits() };
    let mut kept: BTreeMap<i32, u32> = usable
        .iter()
        .filter(|&(_, &logit)| best.is_finite() || logit >= best)
        .map(|(&id, &logit)| (id, finite(logit)))
        .collect();
    if mode == Mode::Greedy {
        let first = *usable.iter().find(|&(_, &logit)| logit >= best).unwrap().0;
        kept.retain(|&id, _| id == first);
    }
    Some((kept, false))
}

fn logit() -> impl Strategy<Value = f32> {
    prop_oneof![
        12 => (-30i32..30).prop_map(|n| n as f32 / 4.0),
        1 => Just(f32::NAN),
        1 => Just(f32::NEG_INFINITY),
        1 => Just(f32::INFINITY),
        1 => Just(-0.0f32),
    ]
}

#[derive(Debug, Clone, Copy)]
enum Order {
    Id,
    Shuffled,
    Sorted,
    Some,
}

fn arrays(n: usize) -> impl Strategy<Value = (Vec<(i32, f32)>, bool)> {
    let order = prop_oneof![Just(Order::Id), Just(Order::Shuffled), Just(Order::Sorted), Just(Order::Some)];
    let row = || prop::collection::vec(logit(), n).prop_map(|logits| in_id_order(&logits));
    (order, row(), row().prop_shuffle(), 0..=n).prop_map(|(order, row, mut shuffled, some)| match order {
        Order::Id => (row, false),
        Order::Shuffled => (shuffled, false),
        Order::Sorted => {
            shuffled.retain(|(_, logit)| !logit.is_nan());
            shuffled.sort_by(|a, b| b.1.total_cmp(&a.1));
            (shuffled, true)
        }
        Order::Some => {
            shuffled.truncate(some);
            (shuffled, false)
        }
    })
}

const VOCAB: usize = 24;

/// Every kind of constraint: mostly a trie, also one after the other, followed by free text, or none.
fn constraint() -> impl Strategy<Value = AnyConstraint> {
    let leaf = prop::collection::vec(0..VOCAB as u32, 1..4);
    let set = prop::collection::vec(leaf, 1..12).prop_map(|leaves| {
        let mut builder = Trie::builder();
        for leaf in leaves {
            builder.push(None, &ids(leaf));
        }
        AnyConstraint::from(builder.build().unwrap())
    });
    let free = || AnyConstraint::new(Unconstrained);
    let sequence = |parts: Vec<AnyConstraint>| AnyConstraint::new(Sequence::new(parts).unwrap());
    let thinking = |then: AnyConstraint, begin: u32, end: Vec<u32>| {
        let budget = Some(Budget::tokens(2));
        let options = ThinkOptions { begin: ids([begin]), end: ids(end), budget, ..ThinkOptions::default() };
        AnyConstraint::new(ThinkGate::new(options, then).unwrap())
    };
    let end = || prop::collection::vec(0..VOCAB as u32, 1..3);
    prop_oneof![
        1 => (set.clone(), 0..VOCAB as u32, end()).prop_map(move |(then, begin, end)| thinking(then, begin, end)),
        1 => (0..VOCAB as u32, end()).prop_map(move |(begin, end)| thinking(free(), begin, end)),
        6 => set.clone(),
        2 => prop::collection::vec(set.clone(), 2..4).prop_map(sequence),
        1 => set.prop_map(move |set| sequence(vec![set, free()])),
        1 => Just(free()),
    ]
}

fn case() -> impl Strategy<Value = (Arc<SpanRules>, Vec<TokenId>)> {
    let tokens = || prop::collection::vec(0..VOCAB as u32, 0..3);
    (constraint(), tokens(), tokens(), any::<bool>(), prop::collection::vec(0..VOCAB as u32, 0..5)).prop_map(
        |(constraint, ends, stops, stop, walk)| {
            let rules = SpanRules::for_constraint(constraint, VOCAB).unwrap();
            let rules = rules.with_end_tokens(ids(ends)).unwrap().with_end_of_generation(ids(stops)).unwrap();
            let rules = match rules.clone().with_after(After::Stop) {
                Ok(stopping) if stop => stopping,
                _ => rules,
            };
            // A walk that mostly stays inside: each number picks among the legal.
            let mut span = Span::new(Arc::new(rules));
            let mut path = Vec::new();
            for step in walk {
                let legal: Vec<TokenId> = span.allowed(&mut Scratch::default()).iter().collect();
                let token = legal.get(step as usize % legal.len().max(1)).copied().unwrap_or(id(step));
                span.accept(token).unwrap();
                path.push(token);
            }
            (Arc::clone(span.rules()), path)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 20 } else { test_budget::cases(10_000) }))]
    #[test]
    fn agrees_with_the_naive_twin(
        (rules, path) in case(),
        (array, sorted) in prop_oneof![4 => arrays(VOCAB), 1 => arrays(VOCAB + 6)],
        greedy in any::<bool>(),
    ) {
        let mode = if greedy { Mode::Greedy } else { Mode::Sampled };
        let (mut sampler, handle) = with_rules(rules, mode);
        for token in &path {
            sampler.accept(token.as_i32());
        }
        let after = apply(&mut sampler, &array, sorted);
        let bits = |pairs: &[(i32, f32)]| pairs.iter().map(|&(id, logit)| (id, logit.to_bits())).collect::<Vec<_>>();

        let Some((expected, starved)) = naive(&handle.span(), mode, &array) else {
            prop_assert_eq!(bits(&after.kept), bits(&array));
            prop_assert_eq!(after.sorted, sorted);
            return Ok(());
        };
        prop_assert_eq!(after.kept.len(), expected.len());
        prop_assert_eq!(BTreeMap::from_iter(bits(&after.kept)), expected);
        prop_assert_eq!(handle.counts().starved, u64::from(starved));
        prop_assert!(!after.sorted || after.kept.is_sorted_by(|a, b| a.1 >= b.1), "sorted, but {:?}", after.kept);
        prop_assert!(after.selected.is_none_or(|at| at < after.kept.len()));
        if greedy && !array.is_empty() {
            prop_assert_eq!(after.selected, Some(0));
        }
        // Nothing is lost or doubled behind what remains.
        if !starved {
            let all = |pairs: &[(i32, f32)]| pairs.iter().map(|pair| pair.0).collect::<BTreeSet<_>>();
            prop_assert_eq!(all(&after.backing), all(&array));
        }
    }
}

/// The set, where this node has lost its children, as in a file that nobody verified.
fn damaged(set: &Trie, node: usize) -> Trie {
    let store = set.store();
    let mut first_child = store.first_child.to_vec();
    first_child.copy_within(node..=node, node + 1);
    let LeafTable::Tail(first, count) = store.leaves else { panic!("its leaves are equally long") };
    Trie::from_store(Store {
        tokens: store.tokens.to_vec().into(),
        first_child: first_child.into(),
        inner_terminals: store.inner_terminals.to_vec().into(),
        leaves: LeafTable::Tail(first, count),
        names: None,
        input_rows: PackedInts::default(),
        max_token: store.max_token,
        max_depth: store.max_depth,
        verified: false,
        unread: None,
        graph: None,
    })
}

/// Inner nodes of an unverified set lose their children: one candidate is left there, however often the chain asks.
#[test]
fn a_damaged_set_never_opens_the_array() {
    let mut builder = Trie::builder();
    for leaf in [&[1u32, 2, 3][..], &[1, 2, 4], &[1, 5, 6], &[7, 8, 9]] {
        builder.push(None, &ids(leaf.iter().copied()));
    }
    let whole = builder.build().unwrap();
    let row: Vec<f32> = (0..VOCAB).map(|id| (id * 7 % 11) as f32).collect();
    let mut closed = 0;
    for (node, mode) in (1..6).flat_map(|node| [(node, Mode::Greedy), (node, Mode::Sampled)]) {
        let rules =
            SpanRules::for_constraint(damaged(&whole, node), VOCAB).unwrap().with_end_of_generation(ids([20])).unwrap();
        let (mut sampler, handle) = with_rules(Arc::new(rules), mode);
        for first in [1, 7] {
            sampler.reset();
            sampler.accept(first);
            for _ in 0..6 {
                if handle.state() != Status::Active {
                    assert!(handle.leaf().is_some(), "node {node}");
                    break;
                }
                let after = apply(&mut sampler, &in_id_order(&row), false);
                assert!(after.kept.len() < 4, "node {node}: {:?}", after.kept);
                if handle.status().damaged {
                    assert_eq!(after.kept_ids(), [20], "the output may end");
                    closed += 1;
                }
                // What the chain would accept.
                sampler.accept(after.kept[0].0);
            }
        }
    }
    assert!(closed > 10, "{closed}");
}
