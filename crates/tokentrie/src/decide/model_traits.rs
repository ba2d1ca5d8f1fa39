//! Traits of a model that say how it is asked, read from its file once.

use super::checkpoint::Checkpoint;
use super::options::Decide;
use llama_sampler::Model;
use std::sync::Arc;

/// Traits of a model that decisions depend on.
#[derive(Debug)]
pub(super) struct ModelTraits {
    /// The checkpoint that it is, or the reason why that one cannot be asked.
    pub(super) checkpoint: Result<Option<Checkpoint>, String>,
    /// The layout that it was trained on: [`Decide::LAYOUT_KEY`].
    pub(super) layout: Option<String>,
    no_branches: Option<&'static str>,
}

impl ModelTraits {
    /// Returns the traits of a model. Its file and those beside it are read at the first call.
    pub(super) fn of(model: &Model) -> Arc<Self> {
        model.keep(|model| Self {
            checkpoint: Checkpoint::of_model(model),
            layout: model.metadata(Decide::LAYOUT_KEY),
            no_branches: model.no_branches(),
        })
    }

    /// Returns why the options of this model's prompts cannot be independent.
    pub(super) fn why_not_independent(&self) -> Option<String> {
        let of_file = self.no_branches.map(|reason| format!("the model cannot, because {reason}"));
        let trained = "the model was trained to decide on lists in which options see each other";
        of_file.or_else(|| self.layout.as_ref().map(|_| trained.to_owned()))
    }
}
