//! A decision, prepared and then scored.

use super::answer::{Answer, Answers, AskedPrompt, Order};
use super::layout::Filling;
use super::options::{Decide, End, Prior};
use super::prompt::{example_turns, filling, messages, orders, read_texts, spell, turns, without_content};
use super::question::Question;
use super::request::Request;
use super::shares::{IMPOSSIBLE, softmax};
use super::spelling::Spellings;
use crate::call::{Hooks, ReadyCall};
use crate::chat::{ConstraintError, ModelFormat, check_message};
use crate::engine::Runtime;
use chat_format::TemplateError;
use llama_sampler::{Model, QuestionScorer, RuntimeError, Watch};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;
use trie_core::ErrorKind;
use trie_core::work::{LimitExceeded, look};
use trie_core::{Choice, ChooseOptions, TokenId};
use trie_text::{Prompt, TextValues, ValueSet, ValueSets, ValuesError, VocabError};

/// Reason why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum DecideError {
    /// A message of a state that is a conversation.
    #[error("state {state}: message {number}: {reason}")]
    Message {
        /// The number of the state, from 0.
        state: usize,
        /// The number of the message, from 0.
        number: usize,
        /// Description of the error.
        reason: String,
    },
    /// The template refuses the conversation.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// A format for which the beginning of a reply's content is unknown.
    #[error(transparent)]
    Format(#[from] ConstraintError),
    /// The vocabulary cannot tokenize.
    #[error(transparent)]
    Vocab(#[from] VocabError),
    /// An option may begin a longer one, and no end token tells them apart.
    #[error("the vocabulary has no token that ends generation, so nothing tells where an option ends")]
    NoEnd,
    /// The options of a question do not go into the vocabulary.
    #[error("the question {question:?}: {error}")]
    Options {
        /// Name of the question.
        question: String,
        /// Error of its values.
        error: ValuesError,
    },
    /// A prior for a question with too many options: it needs the probability of each.
    #[error(
        "the question {question:?}: its {options} options are too many to divide a prior out: only the best of them \
         are scored; say prior \"none\""
    )]
    Prior {
        /// Name of the question.
        question: String,
        /// Number of its options.
        options: usize,
    },
    /// A prompt that does not fit, or another one that cannot be used.
    #[error("the question {question:?} about state {state}: {error}")]
    Asked {
        /// Name of the question.
        question: String,
        /// The number of the state, from 0.
        state: usize,
        /// Error of its prompt.
        error: Box<RuntimeError>,
    },
    /// It was given up before anything was asked.
    #[error(transparent)]
    Over(#[from] LimitExceeded),
    /// A calibration that was made for another model.
    #[error("calibration: {0}")]
    Calibration(String),
    /// Error of the model.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

impl DecideError {
    /// Returns what kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Template(_) => ErrorKind::Template,
            Self::Format(error) => error.kind(),
            Self::Vocab(error) => error.kind(),
            Self::Options { error, .. } => error.kind(),
            Self::Asked { error, .. } => error.kind(),
            Self::Over(over) => over.kind(),
            Self::Runtime(error) => error.kind(),
            Self::NoEnd => ErrorKind::Argument,
            Self::Message { .. } | Self::Prior { .. } | Self::Calibration(_) => ErrorKind::Spec,
        }
    }
}

impl DecideError {
    /// Returns the error with its state's index raised by the number of states before it.
    #[must_use]
    pub fn shift_states(mut self, states: usize) -> Self {
        if let Self::Message { state, .. } | Self::Asked { state, .. } = &mut self {
            *state += states;
        }
        self
    }
}

/// A question with its options in one order: what is asked about every state.
struct OrderedQuestion {
    question: usize,
    order: usize,
    filling: Filling,
    /// Turns of the examples.
    solved: Vec<Value>,
    spellings: Spellings,
    /// The same as values, which the sets after all prompts share.
    values: TextValues,
}

/// One prompt of a decision.
struct Part {
    /// The number of the state; `None` is the one without content.
    state: Option<usize>,
    question: usize,
    /// The number among the orders of its options.
    order: usize,
    spellings: Spellings,
}

/// A decision whose prompts are made.
pub struct ReadyDecision {
    request: Request,
    parts: Vec<Part>,
    /// One for each part: first those whose values are all scored.
    prompts: Vec<llama_sampler::Question>,
    ends: Vec<TokenId>,
    /// Tokens one of which must follow an option: the ends, and with an optional end all that end a word.
    followers: Vec<TokenId>,
    started: Instant,
}

impl ReadyDecision {
    /// Returns all prompts of a request to a model. Its time is measured from this call on.
    ///
    /// # Errors
    /// Anything that the template or the vocabulary refuse; a calibration for another model.
    pub fn new(
        mut request: Request,
        format: &ModelFormat,
        sets: &ValueSets,
        model: &Model,
    ) -> Result<Self, DecideError> {
        request.options.take_layout(model.metadata(Decide::LAYOUT_KEY).as_deref());
        if let Some(calibration) = &request.calibration {
            calibration.check_model(model.path()).map_err(DecideError::Calibration)?;
        }
        let (started, ends) = (Instant::now(), format.content_ends());
        if ends.is_empty() {
            return Err(DecideError::NoEnd);
        }
        let Request { states, questions, options, calibration, .. } = &request;
        for (state, content) in states.iter().enumerate() {
            for (number, message) in turns(content).into_iter().flatten().enumerate() {
                check_message(message, format.format().template().text(), &|_, _| String::new())
                    .map_err(|reason| DecideError::Message { state, number, reason })?;
            }
        }
        let spelled = format.vocab().tokenize_inside(options.prefix());
        let prefix = spelled.map_or_else(|| format.vocab().tokenize(options.prefix(), false, false), Ok)?;
        let mut all_asked = Vec::new();
        for (number, question) in questions.iter().enumerate() {
            all_asked.append(&mut order_options(number, question, options)?);
        }
        let blank = without_content();
        let prior = (options.prior == Prior::ContentFree).then_some((None, &blank));
        let mut made = Vec::with_capacity((states.len() + 1) * all_asked.len());
        for (state, content) in states.iter().enumerate().map(|(number, state)| (Some(number), state)).chain(prior) {
            for asked in &all_asked {
                let &OrderedQuestion { question, order, ref filling, ref solved, .. } = asked;
                look(1, 0)?;
                let (said, name) = (messages(content, filling, solved, options), || questions[question].name.clone());
                let mut prompt = format.content_prompt::<DecideError>(&said)?.tokens;
                prompt.extend_from_slice(&prefix);
                let (prompt, set, spellings) =
                    place(sets, prompt, asked).map_err(|error| DecideError::Options { question: name(), error })?;
                if is_large(&set) && options.prior != Prior::Nothing {
                    return Err(DecideError::Prior { question: name(), options: spellings.count() });
                }
                if is_large(&set) && calibration.is_some() {
                    let (name, count) = (name(), spellings.count());
                    return Err(DecideError::Calibration(format!(
                        "the question {name:?} has {count} options: only the best of so many are scored, and a \
                         calibration needs the probability of every one"
                    )));
                }
                let part = Part { state, question, order, spellings };
                made.push((part, llama_sampler::Question::new(prompt, set)));
            }
        }
        // All orders of a question have the same texts, so they stay beside each other.
        made.sort_by_key(|(_, prompt)| is_large(&prompt.set));
        let (parts, prompts) = made.into_iter().unzip();
        let mut followers = ends.clone();
        if options.end == End::Optional {
            followers.extend_from_slice(format.vocab().boundary_tokens());
        }
        Ok(Self { request, parts, prompts, ends, followers, started })
    }

    /// Returns the tokens of each prompt.
    pub fn prompts(&self) -> impl Iterator<Item = &[TokenId]> {
        self.prompts.iter().map(|asked| &asked.prompt[..])
    }

    /// Scores all prompts, and returns the answers to each state. Prompts share as few passes as their trees allow, or
    /// run one by one if logits must be the same bit for bit ([`Scorer::is_apart`](llama_sampler::Scorer::is_apart)).
    ///
    /// # Errors
    /// [`DecideError`]; there are no partial answers.
    pub fn ask(self, model: &mut impl QuestionScorer, watch: &mut dyn Watch) -> Result<Vec<Answers>, DecideError> {
        let Self { request, parts, prompts, ends, followers, started } = self;
        let (small, large) = prompts.split_at(prompts.partition_point(|prompt| !is_large(&prompt.set)));
        let mut choices: Vec<Choice> = Vec::with_capacity(prompts.len());
        let mut passes = (0, 0);
        let usual = ChooseOptions::new().with_end_tokens(&followers);
        for (these, choose, shared) in
            [(small, usual, true), (large, usual.with_top(request.options.top as usize), false)]
        {
            if these.is_empty() {
                continue;
            }
            let first = choices.len();
            let found = model.choose_each_apart(these, &choose, watch).map_err(|error| match error {
                RuntimeError::Prompt { number, error } if number < these.len() => {
                    let part = &parts[first + number];
                    let question = request.questions[part.question].name.clone();
                    DecideError::Asked { question, state: part.state.unwrap_or(0), error }
                }
                error => error.into(),
            })?;
            // What is decoded together says each what all of it took.
            let is_shared = shared && !model.is_apart();
            for choice in found.iter().take(if is_shared { 1 } else { found.len() }) {
                passes.0 += choice.stats.forward_passes;
                passes.1 += choice.stats.tokens_decoded;
            }
            choices.extend(found);
        }
        let scored = parts.iter().zip(&prompts).zip(&choices).map(|((part, prompt), choice)| ScoredPart {
            part,
            prompt: &prompt.prompt,
            set: &prompt.set,
            choice,
        });
        let scored: Vec<ScoredPart<'_>> = scored.collect();
        let orders = scored.chunk_by(|one, next| one.asks() == next.asks());
        let orders: HashMap<_, &[ScoredPart<'_>]> = orders.map(|orders| (orders[0].asks(), orders)).collect();
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
        for (name, fitted) in request.calibration.iter().flat_map(|calibration| &calibration.questions) {
            let Decide { threshold, target_accuracy, coverage, .. } = request.options;
            // Above 1 where no threshold reaches the accuracy.
            let cut =
                target_accuracy.map(|accuracy| fitted.held_out.find_cut(accuracy).map_or(2.0, |cut| cut.threshold));
            let least = coverage.map(|coverage| fitted.held_out.least_of_set(coverage));
            for answer in answers.iter_mut().flatten().filter(|answer| answer.question.name == *name) {
                answer.set(fitted.apply(&answer.probabilities), threshold.or(cut));
                if let Some(least) = least {
                    answer.set_prediction(least);
                }
            }
        }
        answers.iter_mut().flatten().for_each(|answer| answer.warn(&request.options));
        let seconds = started.elapsed().as_secs_f64();
        let ends: Arc<[TokenId]> = ends.as_slice().into();
        let end = request.options.end;
        let of_state = |answers| Answers { answers, end_tokens: Arc::clone(&ends), end, passes, seconds };
        Ok(answers.into_iter().map(of_state).collect())
    }
}

impl ReadyCall for ReadyDecision {
    type Outcome = Vec<Answers>;
    type Error = DecideError;

    fn run_on(self, runtime: &mut Runtime<'_>, hooks: &mut dyn Hooks) -> Result<Vec<Answers>, DecideError> {
        self.ask(runtime, hooks)
    }
}

/// A question in each order of its options.
fn order_options(number: usize, question: &Question, options: &Decide) -> Result<Vec<OrderedQuestion>, DecideError> {
    let texts = question.kind.texts();
    let in_order = |(order, listed): (usize, Vec<usize>)| {
        look(1, 0)?;
        let read = read_texts(question, &texts, options.readout, &listed);
        let filling = filling(question, &texts, &read, options, &listed)?;
        let solved = example_turns(question, &read, &filling, options);
        let spellings = spell(read, options);
        let values = spellings.values();
        Ok(OrderedQuestion { question: number, order, filling, solved, spellings, values })
    };
    orders(question, texts.len(), options).into_iter().enumerate().map(in_order).collect()
}

/// The set of a question's texts after a prompt. Where their other spellings make it too large to score value by value,
/// or have the same tokens to the tokenizer, it has the options' own texts alone.
fn place(
    sets: &ValueSets,
    prompt: Vec<TokenId>,
    asked: &OrderedQuestion,
) -> Result<(Vec<TokenId>, ValueSet, Spellings), ValuesError> {
    let found = sets.place_texts(Prompt::Tokens(prompt.clone()), &asked.values);
    let is_spoiled = match &found {
        Ok((_, set)) => is_large(set),
        Err(error) => matches!(error, ValuesError::SameTokens),
    };
    let own = if is_spoiled { asked.spellings.without_variants() } else { None };
    let Some(own) = own else { return found.map(|(prompt, set)| (prompt, set, asked.spellings.clone())) };
    sets.place_texts(Prompt::Tokens(prompt), &own.values()).map(|(prompt, set)| (prompt, set, own))
}

/// Returns whether a set is too large to score value by value.
fn is_large(set: &ValueSet) -> bool {
    set.trie().nodes() > ChooseOptions::MAX_ROWS
}

/// A part and what came of it.
struct ScoredPart<'d> {
    part: &'d Part,
    prompt: &'d [TokenId],
    set: &'d ValueSet,
    choice: &'d Choice,
}

impl ScoredPart<'_> {
    /// Returns the question and the state that are asked.
    fn asks(&self) -> (Option<usize>, usize) {
        (self.part.state, self.part.question)
    }
}

fn answer(scored: &[ScoredPart<'_>], priors: &[ScoredPart<'_>], question: &Question, options: &Decide) -> Answer {
    let order = |scored: &ScoredPart<'_>| {
        let prior = priors.iter().find(|prior| prior.part.order == scored.part.order);
        let by_text = scored.set.by_value(&scored.choice.logprobs);
        let probabilities = match prior {
            // Only the best are scored, and there are no other spellings.
            None if is_large(scored.set) => scored.set.by_value(&scored.choice.probabilities()),
            None => softmax(scored.part.spellings.sum(&by_text).into_iter()),
            Some(prior) => {
                let without = prior.part.spellings.sum(&prior.set.by_value(&prior.choice.logprobs));
                let known = scored.part.spellings.sum(&by_text);
                softmax(known.iter().zip(without).map(|(known, without)| known - without.max(IMPOSSIBLE)))
            }
        };
        let Spellings { texts, options, .. } = scored.part.spellings.clone();
        let probabilities_of_texts = by_text.iter().map(|logprob| logprob.exp()).collect();
        let tokens = scored.prompt.to_vec();
        let prompt = AskedPrompt { tokens, texts, options, probabilities: probabilities_of_texts };
        Order { prompt, probabilities, mass: scored.choice.mass_low }
    };
    Answer::new(question.clone(), scored.iter().map(order).collect(), options.threshold)
}

/// Divides each question's probabilities by their mean over the states.
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
