//! A generation as a task, for a context alone or an engine.

use super::chooser::{Free, SpanThenFree};
use super::drafting::Drafting;
use super::fill::{Filler, form_of};
use super::generated::{GenerateOptions, Generated};
use super::walk::Walk;
use super::{Generation, chain};
use crate::runtime::context::in_range;
use crate::runtime::draft::Draft;
use crate::runtime::error::RuntimeError;
use crate::runtime::task::Task;
use crate::runtime::watch::Watch;
use std::sync::Arc;
use trie_core::logits::{NoLogits, nothing_in};
use trie_core::{
    Constraint, DecodeCost, Host, Job, RowChooser, Sampler, SamplerOptions, Span, SpanRules, TokenId, WantedRows,
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
pub struct GenerateTask<W> {
    kind: Kind<W>,
    pub(super) drafting: Option<Drafting>,
}

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
            return Ok(Kind::Free(Box::new(Walk::new(generation, free, options, skip))).into());
        };
        let sampler = Sampler::new(Arc::clone(rules), options.sampling)?;
        generation.stats.seed = sampler.seed();
        let kind = match &options.free {
            None => Kind::Span(Box::new(Walk::new(generation, sampler, options, skip).completing(options))),
            Some(free) => {
                let chooser = SpanThenFree::new(sampler, RowChooser::new(*free)?);
                Kind::SpanThenFree(Box::new(Walk::new(generation, chooser, options, skip).completing(options)))
            }
        };
        Ok(kind.into())
    }

    /// Sets the source of drafts of the generation.
    #[must_use]
    pub fn with_draft(self, draft: Option<&Draft>) -> Self {
        Self { drafting: draft.map(Drafting::new), ..self }
    }

    /// Goes on inside a batch, and returns whether the generation asks for the row after this node of its draft.
    fn reaches(&mut self, node: usize) -> Result<bool, RuntimeError> {
        let Self { kind, drafting: Some(drafting) } = self else { return Ok(false) };
        if drafting.went_on.is_none() {
            kind.task_mut().finish_batch(DecodeCost::default());
            drafting.went_on = Some(kind.task_mut().advance()?);
        }
        let WantedRows { prompt, branches, tree, .. } = kind.task().want();
        let wants_row = drafting.went_on == Some(true) && branches.is_empty() && tree.nodes().is_empty();
        if drafting.is_stopped || !wants_row || !drafting.agrees(prompt, node) {
            return Ok(false);
        }
        // Without a draft, a forward pass would come here.
        drafting.is_stopped = kind.task_mut().stop();
        if !drafting.is_stopped {
            drafting.went_on = None;
        }
        Ok(!drafting.is_stopped)
    }

    /// Returns the result, partial if the generation was stopped, and the watcher.
    ///
    /// # Errors
    /// Tokens without text.
    pub fn finish(self, stopped: bool, n_threads: u32) -> Result<(Generated, W), RuntimeError> {
        let (mut generated, watch) = match self.kind {
            Kind::Free(walk) => walk.finish()?,
            Kind::Span(walk) => walk.finish()?,
            Kind::SpanThenFree(walk) => walk.finish()?,
            Kind::Form(filler) => filler.finish(stopped)?,
        };
        generated.stats.n_threads = n_threads;
        Ok((generated, watch))
    }

    /// Returns the error of a row that a model that fails gave.
    fn check_row(&self, row: &[f32]) -> Result<(), RuntimeError> {
        let nothing = |found| NoLogits { prefix: self.kind.task().want().prompt.to_vec(), found, n_vocab: row.len() };
        nothing_in(row).map_or(Ok(()), |found| Err(nothing(found).into()))
    }
}

impl<W> From<Kind<W>> for GenerateTask<W> {
    fn from(kind: Kind<W>) -> Self {
        Self { kind, drafting: None }
    }
}

impl<W: Watch> Kind<W> {
    fn generation(&mut self) -> &mut Generation<W> {
        match self {
            Self::Free(walk) => &mut walk.generation,
            Self::Span(walk) => &mut walk.generation,
            Self::SpanThenFree(walk) => &mut walk.generation,
            Self::Form(filler) => &mut filler.generation,
        }
    }

    fn draft(&mut self, drafting: &mut Drafting) -> Result<(), RuntimeError> {
        match self {
            Self::Free(walk) => walk.draft(drafting),
            Self::Span(walk) => walk.draft(drafting),
            Self::SpanThenFree(walk) => walk.draft(drafting),
            Self::Form(filler) => filler.draft(drafting),
        }
    }

    fn task(&self) -> &dyn Task {
        match self {
            Kind::Free(walk) => &**walk,
            Kind::Span(walk) => &**walk,
            Kind::SpanThenFree(walk) => &**walk,
            Kind::Form(filler) => &**filler,
        }
    }

    fn task_mut(&mut self) -> &mut dyn Task {
        match self {
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
    Ok(Kind::Form(Box::new(Filler::new(vocab, host, prompt, form, options, watch)?)).into())
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
        let Self { kind, drafting: Some(drafting) } = self else { return self.kind.task_mut().advance() };
        let wants = match drafting.went_on.take() {
            Some(wants) => wants,
            None => kind.task_mut().advance()?,
        };
        drafting.clear();
        // The first pass is that of the prompt: nothing waits for it longer than it must.
        if wants && !drafting.is_stopped && kind.generation().begun {
            kind.draft(drafting)?;
        }
        Ok(wants)
    }

    fn want(&self) -> WantedRows<'_> {
        let want = self.kind.task().want();
        match &self.drafting {
            Some(drafting) if !drafting.tree.nodes().is_empty() => {
                WantedRows { prompt: want.prompt, branches: &[], tree: &drafting.tree, is_draft: true }
            }
            _ => want,
        }
    }

    fn take(&mut self, node: Option<usize>, row: &[f32]) -> Result<(), RuntimeError> {
        if let Some(drafted) = node.filter(|_| self.want().is_draft) {
            if self.reaches(drafted)? {
                self.check_row(row)?;
                self.kind.task_mut().take(None, row)?;
            }
            return Ok(());
        }
        // Nothing is to be read out of a model that fails; further down a tree whoever scores it looks.
        if node.is_none() {
            self.check_row(row)?;
        }
        self.kind.task_mut().take(node, row)
    }

    fn finish_batch(&mut self, decoded: DecodeCost) {
        let Self { kind, drafting } = self;
        let mut went_on = false;
        if let Some(drafting) = drafting {
            went_on = drafting.went_on.is_some();
            let generation = kind.generation();
            let (drafted, accepted) = drafting.record(&generation.text);
            generation.stats.drafted_tokens += drafted;
            generation.stats.accepted_tokens += accepted;
        }
        if went_on {
            // Its part of the batch is over already, without the cost.
            kind.generation().add_cost(0, decoded);
        } else {
            kind.task_mut().finish_batch(decoded);
        }
    }
}

impl<W: Watch> Task for GenerateTask<W> {
    fn stop(&mut self) -> bool {
        self.drafting.as_ref().is_some_and(|drafting| drafting.is_stopped) || self.kind.task_mut().stop()
    }

    fn reads_allowed_by(&self) -> Option<&Span> {
        self.kind.task().reads_allowed_by()
    }
}
