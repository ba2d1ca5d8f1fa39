//! What is shown of a trie.

use crate::common::{Naive, ids};
use proptest::prelude::*;
use trie_core::Trie;
use trie_formats::{OutlineLimits, OutlineNode, TrieOutline as _};

fn trie(rows: &[&[u32]]) -> Trie {
    Naive { rows: rows.iter().map(|row| (format!("{row:?}"), row.to_vec())).collect() }.trie()
}

fn outline(trie: &Trie, depth: Option<usize>, children: Option<usize>) -> Vec<OutlineNode> {
    trie.outline(OutlineLimits::choose(trie, depth, children)).unwrap()
}

#[test]
fn runs_choices_and_what_is_hidden() {
    let trie = trie(&[&[1, 2], &[1, 2, 3, 4], &[1, 2, 5], &[9, 8, 7]]);
    let all = outline(&trie, None, None);
    let runs: Vec<_> = all.iter().map(|node| (node.parent, node.run.clone(), node.leaves)).collect();
    assert_eq!(
        runs,
        [
            (None, vec![], 4),
            (Some(0), ids(&[1, 2]), 3),
            (Some(1), ids(&[3, 4]), 1),
            (Some(1), ids(&[5]), 1),
            (Some(0), ids(&[9, 8, 7]), 1)
        ]
    );
    let ends: Vec<_> = all.iter().map(|node| node.leaf.map(trie_core::LeafId::index)).collect();
    assert_eq!(ends, [None, Some(0), Some(1), Some(2), Some(3)]);

    let cut = outline(&trie, Some(1), Some(1));
    assert_eq!(cut.len(), 2);
    assert_eq!((cut[0].hidden_children, cut[0].hidden_leaves), (1, 1));
    assert_eq!((cut[1].hidden_children, cut[1].hidden_leaves), (2, 2));
    assert_eq!(outline(&trie, Some(0), None).len(), 1);
}

proptest! {
    #[test]
    fn every_leaf_is_shown_or_counted(
        rows in prop::collection::vec(prop::collection::vec(0..4u32, 1..6), 1..60),
        depth in 0..4usize,
        children in 0..4usize,
    ) {
        let trie = trie(&rows.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let nodes = outline(&trie, Some(depth), Some(children));
        let ended = nodes.iter().filter(|node| node.leaf.is_some()).count();
        let hidden: usize = nodes.iter().map(|node| node.hidden_leaves).sum();
        prop_assert_eq!(ended + hidden, trie.len());
        prop_assert!(nodes.iter().enumerate().all(|(number, node)| node.parent.is_none_or(|parent| parent < number)));
    }
}
