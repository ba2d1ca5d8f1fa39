//! Fit of a temperature and biases, which makes known answers as probable as possible. The problem is convex, so there
//! is one best fit.

use super::held_out::HeldOut;
use super::measures::Measures;
use crate::decide::shares::{IMPOSSIBLE, softmax};

/// An answer whose right option is known.
#[derive(Debug, Clone, PartialEq)]
pub struct Example {
    /// Probability of every option.
    pub probabilities: Vec<f64>,
    /// Number of the right option.
    pub gold: usize,
}

/// Reason why a question cannot be calibrated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FitError {
    /// Fewer examples than say anything.
    #[error("{given} examples are known: a calibration needs at least {least}")]
    Few {
        /// Number of examples given.
        given: usize,
        /// Number of examples required.
        least: usize,
    },
    /// Only the best of its options were scored.
    #[error("only the best of its options were scored: a calibration needs the probability of every option")]
    Unscored,
    /// An example says another number of options.
    #[error("example {number} has {given} options or a right one beyond them: {expected} are asked about")]
    Options {
        /// Its number, from 0.
        number: usize,
        /// Number of its options.
        given: usize,
        /// Number of options of the first one.
        expected: usize,
    },
}

trie_core::error_kind!(FitError, Argument);

/// Minimum number of examples.
const LEAST: usize = 10;
/// Questions with more options get no biases: there are never examples of each.
const MOST_BIASES: usize = 256;
/// Each example is measured by a fit on the other parts.
const FOLDS: usize = 5;
/// No probability is ever raised to a higher power than this, or a lower one than its inverse.
const STEEPEST: f64 = 20.0;
const STEPS: usize = 100;

/// Parameters that are fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Nothing: the probabilities as they are.
    Plain,
    /// A temperature, and no biases.
    Temperature,
    /// A temperature, and the bias of each option.
    Biased,
}

/// Logarithms of probabilities to a power, and what is added to them.
#[derive(Debug, Clone, PartialEq)]
struct FitParameters {
    power: f64,
    bias: Vec<f64>,
}

/// Data of an example: logarithms, and the right option.
struct FitExample {
    logs: Vec<f64>,
    gold: usize,
}

/// Fit of a question.
#[derive(Debug)]
pub(super) struct QuestionFit {
    pub(super) temperature: f64,
    pub(super) bias: Vec<f64>,
    pub(super) before: Measures,
    pub(super) after: Measures,
    pub(super) held_out: HeldOut,
}

/// The form that does best on examples it has not seen: the probabilities as they are, a temperature, or a temperature
/// and biases.
///
/// # Errors
/// [`FitError`].
pub(super) fn fit_question(examples: &[Example]) -> Result<QuestionFit, FitError> {
    let known = fit_examples(examples)?;
    let options = examples[0].probabilities.len();
    let before: Vec<_> = examples.iter().map(|one| (one.probabilities.clone(), one.gold)).collect();
    let before = Measures::from_answers(&before);
    let forms = [Form::Plain, Form::Temperature, Form::Biased];
    let tried = forms.into_iter().filter(|form| *form != Form::Biased || options <= MOST_BIASES);
    // Of equal ones the simpler, which comes first.
    let mut chosen: Option<(Form, Measures, HeldOut)> = None;
    for form in tried {
        let answers = held_out(&known, form);
        let after = Measures::from_answers(&answers);
        if chosen.as_ref().is_none_or(|(_, best, _)| after.log_loss < best.log_loss) {
            chosen = Some((form, after, HeldOut::new(&answers)));
        }
    }
    let (form, after, held_out) = chosen.unwrap_or((Form::Plain, before.clone(), HeldOut::default()));
    let FitParameters { power, bias } = fit(&known.iter().collect::<Vec<_>>(), options, form);
    Ok(QuestionFit { temperature: 1.0 / power, bias, before, after, held_out })
}

fn fit_examples(examples: &[Example]) -> Result<Vec<FitExample>, FitError> {
    let (given, least) = (examples.len(), LEAST);
    if given < least {
        return Err(FitError::Few { given, least });
    }
    let expected = examples[0].probabilities.len();
    let one = |(number, one): (usize, &Example)| {
        let given = one.probabilities.len();
        if given != expected || one.gold >= given {
            return Err(FitError::Options { number, given, expected });
        }
        if one.probabilities.iter().any(|share| share.is_nan()) {
            return Err(FitError::Unscored);
        }
        let logs = one.probabilities.iter().map(|share| share.ln().max(IMPOSSIBLE)).collect();
        Ok(FitExample { logs, gold: one.gold })
    };
    examples.iter().enumerate().map(one).collect()
}

/// The probabilities of each example by a fit on those of the other folds.
fn held_out(known: &[FitExample], form: Form) -> Vec<(Vec<f64>, usize)> {
    let options = known[0].logs.len();
    let fold = |fold: usize| {
        let others: Vec<&FitExample> =
            known.iter().enumerate().filter(|(at, _)| at % FOLDS != fold).map(|of| of.1).collect();
        fit(&others, options, form)
    };
    let fits: Vec<FitParameters> = (0..FOLDS).map(fold).collect();
    known.iter().enumerate().map(|(at, one)| (fits[at % FOLDS].shares(&one.logs), one.gold)).collect()
}

impl FitParameters {
    fn shares(&self, logs: &[f64]) -> Vec<f64> {
        softmax(logs.iter().zip(&self.bias).map(|(log, bias)| self.power * log + bias))
    }

    /// Computes the objective: −ln of the right options, and a penalty on the distance from no fit. That keeps it
    /// finite where every example is right, and is all that is known of options without examples.
    fn cost(&self, known: &[&FitExample]) -> f64 {
        let loss = |one: &&FitExample| -self.shares(&one.logs)[one.gold].ln().max(IMPOSSIBLE);
        let far = (self.power - 1.0).powi(2) + self.bias.iter().map(|bias| bias * bias).sum::<f64>();
        known.iter().map(loss).sum::<f64>() + far / 2.0
    }

    /// The gradient of the cost and its second derivatives: of the power first, then of each bias.
    fn derivatives(&self, known: &[&FitExample]) -> (Vec<f64>, Vec<Vec<f64>>) {
        let size = 1 + self.bias.len();
        let (mut gradient, mut second) = (vec![0.0; size], vec![vec![0.0; size]; size]);
        gradient[0] = self.power - 1.0;
        gradient[1..].copy_from_slice(&self.bias);
        (0..size).for_each(|at| second[at][at] = 1.0);
        for one in known {
            let shares = self.shares(&one.logs);
            let mean: f64 = shares.iter().zip(&one.logs).map(|(share, log)| share * log).sum();
            gradient[0] += mean - one.logs[one.gold];
            for (option, (share, log)) in shares.iter().zip(&one.logs).enumerate() {
                let truth = if option == one.gold { 1.0 } else { 0.0 };
                gradient[1 + option] += share - truth;
                second[0][0] += share * (log - mean).powi(2);
                second[0][1 + option] += share * (log - mean);
                second[1 + option][1 + option] += share;
                for (other, of_other) in shares.iter().enumerate() {
                    second[1 + option][1 + other] -= share * of_other;
                }
            }
        }
        let first = second[0].clone();
        for (row, value) in second.iter_mut().zip(first).skip(1) {
            row[0] = value;
        }
        (gradient, second)
    }
}

/// The best fit of a form, by Newton's method with shorter steps where a whole one goes too far.
fn fit(known: &[&FitExample], options: usize, form: Form) -> FitParameters {
    let mut best = FitParameters { power: 1.0, bias: vec![0.0; options] };
    let free = match form {
        Form::Plain => return best,
        Form::Temperature => 1,
        Form::Biased => 1 + options,
    };
    let mut cost = best.cost(known);
    for _ in 0..STEPS {
        let (mut gradient, mut second) = best.derivatives(known);
        gradient.truncate(free);
        second.truncate(free);
        let bound = [1.0 / STEEPEST, STEEPEST];
        let at_bound = best.power <= bound[0] && gradient[0] > 0.0 || best.power >= bound[1] && gradient[0] < 0.0;
        if at_bound {
            // It would go on beyond: the biases alone are free.
            gradient[0] = 0.0;
            second[0].fill(0.0);
            for row in &mut second {
                row[0] = 0.0;
            }
            second[0][0] = 1.0;
        }
        let step = solve(second, gradient);
        let moved = |length: f64| {
            let power = (best.power - length * step[0]).clamp(bound[0], bound[1]);
            let bias = best.bias.iter().enumerate();
            FitParameters {
                power,
                bias: bias.map(|(at, bias)| bias - length * step.get(1 + at).unwrap_or(&0.0)).collect(),
            }
        };
        let tried = (0..30).map(|halvings| moved(0.5_f64.powi(halvings))).map(|fit| (fit.cost(known), fit));
        let Some((less, next)) = tried.into_iter().find(|(tried, _)| *tried < cost) else { break };
        let won = cost - less;
        (cost, best) = (less, next);
        if won < 1e-12 * (1.0 + cost.abs()) {
            break;
        }
    }
    best
}

/// The solution of a positive definite system, by Gaussian elimination.
fn solve(mut rows: Vec<Vec<f64>>, mut right: Vec<f64>) -> Vec<f64> {
    let size = right.len();
    for at in 0..size {
        let (above, below) = rows.split_at_mut(at + 1);
        let pivot = &above[at];
        for (row, below) in below.iter_mut().enumerate() {
            let factor = below[at] / pivot[at];
            if factor != 0.0 {
                below[at..size].iter_mut().zip(&pivot[at..size]).for_each(|(value, above)| *value -= factor * above);
                right[at + 1 + row] -= factor * right[at];
            }
        }
    }
    for at in (0..size).rev() {
        let known: f64 = (at + 1..size).map(|other| rows[at][other] * right[other]).sum();
        right[at] = (right[at] - known) / rows[at][at];
    }
    right
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn examples() -> impl Strategy<Value = Vec<Example>> {
        let one = |options: usize| {
            (prop::collection::vec(1e-6..1.0_f64, options), 0..options).prop_map(|(weights, gold)| {
                let sum: f64 = weights.iter().sum();
                Example { probabilities: weights.iter().map(|weight| weight / sum).collect(), gold }
            })
        };
        (2_usize..6).prop_flat_map(move |options| prop::collection::vec(one(options), 10..60))
    }

    fn shift_parameter(fit: &FitParameters, at: usize, by: f64) -> FitParameters {
        let mut moved = fit.clone();
        if at == 0 {
            moved.power += by;
        } else {
            moved.bias[at - 1] += by;
        }
        moved
    }

    proptest! {
        /// The cost is convex, so a place from which every direction leads up is the best of all.
        #[test]
        fn no_step_makes_a_fit_better(examples in examples(), biased in any::<bool>()) {
            let known = fit_examples(&examples).unwrap();
            let known: Vec<&FitExample> = known.iter().collect();
            let form = if biased { Form::Biased } else { Form::Temperature };
            let found = fit(&known, examples[0].probabilities.len(), form);
            let cost = found.cost(&known);
            for at in 0..if biased { 1 + found.bias.len() } else { 1 } {
                for by in [-1e-3, 1e-3] {
                    let moved = shift_parameter(&found, at, by);
                    let outside = !(1.0 / STEEPEST..=STEEPEST).contains(&moved.power);
                    prop_assert!(outside || moved.cost(&known) >= cost - 1e-9, "{found:?} at {at} by {by}");
                }
            }
        }

        #[test]
        fn derivatives_are_those_of_the_cost(examples in examples(), power in 0.1..3.0_f64) {
            let known = fit_examples(&examples).unwrap();
            let known: Vec<&FitExample> = known.iter().collect();
            let bias = (0..examples[0].probabilities.len()).map(|option| 0.1 * option as f64).collect();
            let fit = FitParameters { power, bias };
            let (gradient, second) = fit.derivatives(&known);
            let step = 1e-5;
            for at in 0..gradient.len() {
                let (less, more) = (shift_parameter(&fit, at, -step), shift_parameter(&fit, at, step));
                let slope = (more.cost(&known) - less.cost(&known)) / (2.0 * step);
                prop_assert!((slope - gradient[at]).abs() < 1e-3 * (1.0 + slope.abs()), "{slope}, {}", gradient[at]);
                let (less, more) = (less.derivatives(&known).0, more.derivatives(&known).0);
                for other in 0..gradient.len() {
                    let slope = (more[other] - less[other]) / (2.0 * step);
                    prop_assert!((slope - second[at][other]).abs() < 1e-3 * (1.0 + slope.abs()));
                }
            }
        }

        #[test]
        fn what_was_not_seen_never_gets_worse_by_much(examples in examples()) {
            let found = fit_question(&examples).unwrap();
            prop_assert!(found.after.log_loss <= found.before.log_loss + 1e-12);
            prop_assert!(found.temperature > 0.0 && found.bias.iter().all(|bias| bias.is_finite()));
        }
    }

    /// A model that says 99 % and is right three times of four, and says one option too often.
    #[test]
    fn what_is_too_sure_becomes_honest() {
        let example = |at: usize| {
            let said = at % 2;
            let mut probabilities = vec![0.01; 2];
            probabilities[said] = 0.99;
            Example { probabilities, gold: if at % 8 < 6 { said } else { 1 - said } }
        };
        let examples: Vec<Example> = (0..400).map(example).collect();
        let found = fit_question(&examples).unwrap();
        assert!(found.before.ece > 0.2 && found.after.ece < 0.02, "{found:?}");
        let fit = FitParameters { power: 1.0 / found.temperature, bias: found.bias.clone() };
        assert!((fit.shares(&[0.99_f64.ln(), 0.01_f64.ln()])[0] - 0.75).abs() < 0.01, "{found:?}");
        assert!((found.before.accuracy - 0.75).abs() < 1e-12);
    }

    #[test]
    fn too_little_is_refused() {
        let example = Example { probabilities: vec![0.5, 0.5], gold: 0 };
        let few = vec![example.clone(); 9];
        assert_eq!(fit_question(&few).map(|_| ()), Err(FitError::Few { given: 9, least: 10 }));
        let mut odd = vec![example; 12];
        odd[3].gold = 2;
        assert_eq!(fit_question(&odd).map(|_| ()), Err(FitError::Options { number: 3, given: 2, expected: 2 }));
        odd[3] = Example { probabilities: vec![0.5, f64::NAN], gold: 0 };
        assert_eq!(fit_question(&odd).map(|_| ()), Err(FitError::Unscored));
    }
}
