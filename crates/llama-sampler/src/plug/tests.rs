//! What only the inside can see: panics, raw tables and reference counts.

use super::*;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token::data::LlamaTokenData;
use llama_cpp_2::token::data_array::LlamaTokenDataArray;
use llama_cpp_sys_2::{llama_sampler_copy, llama_sampler_free};
use std::ptr::null_mut;
use trie_core::{State, TokenId, Trie};

fn id(id: u32) -> TokenId {
    TokenId::new(id).unwrap()
}

fn rules() -> Arc<SpanRules> {
    let mut builder = Trie::builder();
    builder.push(Some("a"), &[id(3), id(4)]);
    builder.push(Some("b"), &[id(5)]);
    let rules = SpanRules::new(vec![("p".to_owned(), builder.build().unwrap())], 8).unwrap();
    Arc::new(rules.with_end_of_generation(vec![id(6)]).unwrap())
}

fn array(ids: impl IntoIterator<Item = i32>) -> LlamaTokenDataArray {
    LlamaTokenDataArray::from_iter(ids.into_iter().map(|id| LlamaTokenData::new(LlamaToken(id), 1.0, 0.0)), false)
}

fn ids(array: &LlamaTokenDataArray) -> Vec<i32> {
    array.data.iter().map(|candidate| candidate.id().0).collect()
}

fn break_it(handle: &SamplerHandle) {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let result: Option<()> = guarded(&handle.0, |shared| {
        let _held = shared.lock();
        panic!("as if a callback had failed");
    });
    std::panic::set_hook(hook);
    assert!(result.is_none());
}

#[test]
fn a_panic_closes_the_sampler_for_ever() {
    let sampler = TokenTrieSampler::new(rules(), Mode::Sampled);
    let handle = sampler.handle();
    let mut chain = LlamaSampler::chain([sampler.into_llama_sampler(), LlamaSampler::dist(1)], true);
    assert!(!handle.is_poisoned());
    break_it(&handle);
    assert!(handle.status().poisoned);

    chain.reset();
    let mut copy = chain.clone();
    for chain in [&mut chain, &mut copy] {
        let mut all = array(0..8);
        chain.apply(&mut all);
        assert_eq!(ids(&all), [6], "end of generation, where there is one");
        let mut some = array([7, 2, 3]);
        chain.apply(&mut some);
        assert_eq!((ids(&some), some.selected), (vec![7], Some(0)), "else the first");
        let mut none = array([]);
        TokenTrieSampler::clone(&TokenTrieSampler { shared: Arc::clone(&handle.0) })
            .into_llama_sampler()
            .apply(&mut none);
        assert!(none.data.is_empty());
    }
    assert!(handle.is_poisoned());
}

#[test]
fn every_reference_is_given_back_once() {
    let sampler = TokenTrieSampler::new(rules(), Mode::Greedy);
    let handle = sampler.handle();
    assert_eq!(Arc::strong_count(&handle.0), 2);
    let chain = LlamaSampler::chain([sampler.into_llama_sampler(), LlamaSampler::greedy()], true);
    let copy = chain.clone();
    assert_eq!(Arc::strong_count(&handle.0), 2, "a clone has its own state");
    drop(chain);
    assert_eq!(Arc::strong_count(&handle.0), 1);
    drop(copy);
    assert_eq!(handle.state(), State::Active, "the status outlives the chain");
}

#[test]
fn llama_sampler_copy_moves_the_state() {
    let (from, to) = (TokenTrieSampler::new(rules(), Mode::Greedy), TokenTrieSampler::new(rules(), Mode::Greedy));
    let (from_handle, to_handle) = (from.handle(), to.handle());
    from_handle.accept_all(&[id(3)]).unwrap();
    let (from, to) = (shell(from.shared), shell(to.shared));
    // SAFETY: two live shells of one type.
    unsafe { llama_sampler_copy(from, to) };
    assert_eq!(Arc::strong_count(&to_handle.0), 1, "the old state was freed, and its handle lives on");
    // SAFETY: `to` is alive.
    let depth = unsafe { shared(to) }.unwrap().lock().span.depth();
    assert_eq!(depth, 1);
    // SAFETY: a live shell, with a token that is legal there.
    unsafe { accept(to, 4) };
    assert_eq!((from_handle.status().depth, from_handle.leaf()), (1, None), "the copy is independent");
    for raw in [from, to] {
        // SAFETY: alive until here, and nobody else owns it.
        unsafe { llama_sampler_free(raw) };
    }
    assert_eq!(Arc::strong_count(&from_handle.0), 1);
}

#[test]
fn a_freed_shell_and_a_null_array_are_harmless() {
    let sampler = TokenTrieSampler::new(rules(), Mode::Greedy);
    let handle = sampler.handle();
    let raw = shell(sampler.shared);
    // SAFETY: a live shell; a null array is checked.
    unsafe { apply(raw, null_mut()) };
    let mut empty = llama_token_data_array { data: null_mut(), size: 0, selected: -1, sorted: false };
    // SAFETY: a live shell and an array of nothing.
    unsafe { apply(raw, &raw mut empty) };
    assert_eq!(empty.size, 0);
    // SAFETY: a live shell, whose state goes now.
    unsafe { free(raw) };
    // SAFETY: the shell is alive, its state is not: `free` leaves null.
    unsafe { free(raw) };
    // SAFETY: as before.
    unsafe { accept(raw, 3) };
    // SAFETY: as before.
    unsafe { reset(raw) };
    // SAFETY: as before.
    assert!(unsafe { clone(raw) }.is_null());
    assert_eq!(Arc::strong_count(&handle.0), 1);
    // SAFETY: alive until here.
    unsafe { llama_sampler_free(raw) };
}

#[test]
fn the_device_side_stays_unset() {
    assert!(TABLE.callbacks.backend_init.is_none());
    assert!(TABLE.callbacks.backend_apply.is_none());
    assert!(TABLE.callbacks.copy_state.is_none());
    assert!(TABLE.reserve.iter().all(|&word| word == 0));
}
