//! A model from a GGUF file, checked before llama.cpp sees it.

use super::backend::load;
use super::gguf::Header;
use super::tokenizer::vocab_of;
use crate::runtime::error::RuntimeError;
use chat_template::ChatTemplate;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use trie_text::Vocab;

/// Values of any types, one of each.
type KeptValues = HashMap<TypeId, Arc<dyn Any + Send + Sync>>;

/// Callback that receives the loaded share of a model, 0 … 1, and stops the loading by returning `false`.
pub type Progress = Box<dyn FnMut(f32) -> bool + Send>;

/// Options for loading a model.
#[derive(Default)]
#[non_exhaustive]
pub struct ModelOptions {
    /// Layers to put on a graphics card, if this build has one.
    pub n_gpu_layers: u32,
    /// Called from time to time while loading.
    pub progress: Option<Progress>,
}

impl ModelOptions {
    /// Sets [`ModelOptions::n_gpu_layers`] to this.
    #[must_use]
    pub fn with_n_gpu_layers(self, n_gpu_layers: u32) -> Self {
        Self { n_gpu_layers, ..self }
    }

    /// Sets [`ModelOptions::progress`] to this.
    #[must_use]
    pub fn with_progress(self, progress: impl FnMut(f32) -> bool + Send + 'static) -> Self {
        Self { progress: Some(Box::new(progress)), ..self }
    }
}

impl std::fmt::Debug for ModelOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ModelOptions").field("n_gpu_layers", &self.n_gpu_layers).finish_non_exhaustive()
    }
}

/// Weights and vocabulary, immutable and shared; contexts hold them alive.
#[derive(Debug, Clone)]
pub struct Model {
    llama: Arc<LlamaModel>,
    vocab: Arc<Vocab>,
    path: Arc<PathBuf>,
    n_gpu_layers: u32,
    /// Number of the pooling that the model's file names.
    pub(super) pooling: Option<i128>,
    /// The chat template, once it was read.
    pub(super) template: Arc<OnceLock<ChatTemplate>>,
    /// Values that callers keep with it.
    kept: Arc<Mutex<KeptValues>>,
}

impl Model {
    /// Loads a model.
    ///
    /// # Errors
    /// The file is missing, unreadable, truncated, no GGUF, a vocabulary only, of a kind that cannot generate, or
    /// too large for the memory; or the progress callback stopped the loading.
    pub fn load(path: impl AsRef<Path>, options: ModelOptions) -> Result<Self, RuntimeError> {
        let path = path.as_ref();
        let header = Header::read(path)?;
        header.check_model()?;
        let stopped = Arc::new(AtomicBool::new(false));
        let mut params = LlamaModelParams::default().with_n_gpu_layers(options.n_gpu_layers);
        if let Some(mut progress) = options.progress {
            let stopped = Arc::clone(&stopped);
            params = params.with_progress_callback(move |share| {
                // No panic may cross the C boundary: it stops the loading instead.
                let go_on = catch_unwind(AssertUnwindSafe(|| progress(share))).unwrap_or(false);
                stopped.fetch_or(!go_on, Ordering::Relaxed);
                go_on
            });
        }
        let llama = load(path, &params).map_err(|error| {
            if stopped.load(Ordering::Relaxed) {
                RuntimeError::Stopped { what: "models", done: 0, of: 1 }
            } else {
                error
            }
        })?;
        let vocab = Arc::new(vocab_of(&llama, path)?);
        let pooling = header.pooling();
        Ok(Self {
            llama,
            vocab,
            path: Arc::new(path.to_owned()),
            n_gpu_layers: options.n_gpu_layers,
            pooling,
            template: Arc::default(),
            kept: Arc::default(),
        })
    }

    /// Returns the number of layers that were to be put on graphics cards.
    pub fn n_gpu_layers(&self) -> u32 {
        self.n_gpu_layers
    }

    /// Returns the vocabulary of the model.
    pub fn vocab(&self) -> &Arc<Vocab> {
        &self.vocab
    }

    /// The file it came from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The context length in tokens that it was trained on, which is the most that a context may have.
    pub fn n_ctx_train(&self) -> u32 {
        self.llama.n_ctx_train()
    }

    /// Returns whether it has a recurrent state, which cannot be cut like a KV cache.
    pub fn is_recurrent(&self) -> bool {
        self.llama.is_recurrent() || self.llama.is_hybrid()
    }

    /// Returns whether its attention has a window: what it no longer sees may be gone from a KV cache.
    pub(in crate::runtime) fn has_window(&self) -> bool {
        let architecture = self.metadata("general.architecture").unwrap_or_default();
        let window = self.metadata(&format!("{architecture}.attention.sliding_window"));
        window.and_then(|text| text.parse().ok()).is_some_and(|number: f64| number > 0.0)
            || ["gemma2", "llama4"].contains(&&architecture[..])
    }

    /// Returns why prompts cannot have branches that do not see each other; `None` where they can. Tokens of several
    /// branches must be able to have the same positions in the KV cache, for all later tokens to see.
    pub fn no_branches(&self) -> Option<&'static str> {
        let architecture = self.metadata("general.architecture").unwrap_or_default();
        let number = |key: &str| self.metadata(&format!("{architecture}.{key}")).and_then(|text| text.parse().ok());
        let has = |key: &str| number(key).is_some_and(|number: f64| number > 0.0);
        let names = |key: &str| self.metadata(&format!("{architecture}.{key}")).is_some();
        if self.is_recurrent() {
            Some("it has a recurrent state, which sees one token after the other")
        } else if self.has_window() {
            Some("its attention has a window")
        } else if has("attention.max_alibi_bias") {
            Some("its attention depends on distances (ALiBi)")
        } else if names("rope.dimension_sections") {
            Some("its positions have several dimensions (M-RoPE)")
        } else if has("attention.indexer.top_k") {
            Some("its attention picks some of the tokens")
        } else {
            None
        }
    }

    /// Returns the value of this type that is kept with the model, which `make` makes at the first call. It is for what
    /// depends on the model alone and takes long to find, such as files beside it.
    pub fn keep<T: Any + Send + Sync>(&self, make: impl FnOnce(&Self) -> T) -> Arc<T> {
        let of_type = || {
            let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.get(&TypeId::of::<T>()).and_then(|value| Arc::clone(value).downcast().ok())
        };
        if let Some(value) = of_type() {
            return value;
        }
        // It may keep other values itself, so the lock is free meanwhile. Of two that are made at once the first stays.
        let fresh = Arc::new(make(self));
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let value = kept.entry(TypeId::of::<T>()).or_insert_with(|| Arc::clone(&fresh) as Arc<dyn Any + Send + Sync>);
        Arc::clone(value).downcast().unwrap_or(fresh)
    }

    /// The model as the type of `llama_cpp_2`, from which other samplers of llama.cpp are made, for
    /// [`Context::generate_with_chain`](crate::Context::generate_with_chain).
    pub fn llama(&self) -> &Arc<LlamaModel> {
        &self.llama
    }
}
