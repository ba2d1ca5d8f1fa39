//! Rows of a context of which the graph gathers what a span allows: the host gets a row as long as the vocabulary, in
//! which all other tokens have the least logit.

use super::attached::{ChainSlot, gathered};
use super::chain::DeviceChain;
use crate::runtime::context::address;
use llama_callbacks::TokenTrieSampler;
use llama_cpp_2::context::LlamaContext;
use llama_cpp_sys_2::llama_context;
use std::ptr::with_exposed_provenance_mut;
use trie_core::{Mode, Span, logits};

/// Logit of the tokens that were not gathered. It is a number, because a row without one stands for a model that fails.
const OTHERS: f32 = f32::MIN;

/// The rows of one sequence of a context. Its owner calls [`GatheredRows::leave`] before the context is dropped.
#[derive(Debug)]
pub(in crate::runtime) struct GatheredRows {
    sequence: i32,
    /// The constraint in the graph, from the first span on, and the address of the context.
    slot: Option<(ChainSlot, usize)>,
    /// The last row that was read, and the tokens that it has.
    row: Vec<f32>,
    ids: Vec<i32>,
    /// True if the last pass should have gathered its row.
    is_last: bool,
}

impl GatheredRows {
    /// Rows of a sequence, as long as this vocabulary.
    pub(in crate::runtime) fn new(sequence: i32, n_vocab: usize) -> Self {
        Self { sequence, slot: None, row: vec![OTHERS; n_vocab], ids: Vec::new(), is_last: false }
    }

    /// Prepares the graph for a pass that wants the row after what this span allows; `None` if the whole row is wanted,
    /// or several.
    pub(in crate::runtime) fn prepare(&mut self, context: &mut LlamaContext<'_>, span: Option<&Span>) {
        let Some(address) = address(context) else { return };
        let n_vocab = self.row.len();
        let slot = match (&mut self.slot, span) {
            (Some((_, of)), _) if *of != address => return,
            (None, None) => return,
            (Some((slot, _)), None) => slot,
            (Some((slot, _)), Some(span)) => {
                slot.chain.handle().set_span(span.clone());
                slot
            }
            (slot, Some(span)) => {
                let sampler = TokenTrieSampler::from_span(span.clone(), Mode::Greedy);
                &mut slot.insert((ChainSlot::new(DeviceChain::new(sampler, [])), address)).0
            }
        };
        let wanted = span.and_then(|_| slot.chain.selection_len(n_vocab));
        // SAFETY: the context is alive and borrowed, and it is the one that the chain was attached to before.
        unsafe { slot.prepare(with_exposed_provenance_mut(address), self.sequence, wanted) };
    }

    /// Takes the sampler out of the graph.
    pub(in crate::runtime) fn leave(&mut self, context: &mut LlamaContext<'_>) {
        self.prepare(context, None);
    }

    /// Returns whether the graph gathers in the next pass, or did so in the last.
    pub(in crate::runtime) fn is_attached(&self) -> bool {
        self.slot.as_ref().is_some_and(|(slot, _)| slot.most.is_some())
    }

    /// Reads the row after the token at this index of the last pass. Returns `false` if the graph did not gather all
    /// allowed tokens, or none of them has a usable logit.
    pub(in crate::runtime) fn read(&mut self, context: &LlamaContext<'_>, index: usize) -> bool {
        self.is_last = true;
        self.ids.drain(..).for_each(|id| self.row[id as usize] = OTHERS);
        let Some((slot, of)) = self.slot.as_ref().filter(|(slot, _)| slot.most.is_some()) else { return false };
        if address(context) != Some(*of) {
            return false;
        }
        let raw: *mut llama_context = with_exposed_provenance_mut(*of);
        let expected = slot.chain.handle().count_allowed(DeviceChain::MOST);
        // SAFETY: the context is alive and borrowed; the slices are read before its next pass.
        let Some((ids, found)) = (unsafe { gathered(raw, index as i32, self.row.len()) }) else { return false };
        for (&id, &logit) in ids.iter().zip(found) {
            // The graph has the ids that it was given, all of the vocabulary.
            if let Some(place) = self.row.get_mut(id as usize) {
                *place = logit;
                self.ids.push(id);
            }
        }
        // A sampler that fails gathers one token, whatever is allowed.
        expected == Some(self.ids.len()) && found.iter().any(|&logit| logits::is_usable(logit))
    }

    /// Returns whether the last pass should have gathered its row.
    pub(in crate::runtime) fn is_last(&self) -> bool {
        self.is_last
    }

    /// Notes that another pass begins.
    pub(in crate::runtime) fn begin_pass(&mut self) {
        self.is_last = false;
    }

    /// Returns the row that was read last.
    pub(in crate::runtime) fn row(&self) -> &[f32] {
        &self.row
    }
}

impl Drop for GatheredRows {
    fn drop(&mut self) {
        // A graph that still has the sampler must find it.
        if self.is_attached() {
            std::mem::forget(self.slot.take());
        }
    }
}
