//! Rows that write several items one after another, each item at most once.

use super::top::check_groups;
use super::{Batch, BatchError, Row};
use crate::machine::constraint::{AnyConstraint, FilterError, FilteredTrie};
use crate::machine::span::{SpanRules, Status, Trail};
use crate::set::ids::LeafId;
use crate::set::leaf_set::LeafSet;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Scope of the items that a row may not write again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NoRepeat {
    /// Items that the row itself has written.
    Row,
    /// Items of all rows of its group. Only its own items are denied to the first row of a group, so it writes the
    /// same items as it would alone.
    Siblings,
}

/// Tokens that a row has written before its current item.
#[derive(Debug, Clone)]
pub(super) struct Items {
    leaves: Vec<LeafId>,
    /// The rules that it began with.
    begun: Arc<SpanRules>,
}

impl Batch {
    /// Starts the next item in every finished row, and returns the number of these rows. With [`NoRepeat`], items that
    /// were written until now are no longer allowed there. Rows in the middle of an item continue unchanged: items
    /// that other rows finish meanwhile are denied to them from their next item on.
    ///
    /// Rollback cannot go back across this call. `O(rows · (items + d log n))`; rows that deny the same items share
    /// one filter.
    ///
    /// ```
    /// use trie_core::{Batch, NoRepeat, SamplerOptions, Scratch, SpanRules, TokenId, Trie};
    /// # use std::sync::Arc;
    /// let id = |n| TokenId::new(n).unwrap();
    /// let mut items = Trie::builder();
    /// for tokens in [[1, 2], [1, 3], [4, 2]] {
    ///     items.push(None, &tokens.map(id));
    /// }
    /// let rules = Arc::new(SpanRules::for_constraint(items.build()?, 6)?);
    /// let mut batch = Batch::new(rules, 2, SamplerOptions::default())?;
    /// batch.accept(&[id(1), id(4)])?;
    /// batch.accept(&[id(2), id(2)])?;
    /// assert_eq!(batch.next_item(Some(NoRepeat::Siblings))?, 2);
    /// let mut legal = |row| batch.allowed(row, &mut Scratch::default()).unwrap().iter().collect::<Vec<_>>();
    /// assert_eq!([legal(0), legal(1)], [vec![id(1), id(4)], vec![id(1)]]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A finished row whose items are all written, or, with [`NoRepeat`], that follows no trie. No row has changed
    /// then.
    pub fn next_item(&mut self, no_repeat: Option<NoRepeat>) -> Result<usize, BatchError> {
        self.next_item_of(no_repeat, &[self.len()])
    }

    /// [`Batch::next_item`] with groups of siblings: `ends` says where each group of rows ends; the last at the last
    /// row.
    ///
    /// # Errors
    /// As [`Batch::next_item`], or ends that do not ascend up to the number of rows.
    pub fn next_item_of(&mut self, no_repeat: Option<NoRepeat>, ends: &[usize]) -> Result<usize, BatchError> {
        check_groups(ends, self.len())?;
        let written: Vec<Option<LeafId>> = self.rows.iter().map(|row| self.written_item(row)).collect();
        let mut next: Vec<(usize, Option<Arc<SpanRules>>)> = Vec::new();
        // Rows that deny the same in the same rules.
        let mut known: HashMap<(*const SpanRules, Vec<LeafId>), Arc<SpanRules>> = HashMap::new();
        let mut first = 0;
        for &end in ends {
            let own = |row: usize| self.rows[row].leaves().iter().copied().chain(written[row]);
            // Of each set apart: numbers of leaves are its own.
            let mut unions: HashMap<Option<usize>, BTreeSet<LeafId>> = HashMap::new();
            if no_repeat == Some(NoRepeat::Siblings) {
                (first..end).for_each(|row| unions.entry(self.set_of(row)).or_default().extend(own(row)));
            }
            for row in (first..end).filter(|&row| self.rows[row].walked.state().status() == Status::Complete) {
                let denied: Vec<LeafId> = match no_repeat {
                    None => {
                        next.push((row, None));
                        continue;
                    }
                    Some(NoRepeat::Siblings) if row > first => {
                        unions.get(&self.set_of(row)).into_iter().flatten().copied().collect()
                    }
                    Some(_) => own(row).collect(),
                };
                let key = (Arc::as_ptr(self.initial_rules(row)), denied);
                let rules = match known.get(&key) {
                    Some(rules) => Arc::clone(rules),
                    None => Arc::clone(known.entry(key.clone()).or_insert(self.denying(row, &key.1)?)),
                };
                next.push((row, Some(rules)));
            }
            first = end;
        }
        let begun = next.len();
        for (row, rules) in next {
            let before = Arc::clone(self.initial_rules(row));
            let number = match rules {
                Some(rules) => self.number_of(rules),
                None => self.rows[row].rules,
            };
            let start = self.rules[number as usize].start();
            let Row { walked, rules, items, .. } = &mut self.rows[row];
            (*walked, *rules) = (Trail::new(start), number);
            let fresh = || Arc::new(Items { leaves: Vec::new(), begun: before });
            Arc::make_mut(items.get_or_insert_with(fresh)).leaves.extend(written[row]);
        }
        self.forget_rules();
        Ok(begun)
    }

    /// The items that a row has written before its current item, in order.
    ///
    /// # Errors
    /// No such row.
    pub fn items(&self, row: usize) -> Result<&[LeafId], BatchError> {
        Ok(self.row(row)?.leaves())
    }

    /// The item that a finished row has just written, where it has a number.
    fn written_item(&self, row: &Row) -> Option<LeafId> {
        let constraint = self.rules_of(row).constraint(row.walked.state());
        let is_set = constraint.as_trie().is_some() || constraint.downcast_ref::<FilteredTrie>().is_some();
        if is_set { row.walked.leaf(constraint).map(|leaf| leaf.index) } else { None }
    }

    /// Returns the identity of the set of a row.
    fn set_of(&self, row: usize) -> Option<usize> {
        let of = &self.rows[row];
        let constraint = self.rules_of(of).constraint(of.walked.state());
        let filtered = constraint.downcast_ref::<FilteredTrie>().map(FilteredTrie::trie);
        constraint.as_trie().or(filtered).map(crate::Trie::identity)
    }

    /// The rules that a row began with. Items denied since then are not part of them: they depend on the written
    /// items, and rows change places.
    fn initial_rules(&self, row: usize) -> &Arc<SpanRules> {
        let of = &self.rows[row];
        of.items.as_ref().map_or(&self.rules[of.rules as usize], |items| &items.begun)
    }

    /// The rules that a row began with, without these items.
    fn denying(&self, row: usize, denied: &[LeafId]) -> Result<Arc<SpanRules>, BatchError> {
        let (rules, number) = (self.initial_rules(row), self.rows[row].walked.state().constraint_number());
        let constraint = &rules.constraints()[number].1;
        let filtered = match (constraint.as_trie(), constraint.downcast_ref::<FilteredTrie>()) {
            (Some(trie), _) => trie.filter(&LeafSet::full(trie.len())).and_then(|all| all.deny(denied)),
            (_, Some(filtered)) => filtered.deny(denied),
            (None, None) => return Err(BatchError::NoItems { row, constraint: format!("{constraint:?}") }),
        };
        match filtered {
            Ok(filtered) => Ok(Arc::new(rules.replacing(number, AnyConstraint::new(filtered)))),
            Err(FilterError::NothingLeft { leaves }) => Err(BatchError::NothingLeft { row, leaves }),
            // Its own leaves are leaves of the trie.
            Err(error) => Err(BatchError::NoItems { row, constraint: error.to_string() }),
        }
    }

    /// Every row with the rules that it began with.
    pub(super) fn forget_items(&mut self) {
        for row in 0..self.rows.len() {
            if let Some(items) = self.rows[row].items.take() {
                self.rows[row].rules = self.number_of(Arc::clone(&items.begun));
            }
        }
        self.forget_rules();
    }
}

impl Row {
    fn leaves(&self) -> &[LeafId] {
        self.items.as_deref().map_or(&[], |items| &items.leaves)
    }
}
