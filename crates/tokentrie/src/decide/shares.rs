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

/// Probabilities that add up to 1; alike where nothing is possible.
pub(super) fn softmax(logs: impl Iterator<Item = f64>) -> Vec<f64> {
    let logs: Vec<f64> = logs.collect();
    match logs.iter().copied().fold(f64::NEG_INFINITY, log_add) {
        f64::NEG_INFINITY => vec![1.0 / logs.len() as f64; logs.len()],
        sum => logs.iter().map(|log| (log - sum).exp()).collect(),
    }
}
