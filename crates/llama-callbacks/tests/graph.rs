//! A sampler in a compute graph, under a llama.cpp in Rust: what its nodes are filled with, and when it closes.

use crate::common::fake_llama::{Sampler, TWELVE, alive};
use crate::common::plain::{id, ids, rules, trie};
use llama_callbacks::abi::{BufferType, GraphCallbacks, GraphContext, SamplerData};
use llama_callbacks::{GraphFunctions, GraphInputs, GraphOptions, SamplerHandle, SamplerInit, TokenTrieSampler};
use std::cell::{Cell, RefCell};
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;
use trie_core::{After, AnyConstraint, Mode, SpanRules, Unconstrained};

const VOCAB: usize = 8;
const LEAVES: &[(&str, &[u32])] = &[("a", &[3, 4]), ("b", &[5, 1]), ("c", &[5, 2]), ("d", &[5, 7])];

thread_local! {
    /// What the inputs hold.
    static FILLED: RefCell<(Vec<i32>, Vec<f32>)> = const { RefCell::new((Vec::new(), Vec::new())) };
    /// The length of the row of a graph that is built now; 0 if candidates are set.
    static WIDTH: Cell<usize> = const { Cell::new(VOCAB) };
}

unsafe fn supports(_: *mut BufferType) -> bool {
    true
}

unsafe fn gather(_: *mut GraphContext, data: &mut SamplerData, most: usize) -> GraphInputs {
    data.candidates = NonNull::dangling().as_ptr();
    let width = WIDTH.get();
    GraphInputs { ids: null_mut(), bias: null_mut(), length: most.min(VOCAB), width }
}

unsafe fn fill(_: GraphInputs, ids: &[i32], bias: &[f32]) {
    FILLED.set((ids.to_vec(), bias.to_vec()));
}

fn stop_rules() -> SpanRules {
    let rules = rules(VOCAB, LEAVES).with_end_of_generation(ids([6])).unwrap();
    rules.with_after(After::Stop).unwrap()
}

fn sampler(rules: SpanRules, most: usize, weighed: bool) -> (Sampler<TWELVE>, SamplerHandle) {
    // SAFETY: it does what `llama_sampler_init` does, and never goes away.
    let init = unsafe { SamplerInit::new(Sampler::<TWELVE>::INIT) };
    // SAFETY: they do what is asked for, in this llama.cpp, and do not unwind.
    let functions = unsafe { GraphFunctions::new(init, supports, gather, fill) };
    let sampler = TokenTrieSampler::new(Arc::new(rules), Mode::Sampled);
    let handle = sampler.handle();
    (Sampler(sampler.into_raw_in_graph(GraphOptions { functions, most, weighed })), handle)
}

/// The callbacks of a graph, as llama.cpp finds them.
fn callbacks(sampler: &Sampler<TWELVE>) -> GraphCallbacks {
    // SAFETY: alive while it is borrowed.
    let iface = unsafe { (*sampler.0).iface };
    // SAFETY: a static table.
    unsafe { (*iface).graph }
}

fn starts(sampler: &Sampler<TWELVE>, rows: u32) -> bool {
    let init = callbacks(sampler).backend_init.unwrap();
    // SAFETY: a callback on its own sampler.
    unsafe { init(sampler.0, null_mut(), rows) }
}

/// Builds a graph, and returns whether it has candidates.
fn build(sampler: &Sampler<TWELVE>) -> bool {
    let (reset, apply) = (callbacks(sampler).backend_reset.unwrap(), callbacks(sampler).backend_apply.unwrap());
    let mut data = SamplerData { logits: null_mut(), probs: null_mut(), sampled: null_mut(), candidates: null_mut() };
    // SAFETY: a callback on its own sampler.
    unsafe { reset(sampler.0) };
    // SAFETY: the same; this graph reads no pointer but that of the data.
    unsafe { apply(sampler.0, null_mut(), null_mut(), &raw mut data) };
    !data.candidates.is_null()
}

/// What the inputs hold before the graph runs.
fn filled(sampler: &Sampler<TWELVE>) -> (Vec<i32>, Vec<f32>) {
    FILLED.set((Vec::new(), Vec::new()));
    let set_input = callbacks(sampler).backend_set_input.unwrap();
    // SAFETY: a callback on its own sampler.
    unsafe { set_input(sampler.0) };
    FILLED.take()
}

const REST: f32 = f32::NEG_INFINITY;

#[test]
fn inputs_hold_the_legal_tokens_and_repeat_the_first() {
    let (mut sampler, handle) = sampler(stop_rules(), 4, false);
    assert!(starts(&sampler, 1) && !starts(&sampler, 2), "one state, one row");
    assert_eq!(filled(&sampler), (vec![], vec![]), "no graph yet");
    assert!(build(&sampler));
    let (tokens, bias) = filled(&sampler);
    assert_eq!((tokens, bias.clone()), (vec![3, 5, 3, 3], vec![0.0, 0.0, REST, REST]));
    assert!(bias[0].is_sign_negative() && (-0.0f32 + bias[0]).is_sign_negative(), "every bit of a logit is kept");
    sampler.accept(5);
    assert_eq!(filled(&sampler), (vec![1, 2, 7, 1], vec![0.0, 0.0, 0.0, REST]));
    sampler.accept(7);
    assert_eq!(filled(&sampler).0, [6; 4], "the end of generation");
    handle.reset();
    assert_eq!(filled(&sampler).0, [3, 5, 3, 3]);
    drop(sampler);
    assert_eq!((handle.holders(), alive()), (1, 0));
}

#[test]
fn weights_are_added_where_the_graph_draws() {
    let set = trie(&[("a", &[3]), ("b", &[5])]);
    let edges = vec![0.0, 1.5, -2.0];
    let rules = SpanRules::for_constraint(set.with_weights(edges, Vec::new()).unwrap(), VOCAB).unwrap();
    for (weighed, expected) in [(true, [1.5, -2.0]), (false, [0.0, 0.0])] {
        let (sampler, _) = sampler(rules.clone(), 2, weighed);
        build(&sampler);
        assert_eq!(filled(&sampler), (vec![3, 5], expected.to_vec()));
    }
}

#[test]
fn what_the_nodes_cannot_gather_closes_the_sampler() {
    let closed = (vec![6, 6], vec![0.0, REST]);
    // Three are allowed, and two have room.
    let (mut few, handle) = sampler(stop_rules(), 2, false);
    build(&few);
    few.accept(5);
    assert_eq!((filled(&few), handle.count_allowed(2), handle.count_allowed(3)), (closed.clone(), None, Some(3)));
    // Every token is allowed.
    let free = SpanRules::for_constraint(AnyConstraint::new(Unconstrained), VOCAB).unwrap();
    let (free, handle) = sampler(free.with_end_of_generation(ids([6])).unwrap(), 2, false);
    build(&free);
    assert_eq!((filled(&free), handle.count_allowed(usize::MAX)), (closed.clone(), None));
    // A row that is shorter than the vocabulary, and one that is no whole row any more.
    for (width, expected) in [(4, 0), (0, 6)] {
        let (sampler, _) = sampler(stop_rules(), 2, false);
        WIDTH.set(width);
        build(&sampler);
        WIDTH.set(VOCAB);
        assert_eq!(filled(&sampler).0, [expected; 2], "a row of {width}");
    }
    // No place at all: the host is asked.
    assert!(!starts(&sampler(stop_rules(), 0, false).0, 1));
}

#[test]
fn copies_leave_nodes_where_they_are() {
    let (mut from, _) = sampler(stop_rules(), 4, false);
    let (to, to_handle) = sampler(stop_rules(), 4, false);
    build(&to);
    from.accept(5);
    let copy_state = callbacks(&from).copy_state.unwrap();
    // SAFETY: two living samplers with one table.
    unsafe { copy_state(from.0, to.0) };
    assert_eq!((filled(&to).0, filled(&from).0), (vec![1, 2, 7, 1], vec![]));
    assert_eq!(to_handle.status().depth, 1);
    let clone = from.clone();
    assert_eq!(filled(&clone).0, [], "a clone is in no graph");
    build(&clone);
    assert_eq!(filled(&clone).0, [1, 2, 7, 1]);
    let other = TokenTrieSampler::of_handle(&to_handle);
    other.handle().accept_all(&[id(7)]).unwrap();
    assert_eq!(filled(&to).0, [6; 4], "one state");
    drop((from, to, clone));
    assert_eq!(alive(), 0);
}
