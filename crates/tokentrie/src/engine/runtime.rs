//! One interface to a single context or an engine.

use super::options::{Batching, EngineOptions};
use super::thread::{Engine, GenerationStart};
use llama_sampler::{
    CompletedJob, Context, ContextOptions, Draft, GenerateOptions, Generated, GenerationConstraint, Model, Prefix,
    ReadingTask, RuntimeError, Scorer, TokenLogprob, Watch,
};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use trie_core::{Choice, ChooseOptions, Host, Job, ScoringError, ScoringRequest, TokenId};
use trie_text::Vocab;

/// Decoder for all calls of a model.
#[derive(Debug)]
pub enum ModelDecoder {
    /// A context: calls wait for each other.
    Alone(Box<Context>),
    /// An engine: they run together.
    Shared(Engine),
}

impl ModelDecoder {
    /// Returns a single context for one slot with [`Batching::Free`], else an engine. Meanwhile a thread makes the
    /// tables of the vocabulary that the first rule would have to wait for.
    ///
    /// # Errors
    /// As [`Model::context`] and [`Engine::new`]; [`ContextOptions::device_sampling`] for an engine.
    pub fn new(model: &Model, of_context: ContextOptions, of_engine: EngineOptions) -> Result<Self, RuntimeError> {
        of_engine.check()?;
        let is_alone = of_context.slots == 1 && of_engine.batching == Batching::Free;
        if of_context.device_sampling && !is_alone {
            return Err(RuntimeError::SharedDevice);
        }
        thread::scope(|scope| {
            let prepare = || trie_schema::prepare_vocabulary(model.vocab().spelling().tokens());
            let preparing = thread::Builder::new().name("tokentrie-tables".to_owned()).spawn_scoped(scope, prepare);
            let decoder = if is_alone {
                model.context(of_context).map(|context| Self::Alone(Box::new(context)))
            } else {
                Engine::new(model, of_context, of_engine).map(Self::Shared)
            };
            // Without a thread, and where it panicked, the first rule makes the tables, and a panic is that rule's.
            drop(preparing.map(thread::ScopedJoinHandle::join));
            decoder
        })
    }

    /// Returns the size of a call's context in tokens.
    pub fn n_ctx(&self) -> usize {
        match self {
            Self::Alone(context) => context.n_ctx(),
            Self::Shared(engine) => engine.host().room,
        }
    }

    /// Returns the largest number of threads of a forward pass.
    pub fn most_threads(&self) -> u32 {
        match self {
            Self::Alone(context) => context.most_threads(),
            Self::Shared(engine) => engine.most_threads(),
        }
    }
}

/// Decoder for one call.
#[derive(Debug)]
pub enum Runtime<'r> {
    /// A context that nobody else uses meanwhile.
    Alone(&'r mut Context),
    /// An engine that several calls share, and the source of drafts of this call's generations.
    Shared(&'r Engine, Option<&'r Draft>),
}

impl Runtime<'_> {
    /// Returns the size of the context in tokens.
    pub fn n_ctx(&self) -> usize {
        match self {
            Self::Alone(context) => context.n_ctx(),
            Self::Shared(engine, _) => engine.host().room,
        }
    }

    /// Returns the row of logits after some tokens.
    ///
    /// # Errors
    /// As [`Context::prefill`], and errors of the engine.
    pub fn row(&mut self, tokens: &[TokenId], watch: &mut dyn Watch) -> Result<Vec<f32>, RuntimeError> {
        match self {
            Self::Alone(context) => {
                context.prefill(tokens, &mut || watch.stop())?;
                context.logits().map(<[f32]>::to_vec)
            }
            Self::Shared(engine, _) => engine.row(tokens, watch),
        }
    }

    /// Computes the log-probability of each token of a prompt given the tokens before it, with `top` rivals; the first
    /// token has none.
    ///
    /// # Errors
    /// As [`ReadingTask::new`] and [`Context::run`], and errors of the engine.
    pub fn read(
        &mut self,
        tokens: &[TokenId],
        top: u32,
        watch: &mut dyn Watch,
    ) -> Result<Vec<TokenLogprob>, RuntimeError> {
        match self {
            Self::Alone(context) => {
                let mut task = ReadingTask::new(context.host(), tokens, top, watch)?;
                context.run(&mut task)?;
                Ok(task.finish())
            }
            Self::Shared(engine, _) => engine.read(tokens, top, watch),
        }
    }

    /// Decodes the tokens that the cache does not hold yet, for later calls that begin with them.
    ///
    /// # Errors
    /// As [`Context::prefill`], and errors of the engine.
    pub fn prefill(&mut self, tokens: &[TokenId], watch: &mut dyn Watch) -> Result<(), RuntimeError> {
        match self {
            Self::Alone(context) => context.prefill(tokens, &mut || watch.stop()).map(drop),
            Self::Shared(engine, _) => engine.row(tokens, watch).map(drop),
        }
    }

    /// Writes the KV cache of some tokens to a file, which another process can load: see [`Runtime::load_prefix`].
    ///
    /// # Errors
    /// As [`Context::prefix`] and [`Prefix::write`], and errors of the engine.
    pub fn save_prefix(
        &mut self,
        model: &Model,
        path: &Path,
        tokens: &[TokenId],
        watch: &mut dyn Watch,
    ) -> Result<(), RuntimeError> {
        let prefix = match self {
            Self::Alone(context) => context.prefix(tokens, &mut || watch.stop())?,
            Self::Shared(engine, _) => engine.prefix(tokens, watch)?,
        };
        prefix.write(path, model)
    }

    /// Loads the KV cache of a prefix from a file into unused room of the cache, and returns the tokens of the prefix.
    /// Prompts that begin with them decode only the rest.
    ///
    /// # Errors
    /// As [`Prefix::read`] and [`Context::restore`], and errors of the engine.
    pub fn load_prefix(&mut self, model: &Model, path: &Path) -> Result<Vec<TokenId>, RuntimeError> {
        let prefix = Prefix::read(path, model)?;
        let tokens = prefix.tokens().to_vec();
        match self {
            Self::Alone(context) => context.restore(&prefix)?,
            Self::Shared(engine, _) => engine.restore(prefix)?,
        }
        Ok(tokens)
    }

    /// Clears all of the cache that no running call uses.
    ///
    /// # Errors
    /// Errors of the engine.
    pub fn clear(&mut self) -> Result<(), RuntimeError> {
        match self {
            Self::Alone(context) => {
                context.clear();
                Ok(())
            }
            Self::Shared(engine, _) => engine.clear(),
        }
    }

    /// Runs a generation; see [`Context::generate`].
    ///
    /// # Errors
    /// As [`Context::generate`], and errors of the engine.
    pub fn generate(
        &mut self,
        prompt: &[TokenId],
        inside: &GenerationConstraint,
        options: &GenerateOptions,
        watch: &mut dyn Watch,
    ) -> Result<Generated, RuntimeError> {
        match (self, inside) {
            (Self::Shared(engine, draft), inside) => {
                engine.generate(GenerationStart { prompt, inside, draft: *draft }, options, watch)
            }
            (Self::Alone(context), GenerationConstraint::Nothing) => context.generate(prompt, None, options, watch),
            (Self::Alone(context), GenerationConstraint::Rules(rules)) => {
                context.generate(prompt, Some(rules), options, watch)
            }
            (Self::Alone(context), GenerationConstraint::Form(form)) => context.fill(prompt, form, options, watch),
        }
    }
}

impl Scorer for Runtime<'_> {
    fn vocab(&self) -> &Arc<Vocab> {
        match self {
            Self::Alone(context) => Context::vocab(context),
            Self::Shared(engine, _) => engine.vocab(),
        }
    }

    fn host(&self) -> Host {
        match self {
            Self::Alone(context) => Context::host(context),
            Self::Shared(engine, _) => engine.host(),
        }
    }

    fn complete<J: Job<Error = ScoringError> + Send + 'static>(
        &mut self,
        job: J,
        watch: &mut dyn Watch,
    ) -> Result<CompletedJob<J>, RuntimeError> {
        match self {
            Self::Alone(context) => context.complete(job, watch),
            Self::Shared(engine, _) => engine.complete(job, watch),
        }
    }

    fn is_apart(&self) -> bool {
        match self {
            Self::Alone(context) => context.is_apart(),
            Self::Shared(engine, _) => engine.is_fixed(),
        }
    }

    fn score(
        &mut self,
        asked: &[ScoringRequest<'_>],
        options: &ChooseOptions<'_>,
        watch: &mut dyn Watch,
    ) -> Result<Vec<Choice>, RuntimeError> {
        match self {
            Self::Alone(context) => context.score(asked, options, watch),
            Self::Shared(engine, _) => engine.score(asked, options, watch),
        }
    }

    fn score_apart(
        &mut self,
        asked: &[ScoringRequest<'_>],
        options: &ChooseOptions<'_>,
        watch: &mut dyn Watch,
    ) -> Result<Vec<Choice>, RuntimeError> {
        match self {
            Self::Alone(context) => context.score_apart(asked, options, watch),
            Self::Shared(engine, _) => engine.score(asked, options, watch),
        }
    }
}
