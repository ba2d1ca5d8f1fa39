//! Answers that a fit has not seen, and the decisions that they justify: when to abstain, and which options to keep.

use crate::constraint::SpecProblem;
use crate::decide::shares::best;
use crate::json::value_error;
use serde::{Deserialize, Deserializer, Serialize};

/// An answer of a fit that has not seen it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct HeldOutAnswer(
    /// Highest probability of an option.
    f64,
    /// Probability of the right option; the answer is right where it is the highest.
    f64,
);

/// The answers of a calibration to its examples, each by a fit on other examples.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(transparent)]
pub struct HeldOut(Vec<HeldOutAnswer>);

/// Threshold for a wished accuracy, and its effect on the examples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct CutPoint {
    /// Accuracy that was wished for.
    pub wished: f64,
    /// Lowest probability of an answer that is given.
    pub threshold: f64,
    /// Share of the examples that are answered.
    pub share: f64,
    /// Share of the answered examples that are right.
    pub accuracy: f64,
    /// Lower end of the accuracy's interval (Wilson, 95 %).
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl HeldOut {
    pub(super) fn new(answers: &[(Vec<f64>, usize)]) -> Self {
        let answer = |(probabilities, gold): &(Vec<f64>, usize)| {
            let first = best(probabilities);
            // Of equal options the first is answered.
            let most = probabilities[first];
            let right = if first == *gold { most } else { probabilities[*gold].min(most.next_down()) };
            HeldOutAnswer(most, right)
        };
        let mut answers: Vec<HeldOutAnswer> = answers.iter().map(answer).collect();
        answers.sort_by(|one, other| other.0.total_cmp(&one.0));
        Self(answers)
    }

    /// Returns the thresholds for usual accuracies, of those that are reached.
    pub(super) fn usual_cuts(&self) -> Vec<CutPoint> {
        [0.8, 0.9, 0.95, 0.99].into_iter().filter_map(|accuracy| self.find_cut(accuracy)).collect()
    }

    /// Returns the threshold that answers as many of the examples as are right in this share of the cases; `None` where
    /// no threshold reaches it.
    pub fn find_cut(&self, accuracy: f64) -> Option<CutPoint> {
        let (mut right, mut found) = (0, None);
        for (at, answer) in self.0.iter().enumerate() {
            right += usize::from(answer.1 >= answer.0);
            let answered = at + 1;
            // Equal probabilities are on the same side of every threshold.
            let is_edge = self.0.get(answered).is_none_or(|next| next.0 < answer.0);
            if is_edge && right as f64 >= accuracy * answered as f64 {
                found = Some((answer.0, right, answered));
            }
        }
        let (threshold, right, answered) = found?;
        let (low, high) = wilson(right, answered);
        Some(CutPoint {
            wished: accuracy,
            threshold,
            share: answered as f64 / self.0.len() as f64,
            accuracy: right as f64 / answered as f64,
            low,
            high,
        })
    }

    /// Returns the least probability of the options in a prediction set, which holds the right option with this
    /// probability (split conformal prediction); 0, which keeps all of them, where the examples are too few.
    pub fn least_of_set(&self, coverage: f64) -> f64 {
        let mut scores: Vec<f64> = self.0.iter().map(|answer| answer.1).collect();
        scores.sort_by(|one, other| other.total_cmp(one));
        let rank = ((scores.len() + 1) as f64 * coverage).ceil() as usize;
        scores.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
    }
}

/// The interval of a share (Wilson, 95 %).
fn wilson(right: usize, count: usize) -> (f64, f64) {
    const Z: f64 = 1.959_964;
    let (count, share) = (count as f64, right as f64 / count as f64);
    let middle = (share + Z * Z / (2.0 * count)) / (1.0 + Z * Z / count);
    let half = Z * (share * (1.0 - share) / count + Z * Z / (4.0 * count * count)).sqrt() / (1.0 + Z * Z / count);
    ((middle - half).max(0.0), (middle + half).min(1.0))
}

impl<'de> Deserialize<'de> for HeldOut {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let answers = Vec::<HeldOutAnswer>::deserialize(from)?;
        let is_share = |share: f64| (0.0..=1.0).contains(&share);
        if let Some(wrong) =
            answers.iter().find(|answer| !is_share(answer.0) || !is_share(answer.1) || answer.1 > answer.0)
        {
            let reason =
                format!("[{}, {}]: expected the highest probability, and that of the right option", wrong.0, wrong.1);
            return Err(value_error(SpecProblem::Value(reason)));
        }
        let falls = answers.is_sorted_by(|one, next| one.0 >= next.0);
        if !falls {
            return Err(value_error(SpecProblem::Value("the highest probabilities must fall".to_owned())));
        }
        Ok(Self(answers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Two options: the first has the probability, and is right or not.
    fn held_out(answers: &[(f64, bool)]) -> HeldOut {
        let answer = |&(most, right): &(f64, bool)| (vec![most, 1.0 - most], usize::from(!right));
        HeldOut::new(&answers.iter().map(answer).collect::<Vec<_>>())
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "the thresholds are those that were given")]
    fn the_threshold_answers_as_much_as_it_may() {
        let known = held_out(&[(0.9, true), (0.8, true), (0.7, false), (0.6, true), (0.6, false), (0.55, false)]);
        let cut = known.find_cut(0.6).unwrap();
        assert_eq!((cut.threshold, cut.share, cut.accuracy), (0.6, 5.0 / 6.0, 0.6));
        assert!(cut.low < 0.6 && cut.high > 0.6 && cut.low > 0.2);
        assert_eq!(known.find_cut(1.0).unwrap().threshold, 0.8);
        // Of the two at 0.6 one is right: a threshold has both or neither.
        assert_eq!(known.find_cut(0.7).unwrap().threshold, 0.8);
        assert_eq!(held_out(&[(0.9, false)]).find_cut(0.5), None);
        assert_eq!(held_out(&[(0.5, true)]).find_cut(0.5).unwrap().threshold, 0.5);
    }

    proptest! {
        /// Examples and cases of one kind: the set holds the right option as often as was promised, within chance.
        #[test]
        fn prediction_sets_cover_what_they_promise(seed in any::<u64>(), coverage in 0.5..0.95_f64) {
            let mut state = seed | 1;
            let mut draw = || {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 11) as f64 / (1_u64 << 53) as f64
            };
            let mut answers = |count: usize| -> Vec<(Vec<f64>, usize)> {
                (0..count)
                    .map(|_| {
                        let weights = [draw(), draw(), draw()];
                        let sum: f64 = weights.iter().sum();
                        let shares: Vec<f64> = weights.iter().map(|weight| weight / sum).collect();
                        let at = draw();
                        let gold = if at < shares[0] { 0 } else if at < shares[0] + shares[1] { 1 } else { 2 };
                        (shares, gold)
                    })
                    .collect()
            };
            let least = HeldOut::new(&answers(1000)).least_of_set(coverage);
            let cases = answers(2000);
            let held = cases.iter().filter(|(shares, gold)| shares[*gold] >= least).count() as f64 / 2000.0;
            prop_assert!((held - coverage).abs() < 0.08, "{held} for {coverage}");
        }
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "the probabilities are those that were given")]
    fn a_set_is_whole_where_little_is_known() {
        let known = held_out(&[(0.9, true); 9]);
        assert_eq!(known.least_of_set(0.95), 0.0);
        assert_eq!(known.least_of_set(0.9), 0.9);
    }
}
