//! Generation inside a span: prompt, then token after token until the span, the model or a limit ends it.
//!
//! Two ways give the same tokens. (In a set with several tokenizations of a value, only the first one writes forced
//! text in the tokenizer's tokens.) The first way skips ahead and owns the row of logits: a forced token needs no row,
//! and is decoded together with the tokens after it. The second way puts the span into llama.cpp's own chain and takes
//! one forward pass a token.

use super::chooser::{ChainOverSpan, Chooser, WholeChain};
use super::generated::{GenerateOptions, Generated};
use super::task::check_rules;
use super::walk::Walk;
use super::{GenerateTask, Generation, GenerationConstraint, chain};
use crate::runtime::context::Context;
use crate::runtime::error::RuntimeError;
use crate::runtime::task::Task;
use crate::runtime::watch::Watch;
use llama_cpp_2::sampling::LlamaSampler;
use std::sync::Arc;
use trie_core::{SpanRules, TokenId};
use trie_text::Form;

impl Context {
    /// Generates after `prompt`. A beginning of the prompt that the context already holds is not decoded again.
    ///
    /// The generation ends with the span under [`After::Stop`](trie_core::After::Stop); a token that ends an open leaf
    /// is left out. Without rules, or under [`After::Free`](trie_core::After::Free), it goes on until the model ends
    /// its output. If the first set begins inside the prompt ([`Trie::heal_bytes`](trie_core::Trie::heal_bytes)), the
    /// set spells the end of the prompt again. A form that stands alone is filled to its end: see [`Context::fill`].
    ///
    /// # Errors
    /// A setting out of range, rules for another vocabulary, an empty prompt, one that does not fit, or a failed
    /// forward pass. The context can be used afterwards.
    pub fn generate(
        &mut self,
        prompt: &[TokenId],
        rules: Option<&Arc<SpanRules>>,
        options: &GenerateOptions,
        watch: &mut dyn Watch,
    ) -> Result<Generated, RuntimeError> {
        if options.skip_ahead {
            let inside =
                rules.map_or(GenerationConstraint::Nothing, |rules| GenerationConstraint::Rules(Arc::clone(rules)));
            return self.perform(prompt, &inside, options, watch);
        }
        check_rules(self.vocab(), rules, options)?;
        let set = rules.and_then(|rules| rules.first_set());
        let mut generation = Generation::with_healed_prompt(self.vocab(), self.host(), prompt, set, watch)?;
        generation.prepare(options)?;
        let chain = chain::build(rules, &options.sampling, self.host())?;
        generation.stats.seed = chain.seed;
        self.walk(Walk::new(generation, WholeChain::new(chain), options, false).completing(options))
    }

    /// Fills a form after `prompt`. If the set of a slot begins inside the text before it
    /// ([`Trie::heal_bytes`](trie_core::Trie::heal_bytes)), the slot spells the end of that literal again. At the
    /// beginning of the form it spells the end of the prompt again.
    ///
    /// `max_tokens` and `skip_ahead` have no effect: a form is filled to its end, and only branch points cost a forward
    /// pass.
    ///
    /// # Errors
    /// As [`Context::generate`], and a form that the vocabulary cannot spell.
    pub fn fill(
        &mut self,
        prompt: &[TokenId],
        form: &Arc<Form>,
        options: &GenerateOptions,
        watch: &mut dyn Watch,
    ) -> Result<Generated, RuntimeError> {
        self.perform(prompt, &GenerationConstraint::Form(Arc::clone(form)), options, watch)
    }

    /// Generates inside what it follows, as a task.
    pub(super) fn perform(
        &mut self,
        prompt: &[TokenId],
        inside: &GenerationConstraint,
        options: &GenerateOptions,
        watch: &mut dyn Watch,
    ) -> Result<Generated, RuntimeError> {
        let task = GenerateTask::new(self.vocab(), self.host(), prompt, inside, options, watch)?;
        let mut task = task.with_draft(self.draft.as_ref());
        let stopped = self.run_or_stop(&mut task)?;
        Ok(task.finish(stopped, self.n_threads())?.0)
    }

    fn walk<C: Chooser>(&mut self, mut walk: Walk<&mut dyn Watch, C>) -> Result<Generated, RuntimeError> {
        self.run_or_stop(&mut walk)?;
        walk.generation.stats.n_threads = self.n_threads();
        Ok(walk.finish()?.0)
    }

    /// Runs a task, and returns whether it was stopped, which is one way to end.
    fn run_or_stop(&mut self, task: &mut dyn Task) -> Result<bool, RuntimeError> {
        match self.run(task) {
            Ok(()) => Ok(false),
            Err(RuntimeError::Stopped { .. }) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// The same as [`Context::generate`], with samplers of llama.cpp after the trie. `chain` receives only the allowed
    /// candidates, is told of every token, and must select one. `options.sampling` is not used.
    ///
    /// # Errors
    /// As [`Context::generate`], and a chain that selects no token.
    pub fn generate_with_chain(
        &mut self,
        prompt: &[TokenId],
        rules: &Arc<SpanRules>,
        chain: LlamaSampler,
        options: &GenerateOptions,
        watch: &mut dyn Watch,
    ) -> Result<Generated, RuntimeError> {
        check_rules(self.vocab(), Some(rules), options)?;
        let set = rules.first_set();
        let mut generation = Generation::with_healed_prompt(self.vocab(), self.host(), prompt, set, watch)?;
        generation.prepare(options)?;
        let chooser = ChainOverSpan::new(Arc::clone(rules), chain);
        self.walk(Walk::new(generation, chooser, options, true))
    }
}
