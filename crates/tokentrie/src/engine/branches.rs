//! The sequences for trees, which are lent in ranges.

use std::ops::Range;

#[derive(Debug)]
pub(super) struct Branches {
    /// The first sequence.
    first: usize,
    is_lent: Vec<bool>,
}

impl Branches {
    pub(super) fn new(first: usize, count: usize) -> Self {
        Self { first, is_lent: vec![false; count] }
    }

    pub(super) fn len(&self) -> usize {
        self.is_lent.len()
    }

    /// Sequences beside each other.
    pub(super) fn lend(&mut self, count: usize) -> Option<Range<i32>> {
        let free = |from: &usize| self.is_lent[*from..*from + count].iter().all(|lent| !lent);
        let from = (0..=self.is_lent.len().checked_sub(count)?).find(free)?;
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
        let mut branches = Branches::new(3, 5);
        assert_eq!(branches.lend(2), Some(3..5));
        assert_eq!(branches.lend(3), Some(5..8));
        assert_eq!(branches.lend(1), None);
        branches.give_back(&(3..5));
        assert_eq!((branches.lend(3), branches.lend(1), branches.lend(1)), (None, Some(3..4), Some(4..5)));
        assert_eq!(branches.lend(6), None);
    }
}
