//! `llama_sampler_init_token_trie` on a llama.cpp in Rust that is handed over. The one of C++ is in
//! `tests/chain/cpp_chain.rs` of llama-sampler. One test: what is handed over is the process's.

mod common;
#[path = "../../llama-callbacks/tests/common/fake_llama.rs"]
mod fake_llama;

use ::llama_callbacks::abi::{self, TokenData};
use common::{one, output, put, said, text};
use fake_llama::{Sampler, TWELVE, alive};
use std::ffi::{CString, c_void};
use tokentrie_c::abi::*;
use tokentrie_c::status::*;
use tokentrie_c::{In, Out};

type Init = unsafe extern "C" fn(*mut llama_sampler_i, *mut c_void) -> *mut llama_sampler;

const PAYLOAD: &str = r#"{"modelId": "m", "descriptors": [
    {"path": "action", "leaves": [{"name": "REPLY", "tokens": [5, 6]}, {"name": "STOP", "tokens": [9]},
                                  {"name": "FAR", "tokens": [90]}]},
    {"path": "color", "leaves": [{"name": "red", "tokens": [7]}]}]}"#;

/// A vocabulary is as large as its address says.
unsafe extern "C" fn n_tokens(vocab: *const llama_vocab) -> i32 {
    vocab.addr() as i32
}

unsafe extern "C" fn is_end(_: *const llama_vocab, token: i32) -> bool {
    token == 2
}

fn vocab(size: usize) -> In<llama_vocab> {
    // SAFETY: nothing reads what it points to.
    unsafe { In::new(std::ptr::without_provenance(size)) }
}

fn make(size: usize, json: &str, mode: i32) -> Option<Sampler<TWELVE>> {
    let json = CString::new(json).unwrap();
    // SAFETY: text that ends with a zero.
    let text = unsafe { In::new(json.as_ptr()) };
    let raw = llama_sampler_init_token_trie(vocab(size), text, mode);
    // The text may go.
    drop(json);
    (!raw.is_null()).then(|| Sampler(raw.cast()))
}

fn left(sampler: &mut Sampler<TWELVE>, ids: &[i32]) -> Vec<i32> {
    let mut data: Vec<TokenData> = ids.iter().map(|&id| TokenData { id, logit: 1.0, p: 0.0 }).collect();
    let array = sampler.apply_to(&mut data, false);
    data[..array.size].iter().map(|candidate| candidate.id).collect()
}

fn leaf(sampler: &Sampler<TWELVE>) -> Option<(u32, String)> {
    let (mut leaf, mut name, mut count) = (99, [0; 16], 0);
    // SAFETY: alive.
    let of = unsafe { In::new(sampler.0.cast_const().cast()) };
    let status = tokentrie_chain_leaf(of, put(&mut leaf), output(&mut name), 16, put(&mut count));
    let name = name[..count].iter().map(|&byte| byte as u8 as char).collect();
    (status == TOKENTRIE_OK).then_some((leaf, name))
}

fn state(sampler: &Sampler<TWELVE>) -> (i32, usize) {
    let (mut state, mut depth) = (-1, 99);
    // SAFETY: alive.
    let of = unsafe { In::new(sampler.0.cast_const().cast()) };
    assert_eq!(tokentrie_chain_state(of, put(&mut state), put(&mut depth)), TOKENTRIE_OK);
    (state, depth)
}

#[test]
fn a_life_in_a_chain_that_was_handed_over() {
    assert!(make(0, PAYLOAD, 0).is_none());
    assert!(said().starts_with("no llama.cpp is loaded"), "{}", said());

    // SAFETY: one function pointer as another with the same arguments.
    let init = unsafe { std::mem::transmute::<*const (), Init>(Sampler::<TWELVE>::INIT as *const ()) };
    let mut api = tokentrie_llama_api {
        size: size_of::<tokentrie_llama_api>() as u32,
        callback_fields: 11,
        sampler_init: Some(init),
        vocab_n_tokens: Some(n_tokens),
        vocab_is_eog: Some(is_end),
    };
    assert_eq!(tokentrie_bind_llama(one(&api)), TOKENTRIE_ERROR_LLAMA);
    assert_eq!(said(), "a table of 11 callbacks is unknown to this version: it knows [6, 10, 12]");
    api.callback_fields = 12;
    assert_eq!(tokentrie_bind_llama(one(&api)), TOKENTRIE_OK);

    for (json, mode, why) in [
        ("{", 0, "payload, line 1"),
        (r#"{"descriptors": []}"#, 0, "no usable leaf"),
        (PAYLOAD, 2, "mode is 2"),
        (PAYLOAD, -1, "mode is -1"),
    ] {
        assert!(make(50, json, mode).is_none());
        assert!(said().contains(why), "{}", said());
    }
    assert!(llama_sampler_init_token_trie(vocab(50), In::null(), 0).is_null());
    assert_eq!(said(), "json is NULL");

    // Leaves that the vocabulary cannot spell are left out; without one nothing is.
    let mut sampler = make(50, PAYLOAD, TOKENTRIE_MODE_SAMPLED).unwrap();
    assert_eq!(left(&mut sampler, &(0..50).collect::<Vec<_>>()), [5, 9]);
    let mut unchecked = make(0, PAYLOAD, TOKENTRIE_MODE_SAMPLED).unwrap();
    assert_eq!(left(&mut unchecked, &(0..100).collect::<Vec<_>>()), [5, 9, 90]);
    let mut greedy = make(50, PAYLOAD, TOKENTRIE_MODE_GREEDY).unwrap();
    assert_eq!(left(&mut greedy, &[9, 5, 3]), [5], "ties go to the lowest id");

    sampler.accept(5);
    assert_eq!((state(&sampler), leaf(&sampler)), ((TOKENTRIE_STATE_ACTIVE, 1), None));
    let copy = sampler.clone();
    sampler.accept(6);
    assert_eq!(state(&sampler), (TOKENTRIE_STATE_COMPLETE, 2));
    assert_eq!(leaf(&sampler), Some((0, "REPLY".to_owned())));
    assert_eq!(state(&copy), (TOKENTRIE_STATE_ACTIVE, 1), "a clone of the chain is its own");

    // SAFETY: alive.
    let of = || unsafe { In::new(sampler.0.cast_const().cast()) };
    assert_eq!(tokentrie_chain_activate(of(), text("color"), 5), TOKENTRIE_OK);
    assert_eq!(tokentrie_chain_activate(of(), text("colour"), 6), TOKENTRIE_ERROR_NOT_ALLOWED);
    assert_eq!(left(&mut sampler, &(0..50).collect::<Vec<_>>()), [7]);

    // A sampler of somebody else is none of ours.
    let mut table = [0_usize; 32];
    let foreign = abi::RawSampler { iface: table.as_mut_ptr().cast(), ctx: std::ptr::null_mut() };
    // SAFETY: alive.
    let foreign = unsafe { In::new((&raw const foreign).cast()) };
    assert_eq!(tokentrie_chain_state(foreign, Out::null(), Out::null()), TOKENTRIE_ERROR_ARGUMENT);
    assert_eq!(tokentrie_chain_state(In::null(), Out::null(), Out::null()), TOKENTRIE_ERROR_ARGUMENT);

    drop((sampler, unchecked, greedy, copy));
    assert_eq!(alive(), 0);
    assert_eq!(tokentrie_bind_llama(In::null()), TOKENTRIE_OK);
    assert!(make(50, PAYLOAD, 0).is_none());
}
