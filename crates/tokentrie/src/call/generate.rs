//! A generation: its constraint is placed after the prompt and turned into rules; then it only needs a context.

use super::error::GenerateError;
use super::options::{FREE_TOKENS, Generate};
use super::receipt::{Receipt, ReceiptSubject};
use super::run::{Hooks, ReadyCall, finish_of};
use super::stops::Stopping;
use crate::constraint::{Built, Spans, Spec};
use crate::engine::{GenerationStart, Runtime};
use llama_sampler::{
    Completion, GenerateOptions, Generated, GenerationConstraint, RuntimeError, Scorer, Watch, form_of,
};
use std::sync::Arc;
use std::time::Instant;
use trie_core::{
    After, CorrectedDraw, CorrectionJob, CorrectionOptions, DrawSettings, Mode, RulesError, SamplerOptions, SpanRules,
    Special, TokenId,
};
use trie_text::{Form, Prompt, ValueSets, Vocab};

/// Constraint that a generation follows.
#[derive(Debug, Clone)]
pub enum Follows {
    /// No constraint: free text follows.
    Nothing,
    /// A constraint, which is placed after the prompt.
    Built(Built),
    /// Rules that were built before. After a prompt of token ids they are used unchanged.
    Rules(Arc<SpanRules>),
}

impl Follows {
    /// Returns whether it is a form.
    #[must_use]
    pub fn is_form(&self) -> bool {
        matches!(self, Self::Built(Built::Form(_)))
    }
}

impl From<Option<Built>> for Follows {
    fn from(built: Option<Built>) -> Self {
        built.map_or(Self::Nothing, Self::Built)
    }
}

/// A generation that is ready to run: it only needs a decoder.
#[derive(Debug, Clone)]
pub struct ReadyGeneration {
    prompt: Vec<TokenId>,
    healed_bytes: usize,
    inside: GenerationConstraint,
    options: Generate,
    /// Number of results after the same prompt.
    n: u32,
    /// Subject of its receipts, where they are requested, and the key of their seals.
    subject: Option<ReceiptSubject>,
    key: Option<Vec<u8>>,
    vocab: Arc<Vocab>,
    started: Instant,
}

/// A result of a generation.
#[derive(Debug, Clone, PartialEq)]
pub struct GenerateResult {
    /// The output. Its time is measured from the beginning of the generation.
    pub generated: Generated,
    /// Receipt of the allowed tokens, if [`Generate::receipt`] is set.
    pub receipt: Option<Receipt>,
}

impl Generate {
    /// Returns the generation after a prompt, over the vocabulary of `sets`. Its time is measured from this call on.
    ///
    /// `spec` is the constraint as data, by which a receipt names it.
    ///
    /// # Errors
    /// A constraint that cannot follow this prompt, or options that the constraint does not allow.
    pub fn ready(
        self,
        prompt: Prompt,
        follows: Follows,
        spec: Option<&Spec>,
        sets: &ValueSets,
    ) -> Result<ReadyGeneration, GenerateError> {
        let subject = self.receipt.then(|| ReceiptSubject::new(&prompt, spec, &self));
        let (prompt, healed_bytes, inside) = self.place_prompt(prompt, follows, sets)?;
        if self.correct.is_some() {
            self.check_corrected(&inside)?;
        }
        let vocab = Arc::clone(sets.vocab());
        let (n, key, started) = (1, None, Instant::now());
        Ok(ReadyGeneration { prompt, healed_bytes, inside, options: self, n, subject, key, vocab, started })
    }

    /// Returns the prompt's tokens, the number of prompt bytes that the output spells again, and the constraint.
    fn place_prompt(
        &self,
        prompt: Prompt,
        follows: Follows,
        sets: &ValueSets,
    ) -> Result<(Vec<TokenId>, usize, GenerationConstraint), GenerateError> {
        let vocab = sets.vocab();
        let built = match follows {
            Follows::Built(Built::Form(form)) => {
                self.check_with_form()?;
                let prompt = prompt.tokens(vocab, form.begins_with())?;
                return Ok((prompt, 0, GenerationConstraint::Form(form)));
            }
            Follows::Nothing => {
                self.check_without_form()?;
                if self.end_tokens.is_some() {
                    return Err(GenerateError::NothingToEnd);
                }
                return Ok((prompt.tokens(vocab, None)?, 0, GenerationConstraint::Nothing));
            }
            Follows::Built(built) => built,
            Follows::Rules(rules) => match prompt {
                Prompt::Tokens(tokens) => {
                    self.check_without_form()?;
                    self.check_stop(&rules)?;
                    return Ok((tokens, 0, GenerationConstraint::Rules(rules)));
                }
                Prompt::Text(_) => Built::Spans(rules.constraints().to_vec().into()),
            },
        };
        self.check_without_form()?;
        let placed = built.after_prompt(prompt, sets)?;
        let rules = Arc::new(self.rules(placed.spans, vocab)?);
        self.check_stop(&rules)?;
        if self.receipt && !self.skip_ahead && form_of(&rules).is_some() {
            return Err(GenerateError::ReceiptOfForm);
        }
        Ok((placed.prompt, placed.healed_bytes, GenerationConstraint::Rules(rules)))
    }

    fn check_with_form(&self) -> Result<(), GenerateError> {
        let weighs_wholes = self.exact || self.probabilities;
        if self.end_tokens.is_some() || self.after == Some(After::Free) {
            Err(GenerateError::NotForForms)
        } else if !self.stop.is_empty() {
            Err(GenerateError::StopOfForm)
        } else if self.receipt && weighs_wholes {
            Err(GenerateError::ReceiptOfForm)
        } else if !self.logit_bias.is_empty() && weighs_wholes {
            Err(GenerateError::BiasOfWholes)
        } else if self.exact && self.logprobs.is_some() {
            Err(GenerateError::LogprobsOfExact)
        } else {
            Ok(())
        }
    }

    /// Returns the rules of a generation with these constraints.
    ///
    /// # Errors
    /// As [`SpanRules::new`]; tokens outside the vocabulary; no token that ends the generation.
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

    /// Checks stop texts against the rules: stop texts end free text, so the rules must allow some.
    fn check_stop(&self, rules: &SpanRules) -> Result<(), GenerateError> {
        if self.stop.is_empty() || !ends_by_itself(rules) { Ok(()) } else { Err(GenerateError::StopOfValue) }
    }

    /// Checks that a draw can be corrected.
    fn check_corrected(&self, inside: &GenerationConstraint) -> Result<(), GenerateError> {
        let DrawSettings { temperature, .. } = self.sampling.draw;
        let usual =
            DrawSettings { temperature, penalty_last_n: self.sampling.draw.penalty_last_n, ..DrawSettings::default() };
        let rules = match inside {
            GenerationConstraint::Rules(rules) if form_of(rules).is_none() => Some(rules),
            _ => None,
        };
        let reason = match rules {
            None => "without a constraint and in forms: only the texts of one constraint have a probability as a whole",
            Some(rules) if !ends_by_itself(rules) => "where free text follows: it has no end that the constraint knows",
            Some(rules) if rules.is_weighted() => "with weights, which are no part of the model: leave them out",
            Some(_) if temperature <= 0.0 => "at temperature 0, where nothing is drawn",
            Some(_) if self.sampling.draw != usual => {
                "with cuts and penalties, which forbid or change tokens of the model: temperature and logit_bias are"
            }
            Some(_) if !self.skip_ahead => "without skip_ahead: one chain chooses all tokens there",
            Some(_) => return Ok(()),
        };
        Err(GenerateError::NotCorrected(reason))
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
    /// Returns the tokens of the prompt.
    pub fn prompt(&self) -> &[TokenId] {
        &self.prompt
    }

    /// Returns the rules of the generation; `None` for a form, which has rules of its own.
    pub fn rules(&self) -> Option<&Arc<SpanRules>> {
        if let GenerationConstraint::Rules(rules) = &self.inside { Some(rules) } else { None }
    }

    /// Returns whether the generation fills a form.
    pub fn is_form(&self) -> bool {
        self.form().is_some()
    }

    /// Returns the form that is filled, if any.
    pub fn form(&self) -> Option<&Arc<Form>> {
        if let GenerationConstraint::Form(form) = &self.inside { Some(form) } else { None }
    }

    /// Returns whether the generation has a constraint.
    pub fn is_constrained(&self) -> bool {
        !matches!(self.inside, GenerationConstraint::Nothing)
    }

    /// Returns the number of prompt tokens that are kept: a set or form at the beginning may spell the end of the
    /// prompt again.
    pub fn kept_tokens(&self, vocab: &Vocab) -> usize {
        let set = match &self.inside {
            GenerationConstraint::Nothing => None,
            GenerationConstraint::Rules(rules) => rules.first_set(),
            GenerationConstraint::Form(form) => form.begins_with(),
        };
        let healed = set.filter(|set| set.heal_bytes() > 0);
        let before = healed.and_then(|set| vocab.before_set(&self.prompt, set).ok());
        before.map_or(self.prompt.len(), <[TokenId]>::len)
    }

    /// Sets the number of results. The prompt is decoded once, if the model's cache can return to its end. Result `k`,
    /// from 0, is the one that `seed + k` gives in a call of its own; without a seed, each result draws its own. An
    /// engine runs the results side by side. A call that is stopped has fewer results, the last of which may be cut
    /// off.
    #[must_use]
    pub fn with_n(self, n: u32) -> Self {
        Self { n, ..self }
    }

    /// Sets the key that seals the receipts of this generation.
    #[must_use]
    pub fn with_key(self, key: Option<Vec<u8>>) -> Self {
        Self { key, ..self }
    }

    /// Sets the time at which the call began: the time for reading its request counts, too.
    #[must_use]
    pub fn begun_at(self, started: Instant) -> Self {
        Self { started, ..self }
    }

    fn run_each(&self, runtime: &mut Runtime<'_>, watch: &mut dyn Watch) -> Result<Vec<Generated>, RuntimeError> {
        let (options, inside) = (&self.options, &self.inside);
        let each: Vec<GenerateOptions> = (0..self.n).map(|nth| self.options(options, nth)).collect();
        if let (Some(particles), GenerationConstraint::Rules(rules)) = (options.correct, inside) {
            return each.into_iter().map(|own| self.run_corrected(runtime, particles, rules, own, watch)).collect();
        }
        match runtime {
            Runtime::Alone(_) => {
                let mut all = Vec::with_capacity(each.len());
                for own in &each {
                    let generated = self.run_alone(runtime, own, watch)?;
                    let is_stopped = generated.finish.is_stopped();
                    all.push(generated);
                    if is_stopped {
                        break;
                    }
                }
                Ok(all)
            }
            Runtime::Shared(engine, draft) => {
                let start = GenerationStart { prompt: &self.prompt, inside, draft: *draft };
                if options.stop.is_empty() {
                    return engine.generate_each(start, &each, |relay| relay, |_, generated| generated, watch);
                }
                // Inside the engine, so that nothing is written behind a stop text.
                engine.generate_each(start, &each, |relay| Stopping::new(relay, &options.stop), Stopping::finish, watch)
            }
        }
    }

    /// Draws a text as a whole, then writes it.
    fn run_corrected(
        &self,
        runtime: &mut Runtime<'_>,
        particles: u32,
        rules: &Arc<SpanRules>,
        own: GenerateOptions,
        watch: &mut dyn Watch,
    ) -> Result<Generated, RuntimeError> {
        let prompt = &self.prompt[..self.kept_tokens(&self.vocab)];
        let options = CorrectionOptions {
            particles: particles as usize,
            seed: own.sampling.drawn_seed(),
            temperature: own.sampling.draw.temperature,
            bias: own.logit_bias.clone(),
            max_tokens: own.max_tokens,
        };
        let sampling = SamplerOptions { mode: Mode::Sampled, seed: Some(options.seed), ..own.sampling };
        let job = CorrectionJob::new::<RuntimeError>(runtime.host(), prompt, Arc::clone(rules), options)?;
        let done = runtime.complete(job, watch)?;
        if done.stopped.is_some() {
            // Who stopped it stops this, too, before its first pass.
            return runtime.generate(&self.prompt, &self.inside, &own.with_sampling(sampling), watch);
        }
        let CorrectedDraw { mut tokens, end, is_whole, correction, stats } = done.job.finish(done.n_threads);
        let mut own = own.with_sampling(sampling);
        let written = tokens.len() + 1;
        // The token that ends a text does not count. Where no text ended within the limit, one token shows a cut value.
        own = own.with_max_tokens(written);
        if is_whole {
            // Where no end token is needed, any other token ends a value that could go on.
            tokens.extend(end.or_else(|| rules.stop_tokens().first().copied()));
        }
        let mut generated = runtime.generate(&self.prompt, &self.inside, &own.with_given(tokens), watch)?;
        generated.stats.forward_passes += stats.forward_passes;
        generated.stats.tokens_decoded += stats.tokens_decoded;
        generated.stats.n_threads = stats.n_threads;
        generated.correction = Some(correction);
        Ok(generated)
    }

    fn run_alone(
        &self,
        runtime: &mut Runtime<'_>,
        own: &GenerateOptions,
        watch: &mut dyn Watch,
    ) -> Result<Generated, RuntimeError> {
        if self.options.stop.is_empty() {
            return runtime.generate(&self.prompt, &self.inside, own, watch);
        }
        let mut stopping = Stopping::new(watch, &self.options.stop);
        let generated = runtime.generate(&self.prompt, &self.inside, own, &mut stopping)?;
        Ok(stopping.finish(generated))
    }

    /// Returns the options of the `nth` result of several.
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

impl ReadyCall for &ReadyGeneration {
    type Outcome = Vec<GenerateResult>;
    type Error = RuntimeError;

    fn run_on(self, runtime: &mut Runtime<'_>, hooks: &mut dyn Hooks) -> Result<Vec<GenerateResult>, RuntimeError> {
        let all = self.run_each(runtime, hooks)?;
        let seconds = self.started.elapsed().as_secs_f64();
        let result = |mut generated: Generated| {
            generated.finish = finish_of(generated.finish, &*hooks);
            generated.stats.seconds = seconds;
            let trail = std::mem::take(&mut generated.trail);
            let receipt =
                self.subject.as_ref().map(|of| Receipt::from_trail(of, &self.vocab, &trail, self.key.as_deref()));
            GenerateResult { generated, receipt }
        };
        Ok(all.into_iter().map(result).collect())
    }
}

/// Returns whether the output is over with a value, so that none of it is free text but thoughts before one.
fn ends_by_itself(rules: &SpanRules) -> bool {
    rules.after_value() == After::Stop && !rules.constraints().iter().all(|(_, constraint)| constraint.never_ends())
}

/// Returns the sampling of the `nth` result of several: the first has the given seed, the next ones those after it.
pub(crate) fn nth_seed(sampling: SamplerOptions, nth: u32) -> SamplerOptions {
    SamplerOptions { seed: sampling.seed.map(|seed| seed.wrapping_add(nth)), ..sampling }
}
