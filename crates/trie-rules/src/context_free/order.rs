//! Order in which rules are compiled: a rule comes after the rules that it uses, except where rules use each other.

use super::parts::{Part, RuleSet};
use trie_core::work::{LimitExceeded, spend};

/// A strongly connected component: nodes that need each other, or one alone.
pub(super) struct Component {
    pub(super) nodes: Vec<usize>,
    /// True if a node comes again on a way from itself.
    pub(super) is_cyclic: bool,
}

/// Productivity and nullability of a rule, or of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Productivity {
    /// True if the rule is productive: some text completes it.
    pub(super) end: bool,
    /// True if the rule is nullable: the empty text completes it.
    pub(super) be_empty: bool,
}

/// Returns the strongly connected components that can be reached from `roots`, used ones first. Tarjan's algorithm with
/// a stack of its own: rules may need rules as deep as the text is long.
pub(super) fn components(
    count: usize,
    roots: impl IntoIterator<Item = usize>,
    mut uses_of: impl FnMut(usize) -> Result<Vec<usize>, LimitExceeded>,
) -> Result<Vec<Component>, LimitExceeded> {
    const NEW: usize = usize::MAX;
    let (mut number, mut low) = (vec![NEW; count], vec![NEW; count]);
    let mut uses: Vec<Vec<usize>> = vec![Vec::new(); count];
    let (mut found, mut open, mut in_open, mut numbered) = (Vec::new(), Vec::new(), vec![false; count], 0);
    for root in roots {
        let mut stack = if number[root] == NEW { vec![(root, 0usize)] } else { Vec::new() };
        while let Some((node, at)) = stack.pop() {
            if number[node] == NEW {
                uses[node] = uses_of(node)?;
                (number[node], low[node]) = (numbered, numbered);
                numbered += 1;
                open.push(node);
                in_open[node] = true;
            }
            if let Some(&other) = at.checked_sub(1).and_then(|before| uses[node].get(before)) {
                // Back from it, or it was known.
                if in_open[other] {
                    low[node] = low[node].min(low[other]);
                }
            }
            if let Some(&other) = uses[node].get(at) {
                stack.push((node, at + 1));
                if number[other] == NEW {
                    stack.push((other, 0));
                }
                continue;
            }
            if low[node] == number[node] {
                let from = open.iter().rposition(|&other| other == node).unwrap_or_default();
                let nodes = open.split_off(from);
                for &node in &nodes {
                    in_open[node] = false;
                }
                let is_cyclic = nodes.len() > 1 || uses[node].contains(&node);
                found.push(Component { nodes, is_cyclic });
            }
        }
    }
    Ok(found)
}

/// Returns the components of all rules that the root needs.
pub(super) fn rule_components(rules: &RuleSet<'_>) -> Result<Vec<Component>, LimitExceeded> {
    components(rules.rules.len(), [rules.root], |rule| {
        let parts = &rules.parts[rules.rules[rule].parts.clone()];
        spend(parts.len())?;
        Ok(parts.iter().filter_map(|part| if let Part::Rule(used) = part { Some(*used) } else { None }).collect())
    })
}

/// Computes productivity and nullability of the rules of a component, given those of all rules outside it.
pub(super) fn find(
    rules: &RuleSet<'_>,
    component: &Component,
    known: &mut [Productivity],
) -> Result<(), LimitExceeded> {
    let mut parts = Vec::new();
    loop {
        let mut changed = false;
        for &rule in &component.nodes {
            let range = rules.rules[rule].parts.clone();
            spend(range.len())?;
            parts.clear();
            for part in &rules.parts[range.clone()] {
                let of = |at: &usize| -> Productivity { parts[at - range.start] };
                parts.push(match part {
                    Part::Text(text) => Productivity { end: true, be_empty: text.is_empty() },
                    Part::Class(_) => Productivity { end: true, be_empty: false },
                    Part::Pattern(hir) => {
                        let least = hir.properties().minimum_len();
                        Productivity { end: least.is_some(), be_empty: least == Some(0) }
                    }
                    Part::Embedded(embedded) => Productivity { end: true, be_empty: embedded.allows_empty() },
                    Part::Rule(rule) => known[*rule],
                    Part::Sequence(inner) => Productivity {
                        end: inner.iter().all(|at| of(at).end),
                        be_empty: inner.iter().all(|at| of(at).be_empty),
                    },
                    Part::Either(inner) => Productivity {
                        end: inner.iter().any(|at| of(at).end),
                        be_empty: inner.iter().any(|at| of(at).be_empty),
                    },
                    Part::Repeat { part, least, .. } => {
                        Productivity { end: *least == 0 || of(part).end, be_empty: *least == 0 || of(part).be_empty }
                    }
                });
            }
            let all = parts.last().copied().unwrap_or_default();
            changed |= std::mem::replace(&mut known[rule], all) != all;
        }
        if !changed {
            return Ok(());
        }
    }
}
