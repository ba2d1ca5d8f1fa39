//! A generation: what stands after its prompt is placed and put into rules; then it only needs a context.

use super::options::{FREE_TOKENS, Generate};
use super::stops::Stopping;
use crate::constraint::{Built, Spans, SpecProblem};
use crate::engine::Runtime;
use llama_sampler::{Completion, Finish, GenerateOptions, Generated, Inside, RuntimeError, Watch, form_of};
use std::sync::Arc;
use trie_core::ErrorKind;
use trie_core::{After, RulesError, SamplerOptions, SpanRules, Special, TokenId};
use trie_text::{Form, Prompt, ValueSets, Vocab, VocabError};

/// Why a generation cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    /// What the constraint cannot do after this prompt.
    #[error(transparent)]
    Constraint(#[from] SpecProblem),
    /// The prompt.
    #[error(transparent)]
    Prompt(#[from] VocabError),
    /// The vocabulary and the constraint.
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// What follows a slot ends it.
    #[error("end_tokens and after=\"free\" are not for forms: what follows a slot ends it")]
    NotForForms,
    /// A form is filled to its end.
    #[error("stop is not for forms, which are filled to their end: give a Text of the form its own stop")]
    StopOfForm,
    /// A value ends where its constraint says so.
    #[error(
        "stop is not supported inside a constraint: it would cut a value in the middle, and the constraint says where \
         its value ends. Leave stop out; put the text into the constraint; or give after=\"free\", where stop ends the \
         text behind the value"
    )]
    StopOfValue,
    /// What has no end.
    #[error("end_tokens close a value, and free text has none: give a constraint, or leave them out")]
    NothingToEnd,
    /// No text comes after the value.
    #[error("free_sampling is for the text after a value, and there is none: give after=\"free\"")]
    NothingFree,
    /// A chain of llama.cpp's chooses all tokens alike.
    #[error("free_sampling needs skip_ahead: without it one chain chooses all tokens")]
    FreeNeedsSkipAhead,
    /// A value that is taken as a whole is no choice of tokens.
    #[error("logprobs are of tokens that are chosen one by one, and \"exact\" takes whole values: use probabilities")]
    LogprobsOfExact,
    /// The same of what is added to tokens.
    #[error("logit_bias is for tokens that are chosen one by one: leave out mode \"exact\" and probabilities")]
    BiasOfWholes,
    /// A form whose values are weighed as wholes, or whose tokens are not taken back.
    #[error("the receipt of a form is of its tokens: leave out mode \"exact\", probabilities and skip_ahead")]
    ReceiptOfForm,
    /// What has no slots.
    #[error("{0} for forms: use `choose` for a set")]
    ForFormsAlone(&'static str),
}

impl GenerateError {
    /// Returns what kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Constraint(problem) => problem.kind(),
            Self::Prompt(error) => error.kind(),
            Self::Rules(error) => error.kind(),
            Self::NotForForms
            | Self::StopOfForm
            | Self::StopOfValue
            | Self::NothingToEnd
            | Self::NothingFree
            | Self::FreeNeedsSkipAhead
            | Self::LogprobsOfExact
            | Self::BiasOfWholes
            | Self::ReceiptOfForm
            | Self::ForFormsAlone(_) => ErrorKind::Argument,
        }
    }
}

/// A generation that only needs a context.
#[derive(Debug, Clone)]
pub struct ReadyGeneration {
    prompt: Vec<TokenId>,
    healed_bytes: usize,
    inside: Inside,
}

impl Generate {
    /// A generation after a prompt, inside what was built of a spec; `None` is free text.
    ///
    /// # Errors
    /// What the constraint cannot do after this prompt, and options that do not go with it.
    pub fn after(
        &self,
        prompt: Prompt,
        built: Option<Built>,
        sets: &ValueSets,
    ) -> Result<ReadyGeneration, GenerateError> {
        let vocab = sets.vocab();
        if let Some(Built::Form(form)) = built {
            if self.end_tokens.is_some() || self.after == Some(After::Free) {
                return Err(GenerateError::NotForForms);
            }
            if !self.stop.is_empty() {
                return Err(GenerateError::StopOfForm);
            }
            if self.receipt && (self.exact || self.probabilities) {
                return Err(GenerateError::ReceiptOfForm);
            }
            if !self.logit_bias.is_empty() && (self.exact || self.probabilities) {
                return Err(GenerateError::BiasOfWholes);
            }
            if self.exact && self.logprobs.is_some() {
                return Err(GenerateError::LogprobsOfExact);
            }
            let prompt = prompt.tokens(vocab, form.begins_with())?;
            return Ok(ReadyGeneration { prompt, healed_bytes: 0, inside: Inside::Form(form) });
        }
        self.check_without_form()?;
        let Some(built) = built else {
            if self.end_tokens.is_some() {
                return Err(GenerateError::NothingToEnd);
            }
            let prompt = prompt.tokens(vocab, None)?;
            return Ok(ReadyGeneration { prompt, healed_bytes: 0, inside: Inside::Nothing });
        };
        let placed = built.after(prompt, sets)?;
        let rules = Arc::new(self.rules(placed.spans, vocab)?);
        self.check_stop(&rules)?;
        if self.receipt && !self.skip_ahead && form_of(&rules).is_some() {
            return Err(GenerateError::ReceiptOfForm);
        }
        Ok(ReadyGeneration { prompt: placed.prompt, healed_bytes: placed.healed_bytes, inside: Inside::Rules(rules) })
    }

    /// A generation inside rules that were made before.
    ///
    /// # Errors
    /// Options of forms.
    pub fn inside(&self, prompt: Vec<TokenId>, rules: Arc<SpanRules>) -> Result<ReadyGeneration, GenerateError> {
        self.check_without_form()?;
        self.check_stop(&rules)?;
        Ok(ReadyGeneration { prompt, healed_bytes: 0, inside: Inside::Rules(rules) })
    }

    /// Constraints as a generation follows them.
    ///
    /// # Errors
    /// As [`SpanRules::new`]; tokens outside the vocabulary, nothing to stop on.
    pub fn rules(&self, spans: Spans, vocab: &Vocab) -> Result<SpanRules, RulesError> {
        let mut rules = SpanRules::new(spans, vocab.len())?;
        if let Some(ends) = &self.end_tokens {
            rules = rules.with_end_tokens(ends.as_slice())?;
        }
        if !vocab.end_of_generation().is_empty() {
            rules = rules.with_end_of_generation(vocab.end_of_generation())?;
        }
        rules.with_after(self.after.unwrap_or(After::Stop))
    }

    /// Stop texts end free text: somewhere there must be some.
    fn check_stop(&self, rules: &SpanRules) -> Result<(), GenerateError> {
        if self.stop.is_empty() || !ends_by_itself(rules) { Ok(()) } else { Err(GenerateError::StopOfValue) }
    }

    fn check_without_form(&self) -> Result<(), GenerateError> {
        match (self.free_sampling, self.after, self.skip_ahead) {
            (Some(_), Some(After::Stop), _) => return Err(GenerateError::NothingFree),
            (Some(_), _, false) => return Err(GenerateError::FreeNeedsSkipAhead),
            _ => {}
        }
        match (self.exact, self.probabilities) {
            (true, _) => Err(GenerateError::ForFormsAlone("mode \"exact\" is")),
            (_, true) => Err(GenerateError::ForFormsAlone("probabilities are")),
            _ => Ok(()),
        }
    }
}

impl ReadyGeneration {
    /// The tokens before it.
    pub fn prompt(&self) -> &[TokenId] {
        &self.prompt
    }

    /// The rules that it follows; a form has its own.
    pub fn rules(&self) -> Option<&Arc<SpanRules>> {
        if let Inside::Rules(rules) = &self.inside { Some(rules) } else { None }
    }

    /// Whether it fills a form.
    pub fn is_form(&self) -> bool {
        self.form().is_some()
    }

    /// The form that it fills.
    pub fn form(&self) -> Option<&Arc<Form>> {
        if let Inside::Form(form) = &self.inside { Some(form) } else { None }
    }

    /// Whether it follows anything.
    pub fn is_constrained(&self) -> bool {
        !matches!(self.inside, Inside::Nothing)
    }

    /// The tokens of the prompt that stay: a first set or form may spell the end of it again.
    pub fn kept(&self, vocab: &Vocab) -> usize {
        let set = match &self.inside {
            Inside::Nothing => None,
            Inside::Rules(rules) => rules.first_set(),
            Inside::Form(form) => form.begins_with(),
        };
        let healed = set.filter(|set| set.heal_bytes() > 0);
        let before = healed.and_then(|set| vocab.before_set(&self.prompt, set).ok());
        before.map_or(self.prompt.len(), <[TokenId]>::len)
    }

    /// Runs it.
    ///
    /// # Errors
    /// As [`Runtime::generate`].
    pub fn run(
        &self,
        runtime: &mut Runtime<'_>,
        options: &Generate,
        watch: &mut dyn Watch,
    ) -> Result<Generated, RuntimeError> {
        self.run_each(runtime, options, 1, watch)?.pop().ok_or(RuntimeError::Closed)
    }

    /// Runs it `n` times after the prompt, which is decoded once where the model can go back to it. Each has the seed
    /// after that of the one before, so the second is what the next seed gives alone; without a seed each takes its
    /// own. An engine runs them side by side. Fewer where they were stopped: then the last has what there is.
    ///
    /// # Errors
    /// As [`Runtime::generate`], of the first that fails.
    pub fn run_each(
        &self,
        runtime: &mut Runtime<'_>,
        options: &Generate,
        n: u32,
        watch: &mut dyn Watch,
    ) -> Result<Vec<Generated>, RuntimeError> {
        let each: Vec<GenerateOptions> = (0..n).map(|nth| self.options(options, nth)).collect();
        match runtime {
            Runtime::Alone(_) => {
                let mut all = Vec::with_capacity(each.len());
                for own in &each {
                    let generated = self.run_alone(runtime, options, own, watch)?;
                    let is_stopped = generated.finish == Finish::Stopped;
                    all.push(generated);
                    if is_stopped {
                        break;
                    }
                }
                Ok(all)
            }
            Runtime::Shared(engine) if options.stop.is_empty() => {
                engine.generate_each(&self.prompt, &self.inside, &each, |relay| relay, |_, generated| generated, watch)
            }
            // Inside the engine, so that nothing is written behind a stop text.
            Runtime::Shared(engine) => engine.generate_each(
                &self.prompt,
                &self.inside,
                &each,
                |relay| Stopping::new(relay, &options.stop),
                Stopping::finish,
                watch,
            ),
        }
    }

    fn run_alone(
        &self,
        runtime: &mut Runtime<'_>,
        options: &Generate,
        own: &GenerateOptions,
        watch: &mut dyn Watch,
    ) -> Result<Generated, RuntimeError> {
        if options.stop.is_empty() {
            return runtime.generate(&self.prompt, &self.inside, own, watch);
        }
        let mut stopping = Stopping::new(watch, &options.stop);
        let generated = runtime.generate(&self.prompt, &self.inside, own, &mut stopping)?;
        Ok(stopping.finish(generated))
    }

    /// Those of one of several.
    fn options(&self, options: &Generate, nth: u32) -> GenerateOptions {
        GenerateOptions::default()
            .with_sampling(nth_seed(options.sampling, nth))
            .with_free(options.free_sampling.map(|sampling| nth_seed(sampling, nth)))
            .with_max_tokens(options.max_tokens.map_or(i32::MAX as usize, |most| most as usize))
            .with_max_free_tokens(options.max_tokens.is_none().then_some(FREE_TOKENS as usize))
            .with_skip_ahead(options.skip_ahead)
            .with_healed_bytes(self.healed_bytes)
            .with_exact(options.exact)
            .with_probabilities(options.probabilities)
            .with_logprobs(options.logprobs)
            .with_trail(options.receipt)
            .with_complete(Completion::Closed)
            .with_logit_bias(options.logit_bias.clone())
    }
}

/// Whether the output is over with a value, so that none of it is free text but thoughts before one.
fn ends_by_itself(rules: &SpanRules) -> bool {
    rules.after() == After::Stop && !rules.constraints().iter().all(|(_, constraint)| constraint.never_ends())
}

/// How one of several is drawn: the first with the seed that is given, the next ones with those after it.
pub(crate) fn nth_seed(sampling: SamplerOptions, nth: u32) -> SamplerOptions {
    SamplerOptions { seed: sampling.seed.map(|seed| seed.wrapping_add(nth)), ..sampling }
}
