//! Panics in callbacks, which are only visible from inside. They run on a llama.cpp in Rust, as the tests in
//! `tests/callbacks.rs`.

use super::abi;
use super::table::{TABLE, run_guarded};
use super::*;
use abi::{GraphCallbacks, TokenData};
use fake_llama::{Sampler, TWELVE, alive};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use trie_core::{Status, TokenId, Trie};

#[path = "../tests/common/fake_llama.rs"]
mod fake_llama;

thread_local! {
    static PANIC: Cell<bool> = const { Cell::new(false) };
}

/// Called where a state is copied: stands for whatever may fail there.
pub(super) fn panic_where_asked() {
    if PANIC.replace(false) {
        panic_any("as if a copy had failed");
    }
}

/// Panics that are wanted are not printed; the hook is one for all threads, so it looks at the payload.
fn without_noise() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let shown = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !info.payload_as_str().is_some_and(|message| message.starts_with("as if")) {
                shown(info);
            }
        }));
    });
}

fn id(id: u32) -> TokenId {
    TokenId::new(id).unwrap()
}

fn rules() -> Arc<SpanRules> {
    let mut builder = Trie::builder();
    builder.push(Some("a"), &[id(3), id(4)]);
    builder.push(Some("b"), &[id(5)]);
    let rules = SpanRules::for_constraint(builder.build().unwrap(), 8).unwrap();
    Arc::new(rules.with_end_of_generation(vec![id(6)]).unwrap())
}

fn sampler(mode: Mode) -> (Sampler<TWELVE>, SamplerHandle) {
    let sampler = TokenTrieSampler::new(rules(), mode);
    let handle = sampler.handle();
    // SAFETY: it does what `llama_sampler_init` does, and never goes away.
    let init = unsafe { SamplerInit::new(Sampler::<TWELVE>::INIT) };
    (Sampler(sampler.into_raw(init)), handle)
}

/// The tokens that remain, and which of them is selected.
fn remaining_tokens(sampler: &mut Sampler<TWELVE>, ids: impl IntoIterator<Item = i32>) -> (Vec<i32>, i64) {
    let mut data: Vec<TokenData> = ids.into_iter().map(|id| TokenData { id, logit: 1.0, p: 0.0 }).collect();
    let array = sampler.apply_to(&mut data, false);
    (data[..array.size].iter().map(|candidate| candidate.id).collect(), array.selected)
}

fn break_it(handle: &SamplerHandle) {
    without_noise();
    let result: Option<()> = run_guarded(&handle.0, |shared| {
        let _held = shared.lock();
        panic_any("as if a callback had failed");
    });
    assert!(result.is_none());
}

fn assert_closed(sampler: &mut Sampler<TWELVE>) {
    assert_eq!(remaining_tokens(sampler, 0..8), (vec![6], 0), "end of generation, where there is one");
    assert_eq!(remaining_tokens(sampler, [7, 2, 3]), (vec![7], 0), "else the first");
    assert_eq!(remaining_tokens(sampler, []), (vec![], -1));
}

#[test]
fn a_panic_closes_the_sampler_for_ever() {
    let (mut sampler, handle) = sampler(Mode::Sampled);
    assert_eq!(remaining_tokens(&mut sampler, 0..8), (vec![3, 5], -1));
    assert!(!handle.is_poisoned());
    break_it(&handle);
    assert!(handle.status().poisoned);

    sampler.reset();
    handle.reset();
    let mut copy = sampler.clone();
    for sampler in [&mut sampler, &mut copy] {
        assert_closed(sampler);
        sampler.accept(3);
        assert_closed(sampler);
    }
    assert!(handle.is_poisoned());
    let again = TokenTrieSampler::of_handle(&handle).clone();
    assert!(again.handle().is_poisoned(), "a clone of the owner's is closed too");
    drop((sampler, copy));
    assert_eq!((Arc::strong_count(&handle.0), alive()), (1, 0));
}

#[test]
fn a_clone_that_panics_is_closed_and_shares_the_state() {
    without_noise();
    let (mut sampler, handle) = sampler(Mode::Sampled);
    sampler.accept(3);
    PANIC.set(true);
    let mut copy = sampler.clone();
    assert!(!PANIC.get() && handle.is_poisoned());
    assert_eq!(Arc::strong_count(&handle.0), 3, "the handle, the original and the copy");
    assert_closed(&mut copy);
    assert_closed(&mut sampler);
    copy.accept(4);
    assert_eq!((handle.status().depth, handle.leaf().unwrap().name.as_deref()), (2, Some("a")));

    // Each gives back one reference, in any order; later copies have a state of their own and are closed as well.
    let mut third = copy.clone();
    drop(sampler);
    assert_eq!(Arc::strong_count(&handle.0), 2);
    assert_closed(&mut copy);
    drop(copy);
    assert_eq!(Arc::strong_count(&handle.0), 1);
    assert_closed(&mut third);
    drop(third);
    assert_eq!(alive(), 0);
    assert_eq!(handle.state(), Status::Complete);
}

#[test]
fn a_copy_over_a_shell_that_panics_leaves_two_owners() {
    without_noise();
    let ((from, from_handle), (mut to, to_handle)) = (sampler(Mode::Greedy), sampler(Mode::Greedy));
    PANIC.set(true);
    from.copy_to(&mut to);
    assert_eq!((Arc::strong_count(&from_handle.0), Arc::strong_count(&to_handle.0)), (3, 1));
    assert!(from_handle.is_poisoned() && !to_handle.is_poisoned());
    assert_closed(&mut to);
    drop((from, to));
    assert_eq!((Arc::strong_count(&from_handle.0), alive()), (1, 0));
}

#[test]
fn the_owners_clone_may_panic() {
    without_noise();
    let sampler = TokenTrieSampler::new(rules(), Mode::Greedy);
    PANIC.set(true);
    assert!(catch_unwind(AssertUnwindSafe(|| sampler.clone())).is_err(), "it is Rust's to handle");
    assert!(!sampler.handle().is_poisoned());
}

#[test]
fn every_reference_is_given_back_once() {
    let (sampler, handle) = sampler(Mode::Greedy);
    assert_eq!(Arc::strong_count(&handle.0), 2);
    let copy = sampler.clone();
    assert_eq!(Arc::strong_count(&handle.0), 2, "a clone has its own state");
    drop(sampler);
    assert_eq!(Arc::strong_count(&handle.0), 1);
    drop(copy);
    assert_eq!(handle.state(), Status::Active, "the status outlives the chain");
}

#[test]
fn a_library_that_makes_no_sampler_leaves_nothing_behind() {
    let sampler = TokenTrieSampler::new(rules(), Mode::Greedy);
    let handle = sampler.handle();
    // SAFETY: it returns null, as allowed.
    let raw = sampler.into_raw(unsafe { SamplerInit::new(fake_llama::init_nothing) });
    assert!(raw.is_null());
    assert_eq!(Arc::strong_count(&handle.0), 1);
}

#[test]
fn the_graph_side_of_a_sampler_of_the_host_stays_unset() {
    let GraphCallbacks { backend_init, backend_accept, backend_apply, backend_set_input, backend_reset, copy_state } =
        TABLE.graph;
    assert!(backend_init.is_none() && backend_accept.is_none() && backend_apply.is_none());
    assert!(backend_set_input.is_none() && backend_reset.is_none() && copy_state.is_none());
    assert!(TABLE.later.iter().all(|&word| word == 0));
}
