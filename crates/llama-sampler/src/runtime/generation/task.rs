//! A generation as a task, for a context alone or an engine.

use super::chooser::{Free, SpanThenFree};
use super::fill::{Filler, form_of};
use super::generated::{GenerateOptions, Generated};
use super::walk::Walk;
use super::{Generation, chain};
use crate::runtime::context::in_range;
use crate::runtime::error::RuntimeError;
use crate::runtime::task::Task;
use crate::runtime::watch::Watch;
use std::sync::Arc;
use trie_core::logits::{NoLogits, nothing_in};
use trie_core::{
    Constraint, DecodeCost, Host, Job, RowChooser, Sampler, SamplerOptions, SpanRules, TokenId, WantedRows,
};
use trie_text::{Form, Vocab};

/// Constraint that a generation follows.
#[derive(Debug, Clone)]
pub enum GenerationConstraint {
    /// No constraint: free text follows.
    Nothing,
    /// Constraints. A form that stands alone is filled to its end.
    Rules(Arc<SpanRules>),
    /// A form whose slots are filled.
    Form(Arc<Form>),
}

/// A generation in progress, which reports to the watcher `W`.
pub struct GenerateTask<W>(Kind<W>);

enum Kind<W> {
    Free(Box<Walk<W, Free>>),
    Span(Box<Walk<W, Sampler>>),
    SpanThenFree(Box<Walk<W, SpanThenFree>>),
    Form(Box<Filler<W>>),
}

impl<W: Watch> GenerateTask<W> {
    /// A generation after `prompt`, on a host of this vocabulary. If the first set begins inside the prompt
    /// ([`Trie::heal_bytes`](trie_core::Trie::heal_bytes)), the set spells the end of the prompt again.
    ///
    /// # Errors
    /// A setting out of range, rules for another vocabulary, an empty prompt, or one that does not fit.
    pub fn new(
        vocab: &Arc<Vocab>,
        host: Host,
        prompt: &[TokenId],
        inside: &GenerationConstraint,
        options: &GenerateOptions,
        watch: W,
    ) -> Result<Self, RuntimeError> {
        let rules = match inside {
            GenerationConstraint::Nothing => None,
            GenerationConstraint::Rules(rules) => Some(rules),
            GenerationConstraint::Form(form) => return fill_form(vocab, host, prompt, form, options, watch),
        };
        check_rules(vocab, rules, options)?;
        if let Some(form) = rules.and_then(|rules| form_of(rules)).filter(|_| options.skip_ahead) {
            return fill_form(vocab, host, prompt, form, options, watch);
        }
        let set = rules.and_then(|rules| rules.first_set());
        let mut generation = Generation::with_healed_prompt(vocab, host, prompt, set, watch)?;
        generation.prepare(options)?;
        let skip = options.skip_ahead;
        let Some(rules) = rules else {
            let seed = chain::seed_of(&options.sampling);
            generation.stats.seed = seed;
            let free = Free(RowChooser::new(SamplerOptions { seed: Some(seed), ..options.sampling })?);
            return Ok(Self(Kind::Free(Box::new(Walk::new(generation, free, options, skip)))));
        };
        let sampler = Sampler::new(Arc::clone(rules), options.sampling)?;
        generation.stats.seed = sampler.seed();
        Ok(Self(match &options.free {
            None => Kind::Span(Box::new(Walk::new(generation, sampler, options, skip).completing(options))),
            Some(free) => {
                let chooser = SpanThenFree::new(sampler, RowChooser::new(*free)?);
                Kind::SpanThenFree(Box::new(Walk::new(generation, chooser, options, skip).completing(options)))
            }
        }))
    }

    /// Returns the result, partial if the generation was stopped, and the watcher.
    ///
    /// # Errors
    /// Tokens without text.
    pub fn finish(self, stopped: bool, n_threads: u32) -> Result<(Generated, W), RuntimeError> {
        let (mut generated, watch) = match self.0 {
            Kind::Free(walk) => walk.finish()?,
            Kind::Span(walk) => walk.finish()?,
            Kind::SpanThenFree(walk) => walk.finish()?,
            Kind::Form(filler) => filler.finish(stopped)?,
        };
        generated.stats.n_threads = n_threads;
        Ok((generated, watch))
    }

    fn task(&self) -> &dyn Task {
        match &self.0 {
            Kind::Free(walk) => &**walk,
            Kind::Span(walk) => &**walk,
            Kind::SpanThenFree(walk) => &**walk,
            Kind::Form(filler) => &**filler,
        }
    }

    fn task_mut(&mut self) -> &mut dyn Task {
        match &mut self.0 {
            Kind::Free(walk) => &mut **walk,
            Kind::Span(walk) => &mut **walk,
            Kind::SpanThenFree(walk) => &mut **walk,
            Kind::Form(filler) => &mut **filler,
        }
    }
}

fn fill_form<W: Watch>(
    vocab: &Arc<Vocab>,
    host: Host,
    prompt: &[TokenId],
    form: &Arc<Form>,
    options: &GenerateOptions,
    watch: W,
) -> Result<GenerateTask<W>, RuntimeError> {
    Ok(GenerateTask(Kind::Form(Box::new(Filler::new(vocab, host, prompt, form, options, watch)?))))
}

/// Returns whether a vocabulary has what rules name, and a limit of tokens leaves something to do.
pub(super) fn check_rules(
    vocab: &Vocab,
    rules: Option<&Arc<SpanRules>>,
    options: &GenerateOptions,
) -> Result<(), RuntimeError> {
    let n_vocab = vocab.len();
    let constraints = rules.map(|rules| rules.constraints()).unwrap_or_default();
    let mut sets = constraints.iter().flat_map(|(_, constraint)| constraint.sets());
    sets.try_for_each(|set| vocab.check_set(set))?;
    if let Some(rules) = rules.map(|rules| rules.n_vocab()).filter(|&rules| rules > n_vocab) {
        return Err(RuntimeError::VocabularyMismatch { rules, n_vocab });
    }
    in_range("max_tokens", options.max_tokens as u64, 1, i32::MAX as u64)
}

impl<W: Watch> Job for GenerateTask<W> {
    type Error = RuntimeError;

    fn advance(&mut self) -> Result<bool, RuntimeError> {
        self.task_mut().advance()
    }

    fn want(&self) -> WantedRows<'_> {
        self.task().want()
    }

    fn take(&mut self, node: Option<usize>, row: &[f32]) -> Result<(), RuntimeError> {
        // Nothing is to be read out of a model that fails; further down a tree whoever scores it looks.
        if let Some(found) = nothing_in(row).filter(|_| node.is_none()) {
            return Err(NoLogits { prefix: self.want().prompt.to_vec(), found, n_vocab: row.len() }.into());
        }
        self.task_mut().take(node, row)
    }

    fn finish_batch(&mut self, decoded: DecodeCost) {
        self.task_mut().finish_batch(decoded);
    }
}

impl<W: Watch> Task for GenerateTask<W> {
    fn stop(&mut self) -> bool {
        self.task_mut().stop()
    }
}
