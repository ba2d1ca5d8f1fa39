//! Reading all of a set in which several sequences stand for one leaf.

use super::Kind;
use super::header::{CheckResult, wrong};
use trie_core::storage::Graph;
use trie_core::storage::Store;
use trie_core::{Damage, LeafId, NodeId};

/// Checks that a builder could have made these arrays: every walk goes up and ends, and the data about the leaves below
/// a node and about their canonical sequences is true. `ends` are the nodes that end a leaf, and the leaves.
pub(super) fn contents(store: &Store, graph: &Graph, ends: (&[u32], &[u32]), leaves: u32) -> CheckResult {
    edges(store, graph)?;
    self::ends(store, ends, leaves)?;
    check_forced(store, graph)?;
    leaves_below(store, graph, ends, leaves)?;
    depth(store, graph)?;
    canonical(store, graph, leaves)
}

fn family(store: &Store, node: usize) -> std::ops::Range<usize> {
    store.first_child[node] as usize..store.first_child[node + 1] as usize
}

fn edges(store: &Store, graph: &Graph) -> CheckResult {
    let (nodes, edges) = (graph.nodes(), store.tokens.len());
    let mut before = 1;
    for (node, &first) in store.first_child.iter().enumerate() {
        if (first as usize) < before || first as usize > edges || (node < nodes && first as usize <= node) {
            return Err(wrong(Kind::FirstChild, node, format!("{first} after {before}, of {edges} edges")));
        }
        before = first as usize;
    }
    if (store.first_child[0], before) != (1, edges) {
        return Err(wrong(Kind::FirstChild, nodes, "the edges are not numbered from the first to the last"));
    }
    let mut reached = vec![false; nodes];
    for node in 0..nodes {
        for edge in family(store, node) {
            let target = graph.targets[edge] as usize;
            if target <= node || target >= nodes {
                return Err(wrong(Kind::Targets, edge, format!("{target} from node {node} of {nodes}")));
            }
            reached[target] = true;
        }
    }
    match (1..nodes).find(|&node| !reached[node]) {
        Some(node) => Err(wrong(Kind::Targets, 0, format!("nothing leads to node {node}"))),
        None => Ok(()),
    }
}

/// Ends ascend, every leaf has one, and so does every node without children.
fn ends(store: &Store, (nodes, leaves): (&[u32], &[u32]), count: u32) -> CheckResult {
    let mut before = (0, None);
    for (at, (&node, &leaf)) in nodes.iter().zip(leaves).enumerate() {
        let next = before.1.map_or(0, |leaf| leaf + 1);
        if node <= before.0 || node as usize >= store.nodes() {
            return Err(wrong(Kind::EndNodes, at, format!("{node} after {}", before.0)));
        }
        if leaf != next && before.1 != Some(leaf) {
            return Err(wrong(Kind::EndLeaves, at, format!("{leaf}, the next leaf is {next}")));
        }
        before = (node, Some(leaf));
    }
    if before.1.map(|last| last + 1) != Some(count) {
        return Err(Damage::new("header", format!("{count} leaves, the last that ends is {:?}", before.1)));
    }
    let childless = |node: &u32| family(store, *node as usize).is_empty();
    if let Some(node) = (0..store.nodes() as u32).find(|node| childless(node) && nodes.binary_search(node).is_err()) {
        return Err(wrong(Kind::EndNodes, 0, format!("node {node} has no children and ends no leaf")));
    }
    if nodes.iter().copied().filter(|node| !childless(node)).eq(store.inner_terminals.iter().copied()) {
        return Ok(());
    }
    Err(wrong(Kind::InnerTerminals, 0, "not the ends that have children"))
}

fn check_forced(store: &Store, graph: &Graph) -> CheckResult {
    for (node, &edge) in graph.forced.iter().enumerate() {
        if edge != 0 && !family(store, node).contains(&(edge as usize)) {
            return Err(wrong(Kind::Forced, node, format!("edge {edge} is not one of that node")));
        }
    }
    Ok(())
}

/// Checks that everything below a node is below those that lead to it.
fn leaves_below(store: &Store, graph: &Graph, (nodes, leaves): (&[u32], &[u32]), count: u32) -> CheckResult {
    for (node, &end) in graph.leaves_end.iter().enumerate() {
        let below = family(store, node).map(|edge| graph.leaves_end[graph.targets[edge] as usize]).max();
        let own = nodes.binary_search(&(node as u32)).ok().map(|at| leaves[at] + 1);
        if end > count || below.max(own).is_some_and(|least| least > end) {
            return Err(wrong(Kind::LeavesEnd, node, format!("{end} of {count}, and there are more below")));
        }
    }
    Ok(())
}

fn depth(store: &Store, graph: &Graph) -> CheckResult {
    let mut longest = vec![0; graph.nodes()];
    for node in (0..graph.nodes()).rev() {
        longest[node] = family(store, node).map(|edge| longest[graph.targets[edge] as usize] + 1).max().unwrap_or(0);
    }
    if longest[0] == store.max_depth {
        return Ok(());
    }
    Err(Damage::new("header", format!("{} tokens at most, but the longest path has {}", store.max_depth, longest[0])))
}

fn canonical(store: &Store, graph: &Graph, leaves: u32) -> CheckResult {
    let mut before = 0;
    for leaf in 0..leaves {
        let end = graph.canonical_ends[leaf as usize];
        let tokens = graph.canonical(LeafId::new(leaf)).filter(|tokens| end > before && !tokens.is_empty());
        let ends_at = tokens.and_then(|tokens| {
            tokens.iter().try_fold(NodeId::ROOT, |node, token| {
                let (first, children) = store.family(node);
                Some(store.target(node, first + children.binary_search(token).ok()? as u32))
            })
        });
        if ends_at.and_then(|node| store.leaves.leaf(node)) != Some(LeafId::new(leaf)) {
            return Err(wrong(Kind::CanonicalEnds, leaf as usize, "the sequence is none of that leaf's"));
        }
        before = end;
    }
    if before as usize == graph.canonical.len() {
        return Ok(());
    }
    Err(wrong(Kind::Canonical, before as usize, "no leaf has what follows"))
}
