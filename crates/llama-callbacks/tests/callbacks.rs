//! Every path through the callbacks, in a llama.cpp written in Rust: no file, no foreign code, so that valgrind or Miri
//! may watch. What llama.cpp itself makes of them is in `chain/` and `second_llama.rs`.

use crate::common::fake_llama::{SIX, Sampler, TEN, THIRTY, TWELVE, alive};
use crate::common::plain::{Numbers, id, ids, rules, shared_rules};
use llama_callbacks::{
    SamplerCounts, SamplerHandle, SamplerInit, TokenTrieSampler,
    abi::{self, TokenData},
};
use std::collections::BTreeSet;
use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;
use trie_core::{After, Mode, Scratch, SpanRules, Status, TokenId};

const VOCAB: usize = 40;
const LEAVES: &[(&str, &[u32])] =
    &[("a", &[10, 20, 30]), ("b", &[10, 20, 31]), ("c", &[10, 25]), ("d", &[39]), ("e", &[0, 1, 2, 3]), ("f", &[0, 1])];
/// Miri runs a thousand times slower than the machine.
const ROUNDS: u64 = if cfg!(miri) { 5 } else { 500 };

fn init<const LATER: usize>() -> SamplerInit {
    // SAFETY: it does what `llama_sampler_init` does, and never goes away.
    unsafe { SamplerInit::new(Sampler::<LATER>::INIT) }
}

fn start<const LATER: usize>(rules: &Arc<SpanRules>, mode: Mode) -> (Sampler<LATER>, SamplerHandle) {
    let sampler = TokenTrieSampler::new(Arc::clone(rules), mode);
    let handle = sampler.handle();
    (Sampler(sampler.into_raw(init::<LATER>())), handle)
}

fn in_id_order(logits: &[f32]) -> Vec<TokenData> {
    (0..).zip(logits).map(|(id, &logit)| TokenData { id, logit, p: 0.0 }).collect()
}

/// The rest of a chain: the best of what remains, accepted as `llama_sampler_sample` does.
fn step<const LATER: usize>(sampler: &mut Sampler<LATER>, logits: &[f32]) -> i32 {
    let mut data = in_id_order(logits);
    let array = sampler.apply_to(&mut data, false);
    let best = |best: TokenData, next: &TokenData| if next.logit > best.logit { *next } else { best };
    let token = data[..array.size].iter().fold(data[0], best).id;
    sampler.accept(token);
    token
}

/// A life in a chain, on a version with this table.
fn live<const LATER: usize>() {
    let rules = shared_rules(VOCAB, LEAVES);
    let (mut sampler, handle) = start::<LATER>(&rules, Mode::Greedy);
    assert_eq!(sampler.name(), c"token-trie");
    let mut logits = vec![0.0; VOCAB];
    (logits[10], logits[20], logits[25], logits[31], logits[35]) = (9.0, 1.0, 2.0, 5.0, 99.0);
    assert_eq!(step(&mut sampler, &logits), 10);

    let mut copy = sampler.clone();
    assert_eq!(step(&mut sampler, &logits), 25);
    assert_eq!(handle.leaf().unwrap().name.as_deref(), Some("c"));
    logits[20] = 8.0;
    assert_eq!((step(&mut copy, &logits), step(&mut copy, &logits)), (20, 31), "the copy went its own way");
    assert_eq!((handle.counts().accepted, handle.counts().applied), (2, 2), "and left the original alone");

    sampler.reset();
    assert_eq!((handle.state(), handle.status().depth), (Status::Active, 0));
    assert_eq!(step(&mut sampler, &logits), 10);

    // Tokens that no chain of ours would take.
    for token in [-1, i32::MIN, i32::MAX, 35] {
        copy.reset();
        copy.accept(token);
        assert_eq!(step(&mut copy, &logits), 10);
        copy.accept(token);
    }

    let (mut other, other_handle) = start::<LATER>(&rules, Mode::Greedy);
    sampler.copy_to(&mut other);
    assert_eq!(step(&mut other, &logits), 20);
    assert_eq!((handle.status().depth, handle.counts().accepted), (1, 3), "the copy is independent");
    assert_eq!(other_handle.counts().applied, 0, "and nothing is left of what was there before");

    assert_eq!((alive(), handle.holders()), (3, 2));
    drop(other);
    drop(sampler);
    assert_eq!(handle.holders(), 1, "freed with its sampler");
    assert_eq!(step(&mut copy, &logits), 35, "off, after an illegal token");
    drop(copy);
    assert_eq!(alive(), 0);
    assert_eq!(handle.status().path, "action", "the status outlives the samplers");
}

#[test]
fn tables_of_every_length() {
    live::<SIX>();
    live::<TEN>();
    live::<TWELVE>();
    live::<THIRTY>();
}

#[test]
fn two_libraries_in_one_process() {
    let rules = shared_rules(VOCAB, LEAVES);
    let (mut old, old_handle) = start::<SIX>(&rules, Mode::Greedy);
    let (mut new, new_handle) = start::<TWELVE>(&rules, Mode::Greedy);
    let mut logits = vec![0.0; VOCAB];
    logits[39] = 1.0;
    assert_eq!(
        (step(&mut old, &logits), old_handle.state(), new_handle.state()),
        (39, Status::Complete, Status::Active)
    );
    // Each deletes only what it made itself; the fakes check that.
    let copies = (old.clone(), new.clone());
    drop((old, copies.1));
    assert_eq!(step(&mut new, &logits), 39);
    drop((new, copies.0));
    assert_eq!(alive(), 0);
}

#[test]
fn the_function_by_its_address() {
    let function = Sampler::<TEN>::INIT;
    let address = NonNull::new(function as *mut c_void).unwrap();
    let sampler = TokenTrieSampler::new(shared_rules(VOCAB, LEAVES), Mode::Greedy);
    // SAFETY: the address of a function that does what `llama_sampler_init` does.
    let mut sampler = Sampler::<TEN>(sampler.into_raw(unsafe { SamplerInit::from_address(address) }));
    let logits: Vec<f32> = (0..VOCAB).map(|id| id as f32).collect();
    assert_eq!(step(&mut sampler.clone(), &logits), 39);
    assert_eq!(step(&mut sampler, &logits), 39);
}

#[test]
fn freed_shells_and_null_arrays_are_harmless() {
    let (mut sampler, handle) = start::<SIX>(&shared_rules(VOCAB, LEAVES), Mode::Greedy);
    sampler.apply(null_mut());
    let mut nowhere = abi::TokenDataArray { data: null_mut(), size: 0, selected: -1, sorted: false };
    sampler.apply(&raw mut nowhere);
    assert_eq!((nowhere.size, nowhere.selected), (0, -1));
    let empty = sampler.apply_to(&mut [], true);
    assert_eq!((empty.size, empty.selected, empty.sorted), (0, -1, true));

    let counts = handle.counts();
    sampler.free_state();
    sampler.free_state();
    sampler.accept(10);
    sampler.reset();
    let mut data = in_id_order(&[1.0; VOCAB]);
    assert_eq!(sampler.apply_to(&mut data, false).size, VOCAB);
    assert!(sampler.try_clone().is_none());
    assert_eq!((handle.counts(), handle.status().depth), (counts, 0));
}

#[test]
fn any_order_of_dropping() {
    let rules = shared_rules(VOCAB, LEAVES);
    let logits = Numbers(3).logits(VOCAB);
    for order in 0..4 {
        let (sampler, handle) = start::<TWELVE>(&rules, Mode::Sampled);
        let mut copy = sampler.clone();
        match order {
            0 => drop(sampler),
            1 => drop((handle.clone(), sampler)),
            2 => {
                drop(copy);
                copy = sampler;
            }
            _ => sampler.copy_to(&mut copy),
        }
        assert!([0, 10, 39].contains(&step(&mut copy, &logits)));
        drop(copy);
        assert_eq!(handle.status().path, "action");
    }
    let (mut sampler, handle) = start::<TWELVE>(&rules, Mode::Sampled);
    drop((handle, rules));
    step(&mut sampler, &logits);
    drop(sampler);
    assert_eq!(alive(), 0);
}

/// A chain may move to another thread, and its owner may look and steer meanwhile.
#[test]
fn an_owner_in_another_thread() {
    struct Moved(Sampler<TWELVE>);
    // SAFETY: llama.cpp's samplers may be used by any thread, one at a time, and so may ours.
    unsafe impl Send for Moved {}

    let rules = shared_rules(VOCAB, LEAVES);
    let (sampler, handle) = start::<TWELVE>(&rules, Mode::Sampled);
    let logits = Numbers(5).logits(VOCAB);
    let moved = Moved(sampler);
    let steps = std::thread::scope(|scope| {
        let logits = &logits;
        let thread = scope.spawn(move || {
            let mut moved = moved;
            let mut steps = 0;
            for _ in 0..ROUNDS * 4 {
                let mut data = in_id_order(logits);
                let array = moved.0.apply_to(&mut data, false);
                assert!(array.size > 0);
                moved.0.accept(data[0].id);
                moved.0.reset();
                steps += 1;
            }
            (moved, steps)
        });
        let mut own = 0;
        for _ in 0..ROUNDS {
            let SamplerCounts { applied, accepted, ignored, turned_off, .. } = handle.status().counts;
            assert!(accepted + ignored + turned_off <= applied + own);
            own += u64::from(handle.accept_all(&[id(10)]).is_ok());
            handle.reset();
        }
        let (moved, steps) = thread.join().unwrap();
        drop(moved);
        steps
    });
    assert_eq!((handle.counts().applied, alive()), (steps, 0));
}

/// An array as chains bring them: in id order or not, all of the vocabulary or some, with logits that nobody wants.
fn odd_array(numbers: &mut Numbers) -> Vec<TokenData> {
    let wider = numbers.below(3) * 4;
    let mut logits = numbers.logits(VOCAB + wider);
    for odd in [f32::NAN, f32::NEG_INFINITY, f32::INFINITY] {
        for _ in 0..numbers.below(3) * numbers.below(12) {
            let at = numbers.below(logits.len());
            logits[at] = odd;
        }
    }
    let mut data = in_id_order(&logits);
    if numbers.below(2) == 0 {
        for at in 1..data.len() {
            data.swap(at, numbers.below(at + 1));
        }
        data.truncate(numbers.below(data.len() + 1));
    }
    data
}

#[test]
fn random_walks_stay_inside() {
    let ends = rules(VOCAB, LEAVES).with_end_tokens(ids([7, 20, 39])).unwrap();
    let ends = Arc::new(ends.with_end_of_generation(ids([5])).unwrap().with_after(After::Stop).unwrap());
    for (seed, rules) in (0..ROUNDS).flat_map(|seed| [(seed, shared_rules(VOCAB, LEAVES)), (seed, Arc::clone(&ends))]) {
        let mode = if seed % 2 == 0 { Mode::Greedy } else { Mode::Sampled };
        let mut numbers = Numbers(seed + 1);
        let (mut sampler, handle) = start::<TWELVE>(&rules, mode);
        for _ in 0..8 {
            let before = handle.span();
            let mut data = odd_array(&mut numbers);
            let given: BTreeSet<i32> = data.iter().map(|candidate| candidate.id).collect();
            let starved = handle.counts().starved;
            let (mut twin, mut same) = (sampler.clone(), data.clone());
            let twin = twin.apply_to(&mut same, false);
            let array = sampler.apply_to(&mut data, false);
            assert_eq!((array.size, array.selected, array.sorted), (twin.size, twin.selected, twin.sorted));
            let kept = &data[..array.size];
            assert_eq!(kept.is_empty(), given.is_empty(), "seed {seed}");
            if before.status() == Status::Active {
                let legal =
                    |token: i32| before.allowed(&mut Scratch::default()).contains(TokenId::try_from(token).unwrap());
                assert!(kept.iter().all(|candidate| legal(candidate.id)), "seed {seed}: {kept:?}");
                assert!(before.is_open() || kept.iter().all(|candidate| candidate.logit.is_finite()), "seed {seed}");
            }
            if handle.counts().starved == starved {
                let left: BTreeSet<i32> = data.iter().map(|candidate| candidate.id).collect();
                assert_eq!(left, given, "seed {seed}: nothing is lost or doubled");
            }
            if mode == Mode::Greedy && before.status() == Status::Active && !kept.is_empty() {
                assert_eq!((array.size, array.selected), (1, 0), "seed {seed}");
            }
            let next = kept.get(numbers.below(kept.len().max(1))).map_or(-1, |candidate| candidate.id);
            match numbers.below(8) {
                0 => sampler.reset(),
                1 => sampler.accept(numbers.below(VOCAB) as i32 - 1),
                _ => sampler.accept(next),
            }
        }
    }
    assert_eq!(alive(), 0);
}
