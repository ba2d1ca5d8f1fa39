//! The binary form against the cases of other implementations, in the folder that `TOKENTRIE_CASES_DIR` names, or
//! beside the checkout.

use crate::common::{input, output, put, said};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokentrie_c::In;
use tokentrie_c::abi::*;
use tokentrie_c::status::*;

fn cases() -> Option<Vec<Value>> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/cases");
    let folder = std::env::var_os("TOKENTRIE_CASES_DIR").map_or_else(beside, PathBuf::from);
    let Ok(text) = std::fs::read(folder.join("host.json")) else {
        println!("skipped: there is no host.json in {}", folder.display());
        return None;
    };
    let all: Value = serde_json::from_slice(&text).unwrap();
    let of_form = |case: &&Value| case["kind"] == "codec_rtkt_optional";
    Some(all["cases"].as_array().unwrap().iter().filter(of_form).cloned().collect())
}

fn bytes(hex: &str) -> Vec<u8> {
    hex.as_bytes().chunks(2).map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap()).collect()
}

/// Node i of 26 lists every later one.
fn bomb() -> Vec<u8> {
    let mut bytes = b"RTKT\x01\0\0\0\x01\0\0\0x\x1a\0\0\0".to_vec();
    for node in 0..26_u32 {
        bytes.extend(if node == 0 { -1 } else { node as i32 }.to_le_bytes());
        bytes.push(1);
        bytes.extend((25 - node).to_le_bytes());
        bytes.extend((node + 1..26).flat_map(u32::to_le_bytes));
    }
    bytes
}

fn decode(bytes: &[u8]) -> (i32, tokentrie_trie, Duration) {
    let (mut trie, began) = (0, Instant::now());
    let status = tokentrie_trie_from_rtkt(input(bytes), bytes.len(), put(&mut trie));
    (status, trie, began.elapsed())
}

fn encode(trie: tokentrie_trie) -> Vec<u8> {
    let (mut bytes, mut count) = (vec![0; 4096], 0);
    assert_eq!(tokentrie_trie_to_rtkt(trie, output(&mut bytes), 4096, put(&mut count)), TOKENTRIE_OK, "{}", said());
    bytes.truncate(count);
    bytes
}

#[test]
fn cases_of_other_implementations() {
    let Some(cases) = cases() else { return };
    for case in &cases {
        let (id, input_, expect) = (case["id"].as_str().unwrap(), &case["input"], &case["expect"]);
        if let Some(error) = expect["error_contains"].as_str() {
            let bytes = match (input_["hex"].as_str(), input_.get("generate")) {
                (Some(hex), _) => bytes(hex),
                (None, Some(_)) => bomb(),
                // Numbers that are no ids do not come as far as this in C: an id is an int32_t.
                (None, None) => {
                    let mut trie = 0;
                    let ids = [input_["leaf_tokens"][0].as_i64().map_or(-1, |id| id as i32)];
                    let status = tokentrie_trie_from_sequences(
                        input(&ids),
                        1,
                        input(&[1]),
                        In::null(),
                        0,
                        In::null(),
                        1,
                        put(&mut trie),
                    );
                    assert_eq!(status, TOKENTRIE_ERROR_VOCAB, "{id}");
                    continue;
                }
            };
            assert!(expect["byte_length"].as_u64().is_none_or(|length| length == bytes.len() as u64), "{id}");
            let (status, _, took) = decode(&bytes);
            assert_eq!(status, TOKENTRIE_ERROR_PAYLOAD, "{id}");
            assert!(said().contains(error), "{id}: {}", said());
            assert!(took < Duration::from_millis(50), "{id}: {took:?}");
            println!("{id}: refused in {took:?}");
            continue;
        }
        let buffer = bytes(expect["hex"].as_str().unwrap());
        let leaves = expect["decoded_token_sequences_in_order"].as_array().unwrap();
        let (status, trie, _) = decode(&buffer);
        if leaves.is_empty() {
            assert_eq!(status, TOKENTRIE_ERROR_PAYLOAD, "{id}: nothing to choose from");
            continue;
        }
        assert_eq!(status, TOKENTRIE_OK, "{id}: {}", said());
        assert_eq!(encode(trie), buffer, "{id}");
        let (mut path, mut count) = ([0; 64], 0);
        assert_eq!(tokentrie_trie_path(trie, 0, output(&mut path), 64, put(&mut count)), TOKENTRIE_OK);
        let path: Vec<u8> = path[..count].iter().map(|&byte| byte as u8).collect();
        assert_eq!(std::str::from_utf8(&path).unwrap(), expect["decoded_path"], "{id}");
        for (number, tokens) in (0..).zip(leaves) {
            let mut ids = [0; 16];
            assert_eq!(tokentrie_trie_leaf_tokens(trie, number, output(&mut ids), 16, put(&mut count)), TOKENTRIE_OK);
            let expected: Vec<i32> = tokens.as_array().unwrap().iter().map(|id| id.as_i64().unwrap() as i32).collect();
            assert_eq!(ids[..count], expected, "{id}");
        }
        assert_eq!(tokentrie_trie_free(trie), TOKENTRIE_OK);
    }
}
