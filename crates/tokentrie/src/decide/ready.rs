//! A decision, prepared and then scored.

use super::answer::{Answer, Answers, AskedPrompt, Order, TopBound, UsedOrder};
use super::balance::{balanced_sequence, is_settled, least_orders};
use super::checkpoint::{Checkpoint, Reading};
use super::layout::Filling;
use super::model_traits::ModelTraits;
use super::options::{Decide, End, ListOrder, Prior};
use super::prompt::{
    Listing, OPTIONS_MARK, branch_lines, canonical_order, example_turns, filling, lists_branches, messages, orders,
    read_texts, spell, turns, without_content,
};
use super::question::{Kind, Question};
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
    /// The options in the order in which they are listed; empty where they are branches.
    listed: Vec<usize>,
    /// Tokens of the options' lines, if they are branches of the prompt.
    branches: Vec<Vec<TokenId>>,
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

/// A question before its options were put into an order that no caller changes.
struct GivenQuestion {
    question: Question,
    /// The option at each place of the new order.
    order: Vec<usize>,
}

/// A decision whose prompts are made.
pub struct ReadyDecision {
    request: Request,
    /// The questions as they were given, if their options have another order now.
    given: Option<Vec<GivenQuestion>>,
    /// How the options of each question are listed.
    listed: Vec<UsedOrder>,
    /// The number of orders of each question.
    orders: Vec<usize>,
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
        let traits = ModelTraits::of(model);
        let checkpoint = traits.checkpoint.as_ref().map_err(|reason| DecideError::Checkpoint(reason.clone()))?;
        if checkpoint.is_some() {
            Checkpoint::check(&request.options).map_err(DecideError::Checkpoint)?;
        }
        request.options.take_layout(traits.layout.as_deref());
        if let Some(calibration) = &request.calibration {
            calibration.check_model(model.path()).map_err(DecideError::Calibration)?;
        }
        let (started, ends) = (Instant::now(), format.content_ends());
        if ends.is_empty() {
            return Err(DecideError::NoEnd);
        }
        let given = (request.options.order == ListOrder::Independent).then(|| sort_options(&mut request.questions));
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
        let labelled =
            checkpoint.as_ref().map(|of| Labelled::new(of, questions, options, format.vocab())).transpose()?;
        let thinkers = HashMap::new();
        let mut maker =
            PromptMaker { request: &request, format, sets, prefix: &prefix, labelled: labelled.as_ref(), thinkers };
        let (mut made, mut listed, mut orders) = (Vec::new(), Vec::new(), Vec::new());
        for (number, question) in questions.iter().enumerate() {
            let mut how = UsedOrder::default();
            let mut prompts = None;
            if options.order == ListOrder::Independent && lists_branches(question, options) {
                how.order = ListOrder::Independent;
                match traits.why_not_independent() {
                    None => match maker.prompts(&[branch_options(number, question, options, format)?])? {
                        Ok(found) => prompts = Some((found, 1)),
                        Err(reason) => how.reason = Some(reason),
                    },
                    Some(reason) => how.reason = Some(format!("the options cannot be independent: {reason}")),
                }
            } else if options.order == ListOrder::Balanced {
                how.order = ListOrder::Balanced;
            }
            let (found, count) = if let Some(found) = prompts {
                found
            } else {
                if how.order != ListOrder::Given {
                    how.order = ListOrder::Balanced;
                }
                let asked = match &labelled {
                    None => &order_options(number, question, options, how.order)?,
                    Some(labelled) => &labelled.questions[number],
                };
                let found = maker.prompts(asked)?.map_err(|reason| RuntimeError::Unscored { reason })?;
                (found, asked.len())
            };
            for (_, prompt) in found.iter().filter(|(_, prompt)| is_large(&prompt.set)).take(1) {
                let (name, count) = (question.name.clone(), question.kind.texts().len());
                if options.prior != Prior::Nothing || options.out_of_scope {
                    return Err(DecideError::Prior { question: name, options: count });
                }
                if calibration.is_some() {
                    return Err(DecideError::Calibration(format!(
                        "the question {name:?} has {count} options: only the best of so many are scored, and a \
                         calibration needs the probability of every one"
                    )));
                }
                debug_assert!(prompt.branches.is_empty(), "they are scored value by value");
            }
            made.extend(found);
            listed.push(how);
            orders.push(count);
        }
        // A state after the other, and each question's orders beside each other.
        made.sort_by_key(|(part, _)| (part.state.unwrap_or(usize::MAX), part.question));
        // All orders of a question have the same texts, so they stay beside each other.
        made.sort_by_key(|(_, prompt): &(Part, llama_sampler::Question)| is_large(&prompt.set));
        let thinking = options.escalate.map(|_| Thinking::new(maker.thinkers, &made, format.vocab()));
        let (parts, prompts) = made.into_iter().unzip();
        // A label of a checkpoint is one token, whatever follows.
        let mut followers = if checkpoint.is_some() { Vec::new() } else { ends.clone() };
        if options.end == End::Optional && checkpoint.is_none() {
            followers.extend_from_slice(format.vocab().boundary_tokens());
        }
        Ok(Self { request, given, listed, orders, parts, prompts, ends, followers, thinking, started })
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
        let Self { request, given, listed, orders, parts, prompts, ends, followers, started, .. } = self;
        let mut parts_of: HashMap<(Option<usize>, usize), Vec<usize>> = HashMap::new();
        for (number, part) in parts.iter().enumerate() {
            parts_of.entry((part.state, part.question)).or_default().push(number);
        }
        let mut asking = PromptScoring {
            parts_of,
            request: &request,
            listed: &listed,
            orders: &orders,
            parts: &parts,
            prompts: &prompts,
            choices: vec![None; prompts.len()],
            due: HashMap::new(),
            passes: (0, 0),
        };
        asking.run(&followers, model, watch)?;
        let passes = asking.passes;
        let mut answers: Vec<Vec<Answer>> = (0..request.states.len())
            .map(|state| (0..request.questions.len()).map(|question| asking.answer(state, question)).collect())
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
            let number = request.questions.iter().position(|question| question.name == *name);
            let order = given.as_ref().zip(number).map(|(given, number)| &given[number].order[..]);
            for answer in answers.iter_mut().flatten().filter(|answer| answer.question.name == *name) {
                // The calibration knows the options in their given order.
                let shares = match order {
                    None => fitted.apply(&answer.probabilities),
                    Some(order) => {
                        let mut shares = answer.probabilities.clone();
                        order.iter().zip(&answer.probabilities).for_each(|(&to, &share)| shares[to] = share);
                        let fitted = fitted.apply(&shares);
                        order.iter().map(|&option| fitted[option]).collect()
                    }
                };
                answer.set(shares, threshold.or(cut));
                if let Some(least) = least {
                    answer.set_prediction(least);
                }
            }
        }
        answers.iter_mut().flatten().for_each(|answer| answer.warn(&request.options));
        for (number, GivenQuestion { question, order }) in given.into_iter().flatten().enumerate() {
            for of in &mut answers {
                of[number].reorder(question.clone(), &order);
            }
        }
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
            let (ends, followers, listed) = (ends.clone(), followers.clone(), vec![UsedOrder::default()]);
            let (given, orders, thinking) = (None, vec![1], None);
            Self { request, given, listed, orders, parts, prompts, ends, followers, thinking, started }
        };
        let answers = self.ask(runtime, hooks)?;
        thinking.escalate(answers, &request, again, runtime, hooks)
    }
}

/// Puts the options of each question into their canonical order. Returns the questions as they were.
fn sort_options(questions: &mut [Question]) -> Vec<GivenQuestion> {
    let sorted = |question: &mut Question| {
        let (given, order) = (question.clone(), canonical_order(question));
        if let Kind::Choice(options) = &mut question.kind {
            *options = order.iter().map(|&option| options[option].clone()).collect();
        }
        GivenQuestion { question: given, order }
    };
    questions.iter_mut().map(sorted).collect()
}

/// A question in each of its orders: all of them are asked, unless they are balanced.
fn order_options(
    number: usize,
    question: &Question,
    options: &Decide,
    how: ListOrder,
) -> Result<Vec<OrderedQuestion>, DecideError> {
    let texts = question.kind.texts();
    let in_order = |(order, listed): (usize, Vec<usize>)| {
        look(1, 0)?;
        let read = read_texts(question, &texts, options.readout, &listed);
        let listing = Listing::Ordered(listed.clone());
        let filling = filling(question, &texts, &read, options, &listing)?;
        let solved = example_turns(question, &read, &filling, options);
        let spellings = spell(read, options);
        let values = spellings.values();
        let branches = Vec::new();
        Ok(OrderedQuestion { question: number, order, listed, branches, filling, solved, spellings, values })
    };
    let all = if how == ListOrder::Balanced {
        balanced_sequence(question, texts.len(), options)
    } else {
        orders(question, texts.len(), options)
    };
    all.into_iter().enumerate().map(in_order).collect()
}

/// A question whose options are branches of its prompt.
fn branch_options(
    number: usize,
    question: &Question,
    options: &Decide,
    format: &ModelFormat,
) -> Result<OrderedQuestion, DecideError> {
    let texts = question.kind.texts();
    let vocab = format.vocab();
    let line = |line: String| vocab.tokenize_inside(&line).map_or_else(|| vocab.tokenize(&line, false, false), Ok);
    let branches = branch_lines(question)?.into_iter().map(line).collect::<Result<_, _>>()?;
    let unlisted = filling(question, &texts, &texts, options, &Listing::Unlisted)?;
    let solved = example_turns(question, &texts, &unlisted, options);
    let filling = filling(question, &texts, &texts, options, &Listing::Branches)?;
    let spellings = spell(texts, options);
    let (listed, values) = (Vec::new(), spellings.values());
    Ok(OrderedQuestion { question: number, order: 0, listed, branches, filling, solved, spellings, values })
}

/// The questions of a model that was trained to decide, in its own labels.
struct Labelled<'r> {
    checkpoint: &'r Checkpoint,
    /// Each question in the orders of its options.
    questions: Vec<Vec<OrderedQuestion>>,
}

impl<'r> Labelled<'r> {
    fn new(
        checkpoint: &'r Checkpoint,
        questions: &[Question],
        options: &Decide,
        vocab: &Vocab,
    ) -> Result<Self, DecideError> {
        let in_orders = |(number, question): (usize, &Question)| {
            let in_order = |(order, listed): (usize, Vec<usize>)| {
                let wrong = |error| DecideError::Checkpoint(format!("the question {:?}: {error}", question.name));
                let spellings = checkpoint.spellings(question, vocab, &listed).map_err(wrong)?;
                let values = spellings.values();
                let (branches, filling, solved) = (Vec::new(), Filling::default(), Vec::new());
                Ok(OrderedQuestion { question: number, order, listed, branches, filling, solved, spellings, values })
            };
            let count = question.kind.meanings().len();
            checkpoint.orders(question, count, options).into_iter().enumerate().map(in_order).collect()
        };
        let questions = questions.iter().enumerate().map(in_orders).collect::<Result<_, DecideError>>()?;
        Ok(Self { checkpoint, questions })
    }

    /// Returns the prompt of a question about a state. The other questions, which some prompts show, are listed in
    /// their first orders.
    fn prompt(
        &self,
        vocab: &Vocab,
        request: &Request,
        state: &Value,
        asked: &OrderedQuestion,
    ) -> Result<Vec<TokenId>, DecideError> {
        let mut listed: Vec<Vec<usize>> = self.questions.iter().map(|orders| orders[0].listed.clone()).collect();
        listed[asked.question].clone_from(&asked.listed);
        let (questions, options) = (&request.questions, &request.options);
        let made = self.checkpoint.prompt(vocab, state, questions, asked.question, &listed, options);
        let name = &questions[asked.question].name;
        made.map_err(|error| DecideError::Checkpoint(format!("the question {name:?}: {error}")))
    }
}

/// Makes the prompts of questions.
struct PromptMaker<'r> {
    request: &'r Request,
    format: &'r ModelFormat,
    sets: &'r ValueSets,
    /// Tokens with which the reply begins.
    prefix: &'r [TokenId],
    labelled: Option<&'r Labelled<'r>>,
    /// Thinkers of each state and question, if close calls may think first.
    thinkers: HashMap<(usize, usize), Thinker>,
}

type MadePrompts = Vec<(Part, llama_sampler::Question)>;

impl PromptMaker<'_> {
    /// Returns the prompts of a question, in some orders, about each state; and about the one without content, if there
    /// is such a prior. Or the reason why its options cannot be branches.
    fn prompts(&mut self, asked: &[OrderedQuestion]) -> Result<Result<MadePrompts, String>, DecideError> {
        let Request { states, questions, options, .. } = self.request;
        let blank = without_content();
        let is_prior_asked = options.prior == Prior::ContentFree || options.out_of_scope;
        let prior = is_prior_asked.then_some((None, &blank));
        let mut made = Vec::with_capacity((states.len() + 1) * asked.len());
        for (state, content) in states.iter().enumerate().map(|(number, state)| (Some(number), state)).chain(prior) {
            for asked in asked {
                let &OrderedQuestion { question, order, ref branches, ref filling, ref solved, .. } = asked;
                look(1, 0)?;
                let said = messages(content, filling, solved, options);
                let (mut prompt, mut ranges) = (Vec::new(), Vec::new());
                if let Some(labelled) = self.labelled {
                    prompt = labelled.prompt(self.format.vocab(), self.request, content, asked)?;
                } else if branches.is_empty() {
                    prompt = self.format.content_prompt::<DecideError>(&said)?.tokens;
                    if let (Some(_), 0, Some(state)) = (options.escalate, order, state) {
                        let thinker = Thinker::new(self.format, &said, &prompt, options, self.prefix, self.sets)?;
                        self.thinkers.insert((state, question), thinker);
                    }
                } else {
                    let marked = self.format.marked_content_prompt::<DecideError>(&said, OPTIONS_MARK)?;
                    let Some(head) = marked.marked.filter(|&head| head > 0) else {
                        let reason = "the options cannot be independent: the prompt does not show them once";
                        return Ok(Err(reason.to_owned()));
                    };
                    prompt.extend_from_slice(&marked.tokens[..head]);
                    for branch in branches {
                        let from = prompt.len();
                        prompt.extend_from_slice(branch);
                        ranges.push(from..prompt.len());
                    }
                    prompt.extend_from_slice(&marked.tokens[head..]);
                }
                if self.labelled.is_none() {
                    prompt.extend_from_slice(self.prefix);
                }
                let (prompt, set, spellings) = place(self.sets, prompt, asked)
                    .map_err(|error| DecideError::Options { question: questions[question].name.clone(), error })?;
                if !ranges.is_empty() && is_large(&set) {
                    let reason = "the options cannot be independent: they are too many to score each";
                    return Ok(Err(reason.to_owned()));
                }
                let reading = self.labelled.map(|of| of.checkpoint.reading(&questions[question])).unwrap_or_default();
                let part = Part { state, question, order, spellings, reading };
                made.push((part, llama_sampler::Question { prompt, branches: ranges, set }));
            }
        }
        Ok(Ok(made))
    }
}

/// The prompts of a decision while they are scored.
struct PromptScoring<'d> {
    request: &'d Request,
    listed: &'d [UsedOrder],
    orders: &'d [usize],
    parts: &'d [Part],
    prompts: &'d [llama_sampler::Question],
    /// The parts of each question about each state.
    parts_of: HashMap<(Option<usize>, usize), Vec<usize>>,
    /// One for each part, once it is scored.
    choices: Vec<Option<Choice>>,
    /// Number of orders that are asked of each state and question whose orders are balanced.
    due: HashMap<(Option<usize>, usize), usize>,
    /// Forward passes, and tokens in them.
    passes: (u64, usize),
}

impl PromptScoring<'_> {
    /// Scores the prompts: of balanced orders as many as are needed.
    fn run(
        &mut self,
        followers: &[TokenId],
        model: &mut impl QuestionScorer,
        watch: &mut dyn Watch,
    ) -> Result<(), DecideError> {
        self.begin_balanced();
        let usual = ChooseOptions::new().with_end_tokens(followers);
        let Decide { top, max_rows, .. } = self.request.options;
        let large = usual.with_top(top as usize).with_max_rows(max_rows as usize);
        loop {
            let asked: Vec<usize> = (0..self.parts.len()).filter(|&part| self.is_due(part)).collect();
            if asked.is_empty() {
                return Ok(());
            }
            let (searched, whole): (Vec<usize>, Vec<usize>) =
                asked.into_iter().partition(|&part| is_large(&self.prompts[part].set));
            self.score(&whole, &usual, true, model, watch)?;
            self.score(&searched, &large, false, model, watch)?;
            self.raise_balanced();
        }
    }

    fn is_due(&self, part: usize) -> bool {
        let Part { state, question, order, .. } = self.parts[part];
        self.choices[part].is_none() && self.due.get(&(state, question)).is_none_or(|&due| order < due)
    }

    fn states(&self) -> impl Iterator<Item = Option<usize>> + use<> {
        (0..self.request.states.len()).map(Some)
    }

    fn begin_balanced(&mut self) {
        let Decide { order_confidence, prior, .. } = self.request.options;
        // The mean of all answers changes with each of them.
        let is_batch = prior == Prior::Batch;
        for (question, _) in self.listed.iter().enumerate().filter(|(_, how)| how.order == ListOrder::Balanced) {
            let count = self.request.questions[question].kind.texts().len();
            let all = self.orders[question];
            let least = if is_batch { all } else { least_orders(count, all, order_confidence) };
            for state in self.states().chain([None]) {
                self.due.insert((state, question), least);
            }
        }
    }

    /// Asks on where the winner may still change.
    fn raise_balanced(&mut self) {
        let confidence = self.request.options.order_confidence;
        let mut raised: Vec<((Option<usize>, usize), usize)> = Vec::new();
        for (&(state, question), &due) in &self.due {
            let (Some(number), all) = (state, self.orders[question]) else { continue };
            if due >= all {
                continue;
            }
            let shares: Vec<Vec<f64>> =
                self.scored_orders(number, question).into_iter().map(|order| order.probabilities).collect();
            if !is_settled(&shares, all, confidence) {
                raised.push(((state, question), due + (all / 8).max(1)));
            }
        }
        for ((state, question), due) in raised {
            self.due.insert((state, question), due);
            let of_prior = self.due.entry((None, question)).or_default();
            *of_prior = due.max(*of_prior);
        }
    }

    /// Scores these parts in common forward passes.
    fn score(
        &mut self,
        these: &[usize],
        choose: &ChooseOptions<'_>,
        shared: bool,
        model: &mut impl QuestionScorer,
        watch: &mut dyn Watch,
    ) -> Result<(), DecideError> {
        if these.is_empty() {
            return Ok(());
        }
        let asked: Vec<llama_sampler::Question> = these.iter().map(|&part| self.prompts[part].clone()).collect();
        let found = model.choose_each_apart(&asked, choose, watch).map_err(|error| match error {
            RuntimeError::Prompt { number, error } if number < these.len() => {
                let part = &self.parts[these[number]];
                let question = self.request.questions[part.question].name.clone();
                DecideError::Asked { question, state: part.state.unwrap_or(0), error }
            }
            error => error.into(),
        })?;
        // What is decoded together says each what all of it took.
        let is_shared = shared && !model.is_apart();
        let mut is_first = true;
        for ((&part, asked), choice) in these.iter().zip(&asked).zip(found) {
            if !is_shared || !asked.branches.is_empty() || std::mem::take(&mut is_first) {
                self.passes.0 += choice.stats.forward_passes;
                self.passes.1 += choice.stats.tokens_decoded;
            }
            self.choices[part] = Some(choice);
        }
        Ok(())
    }

    /// Returns the parts of a question about a state that are scored.
    fn scored(&self, state: Option<usize>, question: usize) -> Vec<ScoredPart<'_>> {
        let scored = |&part: &usize| {
            let (part, prompt, choice) = (&self.parts[part], &self.prompts[part], self.choices[part].as_ref()?);
            Some(ScoredPart { part, prompt, choice })
        };
        self.parts_of.get(&(state, question)).into_iter().flatten().filter_map(scored).collect()
    }

    fn scored_orders(&self, state: usize, question: usize) -> Vec<Order> {
        let (priors, options) = (self.scored(None, question), &self.request.options);
        self.scored(Some(state), question).iter().map(|scored| order(scored, &priors, options)).collect()
    }

    fn answer(&self, state: usize, question: usize) -> Answer {
        let (of, threshold) = (self.request.questions[question].clone(), self.request.options.threshold);
        Answer::new(of, self.scored_orders(state, question), threshold, &self.listed[question])
    }
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
    prompt: &'d llama_sampler::Question,
    choice: &'d Choice,
}

/// The probabilities of the options in one order.
fn order(scored: &ScoredPart<'_>, priors: &[ScoredPart<'_>], options: &Decide) -> Order {
    let llama_sampler::Question { prompt, branches, set } = scored.prompt;
    let highest = scored.choice.logprobs_high.as_deref().map(|highest| set.by_value(highest));
    let by_text = known_logprobs(set.by_value(&scored.choice.logprobs), highest.as_deref());
    let reading = scored.part.reading;
    let known = reading.scale(scored.part.spellings.sum(&by_text));
    let prior = priors.iter().find(|prior| prior.part.order == scored.part.order);
    let without = prior.map(|prior| {
        let by_text = prior.prompt.set.by_value(&prior.choice.logprobs);
        reading.scale(prior.part.spellings.sum(&by_text))
    });
    let out_of_scope = without.as_ref().filter(|_| options.out_of_scope).map(|without| {
        let [shares, empty] = [&known, without].map(|logs| reading.of_options(softmax(logs.iter().copied())));
        out_of_scope(&shares, &empty, scored.choice.mass_low)
    });
    let probabilities = match without.filter(|_| options.prior == Prior::ContentFree) {
        // Only the best are scored, and there are no other spellings.
        None if is_large(set) => {
            let shares = set.by_value(&scored.choice.probabilities());
            shares.into_iter().zip(&by_text).map(|(share, known)| if known.is_nan() { *known } else { share }).collect()
        }
        None => softmax(known.into_iter()),
        Some(without) => softmax(known.iter().zip(without).map(|(known, without)| known - without.max(IMPOSSIBLE))),
    };
    let probabilities = reading.of_options(probabilities);
    let Spellings { texts, options, .. } = scored.part.spellings.clone();
    let probabilities_of_texts = by_text.iter().map(|logprob| logprob.exp()).collect();
    let (tokens, branches) = (prompt.clone(), branches.clone());
    let prompt = AskedPrompt { tokens, branches, texts, options, probabilities: probabilities_of_texts };
    let bound = is_large(set).then(|| TopBound::new(&by_text, highest.as_deref()));
    Order { prompt, probabilities, mass: scored.choice.mass_low, out_of_scope, bound }
}

/// Returns the logs of the values' probabilities, with NaN for those of which only an upper bound is known.
fn known_logprobs(logprobs: Vec<f64>, highest: Option<&[f64]>) -> Vec<f64> {
    let Some(highest) = highest else { return logprobs };
    let is_unknown = |known: f64, highest: f64| known == f64::NEG_INFINITY && highest > f64::NEG_INFINITY;
    let pairs = logprobs.into_iter().zip(highest);
    pairs.map(|(known, &highest)| if is_unknown(known, highest) { f64::NAN } else { known }).collect()
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
