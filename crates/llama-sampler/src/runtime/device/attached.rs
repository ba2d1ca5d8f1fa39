//! Chains that are attached to a context, until they are dropped.

use super::chain::{DeviceChain, Place};
use super::{DeviceError, raw};
use crate::runtime::context::address;
use llama_callbacks::SamplerHandle;
use llama_cpp_2::DecodeError;
use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token::data::LlamaTokenData;
use llama_cpp_2::token::data_array::LlamaTokenDataArray;
use llama_cpp_sys_2::{
    llama_context, llama_get_logits_ith, llama_get_model, llama_get_sampled_candidates_ith,
    llama_get_sampled_logits_count_ith, llama_get_sampled_logits_ith, llama_get_sampled_token_ith,
    llama_model_get_vocab, llama_n_seq_max, llama_set_sampler, llama_vocab_n_tokens,
};
use std::collections::BTreeMap;
use std::ptr::{null_mut, with_exposed_provenance_mut};
use trie_core::{Scratch, TokenId};

/// The token that stands for none (`LLAMA_TOKEN_NULL`).
const NO_TOKEN: i32 = -1;

/// Chains in the compute graph of a context of `llama_cpp_2`, one for each of some sequences. They are detached when
/// this is dropped.
///
/// [`decode`](Self::decode) is the context's own, but before it each chain gets nodes that fit what it allows now.
/// Nodes of another size, or none, make llama.cpp plan its graphs anew, which is why sizes are powers of two and only
/// grow. Where [`DeviceChain::MOST`] tokens are not enough, llama.cpp copies the whole row, and the chain chooses on
/// the host, for longer each time. It does so too where the device lacks an operation.
///
/// An attached sequence may request the logits of one token in a batch; llama.cpp refuses a batch with more.
#[derive(Debug)]
pub struct AttachedChains<'c, 'm> {
    // Nobody outside gets it mutably: who could exchange it for another context could also drop it.
    context: &'c mut LlamaContext<'m>,
    raw: *mut llama_context,
    n_vocab: usize,
    chains: BTreeMap<i32, ChainSlot>,
}

/// A chain that goes into a graph and out of it.
#[derive(Debug)]
pub(super) struct ChainSlot {
    pub(super) chain: DeviceChain,
    /// Number of tokens that the nodes gather, while the chain is in the graph.
    pub(super) most: Option<usize>,
    /// The sampler that is in the graph in place of a chain that chooses on the host.
    sampler: Option<LlamaSampler>,
    /// Number of passes that must fit in a row before the chain goes into the graph again; doubled each time that it
    /// leaves before it has been there for as long as that.
    wait: u32,
    /// Number of passes in a row that fitted, in the graph or outside.
    fitting: u32,
}

impl<'c, 'm> AttachedChains<'c, 'm> {
    /// Attaches chains to sequences of a context.
    ///
    /// # Errors
    /// A sequence that the context does not have or that comes twice, or rules for a larger vocabulary.
    pub fn attach(
        context: &'c mut LlamaContext<'m>,
        chains: impl IntoIterator<Item = (i32, DeviceChain)>,
    ) -> Result<Self, DeviceError> {
        let raw: *mut llama_context = with_exposed_provenance_mut(address(context).ok_or(DeviceError::Address)?);
        // SAFETY: the address of a live context, which is borrowed here.
        let sequences = i64::from(unsafe { llama_n_seq_max(raw) });
        // SAFETY: the same.
        let model = unsafe { llama_get_model(raw) };
        // SAFETY: the model of a living context.
        let vocab = unsafe { llama_model_get_vocab(model) };
        // SAFETY: the vocabulary of a living model.
        let n_vocab = unsafe { llama_vocab_n_tokens(vocab) } as usize;
        let mut attached = BTreeMap::new();
        for (sequence, chain) in chains {
            if !(0..sequences).contains(&i64::from(sequence)) {
                return Err(DeviceError::Sequence { sequence, most: sequences - 1 });
            }
            let rules = chain.handle.span().rules().n_vocab();
            if rules > n_vocab {
                return Err(DeviceError::Vocabulary { rules, n_vocab });
            }
            if attached.insert(sequence, ChainSlot::new(chain)).is_some() {
                return Err(DeviceError::RepeatedSequence { sequence });
            }
        }
        Ok(Self { context, raw, n_vocab, chains: attached })
    }

    /// Returns the context, to read.
    pub fn context(&self) -> &LlamaContext<'m> {
        self.context
    }

    /// Returns the handle of the constraint of a sequence.
    ///
    /// # Errors
    /// No chain is attached to that sequence.
    pub fn handle(&self, sequence: i32) -> Result<&SamplerHandle, DeviceError> {
        Ok(self.chains.get(&sequence).ok_or(DeviceError::UnknownSequence { sequence })?.chain.handle())
    }

    /// Returns the number of logits that the graph gathers for a sequence, as of the last batch; `None` if it copies
    /// the whole row.
    ///
    /// # Errors
    /// No chain is attached to that sequence.
    pub fn selection_len(&self, sequence: i32) -> Result<Option<usize>, DeviceError> {
        Ok(self.chains.get(&sequence).ok_or(DeviceError::UnknownSequence { sequence })?.most)
    }

    /// Runs a forward pass, in which each chain knows the tokens that it has accepted so far.
    ///
    /// # Errors
    /// As the context's own.
    pub fn decode(&mut self, batch: &mut LlamaBatch<'_>) -> Result<(), DecodeError> {
        for (&sequence, attached) in &mut self.chains {
            let wanted = attached.chain.selection_len(self.n_vocab);
            // SAFETY: the context is alive and borrowed.
            unsafe { attached.prepare(self.raw, sequence, wanted) };
        }
        self.context.decode(batch)
    }

    /// Returns the candidates of a row of the last batch as they left the device: the legal logits, or all.
    ///
    /// # Errors
    /// No logits were requested there, or the token alone has left the device.
    pub fn candidates(&self, row: i32) -> Result<LlamaTokenDataArray, DeviceError> {
        // SAFETY: the context is alive, and what it keeps for a row changes with the next batch only.
        match unsafe { llama_get_sampled_token_ith(self.raw, row) } {
            // SAFETY: as before.
            NO_TOKEN => unsafe { candidates(self.raw, row, self.n_vocab) },
            _ => Err(DeviceError::Row { row }),
        }
    }

    /// Removes all tokens of all sequences.
    pub fn clear_kv_cache(&mut self) {
        self.context.clear_kv_cache();
    }

    /// Chooses the token after the token at this index of the last batch, which is one of this sequence. The chain
    /// accepts it: do not accept it again.
    ///
    /// # Errors
    /// No chain is attached to the sequence, no logits were requested there, or no allowed token was selected: then
    /// nothing is accepted.
    pub fn sample(&mut self, sequence: i32, row: i32) -> Result<LlamaToken, DeviceError> {
        let attached = self.chains.get_mut(&sequence).ok_or(DeviceError::UnknownSequence { sequence })?;
        // SAFETY: the context is alive and borrowed; it reports rows that it does not have.
        let sampled = unsafe { llama_get_sampled_token_ith(self.raw, row) };
        let chain = match &mut attached.chain.place {
            Place::Host(chain) | Place::Graph(chain) => chain,
        };
        let token = if sampled == NO_TOKEN {
            // SAFETY: as before.
            let mut candidates = unsafe { candidates(self.raw, row, self.n_vocab) }?;
            chain.apply(&mut candidates);
            candidates.selected_token().ok_or(DeviceError::NothingSelected)?.0
        } else {
            sampled
        };
        let (span, mut scratch) = (attached.chain.handle.span(), Scratch::default());
        if !TokenId::try_from(token).is_ok_and(|token| span.allowed(&mut scratch).contains(token)) {
            return Err(DeviceError::Illegal { token });
        }
        chain.accept(LlamaToken(token));
        Ok(LlamaToken(token))
    }
}

impl ChainSlot {
    /// Least number of passes outside the graph.
    const LEAST_WAIT: u32 = 8;

    pub(super) fn new(chain: DeviceChain) -> Self {
        Self { chain, most: None, sampler: None, wait: 0, fitting: 0 }
    }

    /// Puts the chain into the graph of the next pass or takes it out: `wanted` tokens should be gathered then, or the
    /// whole row is needed.
    ///
    /// # Safety
    /// `context` is alive, and nothing else uses it.
    pub(super) unsafe fn prepare(&mut self, context: *mut llama_context, sequence: i32, wanted: Option<usize>) {
        let most = self.next_most(wanted);
        if most != self.most {
            // SAFETY: the caller's promise.
            unsafe { self.replace(context, sequence, most) };
        }
    }

    /// Returns the number of tokens that nodes must gather in the next pass; `None` outside the graph.
    fn next_most(&mut self, wanted: Option<usize>) -> Option<usize> {
        match (self.most, wanted) {
            (Some(most), Some(wanted)) => {
                self.fitting = self.fitting.saturating_add(1);
                Some(most.max(wanted))
            }
            (Some(_), None) => {
                let has_paid = self.fitting > Self::LEAST_WAIT.max(self.wait.saturating_mul(2));
                self.wait = if has_paid { Self::LEAST_WAIT } else { Self::LEAST_WAIT.max(self.wait.saturating_mul(2)) };
                self.fitting = 0;
                None
            }
            (None, None) => {
                self.fitting = 0;
                None
            }
            (None, wanted) => {
                self.fitting = self.fitting.saturating_add(1);
                let goes_in = wanted.filter(|_| self.fitting > self.wait);
                if goes_in.is_some() {
                    self.fitting = 0;
                }
                goes_in
            }
        }
    }

    /// Puts the chain into the graph with nodes that gather this many, or takes it out.
    ///
    /// # Safety
    /// `context` is alive, and nothing else uses it.
    unsafe fn replace(&mut self, context: *mut llama_context, sequence: i32, most: Option<usize>) {
        // Nothing may be attached when a sampler is freed, and a chain may be attached only once.
        // SAFETY: the caller's promise; null detaches.
        unsafe { llama_set_sampler(context, sequence, null_mut()) };
        self.sampler = self.chain.renew(most.unwrap_or(DeviceChain::LEAST)).filter(|_| most.is_some());
        self.most = most.filter(|_| {
            let chain = match (&self.sampler, &self.chain.place) {
                (Some(chain), _) | (None, Place::Graph(chain) | Place::Host(chain)) => raw(chain),
            };
            // SAFETY: the caller's promise; the chain was never attached, and it lives until it is detached again.
            unsafe { llama_set_sampler(context, sequence, chain) }
        });
    }
}

/// Returns the candidates of a row: those that the graph gathered, or all.
///
/// # Safety
/// `context` is alive, nothing else uses it, and `n_vocab` is the vocabulary of its model.
unsafe fn candidates(
    context: *mut llama_context,
    row: i32,
    n_vocab: usize,
) -> Result<LlamaTokenDataArray, DeviceError> {
    // SAFETY: the caller's promise.
    if let Some((ids, logits)) = unsafe { gathered(context, row, n_vocab) } {
        return Ok(array(logits, ids.iter().copied()));
    }
    // SAFETY: as before; null for a row without logits.
    let logits = unsafe { llama_get_logits_ith(context, row) };
    // SAFETY: as before; a row has a logit for each token of the vocabulary.
    let logits = unsafe { numbers(logits, n_vocab) }.ok_or(DeviceError::Row { row })?;
    Ok(array(logits, 0..))
}

/// Returns the ids and the logits that the graph gathered for a row; `None` for one that it did not sample.
///
/// # Safety
/// As for [`candidates`], until the next batch.
pub(super) unsafe fn gathered<'a>(
    context: *mut llama_context,
    row: i32,
    n_vocab: usize,
) -> Option<(&'a [i32], &'a [f32])> {
    // SAFETY: the caller's promise; it returns null for a row that the graph did not sample.
    let gathered = unsafe { llama_get_sampled_logits_ith(context, row) };
    // SAFETY: as before.
    let count = unsafe { llama_get_sampled_logits_count_ith(context, row) } as usize;
    // SAFETY: as before; the ids of these logits, or those of the whole vocabulary.
    let ids = unsafe { llama_get_sampled_candidates_ith(context, row) };
    // SAFETY: llama.cpp keeps so many logits there until the next batch, and as many ids.
    let (logits, ids) = (unsafe { numbers(gathered, count) }, unsafe { numbers(ids, count.min(n_vocab)) });
    let (logits, ids) = (logits?, ids?);
    // Ids ascend where the graph has only gathered; places that were left over repeat the first.
    let gathered = 1 + ids.windows(2).take_while(|pair| pair[0] < pair[1]).count();
    let is_rest_repeated = ids.iter().skip(gathered).all(|id| Some(id) == ids.first());
    let ids = if is_rest_repeated { &ids[..gathered.min(ids.len())] } else { ids };
    Some((ids, logits))
}

fn array(logits: &[f32], ids: impl Iterator<Item = i32>) -> LlamaTokenDataArray {
    let data = logits.iter().zip(ids).map(|(&logit, id)| LlamaTokenData::new(LlamaToken(id), logit, 0.0));
    LlamaTokenDataArray::from_iter(data, false)
}

/// Numbers of llama.cpp's; `None` for null.
///
/// # Safety
/// `first` is null or points to this many initialised numbers, which nothing changes during `'a`.
unsafe fn numbers<'a, T>(first: *const T, count: usize) -> Option<&'a [T]> {
    // SAFETY: the caller's promise.
    (!first.is_null()).then(|| unsafe { std::slice::from_raw_parts(first, count) })
}

impl Drop for AttachedChains<'_, '_> {
    fn drop(&mut self) {
        for &sequence in self.chains.keys() {
            // SAFETY: the context is alive and borrowed; null detaches what is attached, before it is freed.
            unsafe { llama_set_sampler(self.raw, sequence, null_mut()) };
        }
    }
}
