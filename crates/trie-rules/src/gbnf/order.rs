//! In which order rules are compiled: those that a rule uses come before it, but for those that need each other.

use super::text::{ParsedGrammar, Part};
use trie_core::work::{Over, spend};

/// Rules that need each other, or one alone.
pub(super) struct Scc {
    pub(super) rules: Vec<usize>,
    /// True if the rules are recursive.
    pub(super) recursive: bool,
}

/// Productivity and nullability of a rule, or of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Productivity {
    /// True if the rule is productive: some text completes it.
    pub(super) end: bool,
    /// True if the rule is nullable: the empty text completes it.
    pub(super) be_empty: bool,
}

/// The knots of all rules that the root needs, by Tarjan's algorithm, which keeps its own stack: rules may need rules
/// as deep as the text is long.
pub(super) fn knots(written: &ParsedGrammar<'_>) -> Result<Vec<Scc>, Over> {
    const NEW: usize = usize::MAX;
    let rules = written.rules.len();
    let (mut number, mut low) = (vec![NEW; rules], vec![NEW; rules]);
    let mut uses: Vec<Vec<usize>> = vec![Vec::new(); rules];
    let (mut knots, mut open, mut in_open, mut count) = (Vec::new(), Vec::new(), vec![false; rules], 0);
    let root = written.root();
    let mut stack = vec![(root, 0usize)];
    while let Some((rule, at)) = stack.pop() {
        if number[rule] == NEW {
            spend(written.rules[rule].parts.len())?;
            uses[rule] = written.parts[written.rules[rule].parts.clone()].iter().filter_map(used).collect();
            (number[rule], low[rule]) = (count, count);
            count += 1;
            open.push(rule);
            in_open[rule] = true;
        }
        if let Some(&other) = at.checked_sub(1).and_then(|before| uses[rule].get(before)) {
            // Back from it, or it was known.
            if in_open[other] {
                low[rule] = low[rule].min(low[other]);
            }
        }
        if let Some(&other) = uses[rule].get(at) {
            stack.push((rule, at + 1));
            if number[other] == NEW {
                stack.push((other, 0));
            }
            continue;
        }
        if low[rule] == number[rule] {
            let from = open.iter().rposition(|&other| other == rule).unwrap_or_default();
            let rules = open.split_off(from);
            for &rule in &rules {
                in_open[rule] = false;
            }
            let recursive = rules.len() > 1 || uses[rule].contains(&rule);
            knots.push(Scc { rules, recursive });
        }
    }
    Ok(knots)
}

fn used(part: &Part) -> Option<usize> {
    if let Part::Rule(rule) = part { Some(*rule) } else { None }
}

/// Computes productivity and nullability of the rules of a strongly connected component, given those of all rules
/// outside it.
pub(super) fn find(written: &ParsedGrammar<'_>, knot: &Scc, known: &mut [Productivity]) -> Result<(), Over> {
    let mut parts = Vec::new();
    loop {
        let mut changed = false;
        for &rule in &knot.rules {
            let range = written.rules[rule].parts.clone();
            spend(range.len())?;
            parts.clear();
            for part in &written.parts[range.clone()] {
                let of = |at: &usize| -> Productivity { parts[at - range.start] };
                parts.push(match part {
                    Part::Text(text) => Productivity { end: true, be_empty: text.is_empty() },
                    Part::Class(_) => Productivity { end: true, be_empty: false },
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
