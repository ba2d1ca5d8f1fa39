//! Size of the next draft: its length, and its branches.

use crate::runtime::context::{Model, supports_graphics_cards};

/// Cost of one more token in a forward pass, as a share of a pass over one token: a token of a draft pays off if it is
/// right with more than this probability.
///
/// It is a constant of the device. A measured cost would make the tokens of a pass, and so the last bits of logits,
/// depend on what else the machine does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::runtime) struct TokenCost(f32);

impl TokenCost {
    /// On a processor, a pass is limited by arithmetic after a few tokens.
    pub(in crate::runtime) const PROCESSOR: Self = Self(0.7);
    /// On a graphics card, a pass of few tokens is limited by reading the weights.
    pub(in crate::runtime) const CARD: Self = Self(0.1);

    /// The lowest that is taken.
    pub(in crate::runtime) const LEAST: Self = Self(0.01);

    /// A cost from [`TokenCost::LEAST`] to 1.
    pub(super) fn new(share: f32) -> Self {
        Self(share.clamp(Self::LEAST.0, 1.0))
    }

    /// Returns how many tokens of the text must be like those before a guess: after longer matches more guesses are
    /// right.
    pub(super) fn least_match(self) -> usize {
        if self.0 < 0.5 { 2 } else { 5 }
    }

    /// Returns the most guesses for one position that can pay off: of n guesses, the best first, the last is right with
    /// a probability of at most 1 / n.
    fn width(self) -> usize {
        (self.0.recip() as usize).clamp(1, Length::WIDTH)
    }

    /// Returns the cost on the device that the model is on.
    pub(super) fn of(model: &Model) -> Self {
        let is_on_card = model.n_gpu_layers() > 0 && supports_graphics_cards().unwrap_or(false);
        if is_on_card { Self::CARD } else { Self::PROCESSOR }
    }
}

/// Size of drafts, which follows what became of earlier ones.
///
/// A drafted token saves a pass if it and all before it are right. If the first guess for a position is right with
/// probability `p`, the n-th token of a draft pays off as long as `p` to the power of n is more than its cost. The same
/// holds along a branch that begins with the second guess for a position, which is right with a probability of its own.
#[derive(Debug)]
pub(in crate::runtime) struct Length {
    cost: TokenCost,
    /// For the first guess of a position, the second, …: how many were right, and how many were verified behind right
    /// ones. Earlier drafts count less.
    right: [f32; Self::WIDTH],
    verified: [f32; Self::WIDTH],
    /// Drafts in a row that were not expected to pay off.
    probes: u32,
    /// Passes without guesses that are left.
    pause: u32,
}

impl Length {
    /// The most guesses in one draft.
    pub(in crate::runtime) const MOST: usize = 16;
    /// The most guesses for one position.
    const WIDTH: usize = 4;
    /// Weight of what was known before the last draft.
    const MEMORY: f32 = 0.8;
    /// At most 2 to this power passes go by between two drafts that are not expected to pay off.
    const MOST_PROBES: u32 = 4;

    pub(in crate::runtime) fn new(cost: TokenCost) -> Self {
        // A guess that is not drafted is verified all the same, so others than the first need not be tried in vain.
        let (mut right, verified) = ([0.2; Self::WIDTH], [4.0; Self::WIDTH]);
        right[0] = 3.7;
        Self { cost, right, verified, probes: 0, pause: 0 }
    }

    /// Begins a draft. Returns the most guesses for one position; 0 in a pause.
    pub(in crate::runtime) fn begin(&mut self) -> usize {
        match self.pause.checked_sub(1) {
            Some(left) => {
                self.pause = left;
                0
            }
            None => self.width(),
        }
    }

    /// Returns the most guesses for one position that can pay off.
    pub(in crate::runtime) fn width(&self) -> usize {
        self.cost.width()
    }

    /// Returns the probability that the guess of this rank is right: 0 is the first one for a position.
    pub(in crate::runtime) fn share(&self, rank: usize) -> f32 {
        self.right[rank] / self.verified[rank]
    }

    /// Returns whether a token that is right with this probability pays off, if so many forced ones follow it.
    ///
    /// These are decoded with it, and without a draft they are decoded with the next pass.
    pub(in crate::runtime) fn pays(&self, probability: f32, forced: usize) -> bool {
        let (cost, forced) = (self.cost.0, forced as f32);
        probability * (1.0 + cost * forced) >= cost * (1.0 + forced)
    }

    /// Notes which of the guesses for one position was right, for each position that was reached: `guesses` of how
    /// many, `right` which.
    pub(in crate::runtime) fn record(&mut self, positions: impl IntoIterator<Item = (usize, Option<usize>)>) {
        for of in [&mut self.right, &mut self.verified] {
            for count in of {
                *count *= Self::MEMORY;
            }
        }
        for (guesses, right) in positions {
            self.verified.iter_mut().take(guesses).for_each(|count| *count += 1.0);
            if let Some(rank) = right {
                self.right[rank] += 1.0;
            }
        }
        if self.right[0] > self.cost.0 * self.verified[0] {
            self.probes = 0;
        } else {
            self.probes = (self.probes + 1).min(Self::MOST_PROBES);
            self.pause = (1 << self.probes) - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_budget::Random;

    /// Returns the length of the next draft, whose guesses are all the first for their positions.
    fn next(length: &mut Length) -> usize {
        if length.begin() == 0 {
            return 0;
        }
        let share = length.share(0);
        let pays = |&n: &usize| n == 1 || length.pays(share.powi(n as i32), 0);
        (1..=Length::MOST).take_while(pays).count()
    }

    fn record(length: &mut Length, drafted: usize, accepted: usize) {
        length.record((0..drafted.min(accepted + 1)).map(|at| (1, (at < accepted).then_some(0))));
    }

    #[test]
    fn grows_while_all_is_right() {
        let mut length = Length::new(TokenCost::PROCESSOR);
        let mut seen = Vec::new();
        for _ in 0..8 {
            let drafted = next(&mut length);
            record(&mut length, drafted, drafted);
            seen.push(drafted);
        }
        assert!(seen.is_sorted() && seen[0] == 4 && seen[7] == Length::MOST, "{seen:?}");
    }

    /// Returns the cost of 20,000 tokens, each of which is guessed with this probability, if a pass costs 1.
    fn cost(of: TokenCost, right: f64) -> f64 {
        let (mut length, mut random) = (Length::new(of), Random(7));
        let (mut tokens, mut cost) = (0, 0.0);
        while tokens < 20_000 {
            let drafted = next(&mut length);
            let accepted = (0..drafted).take_while(|_| random.below(1000) < (right * 1000.0) as usize).count();
            if drafted > 0 {
                record(&mut length, drafted, accepted);
            }
            tokens += accepted + 1;
            cost += 1.0 + drafted as f64 * f64::from(of.0);
        }
        cost / tokens as f64
    }

    #[test]
    fn costs_little_where_guesses_are_wrong_and_saves_where_they_are_right() {
        for right in [0.0, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0] {
            let (processor, card) = (cost(TokenCost::PROCESSOR, right), cost(TokenCost::CARD, right));
            assert!(processor < 1.05 && card < 1.05, "{right}: {processor} and {card}");
        }
        assert!(cost(TokenCost::PROCESSOR, 1.0) < 0.75 && cost(TokenCost::CARD, 0.9) < 0.35);
    }

    #[test]
    fn second_guesses_pay_only_where_tokens_are_cheap() {
        assert_eq!([TokenCost::PROCESSOR, TokenCost::CARD, TokenCost(0.5)].map(TokenCost::width), [1, 4, 2]);
        let mut length = Length::new(TokenCost::CARD);
        assert!(!length.pays(length.share(1), 0), "nothing is known of them");
        (0..8).for_each(|_| length.record([(2, Some(1)), (2, Some(0))]));
        assert!(length.pays(length.share(1), 0) && (length.share(0) - 0.5).abs() < 0.1);
        // Ten forced tokens that are wrong cost about a pass.
        assert!(!length.pays(length.share(1), 10) && length.pays(0.6, 10));
    }
}
