//! Drafts from a small model with the same vocabulary.

use super::proposer::{Ahead, Proposer};
use crate::runtime::context::{Context, ContextOptions, Model, ModelOptions};
use crate::runtime::error::RuntimeError;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use trie_core::TokenId;
use trie_text::Vocab;

/// A small model, and its contexts that no generation uses now.
#[derive(Debug)]
pub(super) struct DraftModel {
    model: Model,
    options: ContextOptions,
    /// Size of the vocabulary for which it drafts.
    n_vocab: usize,
    idle: Mutex<Vec<Context>>,
}

impl DraftModel {
    pub(super) fn open(path: &Path, of: &Model, options: ContextOptions) -> Result<Self, RuntimeError> {
        let model = Model::load(path, ModelOptions::default().with_n_gpu_layers(of.n_gpu_layers()))?;
        let refused = |reason: String| RuntimeError::Draft { reason };
        if model.is_recurrent() {
            let reason = "it has a recurrent state, which cannot take tokens back";
            return Err(refused(format!("draft {} is not supported: {reason}", path.display())));
        }
        if let Some(difference) = difference(of.vocab(), model.vocab()) {
            let (path, given) = (path.display(), of.path().display());
            return Err(refused(format!("invalid draft {path}: expected the vocabulary of {given}, got {difference}")));
        }
        let trained = model.n_ctx_train();
        let n_ctx = options.n_ctx.unwrap_or(ContextOptions::N_CTX).min(trained);
        let options = options.with_n_ctx(n_ctx).with_slots(1);
        // The first context is made now, so that too little memory is an error here.
        let idle = Mutex::new(vec![model.context(options)?]);
        Ok(Self { model, options, n_vocab: of.vocab().len(), idle })
    }

    /// Returns the idle context that holds the longest beginning of these tokens, or a new one.
    fn take(&self, tokens: &[TokenId]) -> Result<Context, RuntimeError> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let shared =
            |context: &Context| context.tokens().iter().zip(tokens).take_while(|(one, other)| one == other).count();
        let best = (0..idle.len()).max_by_key(|&number| shared(&idle[number]));
        match best {
            Some(number) => Ok(idle.swap_remove(number)),
            None => self.model.context(self.options),
        }
    }

    fn give_back(&self, context: Context) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(context);
    }
}

/// Returns how a vocabulary differs from another; `None` if each id stands for the same text in both. One may have
/// more ids, which are often padding.
fn difference(of: &Vocab, other: &Vocab) -> Option<String> {
    let both = of.len().min(other.len());
    let differs = |&id: &TokenId| of.piece(id) != other.piece(id);
    let token = TokenId::all(both).find(differs)?;
    let shown = |vocab: &Vocab| String::from_utf8_lossy(vocab.piece(token).unwrap_or_default()).into_owned();
    Some(format!("token {} as {:?} instead of {:?}", token.get(), shown(other), shown(of)))
}

/// One generation that a small model drafts.
pub(super) struct ModelProposer {
    source: Arc<DraftModel>,
    /// Taken with the first guess: a generation may wait for long before.
    context: Option<Context>,
    /// A row of logits that is as long as the other model's.
    row: Vec<f32>,
}

impl ModelProposer {
    pub(super) fn new(source: Arc<DraftModel>) -> Self {
        Self { source, context: None, row: Vec::new() }
    }
}

/// Tokens whose logits are this far below the best are no guesses: some 2 % are right as often.
const NEAR: f32 = 4.0;

impl Proposer for ModelProposer {
    fn guess(
        &mut self,
        tokens: &[TokenId],
        most: usize,
        ahead: &mut dyn Ahead,
        stop: &mut dyn FnMut() -> bool,
    ) -> Result<Vec<TokenId>, RuntimeError> {
        let context = match &mut self.context {
            Some(context) => context,
            empty => empty.insert(self.source.take(tokens)?),
        };
        let unknown = |token: &TokenId| token.index() >= context.vocab().len();
        if tokens.len() > context.n_ctx() || tokens.iter().any(unknown) {
            return Ok(Vec::new());
        }
        match context.prefill(tokens, stop) {
            Err(RuntimeError::Stopped { .. }) => return Ok(Vec::new()),
            done => done?,
        };
        let (row, n_vocab) = (context.logits()?, self.source.n_vocab);
        let best = if let Some(row) = row.get(..n_vocab) {
            ahead.best(row, most)
        } else {
            self.row.clear();
            self.row.extend_from_slice(row);
            self.row.resize(n_vocab, f32::NEG_INFINITY);
            ahead.best(&self.row, most)
        };
        let least = best.first().map_or(0.0, |&(_, logit)| logit - NEAR);
        Ok(best.into_iter().take_while(|&(_, logit)| logit >= least).map(|(token, _)| token).collect())
    }
}

impl Drop for ModelProposer {
    fn drop(&mut self) {
        if let Some(context) = self.context.take() {
            self.source.give_back(context);
        }
    }
}
