//! A sampler in the compute graph: the legal logits are gathered on the device, and nothing else leaves it.
//!
//! The nodes take two inputs of a fixed length: the ids of the legal tokens, and what is added to their logits.
//! llama.cpp keeps a graph as long as it can, so the length never changes while a sampler is attached. Places that are
//! left over repeat a legal id, with −inf added. So no index of a graph names a token that is not allowed, whatever the
//! device makes of ties, of NaN or of rounding.

use super::abi::{BufferType, Graph, GraphCallbacks, GraphContext, RawSampler, SamplerData, Tensor};
use super::status::{Inner, SharedState};
use super::table::{Context, SamplerInit, context, run_guarded};
use std::cell::Cell;
use trie_core::Allowed;

/// Functions of one llama.cpp that make samplers, build their nodes and fill them.
#[derive(Debug, Clone, Copy)]
pub struct GraphFunctions {
    init: SamplerInit,
    supports: unsafe fn(*mut BufferType) -> bool,
    gather: unsafe fn(*mut GraphContext, &mut SamplerData, usize) -> GraphInputs,
    fill: unsafe fn(GraphInputs, &[i32], &[f32]),
}

impl GraphFunctions {
    /// Wraps the functions of one llama.cpp.
    ///
    /// # Safety
    /// All belong to the llama.cpp of `init`, which has the table of 12 fields. None unwinds.
    /// - `supports` returns whether the device of a buffer type computes the nodes of `gather`.
    /// - `gather` replaces the logits and the candidates of a row by this many, or all if it has fewer, which two new
    ///   inputs select. If candidates are set already, the inputs themselves replace both, and the width is 0.
    /// - `fill` writes both inputs, whose lengths are those of the slices, before the graph runs.
    pub const unsafe fn new(
        init: SamplerInit,
        supports: unsafe fn(*mut BufferType) -> bool,
        gather: unsafe fn(*mut GraphContext, &mut SamplerData, usize) -> GraphInputs,
        fill: unsafe fn(GraphInputs, &[i32], &[f32]),
    ) -> Self {
        Self { init, supports, gather, fill }
    }

    pub(super) fn init(&self) -> SamplerInit {
        self.init
    }
}

/// Inputs of the nodes in the graph that was built last.
#[derive(Debug, Clone, Copy)]
pub struct GraphInputs {
    /// Ids of the tokens.
    pub ids: *mut Tensor,
    /// Numbers that are added to their logits.
    pub bias: *mut Tensor,
    /// Length of both inputs.
    pub length: usize,
    /// Length of the row of logits.
    pub width: usize,
}

/// Size and purpose of the nodes of a sampler.
#[derive(Debug, Clone, Copy)]
pub struct GraphOptions {
    /// Functions of the llama.cpp that makes the sampler.
    pub functions: GraphFunctions,
    /// Number of tokens that the nodes gather: the most that may be allowed. Where more are, or all, the sampler
    /// closes: it allows one end of generation.
    pub most: usize,
    /// True if the weights of a set are added in the graph, for samplers that draw there.
    pub weighed: bool,
}

/// The part of a sampler that belongs to the graph that was built last. Only the thread that decodes uses it.
pub(super) struct GraphSide {
    options: GraphOptions,
    inputs: Cell<Option<GraphInputs>>,
    buffers: Cell<(Vec<i32>, Vec<f32>)>,
}

impl GraphSide {
    pub(super) fn new(options: GraphOptions) -> Self {
        Self { options, inputs: Cell::default(), buffers: Cell::default() }
    }

    /// The same for a copy of the sampler, which is in no graph.
    pub(super) fn without_nodes(&self) -> Self {
        Self::new(self.options)
    }
}

pub(super) const CALLBACKS: GraphCallbacks = GraphCallbacks {
    backend_init: Some(init),
    backend_accept: None,
    backend_apply: Some(apply),
    backend_set_input: Some(set_input),
    backend_reset: Some(reset),
    copy_state: Some(copy_state),
};

/// Returns the context of a sampler and its graph side.
///
/// # Safety
/// As for [`context`].
unsafe fn sides<'a>(sampler: *const RawSampler) -> Option<(&'a Context, &'a GraphSide)> {
    // SAFETY: the caller's promise.
    let context = unsafe { context(sampler) }?;
    Some((context, context.graph.as_ref()?))
}

unsafe extern "C" fn init(sampler: *mut RawSampler, buffers: *mut BufferType, rows: u32) -> bool {
    // SAFETY: Shell.
    let Some((_, side)) = (unsafe { sides(sampler) }) else { return false };
    // The inputs hold one state. What would be allowed after the first of several rows is not known yet.
    // SAFETY: llama.cpp hands over a buffer type of its own; whoever made the functions promised the rest.
    rows <= 1 && side.options.most > 0 && unsafe { (side.options.functions.supports)(buffers) }
}

unsafe extern "C" fn apply(sampler: *mut RawSampler, nodes: *mut GraphContext, _: *mut Graph, data: *mut SamplerData) {
    // SAFETY: Shell.
    let sides = unsafe { sides(sampler) };
    // SAFETY: llama.cpp lends the tensors of one row for the call.
    let data = unsafe { data.as_mut() };
    let (Some((_, side)), Some(data)) = (sides, data) else { return };
    // SAFETY: `nodes` is the graph that llama.cpp builds, `data` a row in it; whoever made the functions promised the
    // rest.
    let inputs = unsafe { (side.options.functions.gather)(nodes, data, side.options.most) };
    side.inputs.set(Some(inputs));
}

unsafe extern "C" fn reset(sampler: *mut RawSampler) {
    // SAFETY: Shell.
    if let Some((_, side)) = unsafe { sides(sampler) } {
        side.inputs.set(None);
    }
}

unsafe extern "C" fn set_input(sampler: *mut RawSampler) {
    // SAFETY: Shell.
    let Some((context, side)) = (unsafe { sides(sampler) }) else { return };
    let Some(inputs) = side.inputs.get() else { return };
    let (mut ids, mut bias) = side.buffers.take();
    select_or_close(&context.shared, side.options.weighed, inputs, (&mut ids, &mut bias));
    // SAFETY: `gather` made these inputs for the graph that is about to run, and both buffers have its length.
    unsafe { (side.options.functions.fill)(inputs, &ids, &bias) };
    side.buffers.set((ids, bias));
}

unsafe extern "C" fn copy_state(from: *const RawSampler, to: *mut RawSampler) {
    // SAFETY: Shell.
    let Some((from, _)) = (unsafe { sides(from) }) else { return };
    // SAFETY: Shell; it is alive during the call, too.
    let Some((to, _)) = (unsafe { sides(to) }) else { return };
    let copied = run_guarded(&from.shared, |shared| (shared.lock().clone(), shared.is_poisoned()));
    match copied {
        Some((inner, false)) => *to.shared.lock() = inner,
        _ => to.shared.poison(),
    }
}

/// Writes what the graph reads: the legal tokens, or where that fails the one token of a closed sampler.
fn select_or_close(
    shared: &SharedState,
    weighed: bool,
    GraphInputs { length, width, .. }: GraphInputs,
    (ids, bias): (&mut Vec<i32>, &mut Vec<f32>),
) {
    let selected = !shared.is_poisoned()
        && run_guarded(shared, |shared| {
            let mut inner = shared.lock();
            let Inner { span, scratch, .. } = &mut *inner;
            select(&span.allowed(scratch), weighed, (length, width), (ids, bias))
        })
        .unwrap_or(false);
    if !selected {
        let stop = run_guarded(shared, |shared| {
            shared.lock().span.rules().stop_tokens().first().map_or(0, |token| token.as_i32())
        });
        let stop = stop.unwrap_or(0);
        // Without nodes of the row any id is in range; in a row that has no such token, its first is let through.
        let in_row = width == 0 || usize::try_from(stop).is_ok_and(|stop| stop < width);
        *ids = vec![if in_row { stop } else { 0 }];
        *bias = vec![KEPT];
    }
    let padding = ids.first().copied().unwrap_or(0);
    ids.resize(length, padding);
    bias.resize(length, f32::NEG_INFINITY);
}

/// Added to a logit it keeps every bit: 0.0 would turn −0.0 into 0.0.
const KEPT: f32 = -0.0;

/// Writes the legal tokens; `false` if the nodes cannot gather them.
fn select(
    allowed: &Allowed<'_>,
    weighed: bool,
    (length, width): (usize, usize),
    (ids, bias): (&mut Vec<i32>, &mut Vec<f32>),
) -> bool {
    ids.clear();
    bias.clear();
    if !matches!(allowed, Allowed::Only { .. }) {
        return false;
    }
    for token in allowed.iter() {
        if ids.len() == length || token.index() >= width {
            return false;
        }
        ids.push(token.as_i32());
        let weight = if weighed { allowed.weight_of(token) } else { 0.0 };
        bias.push(if weight == 0.0 { KEPT } else { weight });
    }
    !ids.is_empty()
}
