//! Length of the next draft.

use crate::runtime::context::{Model, supports_graphics_cards};

/// Cost of one more token in a forward pass, as a share of a pass over one token: a draft pays off if more than this
/// share of its tokens is right.
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

    /// Returns how many tokens of the text must be like those before a guess: after longer matches more guesses are
    /// right.
    pub(super) fn least_match(self) -> usize {
        if self == Self::CARD { 2 } else { 5 }
    }

    /// Returns the cost on the device that the model is on.
    pub(super) fn of(model: &Model) -> Self {
        let is_on_card = model.n_gpu_layers() > 0 && supports_graphics_cards().unwrap_or(false);
        if is_on_card { Self::CARD } else { Self::PROCESSOR }
    }
}

/// Number of tokens to draft, which follows what became of earlier drafts.
///
/// A drafted token saves a pass if it and all before it are right. If each is right with probability `p`, the n-th of a
/// draft pays off as long as `p` to the power of n is more than its cost.
#[derive(Debug)]
pub(in crate::runtime) struct Length {
    cost: TokenCost,
    /// Tokens that were right, and those that were verified behind right ones: earlier drafts count less.
    right: f32,
    verified: f32,
    /// Drafts in a row that were not expected to pay off.
    probes: u32,
    /// Passes without a draft that are left.
    pause: u32,
}

impl Length {
    const MOST: usize = 16;
    /// Weight of what was known before the last draft.
    const MEMORY: f32 = 0.8;
    /// At most 2 to this power passes go by between two drafts that are not expected to pay off.
    const MOST_PROBES: u32 = 4;

    pub(in crate::runtime) fn new(cost: TokenCost) -> Self {
        Self { cost, right: 3.7, verified: 4.0, probes: 0, pause: 0 }
    }

    /// The most tokens to draft for the next pass; 0 in a pause.
    pub(in crate::runtime) fn next(&mut self) -> usize {
        if let Some(left) = self.pause.checked_sub(1) {
            self.pause = left;
            return 0;
        }
        // Infinite if all were right.
        let length = self.cost.0.recip().ln() / (self.verified / self.right).ln();
        (length as usize).clamp(1, Self::MOST)
    }

    /// Notes how many of the drafted tokens were right.
    pub(in crate::runtime) fn record(&mut self, drafted: usize, accepted: usize) {
        let verified = drafted.min(accepted + 1);
        self.right = self.right * Self::MEMORY + accepted as f32;
        self.verified = self.verified * Self::MEMORY + verified as f32;
        if self.right > self.cost.0 * self.verified {
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

    #[test]
    fn grows_while_all_is_right() {
        let mut length = Length::new(TokenCost::PROCESSOR);
        let mut seen = Vec::new();
        for _ in 0..8 {
            let drafted = length.next();
            length.record(drafted, drafted);
            seen.push(drafted);
        }
        assert!(seen.is_sorted() && seen[0] == 4 && seen[7] == Length::MOST, "{seen:?}");
    }

    /// Returns the cost of 20,000 tokens, each of which is guessed with this probability, if a pass costs 1.
    fn cost(of: TokenCost, right: f64) -> f64 {
        let (mut length, mut random) = (Length::new(of), Random(7));
        let (mut tokens, mut cost) = (0, 0.0);
        while tokens < 20_000 {
            let drafted = length.next();
            let accepted = (0..drafted).take_while(|_| random.below(1000) < (right * 1000.0) as usize).count();
            if drafted > 0 {
                length.record(drafted, accepted);
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
}
