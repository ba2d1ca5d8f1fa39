//! Close calls that think before they are decided.

use super::answer::{Answer, Answers, Thought};
use super::options::Decide;
use super::question::Question;
use super::ready::{DecideError, Part, ReadyDecision};
use super::request::Request;
use crate::call::{Follows, Generate, Hooks, ReadyGeneration, Stops};
use crate::chat::ModelFormat;
use crate::engine::Runtime;
use chat_format::dialect::ReasoningMode;
use llama_sampler::RuntimeError;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use trie_core::TokenId;
use trie_text::{Prompt, ValueSets, Vocab};

/// Beginning of a thought in the reply of a model without a format for reasoning.
const SCRATCH: &str = "Reasoning:";
/// Text after such a thought where the layout has no prefix.
const ANSWER: &str = "Answer:";

/// A thought that came, and the prompt after it.
struct FinishedThought {
    text: String,
    prompt: Vec<TokenId>,
    /// Forward passes, and tokens in them.
    passes: (u64, usize),
}

/// One question about a state: a generation of its thought, and what follows it.
pub(super) struct Thinker {
    generation: ReadyGeneration,
    /// Text that ends the thought.
    end: String,
    /// Tokens before the text of the thought, and after it.
    around: (Vec<TokenId>, Vec<TokenId>),
    /// Text before and after the thought that is tokenized together with it.
    beside: (&'static str, String),
}

impl Thinker {
    /// The thinker about a conversation, and about its prompt up to the beginning of the reply's content.
    pub(super) fn new(
        format: &ModelFormat,
        messages: &[Value],
        content_prompt: &[TokenId],
        options: &Decide,
        prefix: &[TokenId],
        sets: &ValueSets,
    ) -> Result<Self, DecideError> {
        let reasoning = &format.format().analysis().dialect.reasoning;
        let (prompt, end, around, beside) = if reasoning.mode == ReasoningMode::None || reasoning.end.is_empty() {
            let prefix = if options.prefix().is_empty() { ANSWER } else { options.prefix() };
            let end = prefix.trim_end().to_owned();
            let opened = [content_prompt, &tokenize(format.vocab(), SCRATCH)?].concat();
            (opened, end, (content_prompt.to_vec(), Vec::new()), (SCRATCH, format!("\n{prefix}")))
        } else {
            let prompt = format.thinking_prompt::<DecideError>(messages)?;
            let after = [&format.thought_end()[..], prefix].concat();
            (prompt.clone(), reasoning.end.trim().to_owned(), (prompt, after), ("", String::new()))
        };
        let stop = if end.is_empty() { Stops::default() } else { Stops::new(&[&end]).unwrap_or_default() };
        let generate = Generate { max_tokens: Some(options.think_tokens), stop, ..Generate::default() };
        let generation = generate.ready(Prompt::Tokens(prompt), Follows::Nothing, None, sets)?;
        Ok(Self { generation, end, around, beside })
    }

    /// Generates a thought about the conversation.
    fn think(
        &self,
        vocab: &Vocab,
        runtime: &mut Runtime<'_>,
        hooks: &mut dyn Hooks,
    ) -> Result<FinishedThought, DecideError> {
        let done = runtime.run(&self.generation, hooks)?;
        let finished = done.into_iter().next().filter(|result| !result.generated.finish.is_stopped());
        let stopped = RuntimeError::Stopped { what: "thoughts", done: 0, of: 1 };
        let result = finished.ok_or(stopped)?;
        let whole = &result.generated.text;
        let said = whole.find(&self.end).filter(|_| !self.end.is_empty()).map_or(&whole[..], |at| &whole[..at]);
        let text = said.trim_end().to_owned();
        let (before, after) = &self.beside;
        let mut prompt = self.around.0.clone();
        prompt.extend(tokenize(vocab, &format!("{before}{text}{after}"))?);
        prompt.extend_from_slice(&self.around.1);
        let stats = result.generated.stats;
        let passes = (stats.forward_passes, stats.tokens_decoded);
        Ok(FinishedThought { text: text.trim_start().to_owned(), prompt, passes })
    }
}

fn tokenize(vocab: &Vocab, text: &str) -> Result<Vec<TokenId>, DecideError> {
    Ok(vocab.tokenize_inside(text).map_or_else(|| vocab.tokenize(text, false, false), Ok)?)
}

/// Thinkers of a decision, and its parts, in which close calls are asked again.
pub(super) struct Thinking {
    /// By state and question.
    pub(super) thinkers: HashMap<(usize, usize), Thinker>,
    /// The parts in which options have their first order, and what is asked there.
    pub(super) parts: Vec<(Part, llama_sampler::Question)>,
    pub(super) vocab: Arc<Vocab>,
}

/// The difference between the probabilities of the two best options.
fn margin(answer: &Answer) -> f64 {
    let mut shares: Vec<f64> = answer.probabilities.iter().copied().filter(|share| !share.is_nan()).collect();
    shares.sort_by(|one, other| other.total_cmp(one));
    if shares.len() < 2 { f64::INFINITY } else { shares[0] - shares[1] }
}

/// Returns the states in which a question is asked again: of one state, if its margin is below the limit; of several,
/// at most that share of them, the smallest margins first.
fn close_calls(answers: &[Answers], question: usize, options: &Decide, limit: f64) -> Vec<usize> {
    let margins: Vec<f64> = answers.iter().map(|of| margin(&of.answers[question])).collect();
    if !options.escalates_share {
        return (0..margins.len()).filter(|&state| margins[state] < limit).collect();
    }
    // A share that is written in decimals is as many states as it says.
    let most = (limit * margins.len() as f64 + 1e-9).floor() as usize;
    let mut order: Vec<usize> = (0..margins.len()).filter(|&state| margins[state].is_finite()).collect();
    order.sort_by(|&one, &other| margins[one].total_cmp(&margins[other]));
    order.truncate(most);
    order.sort_unstable();
    order
}

impl Thinking {
    /// The parts of a decision and its thinkers.
    pub(super) fn new(
        thinkers: HashMap<(usize, usize), Thinker>,
        made: &[(Part, llama_sampler::Question)],
        vocab: &Arc<Vocab>,
    ) -> Self {
        // A thought comes of the first order, and is followed by it.
        let first = made.iter().filter(|(part, _)| part.order == 0 && part.state.is_some());
        let parts = first.map(|(part, asked)| {
            let Part { state, question, order, ref spellings, reading } = *part;
            let part = Part { state, question, order, spellings: spellings.clone(), reading };
            (part, llama_sampler::Question { prompt: Vec::new(), branches: Vec::new(), set: asked.set.clone() })
        });
        Self { thinkers, parts: parts.collect(), vocab: Arc::clone(vocab) }
    }

    /// Asks close calls again after a thought.
    pub(super) fn escalate(
        self,
        mut answers: Vec<Answers>,
        request: &Request,
        again: impl Fn(Request, Vec<(Part, llama_sampler::Question)>) -> ReadyDecision,
        runtime: &mut Runtime<'_>,
        hooks: &mut dyn Hooks,
    ) -> Result<Vec<Answers>, DecideError> {
        let Some(limit) = request.options.escalate else { return Ok(answers) };
        let mut cost = (0, 0, 0.0);
        for (number, question) in request.questions.iter().enumerate() {
            for state in close_calls(&answers, number, &request.options, limit) {
                let Some(thinker) = self.thinkers.get(&(state, number)) else { continue };
                let FinishedThought { text, prompt, passes: (passes, tokens) } =
                    thinker.think(&self.vocab, runtime, hooks)?;
                let mut done = again(about(request, state, question), self.parts_after(state, number, &prompt))
                    .ask(runtime, hooks)
                    .map_err(|error| error.shift_states(state))?;
                let Some(mut of) = done.pop() else { continue };
                let Some(mut answer) = of.answers.pop() else { continue };
                let first = &mut answers[state].answers[number];
                (answer.order, answer.order_reason) = (first.order, first.order_reason.take());
                // What the empty state says after a thought is not known.
                answer.out_of_scope = first.out_of_scope;
                let probabilities = std::mem::take(&mut first.probabilities);
                answer.thought = Some(Thought { text, probabilities });
                *first = answer;
                cost = (cost.0 + passes + of.passes.0, cost.1 + tokens + of.passes.1, of.seconds);
            }
        }
        for of in &mut answers {
            of.passes = (of.passes.0 + cost.0, of.passes.1 + cost.1);
            of.seconds = of.seconds.max(cost.2);
        }
        Ok(answers)
    }

    /// The part of a question about a state, after another prompt.
    fn parts_after(&self, state: usize, question: usize, prompt: &[TokenId]) -> Vec<(Part, llama_sampler::Question)> {
        let asked = self.parts.iter().filter(|(part, _)| (part.state, part.question) == (Some(state), question));
        let after = |(part, asked): &(Part, llama_sampler::Question)| {
            let (order, spellings, reading) = (part.order, part.spellings.clone(), part.reading);
            let part = Part { state: Some(0), question: 0, order, spellings, reading };
            (part, llama_sampler::Question { prompt: prompt.to_vec(), branches: Vec::new(), set: asked.set.clone() })
        };
        asked.map(after).collect()
    }
}

/// The request of one question about one state.
fn about(request: &Request, state: usize, question: &Question) -> Request {
    Request {
        states: vec![request.states[state].clone()],
        questions: vec![question.clone()],
        options: Decide { escalate: None, ..request.options.clone() },
        calibration: None,
        call: request.call,
    }
}
