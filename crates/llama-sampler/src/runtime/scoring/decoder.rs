//! A context of llama.cpp as the host of exact scoring.

use crate::runtime::context::Context;
use crate::runtime::error::RuntimeError;
use crate::runtime::watch::Watch;
use trie_core::{Decoded, TokenId, TokenTree, TreeDecoder};

/// Decodes trees after what a context holds, and asks before every forward pass whether to stop.
pub(super) struct ContextDecoder<'c> {
    context: &'c mut Context,
    watch: &'c mut dyn Watch,
}

impl<'c> ContextDecoder<'c> {
    pub(super) fn new(context: &'c mut Context, watch: &'c mut dyn Watch) -> Self {
        Self { context, watch }
    }
}

impl TreeDecoder for ContextDecoder<'_> {
    type Error = RuntimeError;

    fn n_vocab(&self) -> usize {
        self.context.vocab().len()
    }

    fn room(&self) -> usize {
        self.context.n_ctx()
    }

    fn rows_at_once(&self) -> usize {
        self.context.branches()
    }

    fn n_threads(&self) -> u32 {
        self.context.n_threads()
    }

    fn decode(
        &mut self,
        prompt: &[TokenId],
        tree: &TokenTree,
        each: &mut dyn FnMut(Option<usize>, &[f32]),
    ) -> Result<Decoded, RuntimeError> {
        let Self { context, watch } = self;
        let before = context.forward_passes();
        let mut stop = || watch.stop();
        let mut tokens = if tree.wants_root() {
            let fed = context.prefill(prompt, &mut stop)?;
            each(None, context.logits()?);
            fed
        } else {
            context.hold(prompt, &mut stop)?
        };
        tokens += context.decode_tree(tree, &mut stop, &mut |node, row| each(Some(node), row))?;
        Ok(Decoded { forward_passes: context.forward_passes() - before, tokens })
    }
}
