//! Sets of terminals, each kept once: a set is a number. A grammar has few different ones, and most are small.

use super::bits::Bits;
use std::collections::HashMap;
use std::sync::Arc;
use trie_core::work::{LimitExceeded, hold, spend};

/// Number of the empty set.
pub(super) const EMPTY: u32 = 0;

/// Non-zero words of a set, each with its index, ascending.
type Words = Arc<[(u32, u64)]>;

/// Sets that are made of each other.
#[derive(Debug)]
pub(super) struct Sets {
    known: HashMap<Words, u32>,
    made: SetTable,
    unions: HashMap<(u32, u32), u32>,
}

/// Sets by their numbers.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SetTable(Vec<Words>);

impl Sets {
    pub(super) fn new() -> Self {
        let empty: Words = Arc::new([]);
        Self {
            known: HashMap::from([(Arc::clone(&empty), EMPTY)]),
            made: SetTable(vec![empty]),
            unions: HashMap::new(),
        }
    }

    fn number(&mut self, words: Vec<(u32, u64)>) -> Result<u32, LimitExceeded> {
        let words: Words = words.into();
        if let Some(&known) = self.known.get(&words) {
            return Ok(known);
        }
        hold(size_of_val(&*words) + 96)?;
        let number = self.made.0.len() as u32;
        self.made.0.push(Arc::clone(&words));
        self.known.insert(words, number);
        Ok(number)
    }

    pub(super) fn one(&mut self, member: u32) -> Result<u32, LimitExceeded> {
        self.number(vec![(member / 64, 1 << (member % 64))])
    }

    pub(super) fn union(&mut self, one: u32, other: u32) -> Result<u32, LimitExceeded> {
        spend(1)?;
        if one == other || other == EMPTY {
            return Ok(one);
        }
        if one == EMPTY {
            return Ok(other);
        }
        let key = (one.min(other), one.max(other));
        if let Some(&known) = self.unions.get(&key) {
            return Ok(known);
        }
        let (a, b) = (Arc::clone(self.made.words(one)), Arc::clone(self.made.words(other)));
        spend(a.len() + b.len())?;
        let mut words = Vec::with_capacity(a.len() + b.len());
        let (mut a, mut b) = (a.iter().copied().peekable(), b.iter().copied().peekable());
        loop {
            words.push(match (a.peek(), b.peek()) {
                (Some(&(at, bits)), Some(&(other, more))) if at == other => {
                    a.next();
                    b.next();
                    (at, bits | more)
                }
                (Some(&word), Some(&other)) if word.0 > other.0 => {
                    b.next();
                    other
                }
                (Some(&word), _) => {
                    a.next();
                    word
                }
                (None, Some(&word)) => {
                    b.next();
                    word
                }
                (None, None) => break,
            });
        }
        let made = self.number(words)?;
        hold(32)?;
        self.unions.insert(key, made);
        Ok(made)
    }

    /// The union of all of these, without the sets between.
    pub(super) fn union_all(&mut self, all: &mut Vec<u32>) -> Result<u32, LimitExceeded> {
        all.sort_unstable();
        all.dedup();
        match all[..] {
            [] => Ok(EMPTY),
            [one] => Ok(one),
            [one, other] => self.union(one, other),
            _ => {
                let mut words: HashMap<u32, u64> = HashMap::new();
                for &set in &*all {
                    let own = self.made.words(set);
                    spend(own.len())?;
                    own.iter().for_each(|&(at, bits)| *words.entry(at).or_default() |= bits);
                }
                let mut words: Vec<(u32, u64)> = words.into_iter().collect();
                words.sort_unstable();
                self.number(words)
            }
        }
    }

    /// Returns the number of words of a set.
    pub(super) fn len(&self, set: u32) -> usize {
        self.made.words(set).len()
    }

    pub(super) fn table(&self) -> &SetTable {
        &self.made
    }

    /// When no more are made.
    pub(super) fn finish(self) -> SetTable {
        self.made
    }
}

impl SetTable {
    #[inline]
    fn words(&self, set: u32) -> &Words {
        &self.0[set as usize]
    }

    /// Returns whether two sets intersect.
    pub(super) fn meet(&self, one: u32, other: u32) -> bool {
        let (mut a, mut b) = (self.words(one).iter().peekable(), self.words(other).iter().peekable());
        while let (Some(&&(at, bits)), Some(&&(other, more))) = (a.peek(), b.peek()) {
            if at == other && bits & more != 0 {
                return true;
            }
            if at <= other {
                a.next();
            }
            if other <= at {
                b.next();
            }
        }
        false
    }

    /// Returns whether a set intersects others.
    #[inline]
    pub(super) fn meets(&self, set: u32, others: &Bits) -> bool {
        self.words(set).iter().any(|&(at, bits)| bits & others.word(at as usize) != 0)
    }

    #[inline]
    pub(super) fn has(&self, set: u32, member: u32) -> bool {
        let words = self.words(set);
        let at = words.binary_search_by_key(&(member / 64), |&(at, _)| at);
        at.is_ok_and(|at| words[at].1 >> (member % 64) & 1 == 1)
    }

    /// Returns the members of a set, ascending.
    pub(super) fn members(&self, set: u32) -> impl Iterator<Item = u32> + '_ {
        self.words(set)
            .iter()
            .flat_map(|&(at, bits)| (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| at * 64 + bit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn as_sets_of_numbers(
            one in prop::collection::btree_set(0..300u32, 0..20),
            other in prop::collection::btree_set(0..300u32, 0..20),
        ) {
            let mut sets = Sets::new();
            let mut made = |from: &BTreeSet<u32>| {
                from.iter().fold(EMPTY, |set, &member| {
                    let one = sets.one(member).unwrap();
                    sets.union(set, one).unwrap()
                })
            };
            let (a, b) = (made(&one), made(&other));
            prop_assert_eq!(a == b, one == other);
            prop_assert_eq!(sets.table().meet(a, b), !one.is_disjoint(&other));
            let both = sets.union(a, b).unwrap();
            let (first, second) = (sets.one(7).unwrap(), sets.one(299).unwrap());
            let all = sets.union_all(&mut vec![a, first, b, second, a]).unwrap();
            let more = [sets.union(both, first).unwrap(), second];
            prop_assert_eq!(all, sets.union(more[0], more[1]).unwrap());
            prop_assert_eq!(sets.table().members(both).collect::<BTreeSet<_>>(), &one | &other);
        }
    }
}
