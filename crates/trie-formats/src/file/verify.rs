//! Checks of a whole file: everything that a walk relies on, and that no other byte has changed.

use super::header::{CheckResult, wrong};
use super::{Header, Kind, verify_graph};
use std::sync::Arc;
use trie_core::storage::Memory;
use trie_core::storage::{LeafTable, Names, Store, Verify};
use trie_core::{Damage, NodeId, TokenId};

/// The contents of a file, which were not looked at when it was opened.
#[derive(Debug)]
pub(super) struct Contents {
    memory: Arc<Memory>,
    header: Header,
}

impl Contents {
    pub(super) fn new(memory: Arc<Memory>, header: Header) -> Self {
        Self { memory, header }
    }
}

impl Verify for Contents {
    fn verify(&self, store: &Store) -> CheckResult {
        let (file, header) = (self.memory.bytes(), &self.header);
        checksums(file, header)?;
        contents(store, header)?;
        heal_bytes(file, header)?;
        end_tokens(file, header)?;
        [Kind::Weights, Kind::EndWeights].into_iter().try_for_each(|kind| finite(file, header, kind))
    }
}

fn checksums(file: &[u8], header: &Header) -> CheckResult {
    for section in header.sections() {
        let found = crc32fast::hash(file.get(section.bytes.clone()).unwrap_or_default());
        if found != section.checksum {
            let reason = format!("the checksum is {found:#010x}, not {:#010x}", section.checksum);
            return Err(Damage::new(format!("section {}", section.kind.name()), reason));
        }
    }
    Ok(())
}

fn heal_bytes(file: &[u8], header: &Header) -> CheckResult {
    match header.section(Kind::HealBytes).and_then(|section| file.get(section.bytes.clone())) {
        Some([0, 0, 0, 0]) => Err(Damage::new("section heal_bytes", "0, which is what no such section means")),
        _ => Ok(()),
    }
}

/// The declared number of ids, ascending and distinct.
fn end_tokens(file: &[u8], header: &Header) -> CheckResult {
    let Some(section) = header.section(Kind::EndTokens) else { return Ok(()) };
    let word = |bytes: &[u8]| bytes.try_into().map_or(u32::MAX, u32::from_le_bytes);
    let words: Vec<u32> = file.get(section.bytes.clone()).unwrap_or_default().chunks(4).map(word).collect();
    let (count, ids) = words.split_first().map_or((0, &[][..]), |(&count, ids)| (count as usize, ids));
    if ids.len() != count {
        return Err(wrong(Kind::EndTokens, 0, format!("{count} tokens, and there are {}", ids.len())));
    }
    let bad = |at: &usize| TokenId::new(ids[*at]).is_none() || (*at > 0 && ids[at - 1] >= ids[*at]);
    match (0..count).find(bad) {
        Some(at) => {
            Err(wrong(Kind::EndTokens, at + 1, format!("{} is not a token id above the one before it", ids[at])))
        }
        None => Ok(()),
    }
}

/// Weights are finite numbers.
fn finite(file: &[u8], header: &Header, kind: Kind) -> CheckResult {
    let bytes = header.section(kind).and_then(|section| file.get(section.bytes.clone())).unwrap_or_default();
    let weights = bytes.as_chunks::<4>().0.iter().map(|&word| f32::from_le_bytes(word));
    match weights.clone().position(|weight| !weight.is_finite()) {
        Some(at) => Err(wrong(kind, at, "a weight that is not finite")),
        None => Ok(()),
    }
}

/// Checks that a builder could have made these arrays.
fn contents(store: &Store, header: &Header) -> CheckResult {
    if let (Some(graph), LeafTable::Ends { nodes, leaves, count }) = (&store.graph, &store.leaves) {
        tokens(store, graph.canonical.iter().copied().max())?;
        verify_graph::contents(store, graph, (nodes, leaves), *count)?;
    } else {
        offsets(store)?;
        tokens(store, None)?;
        levels(store)?;
        leaves(store, header.counts.leaves as usize)?;
    }
    store.names.as_ref().map_or(Ok(()), names)
}

/// Every node but the root is the child of exactly one node before it.
fn offsets(store: &Store) -> CheckResult {
    let nodes = store.tokens.len();
    let mut before = 1;
    for (node, &first) in store.first_child.iter().enumerate() {
        let first = first as usize;
        if first < before || first > nodes || first <= node {
            return Err(wrong(Kind::FirstChild, node, format!("{first} after {before}, of {nodes} nodes")));
        }
        before = first;
    }
    match &store.first_child[..] {
        // The first end of all nodes is the last item.
        [1, .., parent, end] if *parent < *end && *end as usize == nodes => Ok(()),
        [1, end] if *end as usize == nodes => Ok(()),
        _ => Err(wrong(Kind::FirstChild, 0, "the nodes are not numbered from the root to the last parent")),
    }
}

/// Children ascend, and the largest token of all is the one in the header.
fn tokens(store: &Store, other: Option<TokenId>) -> CheckResult {
    let mut highest = other.map_or(0, TokenId::get);
    for (node, family) in store.first_child.windows(2).enumerate() {
        let (begin, end) = (family[0] as usize, family[1] as usize);
        let children = store.tokens.get(begin..end).unwrap_or_default();
        if let Some(at) = children.windows(2).position(|pair| pair[0] >= pair[1]) {
            return Err(wrong(Kind::Tokens, begin + at + 1, format!("children of node {node} do not ascend")));
        }
        highest = highest.max(children.last().map_or(0, |token| token.get()));
    }
    if highest == store.max_token.get() {
        return Ok(());
    }
    Err(Damage::new("section tokens", format!("the largest id is {highest}, in the header {}", store.max_token.get())))
}

/// The first node of each level, from the root's on, and the end of the last one.
fn level_starts(store: &Store) -> Vec<usize> {
    let mut starts = vec![0, 1];
    while let Some(&end) = starts.last()
        && end < store.tokens.len()
    {
        starts.push(store.first_child.get(end).map_or(store.tokens.len(), |&first| first as usize));
    }
    starts
}

fn levels(store: &Store) -> CheckResult {
    let depth = level_starts(store).len() - 2;
    if depth == store.max_depth as usize {
        return Ok(());
    }
    Err(Damage::new("header", format!("leaves of {} tokens, but the deepest has {depth}", store.max_depth)))
}

/// Inner terminals are inner nodes, and leaves are numbered by the order of their sequences.
fn leaves(store: &Store, count: usize) -> CheckResult {
    let mut before = 0;
    for (at, &node) in store.inner_terminals.iter().enumerate() {
        if node <= before || store.children(NodeId::new(node)).is_empty() {
            return Err(wrong(Kind::InnerTerminals, at, format!("{node} is not an inner node after {before}")));
        }
        before = node;
    }
    let parents = store.first_child.windows(2).filter(|family| family[0] < family[1]).count();
    let found = store.tokens.len() - parents + store.inner_terminals.len();
    if found != count {
        return Err(Damage::new("header", format!("{count} leaves, but {found} nodes end one")));
    }
    match &store.leaves {
        LeafTable::Tail(first, _) => {
            let starts = level_starts(store);
            let equally_long = starts[starts.len() - 2] == *first as usize && store.inner_terminals.is_empty();
            if equally_long || terminals(store).eq(*first..*first + count as u32) {
                return Ok(());
            }
            Err(Damage::new("section table", "the leaves are not the last nodes and need leaf_nodes"))
        }
        LeafTable::Ends { .. } => Err(Damage::new("section table", "end_nodes without targets")),
        LeafTable::Table { nodes, by_node } => {
            let mut before = 0;
            for (at, &leaf) in by_node.iter().enumerate() {
                match nodes.get(leaf as usize) {
                    Some(&node) if node > before => before = node,
                    _ => return Err(wrong(Kind::LeavesByNode, at, format!("leaf {leaf} is not the next by node"))),
                }
            }
            match terminals(store).zip(nodes.iter()).position(|(expected, &node)| expected != node) {
                Some(at) => Err(wrong(Kind::LeafNodes, at, format!("node {} does not end this leaf", nodes[at]))),
                None => Ok(()),
            }
        }
    }
}

/// The nodes that end a leaf, depth first: in the order of the leaves.
fn terminals(store: &Store) -> impl Iterator<Item = u32> + '_ {
    let children = |node: u32| {
        let (first, tokens) = store.family(NodeId::new(node));
        first..first + tokens.len() as u32
    };
    let mut open = Vec::from([children(0)]);
    std::iter::from_fn(move || {
        loop {
            let Some(node) = open.last_mut()?.next() else {
                open.pop();
                continue;
            };
            let below = children(node);
            let ends = below.is_empty() || store.inner_terminals.binary_search(&node).is_ok();
            if !below.is_empty() {
                open.push(below);
            }
            if ends {
                return Some(node);
            }
        }
    })
}

fn names(names: &Names) -> CheckResult {
    let text: &[u8] = &names.text;
    if let Err(error) = std::str::from_utf8(text) {
        return Err(wrong(Kind::NameText, error.valid_up_to(), "not UTF-8"));
    }
    // Bytes 0x80 to 0xBF go on with a character that was begun before.
    let between = |end: usize| end == text.len() || text.get(end).is_some_and(|byte| byte & 0xC0 != 0x80);
    let mut before = 0;
    for (leaf, &end) in names.ends.iter().enumerate() {
        let end = end as usize;
        if end < before || !between(end) {
            return Err(wrong(Kind::NameEnds, leaf, format!("{end} after {before}, of {} bytes", text.len())));
        }
        before = end;
    }
    if before == text.len() {
        return Ok(());
    }
    Err(wrong(Kind::NameText, before, "no name holds what follows"))
}
