//! Sequences of the cache for trees, which are lent in ranges.

use std::ops::Range;

#[derive(Debug)]
pub(super) struct Branches {
    /// Number of the first sequence of the branches.
    first: usize,
    /// Number of sequences for all slots, or for each.
    count: usize,
    is_lent: Vec<bool>,
}

impl Branches {
    /// So many for all slots.
    pub(super) fn of_all(first: usize, count: usize) -> Self {
        Self { first, count, is_lent: vec![false; count] }
    }

    /// So many for each slot, those of the first first.
    pub(super) fn of_each(slots: usize, count: usize) -> Self {
        Self { first: slots, count, is_lent: vec![false; slots * count] }
    }

    /// Returns the number of sequences that a slot may use.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Sequences beside each other.
    pub(super) fn lend(&mut self, slot: usize, count: usize) -> Option<Range<i32>> {
        let own = if self.is_lent.len() == self.count { 0 } else { slot * self.count };
        let free = |from: &usize| self.is_lent[*from..*from + count].iter().all(|lent| !lent);
        let from = (own..=own + self.count.checked_sub(count)?).find(free)?;
        self.is_lent[from..from + count].fill(true);
        Some((self.first + from) as i32..(self.first + from + count) as i32)
    }

    pub(super) fn give_back(&mut self, range: &Range<i32>) {
        for sequence in range.clone() {
            self.is_lent[sequence as usize - self.first] = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_lent_once() {
        let mut branches = Branches::of_all(3, 5);
        assert_eq!(branches.lend(0, 2), Some(3..5));
        assert_eq!(branches.lend(2, 3), Some(5..8));
        assert_eq!(branches.lend(1, 1), None);
        branches.give_back(&(3..5));
        let mut lend = |count| branches.lend(1, count);
        assert_eq!((lend(3), lend(1), lend(1)), (None, Some(3..4), Some(4..5)));
        assert_eq!(lend(6), None);
    }

    #[test]
    fn each_slot_has_its_own() {
        let mut branches = Branches::of_each(2, 3);
        assert_eq!(branches.lend(1, 3), Some(5..8));
        assert_eq!((branches.lend(1, 1), branches.lend(0, 2)), (None, Some(2..4)));
        assert_eq!((branches.lend(0, 2), branches.lend(0, 1)), (None, Some(4..5)));
    }
}
