//! Quality of probabilities, measured on known answers.

use crate::constraint::SpecProblem;
use crate::decide::shares::{IMPOSSIBLE, best};
use crate::json::value_error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bins of a reliability diagram: the most probable option at 0 to 0.1, 0.1 to 0.2, and so on.
pub(super) const BINS: usize = 10;

/// Bin of a reliability diagram: the answers whose highest probability is in one interval.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bin {
    /// Number of answers in it.
    #[serde(default)]
    pub count: usize,
    /// Mean of their probabilities.
    pub probability: f64,
    /// The share of them that are right.
    pub accuracy: f64,
}

/// Quality of probabilities, measured against the right answers.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
#[non_exhaustive]
pub struct Measures {
    /// The share of the answers that are right.
    pub accuracy: f64,
    /// The mean squared distance to the truth, from 0 to 2.
    pub brier: f64,
    /// The mean of −ln of the probability of the right option.
    pub log_loss: f64,
    /// The mean distance of probability and accuracy over the bins, weighted by their counts.
    pub ece: f64,
    /// Bins of the reliability diagram.
    pub bins: Vec<Bin>,
}

impl Measures {
    /// Measures probabilities against the number of the right option.
    pub(super) fn from_answers(answers: &[(Vec<f64>, usize)]) -> Self {
        let count = answers.len() as f64;
        let mut measures = Self { bins: vec![Bin::default(); BINS], ..Self::default() };
        for (probabilities, gold) in answers {
            let first = best(probabilities);
            let right = f64::from(u8::from(first == *gold));
            let squares = probabilities.iter().enumerate().map(|(option, share)| {
                let truth = if option == *gold { 1.0 } else { 0.0 };
                (share - truth).powi(2)
            });
            measures.accuracy += right;
            measures.brier += squares.sum::<f64>();
            measures.log_loss -= probabilities[*gold].ln().max(IMPOSSIBLE);
            let bin = &mut measures.bins[((probabilities[first] * BINS as f64) as usize).min(BINS - 1)];
            bin.count += 1;
            bin.probability += probabilities[first];
            bin.accuracy += right;
        }
        for sum in [&mut measures.accuracy, &mut measures.brier, &mut measures.log_loss] {
            *sum /= count;
        }
        for bin in measures.bins.iter_mut().filter(|bin| bin.count > 0) {
            let of_bin = bin.count as f64;
            (bin.probability, bin.accuracy) = (bin.probability / of_bin, bin.accuracy / of_bin);
            measures.ece += of_bin / count * (bin.probability - bin.accuracy).abs();
        }
        measures
    }
}

impl<'de> Deserialize<'de> for Measures {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let measures = Self::deserialize(from)?;
        let known = [measures.accuracy, measures.brier, measures.log_loss, measures.ece];
        if known.iter().any(|measure| !measure.is_finite()) {
            return Err(value_error(SpecProblem::Value("a measure is not a number".to_owned())));
        }
        Ok(measures)
    }
}

impl Serialize for Measures {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_are_as_they_are_defined() {
        let answers = [(vec![0.9, 0.1], 0), (vec![0.8, 0.2], 1), (vec![0.3, 0.7], 1), (vec![0.05, 0.95], 1)];
        let measures = Measures::from_answers(&answers);
        let close = |a: f64, b: f64| (a - b).abs() < 1e-12;
        assert!(close(measures.accuracy, 0.75));
        let brier: f64 = [0.01, 0.64, 0.09, 0.0025].iter().map(|square| 2.0 * square).sum::<f64>() / 4.0;
        assert!((measures.brier - brier).abs() < 1e-12);
        let loss = -[0.9_f64, 0.2, 0.7, 0.95].iter().map(|share| share.ln()).sum::<f64>() / 4.0;
        assert!((measures.log_loss - loss).abs() < 1e-12);
        // 0.9 and 0.95 share a bin: both right, at 0.925; 0.8 is wrong and alone, 0.7 right and alone.
        let ece = 0.5 * 0.075 + 0.25 * 0.8 + 0.25 * 0.3;
        assert!((measures.ece - ece).abs() < 1e-12, "{} is not {ece}", measures.ece);
        assert_eq!(measures.bins[9].count, 2);
        assert_eq!(measures.bins.iter().map(|bin| bin.count).sum::<usize>(), 4);
        // What is certain and wrong is bad, and a number.
        let wrong = Measures::from_answers(&[(vec![1.0, 0.0], 1)]);
        let found = [wrong.accuracy, wrong.brier, wrong.log_loss, wrong.ece];
        assert!(found.into_iter().zip([0.0, 2.0, 700.0, 1.0]).all(|(found, expected)| close(found, expected)));
    }
}
