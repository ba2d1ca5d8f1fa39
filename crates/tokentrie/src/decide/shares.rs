//! Probabilities of options relative to each other.

use trie_core::log_add;

/// The log of what is no longer a number apart from zero.
pub(super) const IMPOSSIBLE: f64 = -700.0;

/// The most probable option; of equal ones the first.
pub(super) fn best(probabilities: &[f64]) -> usize {
    let better = |best: usize, (index, &share): (usize, &f64)| {
        if share > probabilities[best] || probabilities[best].is_nan() { index } else { best }
    };
    probabilities.iter().enumerate().fold(0, better)
}

/// Score of a state that decides nothing, from 0 to 1: 1 − m·tanh(d/4). m is the probability of all options together,
/// and d the change of the log-odds of the best option against those for a state without content.
pub(super) fn out_of_scope(shares: &[f64], without: &[f64], mass: f64) -> f64 {
    let log_odds = |share: f64| (share.max(f64::MIN_POSITIVE) / (1.0 - share).max(f64::EPSILON / 2.0)).ln();
    let option = best(shares);
    let change = (log_odds(shares[option]) - log_odds(without[option])).abs();
    (1.0 - mass * (change / 4.0).tanh()).clamp(0.0, 1.0)
}

/// Probabilities that add up to 1; alike where nothing is possible.
pub(super) fn softmax(logs: impl Iterator<Item = f64>) -> Vec<f64> {
    let logs: Vec<f64> = logs.collect();
    match logs.iter().copied().fold(f64::NEG_INFINITY, log_add) {
        f64::NEG_INFINITY => vec![1.0 / logs.len() as f64; logs.len()],
        sum => logs.iter().map(|log| (log - sum).exp()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_that_decides_nothing_is_out_of_scope() {
        assert!((out_of_scope(&[0.3, 0.7], &[0.3, 0.7], 1.0) - 1.0).abs() < 1e-12);
        // tanh(ln(odds) / 4) by its definition.
        let odds = 9.0_f64;
        let score = out_of_scope(&[0.9, 0.1], &[0.5, 0.5], 0.5);
        assert!((score - (1.0 - 0.5 * (odds.sqrt() - 1.0) / (odds.sqrt() + 1.0))).abs() < 1e-12);
        assert!(out_of_scope(&[1.0, 0.0], &[0.3, 0.7], 1.0) < 1e-3);
        assert!(out_of_scope(&[1.0, 0.0], &[0.3, 0.7], 0.25) > 0.749);
        // A prior that is sure already: what is surer still is told apart from what is not.
        assert!(out_of_scope(&[0.999_99, 0.000_01], &[0.9, 0.1], 1.0) < 0.3);
        assert!(out_of_scope(&[0.92, 0.08], &[0.9, 0.1], 1.0) > 0.9);
        assert!((out_of_scope(&[1.0], &[1.0], 1.0) - 1.0).abs() < 1e-12);
    }
}
