//! A decision, prepared and then scored.

use super::answer::{Answer, Answers, AskedPrompt, Order};
use super::checkpoint::{Checkpoint, Reading};
use super::layout::Filling;
use super::options::{Decide, End, Prior};
use super::prompt::{example_turns, filling, messages, orders, read_texts, spell, turns, without_content};
use super::question::Question;
use super::request::Request;
use super::shares::{IMPOSSIBLE, out_of_scope, softmax};
use super::spelling::Spellings;
use super::thinking::{Thinker, Thinking};
use crate::call::{GenerateError, Hooks, ReadyCall};
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
use trie_text::{Prompt, TextValues, ValueSet, ValueSets, ValuesError, Vocab, VocabError};

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
    /// A thought that cannot be generated.
    #[error(transparent)]
    Thought(#[from] GenerateError),
    /// A model that was trained to decide, and cannot be asked so.
    #[error("{0}")]
    Checkpoint(String),
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
            Self::Thought(error) => error.kind(),
            Self::Runtime(error) => error.kind(),
            Self::NoEnd => ErrorKind::Argument,
            Self::Message { .. } | Self::Prior { .. } | Self::Checkpoint(_) | Self::Calibration(_) => ErrorKind::Spec,
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
    /// The options in the order in which they are listed.
    listed: Vec<usize>,
    filling: Filling,
    /// Turns of the examples.
    solved: Vec<Value>,
    spellings: Spellings,
    /// The same as values, which the sets after all prompts share.
    values: TextValues,
}

/// One prompt of a decision.
pub(super) struct Part {
    /// The number of the state; `None` is the one without content.
    pub(super) state: Option<usize>,
    pub(super) question: usize,
    /// The number among the orders of its options.
    pub(super) order: usize,
    pub(super) spellings: Spellings,
    pub(super) reading: Reading,
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
    /// Thinkers of the close calls, if these may think first.
    thinking: Option<Thinking>,
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
        let checkpoint = Checkpoint::of_model(model).map_err(DecideError::Checkpoint)?;
        if let Some(checkpoint) = &checkpoint {
            checkpoint.check(&request.options).map_err(DecideError::Checkpoint)?;
        }
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
            let of_chat = turns(content).filter(|_| checkpoint.is_none());
            for (number, message) in of_chat.into_iter().flatten().enumerate() {
                check_message(message, format.format().template().text(), &|_, _| String::new())
                    .map_err(|reason| DecideError::Message { state, number, reason })?;
            }
        }
        let spelled = format.vocab().tokenize_inside(options.prefix());
        let prefix = spelled.map_or_else(|| format.vocab().tokenize(options.prefix(), false, false), Ok)?;
        let mut all_asked = Vec::new();
        for (number, question) in questions.iter().enumerate() {
            all_asked.append(&mut match &checkpoint {
                None => order_options(number, question, options)?,
                Some(checkpoint) => label_options(number, question, options, checkpoint, format.vocab())?,
            });
        }
        let blank = without_content();
        let is_prior_asked = options.prior == Prior::ContentFree || options.out_of_scope;
        let prior = is_prior_asked.then_some((None, &blank));
        let mut thinkers = Vec::new();
        let mut made = Vec::with_capacity((states.len() + 1) * all_asked.len());
        for (state, content) in states.iter().enumerate().map(|(number, state)| (Some(number), state)).chain(prior) {
            for asked in &all_asked {
                let &OrderedQuestion { question, order, ref filling, ref solved, .. } = asked;
                look(1, 0)?;
                let (said, name) = (messages(content, filling, solved, options), || questions[question].name.clone());
                let reading = checkpoint.as_ref().map_or(Reading::default(), |of| of.reading(&questions[question]));
                if options.escalate.is_some() && order == 0 && state.is_some() {
                    thinkers.push(Thinker::new(format, &said, options, &prefix, sets)?);
                }
                let prompt = if let Some(checkpoint) = &checkpoint {
                    let wrong = |error| DecideError::Checkpoint(format!("the question {:?}: {error}", name()));
                    checkpoint
                        .prompt(format.vocab(), content, questions, question, &listed_with(&all_asked, asked), options)
                        .map_err(wrong)?
                } else {
                    let mut prompt = format.content_prompt::<DecideError>(&said)?.tokens;
                    prompt.extend_from_slice(&prefix);
                    prompt
                };
                let (prompt, set, spellings) =
                    place(sets, prompt, asked).map_err(|error| DecideError::Options { question: name(), error })?;
                if is_large(&set) && is_prior_asked {
                    return Err(DecideError::Prior { question: name(), options: spellings.count() });
                }
                if is_large(&set) && calibration.is_some() {
                    let (name, count) = (name(), spellings.count());
                    return Err(DecideError::Calibration(format!(
                        "the question {name:?} has {count} options: only the best of so many are scored, and a \
                         calibration needs the probability of every one"
                    )));
                }
                let part = Part { state, question, order, spellings, reading };
                made.push((part, llama_sampler::Question { prompt, set }));
            }
        }
        // All orders of a question have the same texts, so they stay beside each other.
        made.sort_by_key(|(_, prompt)| is_large(&prompt.set));
        let thinking = options.escalate.map(|_| Thinking::new(thinkers, &made, format.vocab()));
        let (parts, prompts) = made.into_iter().unzip();
        // A label of a checkpoint is one token, whatever follows.
        let mut followers = if checkpoint.is_some() { Vec::new() } else { ends.clone() };
        if options.end == End::Optional && checkpoint.is_none() {
            followers.extend_from_slice(format.vocab().boundary_tokens());
        }
        Ok(Self { request, parts, prompts, ends, followers, thinking, started })
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
        let Self { request, parts, prompts, ends, followers, started, .. } = self;
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

    fn run_on(mut self, runtime: &mut Runtime<'_>, hooks: &mut dyn Hooks) -> Result<Vec<Answers>, DecideError> {
        let Some(thinking) = self.thinking.take() else { return self.ask(runtime, hooks) };
        let (request, ends, followers) = (self.request.clone(), self.ends.clone(), self.followers.clone());
        let started = self.started;
        let again = |request, asked: Vec<(Part, llama_sampler::Question)>| {
            let (parts, prompts) = asked.into_iter().unzip();
            let (ends, followers) = (ends.clone(), followers.clone());
            Self { request, parts, prompts, ends, followers, thinking: None, started }
        };
        let answers = self.ask(runtime, hooks)?;
        thinking.escalate(answers, &request, again, runtime, hooks)
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
        Ok(OrderedQuestion { question: number, order, listed, filling, solved, spellings, values })
    };
    orders(question, texts.len(), options).into_iter().enumerate().map(in_order).collect()
}

/// A question of a checkpoint in each order of its options.
fn label_options(
    number: usize,
    question: &Question,
    options: &Decide,
    checkpoint: &Checkpoint,
    vocab: &Vocab,
) -> Result<Vec<OrderedQuestion>, DecideError> {
    let in_order = |(order, listed): (usize, Vec<usize>)| {
        let wrong = |error| DecideError::Checkpoint(format!("the question {:?}: {error}", question.name));
        let spellings = checkpoint.spellings(question, vocab, &listed).map_err(wrong)?;
        let values = spellings.values();
        let (filling, solved) = (Filling::default(), Vec::new());
        Ok(OrderedQuestion { question: number, order, listed, filling, solved, spellings, values })
    };
    let count = question.kind.meanings().len();
    checkpoint.orders(question, count, options).into_iter().enumerate().map(in_order).collect()
}

/// The orders in which all questions are listed beside one of them: the others in their first.
fn listed_with(all: &[OrderedQuestion], asked: &OrderedQuestion) -> Vec<Vec<usize>> {
    let first = all.iter().filter(|other| other.order == 0);
    first.map(|other| if other.question == asked.question { &asked.listed } else { &other.listed }.clone()).collect()
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
    let mut scopes = Vec::new();
    let mut order = |scored: &ScoredPart<'_>| {
        let prior = priors.iter().find(|prior| prior.part.order == scored.part.order);
        let by_text = scored.set.by_value(&scored.choice.logprobs);
        let reading = scored.part.reading;
        let known = reading.scale(scored.part.spellings.sum(&by_text));
        let without = prior.map(|prior| prior.part.spellings.sum(&prior.set.by_value(&prior.choice.logprobs)));
        let without = without.map(|without| reading.scale(without));
        if let (Some(without), true) = (&without, options.out_of_scope) {
            let shares = reading.of_options(softmax(known.iter().copied()));
            let empty = reading.of_options(softmax(without.iter().copied()));
            scopes.push(out_of_scope(&shares, &empty, scored.choice.mass_low));
        }
        let probabilities = match without.filter(|_| options.prior == Prior::ContentFree) {
            // Only the best are scored, and there are no other spellings.
            None if is_large(scored.set) => scored.set.by_value(&scored.choice.probabilities()),
            None => softmax(known.into_iter()),
            Some(without) => softmax(known.iter().zip(without).map(|(known, without)| known - without.max(IMPOSSIBLE))),
        };
        let probabilities = reading.of_options(probabilities);
        let Spellings { texts, options, .. } = scored.part.spellings.clone();
        let probabilities_of_texts = by_text.iter().map(|logprob| logprob.exp()).collect();
        let tokens = scored.prompt.to_vec();
        let prompt = AskedPrompt { tokens, texts, options, probabilities: probabilities_of_texts };
        Order { prompt, probabilities, mass: scored.choice.mass_low }
    };
    let found = scored.iter().map(&mut order).collect();
    let mut answer = Answer::new(question.clone(), found, options.threshold);
    answer.out_of_scope = (!scopes.is_empty()).then(|| scopes.iter().sum::<f64>() / scopes.len() as f64);
    answer
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
