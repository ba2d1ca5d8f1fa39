//! The binary form of a trie that senders may use in place of JSON. Numbers are little-endian:
//!
//! ```text
//! "RTKT"  version u32 = 1  length of the path u32  path (UTF-8)  nodes u32
//! then each node: token i32 (−1 for node 0, the root)  terminal u8 (0 or 1)  children u32  their numbers u32 …
//! ```
//!
//! A node is the child of exactly one, and the root of none. Names of leaves are not part of it. Buffers come from
//! strangers: nothing is allocated that the bytes do not pay for, nothing recurses, and anything that is not a tree is
//! refused.

use crate::error::{Error, Result};
use crate::status::{TOKENTRIE_ERROR_LIMIT, TOKENTRIE_ERROR_PAYLOAD};
use trie_core::{Cursor, TokenId, Trie, TrieBuilder};

const MAGIC: &[u8; 4] = b"RTKT";
const VERSION: u32 = 1;
/// Bytes of a node without children.
const LEAST_NODE: usize = 9;
const NO_PARENT: u32 = u32::MAX;
const ROOT_TOKEN: i32 = -1;
/// The most tokens of all leaves together: a chain of nodes that all end a leaf has as many as its square.
const MOST_TOKENS: usize = 1 << 26;

#[cold]
fn wrong(reason: impl std::fmt::Display) -> Error {
    Error::new(TOKENTRIE_ERROR_PAYLOAD, format!("RTKT: {reason}"))
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize, what: &str) -> Result<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        let truncated =
            || wrong(format_args!("truncated: {what} at byte {} needs {len}, {} are left", self.at, rest.len()));
        let taken = rest.get(..len).ok_or_else(truncated)?;
        self.at += len;
        Ok(taken)
    }

    fn word(&mut self, what: &str) -> Result<u32> {
        let bytes = self.take(4, what)?;
        Ok(bytes.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte)))
    }
}

#[derive(Clone, Copy)]
struct Node {
    token: i32,
    is_terminal: bool,
    /// Byte at which the numbers of its children begin.
    children: usize,
    n_children: u32,
}

/// A path and the trie that is reached by it.
pub(crate) fn decode(bytes: &[u8]) -> Result<(String, Trie)> {
    let mut reader = Reader { bytes, at: 0 };
    let magic = reader.take(MAGIC.len(), "the magic")?;
    if magic != MAGIC {
        return Err(wrong(format_args!("bad magic {magic:02x?}: it must be {MAGIC:02x?}")));
    }
    let version = reader.word("the version")?;
    if version != VERSION {
        return Err(wrong(format_args!("version {version}: this library reads version {VERSION}")));
    }
    let length = reader.word("the length of the path")? as usize;
    let path = std::str::from_utf8(reader.take(length, "the path")?);
    let path =
        path.map_err(|error| wrong(format_args!("the path is not UTF-8 from byte {} on", error.valid_up_to())))?;
    let nodes = nodes(&mut reader)?;
    check_tree(bytes, &nodes)?;
    Ok((path.to_owned(), build(bytes, &nodes)?))
}

/// All nodes, in their order.
fn nodes(reader: &mut Reader<'_>) -> Result<Vec<Node>> {
    let count = reader.word("the number of nodes")? as usize;
    let left = reader.bytes.len() - reader.at;
    if count > left / LEAST_NODE {
        return Err(wrong(format_args!("truncated: {count} nodes need {LEAST_NODE} bytes each, {left} are left")));
    }
    let mut nodes = Vec::with_capacity(count);
    for number in 0..count {
        let token = reader.word("a token")? as i32;
        let flag = reader.take(1, "a flag")?[0];
        if flag > 1 {
            return Err(wrong(format_args!("node {number}: the flag is {flag}: it must be 0 or 1")));
        }
        if (number == 0) != (token == ROOT_TOKEN) || token < ROOT_TOKEN {
            return Err(wrong(format_args!(
                "node {number}: invalid tokenId {token}: the root has -1, others 0 or more"
            )));
        }
        let n_children = reader.word("a number of children")?;
        let children = reader.at;
        reader.take((n_children as usize).saturating_mul(4), "the children")?;
        nodes.push(Node { token, is_terminal: flag == 1, children, n_children });
    }
    match reader.bytes.len() - reader.at {
        _ if nodes.is_empty() => Err(wrong("it has no nodes: the root is missing")),
        0 => Ok(nodes),
        more => Err(wrong(format_args!("{more} bytes follow the last node"))),
    }
}

fn children<'a>(bytes: &'a [u8], node: &Node) -> impl DoubleEndedIterator<Item = usize> + use<'a> {
    let numbers = bytes[node.children..][..4 * node.n_children as usize].as_chunks::<4>().0;
    numbers.iter().map(|&number| u32::from_le_bytes(number) as usize)
}

/// Checks that every node but the root is the child of one, and reached from the root; and that every path ends at a
/// leaf.
fn check_tree(bytes: &[u8], nodes: &[Node]) -> Result<()> {
    let mut parents = vec![NO_PARENT; nodes.len()];
    for (number, node) in nodes.iter().enumerate() {
        for child in children(bytes, node) {
            let Some(parent) = parents.get_mut(child) else {
                return Err(wrong(format_args!("node {number}: child {child} of {} nodes", nodes.len())));
            };
            if child == 0 {
                return Err(wrong(format_args!("node {number}: the root is its child")));
            }
            if *parent != NO_PARENT {
                return Err(wrong(format_args!("node {child} has multiple parents: {parent} and {number}")));
            }
            *parent = number as u32;
        }
    }
    if let Some(number) = (1..nodes.len()).find(|&number| parents[number] == NO_PARENT) {
        return Err(wrong(format_args!("node {number} is not connected to root")));
    }
    let dead_end = |(number, node): &(usize, &Node)| *number > 0 && node.n_children == 0 && !node.is_terminal;
    if let Some((number, _)) = nodes.iter().enumerate().find(dead_end) {
        return Err(wrong(format_args!("node {number} has no children and ends no leaf")));
    }
    if nodes[0].is_terminal {
        return Err(wrong("the root ends a leaf, which would have no tokens"));
    }
    Ok(())
}

/// The trie of these nodes. Nodes that lead around in a circle are not reached, and noticed by their number.
fn build(bytes: &[u8], nodes: &[Node]) -> Result<Trie> {
    let (mut reached, mut n_tokens) = (0, 0);
    let mut open: Vec<(usize, usize)> = vec![(0, 0)];
    while let Some((number, depth)) = open.pop() {
        reached += 1;
        n_tokens += if nodes[number].is_terminal { depth } else { 0 };
        if n_tokens > MOST_TOKENS {
            let message = format!("RTKT: its leaves have over {MOST_TOKENS} tokens together");
            return Err(Error::new(TOKENTRIE_ERROR_LIMIT, message));
        }
        open.extend(children(bytes, &nodes[number]).map(|child| (child, depth + 1)));
    }
    if reached < nodes.len() {
        let lost = nodes.len() - reached;
        return Err(wrong(format_args!("{lost} nodes lead around in a circle that is not connected to root")));
    }
    let mut builder = TrieBuilder::with_capacity(nodes.len(), n_tokens);
    let mut path: Vec<TokenId> = Vec::new();
    let mut siblings: Vec<i32> = Vec::new();
    open.push((0, 0));
    while let Some((number, depth)) = open.pop() {
        let node = &nodes[number];
        if number > 0 {
            path.truncate(depth - 1);
            path.push(TokenId::try_from(node.token)?);
        }
        if node.is_terminal {
            builder.push(None, &path);
        }
        siblings.clear();
        siblings.extend(children(bytes, node).map(|child| nodes[child].token));
        siblings.sort_unstable();
        let same = |pair: &[i32]| matches!(pair, [one, next] if one == next).then(|| pair[0]);
        if let Some(twice) = siblings.windows(2).find_map(same) {
            return Err(wrong(format_args!("node {number}: two children have the token {twice}")));
        }
        open.extend(children(bytes, node).rev().map(|child| (child, depth + 1)));
    }
    if builder.is_empty() {
        return Err(wrong("no usable leaf: the root has no children"));
    }
    Ok(builder.build()?)
}

/// A trie as bytes, nodes in the order of a walk that takes the lowest token first; `None` is the root alone.
pub(crate) fn encode(path: &str, trie: Option<&Trie>) -> Result<Vec<u8>> {
    let too_large = |what: &str| Error::new(TOKENTRIE_ERROR_LIMIT, format!("RTKT: {what} of 4 GiB or more"));
    let n_path = u32::try_from(path.len()).map_err(|_| too_large("a path"))?;
    if trie.is_some_and(|trie| !trie.is_tree()) {
        return Err(wrong("several sequences of this set stand for one leaf: it is not a tree"));
    }
    trie.map_or(Ok(()), Trie::verify).map_err(wrong)?;
    let n_nodes = trie.map_or(1, Trie::nodes);
    let mut bytes = Vec::with_capacity(16 + path.len() + 13 * n_nodes);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&n_path.to_le_bytes());
    bytes.extend_from_slice(path.as_bytes());
    bytes.extend_from_slice(&u32::try_from(n_nodes).map_err(|_| too_large("nodes"))?.to_le_bytes());
    let Some(trie) = trie else {
        bytes.extend_from_slice(&[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0]);
        return Ok(bytes);
    };
    // Where the number of a node is to be written, which is known once it is met.
    let mut open: Vec<(Cursor, i32, Option<usize>)> = vec![(trie.root(), ROOT_TOKEN, None)];
    let mut number: u32 = 0;
    while let Some((at, token, slot)) = open.pop() {
        if let Some(slot) = slot {
            bytes[slot..slot + 4].copy_from_slice(&number.to_le_bytes());
        }
        number += 1;
        let tokens = trie.children(at);
        bytes.extend_from_slice(&token.to_le_bytes());
        bytes.push(u8::from(trie.is_terminal(at)));
        bytes.extend_from_slice(&(tokens.len() as u32).to_le_bytes());
        let slots = bytes.len();
        bytes.resize(slots + 4 * tokens.len(), 0);
        for (nth, &token) in tokens.iter().enumerate().rev() {
            let child = trie.step(at, token).ok_or_else(|| wrong("the set is damaged: verify its file"))?;
            open.push((child, token.as_i32(), Some(slots + 4 * nth)));
        }
    }
    if number as usize != n_nodes {
        return Err(wrong("the set is damaged: verify its file"));
    }
    Ok(bytes)
}

/// For the fuzzer: a buffer that is taken is written again and means the same.
#[doc(hidden)]
pub fn check(bytes: &[u8]) {
    if let Ok((path, trie)) = decode(bytes) {
        let again = encode(&path, Some(&trie)).map(|bytes| decode(&bytes));
        assert!(again.is_ok_and(|again| again.is_ok_and(|again| again == (path, trie))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::time::{Duration, Instant};

    fn trie(leaves: &[Vec<u32>]) -> Trie {
        let mut builder = TrieBuilder::default();
        for leaf in leaves {
            builder.push(None, &leaf.iter().map(|&id| TokenId::new(id).unwrap()).collect::<Vec<_>>());
        }
        builder.build().unwrap()
    }

    fn bytes(hex: &str) -> Vec<u8> {
        hex.as_bytes().chunks(2).map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap()).collect()
    }

    fn refused(bytes: &[u8]) -> String {
        let began = Instant::now();
        let error = decode(bytes).unwrap_err();
        assert!(began.elapsed() < Duration::from_millis(50));
        error.message
    }

    /// A buffer with these nodes: token, terminal, children.
    fn buffer(nodes: &[(i32, u8, &[u32])]) -> Vec<u8> {
        let mut bytes = b"RTKT\x01\0\0\0\x01\0\0\0x".to_vec();
        bytes.extend((nodes.len() as u32).to_le_bytes());
        for (token, terminal, children) in nodes {
            bytes.extend(token.to_le_bytes());
            bytes.push(*terminal);
            bytes.extend((children.len() as u32).to_le_bytes());
            bytes.extend(children.iter().flat_map(|child| child.to_le_bytes()));
        }
        bytes
    }

    #[test]
    fn a_tree_is_written_as_others_write_it() {
        let many = trie(&[vec![0, 10, 20], vec![0, 10, 30], vec![50000, 100]]);
        let hex = "52544b54010000000c000000736368656d612e6669656c6407000000ffffffff000200000001000000050000000000\
                   00000001000000020000000a000000000200000003000000040000001400000001000000001e000000010000000050c3000\
                   0000100000006000000640000000100000000";
        assert_eq!(encode("schema.field", Some(&many)).unwrap(), bytes(hex));
        assert_eq!(decode(&bytes(hex)).unwrap(), ("schema.field".to_owned(), many));
        let empty = encode("empty", None).unwrap();
        assert_eq!(empty, bytes("52544b540100000005000000656d70747901000000ffffffff0000000000"));
        assert_eq!(refused(&empty), "RTKT: no usable leaf: the root has no children");
    }

    #[test]
    fn what_is_no_tree_is_refused() {
        let root = |children: &'static [u32]| (-1, 0, children);
        let cases: [(&str, Vec<u8>); 12] = [
            ("node 2 has multiple parents: 0 and 1", buffer(&[root(&[1, 2]), (5, 0, &[2]), (6, 1, &[])])),
            ("node 1 has multiple parents: 0 and 0", buffer(&[root(&[1, 1]), (5, 1, &[])])),
            ("node 1 is not connected to root", buffer(&[root(&[2]), (5, 1, &[]), (6, 1, &[])])),
            ("2 nodes lead around in a circle", buffer(&[root(&[3]), (5, 1, &[2]), (6, 1, &[1]), (7, 1, &[])])),
            ("node 1: the root is its child", buffer(&[root(&[1]), (5, 1, &[0])])),
            ("node 0: child 9 of 1 nodes", buffer(&[root(&[9])])),
            ("node 1: invalid tokenId -5", buffer(&[root(&[1]), (-5, 1, &[])])),
            ("node 0: invalid tokenId 3", buffer(&[(3, 0, &[])])),
            ("node 1: the flag is 2", buffer(&[root(&[1]), (5, 2, &[])])),
            ("node 1 has no children and ends no leaf", buffer(&[root(&[1]), (5, 0, &[])])),
            ("node 0: two children have the token 5", buffer(&[root(&[1, 2]), (5, 1, &[]), (5, 1, &[])])),
            ("the root ends a leaf", buffer(&[(-1, 1, &[1]), (5, 1, &[])])),
        ];
        for (said, bytes) in cases {
            let error = refused(&bytes);
            assert!(error.contains(said), "{error}, not {said}");
        }
        assert!(refused(&[0; 16]).contains("bad magic"));
        assert!(refused(b"RTKT\x02\0\0\0").contains("version 2"));
        assert!(refused(b"RTKT\x01\0\0\0\x01\0\0\0\xff\x01\0\0\0").contains("not UTF-8"));
        assert!(refused(b"RTKT\x01\0\0\0\x01\0\0\0x\0\0\0\0").contains("no nodes"));
        let mut more = buffer(&[root(&[1]), (5, 1, &[])]);
        more.push(0);
        assert!(refused(&more).contains("1 bytes follow"));
    }

    #[test]
    fn hostile_sizes_cost_nothing() {
        let huge = |count: u32| [b"RTKT\x01\0\0\0\x01\0\0\0x", &count.to_le_bytes()[..]].concat();
        assert!(refused(&huge(u32::MAX)).contains("truncated: 4294967295 nodes"));
        let mut children = buffer(&[(-1, 0, &[])]);
        let at = children.len() - 4;
        children[at..].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(refused(&children).contains("truncated"));
        assert!(refused(b"RTKT\x01\0\0\0\xff\xff\xff\xff").contains("truncated"));
        // Every node of a chain ends a leaf: n nodes, n²/2 tokens.
        let chain: Vec<[u32; 1]> = (1..20_000).map(|child| [child]).collect();
        let mut nodes: Vec<(i32, u8, &[u32])> = vec![(-1, 0, &chain[0])];
        nodes.extend(chain[1..].iter().map(|child| (7, 1, &child[..])));
        nodes.push((7, 1, &[]));
        assert_eq!(decode(&buffer(&nodes)).unwrap_err().status, TOKENTRIE_ERROR_LIMIT);
        // Node i of 26 lists every later node: 2^24 paths.
        let all: Vec<u32> = (0..26).collect();
        let bomb: Vec<(i32, u8, &[u32])> =
            (0..26).map(|node| (if node == 0 { -1 } else { node as i32 }, 1, &all[node + 1..])).collect();
        assert!(refused(&buffer(&bomb)).contains("multiple parents"));
    }

    #[test]
    fn every_beginning_of_a_buffer_is_truncated() {
        let whole = encode("action", Some(&trie(&[vec![1, 2], vec![1, 2, 3], vec![9]]))).unwrap();
        assert!((0..whole.len()).all(|length| refused(&whole[..length]).contains("truncated")));
    }

    proptest! {
        #[test]
        fn a_set_comes_back(leaves in prop::collection::btree_set(prop::collection::vec(0_u32..6, 1..6), 1..40),
                            path in ".{0,8}") {
            let leaves: BTreeSet<Vec<u32>> = leaves;
            let set = trie(&leaves.into_iter().collect::<Vec<_>>());
            let bytes = encode(&path, Some(&set)).unwrap();
            prop_assert_eq!(decode(&bytes).unwrap(), (path, set));
        }

        #[test]
        fn damaged_buffers_are_refused_or_trees(at in 0_usize..100, with in any::<u8>()) {
            let mut bytes = encode("a", Some(&trie(&[vec![1, 2], vec![1, 3], vec![4]]))).unwrap();
            let at = at % bytes.len();
            bytes[at] = with;
            check(&bytes);
        }
    }
}
