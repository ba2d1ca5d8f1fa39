//! A decision, made ready and then asked.

use super::answer::{Answer, Answers, AskedPrompt, Order};
use super::options::{Decide, Prior};
use super::prompt::{filling, messages, orders, read_texts, turns, without_content};
use super::question::Question;
use super::request::Request;
use crate::chat::{ConstraintError, ModelFormat, check_message};
use chat_format::TemplateError;
use llama_sampler::{QuestionScorer, RuntimeError, Watch};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;
use trie_core::{Choice, ChooseOptions, TokenId};
use trie_text::{Prompt, TextValues, ValueSet, ValueSets, Values, ValuesError, VocabError};

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecideError {
    /// A message of a state that is a conversation.
    #[error("state {state}: message {number}: {reason}")]
    Message {
        /// The number of the state, from 0.
        state: usize,
        /// The number of the message, from 0.
        number: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// The template refuses the conversation.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// Nobody can say where a reply of this format begins.
    #[error(transparent)]
    Format(#[from] ConstraintError),
    /// The vocabulary cannot tokenize.
    #[error(transparent)]
    Vocab(#[from] VocabError),
    /// Nothing tells an option from a longer one.
    #[error("the vocabulary has no token that ends generation, so nothing tells where an option ends")]
    NoEnd,
    /// The options of a question do not go into the vocabulary.
    #[error("the question {question:?}: {error}")]
    Options {
        /// Its name.
        question: String,
        /// What is wrong with them.
        error: ValuesError,
    },
    /// A prior needs the probability of every option.
    #[error(
        "the question {question:?}: its {options} options are too many to divide a prior out: only the best of them \
         are scored; say prior \"none\""
    )]
    Prior {
        /// Its name.
        question: String,
        /// How many it has.
        options: usize,
    },
    /// A prompt that does not fit, or another one that cannot be used.
    #[error("the question {question:?} about state {state}: {error}")]
    Asked {
        /// Its name.
        question: String,
        /// The number of the state, from 0.
        state: usize,
        /// What is wrong with it.
        error: Box<RuntimeError>,
    },
    /// The model.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

impl DecideError {
    /// Of a state that stands behind so many others.
    #[must_use]
    pub fn after(mut self, states: usize) -> Self {
        if let Self::Message { state, .. } | Self::Asked { state, .. } = &mut self {
            *state += states;
        }
        self
    }
}

/// One prompt of a decision.
struct Part {
    /// The number of the state; `None` is the one without content.
    state: Option<usize>,
    question: usize,
    /// The number among the orders of its options.
    order: usize,
    texts: Vec<String>,
}

/// A decision whose prompts are made.
pub struct ReadyDecision {
    request: Request,
    parts: Vec<Part>,
    /// One for each part.
    prompts: Vec<llama_sampler::Question>,
    ends: Vec<TokenId>,
    started: Instant,
}

impl ReadyDecision {
    /// All prompts of a request. Its time counts from here.
    ///
    /// # Errors
    /// What the template or the vocabulary do not take.
    pub fn new(request: Request, format: &ModelFormat, sets: &ValueSets) -> Result<Self, DecideError> {
        let (started, ends) = (Instant::now(), format.content_ends());
        if ends.is_empty() {
            return Err(DecideError::NoEnd);
        }
        let Request { states, questions, options, .. } = &request;
        for (state, content) in states.iter().enumerate() {
            for (number, message) in turns(content).into_iter().flatten().enumerate() {
                check_message(message, format.format().template().text(), &|_, _| String::new())
                    .map_err(|reason| DecideError::Message { state, number, reason })?;
            }
        }
        let blank = without_content();
        let prior = (options.prior == Prior::ContentFree).then_some((None, &blank));
        let all = states.iter().enumerate().map(|(number, state)| (Some(number), state)).chain(prior);
        let (mut parts, mut prompts) = (Vec::new(), Vec::new());
        for (state, content) in all {
            for (number, question) in questions.iter().enumerate() {
                for (order, listed) in orders(question, options).iter().enumerate() {
                    let texts = read_texts(question, options.readout, listed);
                    let said = messages(content, &filling(question, options, listed), options);
                    let prompt = format.content_prompt::<DecideError>(&said)?.tokens;
                    let values = Values::Texts(TextValues::new(&texts[..]).with_distinct(true));
                    let (prompt, set) = sets
                        .place(Prompt::Tokens(prompt), &values)
                        .map_err(|error| DecideError::Options { question: question.name.clone(), error })?;
                    if is_large(&set) && options.prior != Prior::Nothing {
                        return Err(DecideError::Prior { question: question.name.clone(), options: texts.len() });
                    }
                    parts.push(Part { state, question: number, order, texts });
                    prompts.push(llama_sampler::Question { prompt, set });
                }
            }
        }
        Ok(Self { request, parts, prompts, ends, started })
    }

    /// The tokens of each prompt.
    pub fn prompts(&self) -> impl Iterator<Item = &[TokenId]> {
        self.prompts.iter().map(|asked| &asked.prompt[..])
    }

    /// Asks the model: all prompts in as few passes as their trees allow. The answers to each state.
    ///
    /// # Errors
    /// [`DecideError`]. Nothing is given then.
    pub fn run(self, model: &mut impl QuestionScorer, watch: &mut dyn Watch) -> Result<Vec<Answers>, DecideError> {
        let Self { request, parts, prompts, ends, started } = self;
        let usual = ChooseOptions::new().with_end_tokens(&ends);
        let (large, small): (Vec<usize>, Vec<usize>) = (0..parts.len()).partition(|&part| is_large(&prompts[part].set));
        let mut choices: Vec<Option<Choice>> = parts.iter().map(|_| None).collect();
        let mut passes = (0, 0);
        let tops = [(small, usual, true), (large, usual.with_top(request.options.top as usize), false)];
        for (numbers, choose, shared) in tops {
            if numbers.is_empty() {
                continue;
            }
            let these: Vec<llama_sampler::Question> = numbers.iter().map(|&part| prompts[part].clone()).collect();
            let found = model.choose_each(&these, &choose, watch).map_err(|error| match error {
                RuntimeError::Prompt { number, error } if number < numbers.len() => {
                    let part = &parts[numbers[number]];
                    let question = request.questions[part.question].name.clone();
                    DecideError::Asked { question, state: part.state.unwrap_or(0), error }
                }
                error => error.into(),
            })?;
            // What is decoded together says each what all of it took.
            for choice in found.iter().take(if shared { 1 } else { found.len() }) {
                passes.0 += choice.stats.forward_passes;
                passes.1 += choice.stats.tokens_decoded;
            }
            numbers.into_iter().zip(found).for_each(|(part, choice)| choices[part] = Some(choice));
        }
        let scored = parts.iter().zip(&prompts).zip(&choices).filter_map(|((part, prompt), choice)| {
            Some(Scored { part, prompt: &prompt.prompt, set: &prompt.set, choice: choice.as_ref()? })
        });
        let scored: Vec<Scored<'_>> = scored.collect();
        // Parts of one question about one state stand beside each other.
        let orders = scored.chunk_by(|one, next| one.asks() == next.asks());
        let orders: HashMap<_, &[Scored<'_>]> = orders.map(|orders| (orders[0].asks(), orders)).collect();
        let of = |state: Option<usize>, question: usize| orders.get(&(state, question)).copied().unwrap_or_default();
        let mut answers: Vec<Vec<Answer>> = (0..request.states.len())
            .map(|state| {
                let questions = request.questions.iter().enumerate();
                let asked = |(number, question): (usize, &Question)| {
                    answer(of(Some(state), number), of(None, number), question, &request.options)
                };
                questions.map(asked).collect()
            })
            .collect();
        if request.options.prior == Prior::Batch {
            divide_by_means(&mut answers, request.options.threshold);
        }
        let seconds = started.elapsed().as_secs_f64();
        let ends: Arc<[TokenId]> = ends.into();
        Ok(answers
            .into_iter()
            .map(|answers| Answers { answers, end_tokens: Arc::clone(&ends), passes, seconds })
            .collect())
    }
}

/// Whether a set has more than can be scored value by value.
fn is_large(set: &ValueSet) -> bool {
    set.trie().nodes() > ChooseOptions::MAX_ROWS
}

/// A part and what came of it.
struct Scored<'d> {
    part: &'d Part,
    prompt: &'d [TokenId],
    set: &'d ValueSet,
    choice: &'d Choice,
}

impl Scored<'_> {
    /// Which question about which state.
    fn asks(&self) -> (Option<usize>, usize) {
        (self.part.state, self.part.question)
    }
}

fn answer(scored: &[Scored<'_>], priors: &[Scored<'_>], question: &Question, options: &Decide) -> Answer {
    let order = |scored: &Scored<'_>| {
        let prior = priors.iter().find(|prior| prior.part.order == scored.part.order);
        let probabilities = match prior {
            None => scored.set.by_value(&scored.choice.probabilities()),
            Some(prior) => {
                let logprobs = scored.set.by_value(&scored.choice.logprobs);
                let without = prior.set.by_value(&prior.choice.logprobs);
                softmax(logprobs.iter().zip(without).map(|(known, without)| known - without.max(IMPOSSIBLE)))
            }
        };
        let prompt = AskedPrompt { tokens: scored.prompt.to_vec(), texts: scored.part.texts.clone() };
        Order { prompt, probabilities, mass: scored.choice.mass_low }
    };
    Answer::new(question.clone(), scored.iter().map(order).collect(), options.threshold)
}

/// The log of what is no longer a number apart from zero: a prior is never less.
const IMPOSSIBLE: f64 = -700.0;

fn softmax(logs: impl Iterator<Item = f64>) -> Vec<f64> {
    let logs: Vec<f64> = logs.collect();
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if most == f64::NEG_INFINITY {
        return vec![1.0 / logs.len() as f64; logs.len()];
    }
    let shares: Vec<f64> = logs.iter().map(|log| (log - most).exp()).collect();
    let sum: f64 = shares.iter().sum();
    shares.iter().map(|share| share / sum).collect()
}

/// Divides what the states have on average out of each question's probabilities.
fn divide_by_means(answers: &mut [Vec<Answer>], threshold: Option<f64>) {
    let (states, questions) = (answers.len() as f64, answers.first().map_or(0, Vec::len));
    for question in 0..questions {
        let options = answers[0][question].probabilities.len();
        let mean = |option: usize| answers.iter().map(|of| of[question].probabilities[option]).sum::<f64>() / states;
        let means: Vec<f64> = (0..options).map(mean).collect();
        for of in answers.iter_mut() {
            let divided = of[question]
                .probabilities
                .iter()
                .zip(&means)
                .map(|(share, mean)| share.ln() - mean.ln().max(IMPOSSIBLE));
            let divided = softmax(divided);
            of[question].set(divided, threshold);
        }
    }
}
