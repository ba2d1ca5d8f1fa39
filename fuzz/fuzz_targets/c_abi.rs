//! Any bytes as a payload of the C library, in JSON and in RTKT: a status and a sentence, or tries that a sampler walks
//! to the end of a leaf.
#![no_main]

#[path = "../../crates/tokentrie-c/tests/common/mod.rs"]
mod common;

use common::{input, put, said, text};
use libfuzzer_sys::fuzz_target;
use tokentrie_c::abi::*;
use tokentrie_c::status::*;
use tokentrie_c::{In, Out};

const N_VOCAB: usize = 1 << 12;

fn refused(status: tokentrie_status) {
    assert!(status < 0 && status != TOKENTRIE_ERROR_PANIC, "{status}");
    assert!(!said().is_empty());
}

fuzz_target!(|bytes: &[u8]| {
    tokentrie_c::rtkt::check(bytes);
    let (mut vocab, mut row) = (0, vec![0.0; N_VOCAB]);
    row.iter_mut().zip(bytes).for_each(|(logit, byte)| *logit = f32::from(*byte));
    assert_eq!(tokentrie_vocab_new(N_VOCAB, In::null(), 0, put(&mut vocab)), TOKENTRIE_OK);
    for json in [true, false] {
        let mut trie = 0;
        let status = if json {
            tokentrie_trie_from_json(text(bytes), bytes.len(), vocab, 0, put(&mut trie))
        } else {
            tokentrie_trie_from_rtkt(input(bytes), bytes.len(), put(&mut trie))
        };
        if status != TOKENTRIE_OK {
            refused(status);
            continue;
        }
        walk(trie, vocab, &row);
        assert_eq!(tokentrie_trie_free(trie), TOKENTRIE_OK);
        refused(tokentrie_trie_free(trie));
    }
    assert_eq!(tokentrie_vocab_free(vocab), TOKENTRIE_OK);
});

/// Greedy to the end of a leaf, which the trie knows.
fn walk(trie: tokentrie_trie, vocab: tokentrie_vocab, row: &[f32]) {
    let mut sampler = 0;
    let status = tokentrie_sampler_new(trie, vocab, In::null(), In::null(), 0, put(&mut sampler));
    if status != TOKENTRIE_OK {
        // RTKT knows no vocabulary.
        return refused(status);
    }
    let (mut state, mut depth, mut taken) = (TOKENTRIE_STATE_ACTIVE, 0, Vec::new());
    while state == TOKENTRIE_STATE_ACTIVE {
        let mut token = -1;
        assert_eq!(tokentrie_sampler_sample(sampler, input(row), row.len(), put(&mut token)), TOKENTRIE_OK);
        assert_eq!(tokentrie_sampler_accept(sampler, input(&[token]), 1), TOKENTRIE_OK);
        taken.push(token);
        assert_eq!(tokentrie_sampler_state(sampler, put(&mut state), put(&mut depth)), TOKENTRIE_OK);
    }
    let (mut leaf, mut found, mut count) = (0, 0, 0);
    let status = tokentrie_sampler_leaf(sampler, put(&mut leaf), Out::null(), 0, put(&mut count));
    assert!(status == TOKENTRIE_OK || status == TOKENTRIE_ERROR_BUFFER);
    // At a leaf that others go on from, the last token may be free text.
    taken.truncate(depth);
    assert_eq!(tokentrie_trie_find(trie, input(&taken), taken.len(), put(&mut found)), TOKENTRIE_OK);
    assert!(status != TOKENTRIE_OK || found == leaf);
    assert_eq!(tokentrie_sampler_free(sampler), TOKENTRIE_OK);
}
