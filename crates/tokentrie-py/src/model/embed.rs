//! Vectors of texts: `Model.embed`.

use crate::call::{CancelToken, OpenCall, begun};
use crate::convert::gil::{asked_in, locked, turn};
use crate::convert::ids::tokens;
use crate::convert::strings::{column, text};
use crate::errors::{Class, Error, Result};
use crate::exit::items;
use crate::model::loaded::Model;
use crate::model::watch::Watch;
use llama_sampler::{Embedder, RuntimeError};
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use tokentrie::call::{Call, CallOptions};
use trie_core::TokenId;
use trie_text::Vocab;

/// A text that gets a vector.
enum Given {
    Text(String),
    Tokens(Vec<TokenId>),
}

impl Given {
    /// # Errors
    /// `TypeError` for anything that is not a list of texts or ids, `VocabularyError` for an item that is neither
    /// text nor an id.
    fn all(texts: &Bound<'_, PyAny>) -> Result<Vec<Self>> {
        if texts.is_instance_of::<PyString>() {
            return Err(PyTypeError::new_err("texts must be a list of texts, not one str: put it into a list").into());
        }
        let (mut all, texts) = (Vec::new(), column("texts", texts)?);
        for one in items(&texts)? {
            let (number, one) = (all.len(), one?);
            all.push(if one.is_instance_of::<PyString>() {
                Self::Text(text(&one, || format!("texts[{number}]"))?)
            } else {
                Self::Tokens(tokens(&one, &format!("texts[{number}], "))?)
            });
        }
        Ok(all)
    }

    /// Its tokens. What a text says is not a control token, whatever it looks like.
    fn tokens(self, vocab: &Vocab) -> std::result::Result<Vec<TokenId>, RuntimeError> {
        match self {
            Self::Text(text) => Ok(vocab.tokenize(&text, true, false)?),
            Self::Tokens(tokens) => Ok(tokens),
        }
    }
}

/// Vectors one after the other, how many tokens each text has, and how long a vector is.
type Vectors = (Vec<f32>, Vec<usize>, usize);

#[pymethods]
impl Model {
    /// The vectors of texts: what the model makes of their tokens, as one direction each.
    ///
    /// The file says how vectors of tokens become one (`pooling_type`: the mean, the first or the last token); where
    /// it says nothing, it is the mean. Models that were made for embeddings say it; of others, similar texts have
    /// similar vectors, and not more. Texts are tokenised with the special tokens that the model asks for, and names
    /// of control tokens in them are text.
    ///
    /// The first call makes a context of its own for this, with a cache as large as that of one slot; calls take turns
    /// there, beside those that generate. Each text is decoded alone: its vector has the same bits whatever else is in
    /// the list.
    ///
    /// Args:
    ///     texts: a list of str, or another iterable such as a column of pandas or pyarrow. A text may be given as its
    ///         token ids.
    ///     cancel: a CancelToken that ends this call.
    ///     timeout: the seconds that it may take, waiting for its turn included.
    ///
    /// Returns:
    ///     float32 [n, d]: a row of length 1 (Euclidean) for each text, d being the width of the model. The product of
    ///     two is the cosine of their angle, -1 to 1.
    ///
    /// Raises:
    ///     TypeError: `texts` is one str or a whole table, or has something that is not text.
    ///     ContextError: a text does not fit into `n_ctx` tokens; it is named by its number from 0.
    ///     OptionError: a text has no tokens.
    ///     VocabularyError: ids are outside the vocabulary.
    ///     CancelledError: `cancel` or `Model.cancel` ended it; TimedOutError: `timeout` did.
    ///     ModelError: the file is that of a model that only compares two texts, there is too little memory, a forward
    ///         pass fails, or the model is closed.
    ///
    /// Example:
    ///     >>> model = tokentrie.Model()
    ///     >>> vectors = model.embed(["The lamp is on.", "The lamp is off.", "Ann lives in Rome."])
    ///     >>> vectors.shape, vectors.dtype
    ///     ((3, 160), dtype('float32'))
    ///     >>> lamps, rome = vectors[0] @ vectors[1], vectors[0] @ vectors[2]
    ///     >>> bool(lamps > rome)
    ///     True
    #[pyo3(signature = (texts, *, cancel=None, timeout=None))]
    fn embed<'py>(
        &self,
        texts: &Bound<'py, PyAny>,
        cancel: Option<&Bound<'py, CancelToken>>,
        timeout: Option<f64>,
    ) -> Result<Bound<'py, PyArray2<f32>>> {
        let call = begun(cancel, CallOptions { timeout, priority: 0 })?;
        Ok(self.embedded(texts, &call)?.0)
    }

    /// The same, and how many tokens each text has.
    fn _embed<'py>(
        &self,
        texts: &Bound<'py, PyAny>,
        call: &Bound<'py, OpenCall>,
    ) -> Result<(Bound<'py, PyArray2<f32>>, Vec<usize>)> {
        self.embedded(texts, &call.get().0)
    }
}

impl Model {
    fn embedded<'py>(&self, texts: &Bound<'py, PyAny>, call: &Call) -> Result<(Bound<'py, PyArray2<f32>>, Vec<usize>)> {
        let (py, given) = (texts.py(), Given::all(texts)?);
        let busy = || Class::Model.error("the model is embedding: what runs inside must not use it");
        let turn = turn(py, &self.embedding.turns, "embed", call, busy)?;
        // After the wait: it may be closed by now.
        let model = self.loaded(py)?.model;
        let mut embedder = locked(py, &self.embedding.embedder)?;
        let embedder = &mut *embedder;
        let call = call.clone().with(turn.cancel());
        let mut watch = Watch::new(&call);
        let made = asked_in(py, &call, || -> std::result::Result<Vectors, (Option<usize>, RuntimeError)> {
            let embedder = match embedder {
                Some(embedder) => embedder,
                none => none.insert(Embedder::new(&model, self.embedding.options).map_err(|error| (None, error))?),
            };
            let mut texts = Vec::with_capacity(given.len());
            for (number, one) in given.into_iter().enumerate() {
                let tokens = one.tokens(embedder.vocab()).map_err(|error| (Some(number), error))?;
                embedder.check(&tokens).map_err(|error| (Some(number), error))?;
                texts.push(tokens);
            }
            let mut numbers = Vec::with_capacity(texts.len() * embedder.width());
            for (number, tokens) in texts.iter().enumerate() {
                let vector = embedder.embed(tokens, &mut || watch.wants_stop());
                numbers.extend(vector.map_err(|error| (Some(number), error))?);
            }
            let lengths = texts.iter().map(Vec::len).collect();
            Ok((numbers, lengths, embedder.width()))
        })?;
        let made = made.map_err(|(number, error)| {
            let place = number.map_or_else(String::new, |number| format!("texts[{number}]: "));
            match error {
                RuntimeError::EmptyPrompt => Class::Option.error(format!("{place}it has no tokens: leave it out")),
                error => Error::from(error).at(&place),
            }
        });
        let (numbers, lengths, width) = watch.finish(made)?;
        Ok((PyArray1::from_vec(py, numbers).reshape([lengths.len(), width])?, lengths))
    }
}
