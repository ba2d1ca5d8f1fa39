//! Answer to a question.

use super::options::{Decide, End, ListOrder};
use super::question::{Kind, Question};
use super::shares::best;
use serde_json::{Map, Value, json};
use std::ops::Range;
use std::sync::Arc;
use trie_core::{TokenId, log_add};

/// A prompt, and the texts that were scored after it.
#[derive(Debug, Clone, PartialEq)]
pub struct AskedPrompt {
    /// Tokens of the prompt.
    pub tokens: Vec<TokenId>,
    /// Ranges of the tokens that hold one listed option each and do not see each other: all of them begin at the
    /// position of the first, and the tokens after them follow the longest. None unless the order is
    /// [`ListOrder::Independent`].
    pub branches: Vec<Range<usize>>,
    /// Texts: first that of each option, in the order of the question, then other spellings of them.
    pub texts: Arc<[String]>,
    /// Index of the option of each text.
    pub options: Arc<[usize]>,
    /// Probability that the reply begins with each text. NaN where it was not scored.
    pub probabilities: Vec<f64>,
}

/// The thought of a close call, which was decided after it.
#[derive(Debug, Clone, PartialEq)]
pub struct Thought {
    /// Text of the thought.
    pub text: String,
    /// Probability of each option before it.
    pub probabilities: Vec<f64>,
}

/// The answer of a question.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Answer {
    /// Question of the answer.
    pub question: Question,
    /// The result: a boolean for a predicate, the option for a choice, the expected level, from 0, for a score. `None`
    /// below the threshold.
    pub value: Option<Value>,
    /// Index of the most probable option.
    pub index: usize,
    /// Probability of yes, for a predicate; else that of the most probable option.
    pub probability: f64,
    /// Probability of every option; they add up to 1. NaN where it was not scored.
    pub probabilities: Vec<f64>,
    /// Confidence of the answer, from 0 to 1: see docs/decisions.md.
    pub confidence: f64,
    /// Total probability that the model gives to all options: the mean over the orders.
    pub mass: f64,
    /// Entropy of the probabilities, in nats.
    pub entropy: f64,
    /// Share of the orders in which another option is the most probable one.
    pub flips: f64,
    /// Order in which the options were listed: that of [`Decide::order`], or balanced orders where options cannot be
    /// independent. Of levels, and where nothing is listed, it is the given order.
    pub order: ListOrder,
    /// Reason why the order is another than was asked for.
    pub order_reason: Option<String>,
    /// Certainty about the best options of a question with too many to score each; `None` where each is scored.
    pub bound: Option<TopBound>,
    /// Reason why there is no value.
    pub reason: Option<String>,
    /// Options one of which is right with the probability of [`Decide::coverage`], most probable first: their indices.
    pub prediction_set: Option<Vec<usize>>,
    /// Advice where the options are improbable.
    pub warning: Option<String>,
    /// Score of a state that has nothing to do with the question, from 0 to 1, with [`Decide::out_of_scope`].
    pub out_of_scope: Option<f64>,
    /// The thought that came before it, if it was a close call ([`Decide::escalate`]).
    pub thought: Option<Thought>,
    /// Prompts, one for each order of the options.
    pub prompts: Vec<AskedPrompt>,
}

/// How the options were listed.
#[derive(Debug, Clone, Default)]
pub(super) struct UsedOrder {
    pub(super) order: ListOrder,
    /// Reason why that is not what was asked for.
    pub(super) reason: Option<String>,
}

/// Certainty about options of which only the best were looked for.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct TopBound {
    /// Number of the most probable options that no option can surpass which was not scored.
    pub certain: usize,
    /// Largest probability among the options that one of them can have which was not scored.
    pub unscored: f64,
}

impl TopBound {
    /// Returns the bound of values with these logs of probabilities, NaN where they are unknown, and upper bounds.
    pub(super) fn new(known: &[f64], highest: Option<&[f64]>) -> Self {
        let unknown = highest.into_iter().flatten().zip(known).filter(|(_, known)| known.is_nan());
        let most = unknown.map(|(&highest, _)| highest).fold(f64::NEG_INFINITY, f64::max);
        let scored = known.iter().copied().filter(|known| !known.is_nan());
        let sum = scored.clone().fold(most, log_add);
        let certain = scored.filter(|&known| known >= most).count();
        Self { certain, unscored: if most == f64::NEG_INFINITY { 0.0 } else { (most - sum).exp() } }
    }
}

/// Result of one order.
pub(super) struct Order {
    pub(super) prompt: AskedPrompt,
    pub(super) probabilities: Vec<f64>,
    pub(super) mass: f64,
    /// How far the state is from the options, if that was asked.
    pub(super) out_of_scope: Option<f64>,
    pub(super) bound: Option<TopBound>,
}

/// Computes the confidence of a choice between so many options.
fn of_choice(probabilities: &[f64]) -> f64 {
    let (count, most) = (probabilities.len() as f64, probabilities[best(probabilities)]);
    if count < 2.0 { 1.0 } else { (count * most - 1.0) / (count - 1.0) }
}

/// Computes the confidence of a level: the spread of the probabilities around the most probable level, relative to the
/// spread of equally probable levels.
fn of_score(probabilities: &[f64]) -> f64 {
    let count = probabilities.len() as f64;
    if count < 2.0 {
        return 1.0;
    }
    let (middle, most) = ((count - 1.0) / 2.0, best(probabilities) as f64);
    let alike: f64 = (0..probabilities.len()).map(|level| (level as f64 - middle).abs()).sum::<f64>() / count;
    let far = probabilities.iter().enumerate().map(|(level, share)| share * (level as f64 - most).abs()).sum::<f64>();
    (1.0 - far / alike).max(0.0)
}

impl Answer {
    pub(super) fn new(question: Question, orders: Vec<Order>, threshold: Option<f64>, listed: &UsedOrder) -> Self {
        let count = orders.len() as f64;
        let options = orders.first().map_or(0, |order| order.probabilities.len());
        let mean = |option: usize| orders.iter().map(|order| order.probabilities[option]).sum::<f64>() / count;
        let probabilities: Vec<f64> = (0..options).map(mean).collect();
        let index = best(&probabilities);
        let others = orders.iter().filter(|order| best(&order.probabilities) != index).count();
        let scopes: Vec<f64> = orders.iter().filter_map(|order| order.out_of_scope).collect();
        let mut answer = Self {
            question,
            value: None,
            index,
            probability: 0.0,
            probabilities: Vec::new(),
            confidence: 0.0,
            mass: orders.iter().map(|order| order.mass).sum::<f64>() / count,
            entropy: 0.0,
            flips: others as f64 / count,
            order: listed.order,
            order_reason: listed.reason.clone(),
            bound: orders.iter().filter_map(|order| order.bound).reduce(|one, other| TopBound {
                certain: one.certain.min(other.certain),
                unscored: one.unscored.max(other.unscored),
            }),
            reason: None,
            prediction_set: None,
            warning: None,
            out_of_scope: (!scopes.is_empty()).then(|| scopes.iter().sum::<f64>() / scopes.len() as f64),
            thought: None,
            prompts: orders.into_iter().map(|order| order.prompt).collect(),
        };
        answer.set(probabilities, threshold);
        answer
    }

    /// Sets the probabilities, and every field that is derived from them.
    pub(super) fn set(&mut self, probabilities: Vec<f64>, threshold: Option<f64>) {
        let index = best(&probabilities);
        let most = probabilities[index];
        let known = probabilities.iter().copied().filter(|share| *share > 0.0);
        self.entropy = known.map(|share| -share * share.ln()).sum();
        let (value, confidence, probability) = match &self.question.kind {
            Kind::Predicate { .. } => (Value::Bool(index == 0), of_choice(&probabilities), probabilities[0]),
            Kind::Choice(options) => (options[index].0.clone(), of_choice(&probabilities), most),
            Kind::Score(_) => {
                let level = probabilities.iter().enumerate().map(|(level, share)| level as f64 * share).sum::<f64>();
                (Value::from(level), of_score(&probabilities), most)
            }
        };
        let below = threshold.filter(|threshold| most < *threshold);
        let below = below.map(|least| {
            if least > 1.0 {
                "no threshold reaches the target accuracy on the examples of the calibration".to_owned()
            } else {
                format!("the probability {most:.4} is below the threshold {least}")
            }
        });
        let unknown = most.is_nan().then(|| "none of the options was scored: raise max_rows".to_owned());
        self.reason = unknown.or(below).or_else(|| value.is_null().then(|| "none of the options is meant".to_owned()));
        self.value = self.reason.is_none().then_some(value);
        (self.index, self.confidence, self.probability) = (index, confidence, probability);
        self.probabilities = probabilities;
    }

    /// Gives the options another order: `order[place]` is the option of the new question at each place of the old one.
    pub(super) fn reorder(&mut self, question: Question, order: &[usize]) {
        let moved = |shares: &[f64]| {
            let mut all = shares.to_vec();
            order.iter().zip(shares).for_each(|(&to, &share)| all[to] = share);
            all
        };
        self.question = question;
        self.index = order[self.index];
        self.probabilities = moved(&self.probabilities);
        self.prediction_set.iter_mut().flatten().for_each(|option| *option = order[*option]);
        for prompt in &mut self.prompts {
            let options: Vec<usize> = prompt.options.iter().map(|&option| order[option]).collect();
            // First the options' own texts, in their order, then other spellings.
            let mut places: Vec<usize> = (0..options.len()).collect();
            places.sort_by_key(|&place| (place >= order.len(), options[place]));
            prompt.texts = places.iter().map(|&place| prompt.texts[place].clone()).collect();
            prompt.options = places.iter().map(|&place| options[place]).collect();
            prompt.probabilities = places.iter().map(|&place| prompt.probabilities[place]).collect();
        }
    }

    /// Keeps the options that are in the prediction set, whose least probability is given.
    pub(super) fn set_prediction(&mut self, least: f64) {
        let mut kept: Vec<usize> =
            (0..self.probabilities.len()).filter(|&at| self.probabilities[at] >= least).collect();
        kept.sort_by(|&one, &other| self.probabilities[other].total_cmp(&self.probabilities[one]));
        if kept.is_empty() {
            kept.push(self.index);
        }
        self.prediction_set = Some(kept);
    }

    /// Gives advice where the options are improbable.
    pub(super) fn warn(&mut self, options: &Decide) {
        /// Below this mass a model would rather write something else.
        const LEAST_MASS: f64 = 0.01;
        let of_top = self.bound.filter(|bound| bound.certain < (options.top as usize).min(self.probabilities.len()));
        if let Some(TopBound { certain, unscored }) = of_top {
            self.warning = Some(format!(
                "the {} rows of max_rows were too few for the {} best options of {:?}: the first {certain} are \
                 certain, and an option that was not scored may have a probability of up to {unscored:.1e}",
                options.max_rows, options.top, self.question.name,
            ));
        }
        if self.mass >= LEAST_MASS {
            return;
        }
        let remedies = [
            (options.end == End::Required, "end=\"optional\""),
            (!options.spellings, "spellings=true"),
            (self.question.instructions.is_none() && options.instructions.is_none(), "instructions in words"),
            (options.prefix().is_empty(), "a prefix such as \"Answer:\""),
            (options.examples.is_empty(), "solved examples"),
            (true, "a larger model"),
        ];
        let try_first: Vec<&str> = remedies.into_iter().filter(|(helps, _)| *helps).map(|(_, remedy)| remedy).collect();
        let before = self.warning.take().map_or_else(String::new, |before| format!("{before}; "));
        self.warning = Some(format!(
            "{before}the model gives {:.1e} of its probability to the options of {:?}, so their probabilities say \
             little: try {}",
            self.mass,
            self.question.name,
            try_first.join(", "),
        ));
    }

    fn json(&self) -> Value {
        let (kind, options): (_, Vec<Value>) = match &self.question.kind {
            Kind::Predicate { .. } => ("predicate", vec![true.into(), false.into()]),
            Kind::Choice(options) => ("choice", options.iter().map(|(value, _)| value.clone()).collect()),
            Kind::Score(levels) => ("score", levels.iter().map(|(label, _)| label.clone()).collect()),
        };
        let share = |(option, share): (Value, &f64)| json!({"value": option, "probability": share});
        let prompt = |prompt: &AskedPrompt| {
            let tokens: Vec<u32> = prompt.tokens.iter().map(|token| token.get()).collect();
            let branches: Vec<[usize; 2]> = prompt.branches.iter().map(|branch| [branch.start, branch.end]).collect();
            json!({
                "tokens": tokens,
                "branches": branches,
                "values": &*prompt.texts,
                "options": &*prompt.options,
                "probabilities": prompt.probabilities,
            })
        };
        json!({
            "type": kind,
            "value": self.value,
            "index": self.index,
            "probability": self.probability,
            "probabilities": options.into_iter().zip(&self.probabilities).map(share).collect::<Vec<_>>(),
            "confidence": self.confidence,
            "mass": self.mass,
            "entropy": self.entropy,
            "flips": self.flips,
            "order": self.order.name(),
            "order_reason": self.order_reason,
            "certain": self.bound.map(|bound| bound.certain),
            "unscored": self.bound.map(|bound| bound.unscored),
            "reason": self.reason,
            "prediction_set": self.prediction_set,
            "warning": self.warning,
            "out_of_scope": self.out_of_scope,
            "thought": self.thought.as_ref().map(|thought| json!({
                "text": thought.text,
                "probabilities": thought.probabilities,
            })),
            "prompts": self.prompts.iter().map(prompt).collect::<Vec<_>>(),
        })
    }
}

/// The answers to the questions about a state.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Answers {
    /// Answers, in the order of the questions.
    pub answers: Vec<Answer>,
    /// End tokens: one of them must follow an option, or with an optional end one of
    /// [`Vocab::boundary_tokens`](trie_text::Vocab::boundary_tokens).
    pub end_tokens: Arc<[TokenId]>,
    /// End of an option.
    pub end: End,
    /// Forward passes of the whole request, and tokens in them.
    pub passes: (u64, usize),
    /// Total duration in seconds.
    pub seconds: f64,
}

impl Answers {
    fn json(&self) -> Value {
        let answers: Map<String, Value> =
            self.answers.iter().map(|answer| (answer.question.name.clone(), answer.json())).collect();
        let ends: Vec<u32> = self.end_tokens.iter().map(|token| token.get()).collect();
        let (passes, tokens) = self.passes;
        let stats = json!({"forward_passes": passes, "tokens_decoded": tokens, "seconds": self.seconds});
        json!({"answers": answers, "end": self.end.name(), "end_tokens": ends, "stats": stats})
    }

    /// Returns `[{"answers": {"name": {"value": ..., "probabilities": [...], ...}}, "end": "optional", "end_tokens":
    /// [...], "stats": {...}}]`, with one object for each state. Options that were not scored have `null`.
    #[must_use]
    pub fn to_json(all: &[Self]) -> String {
        Value::Array(all.iter().map(Self::json).collect()).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    #[test]
    fn confidence_is_as_the_wire_formats_define_it() {
        assert!(close(of_choice(&[1.0]), 1.0) && close(of_choice(&[0.25; 4]), 0.0));
        assert!(close(of_choice(&[0.1, 0.7, 0.2]), (3.0 * 0.7 - 1.0) / 2.0));
        assert!(close(of_score(&[1.0]), 1.0) && close(of_score(&[0.0, 1.0, 0.0]), 1.0));
        // Three levels that are all alike lie 2/3 from the middle.
        assert!(close(of_score(&[0.2, 0.7, 0.1]), 1.0 - 0.3 / (2.0 / 3.0)));
        assert!(close(of_score(&[0.5, 0.0, 0.5]), 0.0));
    }

    #[test]
    fn orders_are_averaged_and_those_that_disagree_counted() {
        let kind = Kind::Score(vec![("low".into(), None), ("high".into(), None)]);
        let question = Question { name: "q".to_owned(), instructions: None, kind };
        let order = |low: f64, mass: f64| Order {
            prompt: AskedPrompt {
                tokens: Vec::new(),
                branches: Vec::new(),
                texts: Arc::default(),
                options: Arc::default(),
                probabilities: Vec::new(),
            },
            probabilities: vec![low, 1.0 - low],
            mass,
            out_of_scope: None,
            bound: None,
        };
        let answer = Answer::new(
            question.clone(),
            vec![order(0.9, 0.5), order(0.4, 0.1), order(0.8, 0.3)],
            None,
            &UsedOrder::default(),
        );
        assert!(close(answer.probabilities[0], 0.7) && close(answer.flips, 1.0 / 3.0) && close(answer.mass, 0.3));
        assert!(close(answer.value.unwrap().as_f64().unwrap(), 0.3));
        let refused = Answer::new(question, vec![order(0.6, 1.0)], Some(0.7), &UsedOrder::default());
        assert_eq!((refused.value, refused.index), (None, 0));
        assert_eq!(refused.reason.unwrap(), "the probability 0.6000 is below the threshold 0.7");
    }
}
