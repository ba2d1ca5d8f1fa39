//! Drafts: tokens that are guessed ahead, so that one forward pass verifies several.
//!
//! A draft never changes what is written. At each position the sampler of the call draws from the row of the model, as
//! without drafts, and a drafted token counts only if it is the one that was drawn. So a source may guess as it likes:
//! a wrong guess costs its place in a pass, and nothing else.

mod length;
mod lookup;
mod proposer;
mod small;
mod table;

pub(super) use length::{Length, TokenCost};
pub(super) use proposer::{Ahead, Proposer};

use super::context::{ContextOptions, Model};
use super::error::RuntimeError;
use lookup::Lookup;
use small::{DraftModel, ModelProposer};
use std::path::Path;
use std::sync::Arc;
use table::{NgramTable, TableProposer};

/// Source of drafts for the calls of one model.
#[derive(Debug, Clone)]
pub struct Draft {
    source: Source,
    cost: TokenCost,
}

#[derive(Debug, Clone)]
enum Source {
    Prompt,
    Ngram(Arc<NgramTable>),
    Model(Arc<DraftModel>),
}

impl Draft {
    /// Names of the sources that need no file.
    pub const NAMES: [&str; 2] = ["ngram", "prompt"];

    /// Opens a source for a model.
    ///
    /// | source | drafts |
    /// | --- | --- |
    /// | `"prompt"` | what followed the last tokens earlier in the same prompt and output |
    /// | `"ngram"` | what followed them in any text of this model, by a table of fixed size |
    /// | path of a GGUF file | the most probable tokens of a small model with the same vocabulary |
    ///
    /// `options` are those of the model's context; a small model gets as many tokens of context, if it was trained on
    /// so many.
    ///
    /// # Errors
    /// An unknown name; as [`Model::load`]; a small model with another vocabulary; a model whose cache cannot be cut.
    pub fn open(source: &Path, model: &Model, options: ContextOptions) -> Result<Self, RuntimeError> {
        if model.is_recurrent() {
            let reason = "draft is not supported: the model has a recurrent state, which cannot take tokens back";
            return Err(RuntimeError::Draft { reason: reason.to_owned() });
        }
        let cost = TokenCost::of(model);
        let source = match source.to_str() {
            Some("prompt") => Source::Prompt,
            Some("ngram") => Source::Ngram(Arc::default()),
            Some(name) if is_name(name) => {
                let names = Self::NAMES.map(|name| format!("{name:?}")).join(", ");
                let reason = format!("unknown draft {name:?}: it must be {names} or the path of a GGUF file");
                return Err(RuntimeError::Draft { reason });
            }
            _ => Source::Model(Arc::new(DraftModel::open(source, model, options)?)),
        };
        Ok(Self { source, cost })
    }

    /// The text of each call itself.
    #[must_use]
    pub fn prompt() -> Self {
        Self { source: Source::Prompt, cost: TokenCost::PROCESSOR }
    }

    /// A table that all calls with this draft share, empty at first.
    #[must_use]
    pub fn ngram() -> Self {
        Self { source: Source::Ngram(Arc::default()), cost: TokenCost::PROCESSOR }
    }

    /// Sets the cost of one more token in a forward pass, as a share of a pass over one token, from 0.01 to 1: the
    /// cheaper a token is, the longer drafts are and the more branches they have. It is 0.7 on a processor and 0.1 on a
    /// graphics card unless it is set.
    #[must_use]
    pub fn with_token_cost(self, share: f32) -> Self {
        Self { cost: TokenCost::new(share), ..self }
    }

    /// Returns why calls with this source are not the same, bit for bit, whatever ran before them; `None` if they are.
    /// The tokens of a pass depend on the draft, and the last bits of logits depend on the tokens of a pass.
    pub fn is_unfixed(&self) -> Option<&'static str> {
        match &self.source {
            Source::Prompt => None,
            Source::Ngram(_) => Some("its drafts depend on earlier calls"),
            Source::Model(_) => Some("the cache of the small model depends on earlier calls"),
        }
    }

    /// Returns the length of the first draft of a generation.
    pub(super) fn length(&self) -> Length {
        Length::new(self.cost)
    }

    pub(super) fn proposer(&self) -> Box<dyn Proposer> {
        match &self.source {
            Source::Prompt => Box::new(Lookup::new(self.cost.least_match())),
            Source::Ngram(table) => Box::new(TableProposer::new(Arc::clone(table), self.cost.least_match())),
            Source::Model(model) => Box::new(ModelProposer::new(Arc::clone(model))),
        }
    }
}

/// Returns whether a text looks like a name and not like a path, and there is no such file.
fn is_name(text: &str) -> bool {
    let is_word = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    is_word && !Path::new(text).exists()
}
