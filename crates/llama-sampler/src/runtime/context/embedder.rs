//! Vectors of texts, pooled from the vectors that the model gives for tokens.

use super::{Context, ContextOptions, Gives, Model, PlacedToken, TRUNK, fits, not_empty};
use crate::runtime::error::RuntimeError;
use std::sync::Arc;
use trie_core::TokenId;
use trie_text::Vocab;

/// Pooling of the vectors of tokens into one of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pooling {
    /// Mean of all tokens.
    Mean,
    /// Vector of the first token.
    First,
    /// Vector of the last token.
    Last,
}

impl Pooling {
    /// Returns the pooling that a model's file names (`pooling_type`; `llama_pooling_type` in `llama.h`); the mean if
    /// it names none.
    ///
    /// # Errors
    /// The file names a pooling that gives no vector.
    pub fn from_model(model: &Model) -> Result<Self, RuntimeError> {
        let no = |what: &str| Err(RuntimeError::NoVectors { reason: what.to_owned() });
        match model.pooling {
            None | Some(-1..=1) => Ok(Self::Mean),
            Some(2) => Ok(Self::First),
            Some(3) => Ok(Self::Last),
            Some(4) => no("its pooling_type is 4, rank: it gives a score of two texts, and no vector of one"),
            Some(other) => no(&format!("its pooling_type is {other}, which is not known here")),
        }
    }
}

/// Computes vectors of texts, in a context and a KV cache of its own beside those that give logits.
///
/// A text is decoded alone, so its vector has the same bits whatever was decoded before.
#[derive(Debug)]
pub struct Embedder {
    context: Context,
    pooling: Pooling,
    width: usize,
}

impl Embedder {
    /// The most tokens in one forward pass. llama.cpp also computes and keeps the logits of every token, which nobody
    /// reads. Their memory is proportional to this number times the size of the vocabulary.
    pub const MAX_BATCH: u32 = 128;

    /// Makes an embedder with these options, but without slots, and with at most [`Embedder::MAX_BATCH`] tokens in a
    /// pass.
    ///
    /// # Errors
    /// As [`Model::context`] and [`Pooling::from_model`].
    pub fn new(model: &Model, options: ContextOptions) -> Result<Self, RuntimeError> {
        let pooling = Pooling::from_model(model)?;
        let options = options.with_slots(1).with_n_batch(options.n_batch.min(Self::MAX_BATCH));
        let context = Context::open(model, options, Gives::Vectors)?;
        let width = usize::try_from(model.llama().n_embd_out()).unwrap_or(0);
        Ok(Self { context, pooling, width })
    }

    /// Number of components of a vector.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the pooling of its vectors.
    pub fn pooling(&self) -> Pooling {
        self.pooling
    }

    /// Returns the vocabulary of the model.
    pub fn vocab(&self) -> &Arc<Vocab> {
        self.context.vocab()
    }

    /// Checks the tokens of a text for the errors that [`Embedder::embed`] returns before the first forward pass.
    ///
    /// # Errors
    /// No tokens, more than the context holds, or one outside the vocabulary.
    pub fn check(&self, tokens: &[TokenId]) -> Result<(), RuntimeError> {
        not_empty(tokens)?;
        self.context.vocab.check_tokens(tokens)?;
        fits(0, tokens.len(), self.context.n_ctx)
    }

    /// The vector of a text, scaled to length 1. `stop` is called before each forward pass, and ends the call by
    /// returning `true`.
    ///
    /// # Errors
    /// As [`Embedder::check`]; a failed forward pass, a vector that cannot be scaled to length 1, or a stop by `stop`.
    pub fn embed(&mut self, tokens: &[TokenId], stop: &mut dyn FnMut() -> bool) -> Result<Vec<f32>, RuntimeError> {
        self.check(tokens)?;
        // Whole sequences can always be removed, from recurrent models too.
        self.context.cut_sequence(TRUNK, 0);
        let mut sum = vec![0.0_f64; self.width];
        let mut done = 0;
        for piece in tokens.chunks(self.context.n_batch) {
            if stop() {
                return Err(RuntimeError::Stopped { what: "tokens", done, of: tokens.len() });
            }
            let place = |(index, &token)| PlacedToken {
                token,
                position: done + index,
                sequences: TRUNK..TRUNK + 1,
                // llama.cpp wants it of all where it is asked for vectors.
                wanted: true,
            };
            self.context
                .decode_placed(&piece.iter().enumerate().map(place).collect::<Vec<_>>(), |sequence| sequence)?;
            let counts = match self.pooling {
                Pooling::Mean => 0..piece.len(),
                Pooling::First => 0..usize::from(done == 0),
                Pooling::Last => piece.len() - usize::from(done + piece.len() == tokens.len())..piece.len(),
            };
            for index in counts {
                for (sum, &number) in sum.iter_mut().zip(self.vector(index)?) {
                    *sum += f64::from(number);
                }
            }
            done += piece.len();
        }
        // The length is made 1, so a sum is as good as a mean.
        let length = sum.iter().map(|number| number * number).sum::<f64>().sqrt();
        if !(length > 0.0 && length.is_finite()) {
            return Err(RuntimeError::NoVectors { reason: format!("the vector of a text has the length {length}") });
        }
        Ok(sum.into_iter().map(|number| (number / length) as f32).collect())
    }

    /// The vector of a token of the last pass.
    fn vector(&self, index: usize) -> Result<&[f32], RuntimeError> {
        let vector = self.context.cell.borrow_dependent().embeddings_ith(index as i32);
        vector.map_err(|error| RuntimeError::NoVectors { reason: error.to_string() })
    }
}
