//! Length of the next draft.

/// Number of tokens to draft, which follows what became of earlier drafts.
#[derive(Debug)]
pub(in crate::runtime) struct Length {
    next: usize,
    /// Drafts in a row of which nothing was right.
    misses: u32,
    /// Passes without a draft that are left.
    pause: u32,
}

impl Length {
    const FIRST: usize = 4;
    const MOST: usize = 16;
    /// At most 2 to this power passes go by between two drafts where none is right.
    const MOST_MISSES: u32 = 6;

    pub(in crate::runtime) fn new() -> Self {
        Self { next: Self::FIRST, misses: 0, pause: 0 }
    }

    /// The most tokens to draft for the next pass; 0 in a pause.
    pub(in crate::runtime) fn next(&mut self) -> usize {
        match self.pause.checked_sub(1) {
            Some(left) => {
                self.pause = left;
                0
            }
            None => self.next,
        }
    }

    /// Notes how many of the drafted tokens were right.
    pub(in crate::runtime) fn record(&mut self, drafted: usize, accepted: usize) {
        if accepted == 0 {
            self.misses = (self.misses + 1).min(Self::MOST_MISSES);
            // One miss costs nothing yet: the next text may be another.
            self.pause = (1 << self.misses) - 2;
            self.next = (self.next / 2).max(1);
        } else {
            self.misses = 0;
            self.next = if accepted == drafted { (self.next * 2).min(Self::MOST) } else { accepted + 1 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_with_what_is_right_and_pauses_where_nothing_is() {
        let mut length = Length::new();
        let mut seen = Vec::new();
        for _ in 0..3 {
            let drafted = length.next();
            length.record(drafted, drafted);
            seen.push(drafted);
        }
        length.record(16, 5);
        assert_eq!((seen, length.next()), (vec![4, 8, 16], 6));
        let drafted = (0..1000)
            .filter(|_| {
                length.next() > 0 && {
                    length.record(1, 0);
                    true
                }
            })
            .count();
        assert!((15..25).contains(&drafted), "{drafted} hopeless drafts in 1000 passes");
        length.pause = 0;
        length.record(1, 1);
        assert_eq!(length.next(), 2);
    }
}
