/** The functions, numbers and structures of `include/tokentrie.h`; a test compares them with it, name for name. */
import type { Callable, CType, Signature } from "./backend.js";
import { Struct } from "./struct.js";

/** A library fits if its upper 16 bits are these and its lower ones are no smaller. */
export const ABI_VERSION = 0x00010000;

export const FEATURE_LLAMA = 1;

export const Status = {
  OK: 0,
  NONE: 1,
  ERROR_HANDLE: -1,
  ERROR_ARGUMENT: -2,
  ERROR_BUFFER: -3,
  ERROR_TEXT: -4,
  ERROR_PAYLOAD: -5,
  ERROR_SET: -6,
  ERROR_FILE: -7,
  ERROR_VOCAB: -8,
  ERROR_NOT_ALLOWED: -9,
  ERROR_ROW: -10,
  ERROR_DAMAGED: -11,
  ERROR_BUSY: -12,
  ERROR_LLAMA: -13,
  ERROR_MODEL: -14,
  ERROR_CANCELLED: -15,
  ERROR_LIMIT: -16,
  ERROR_PANIC: -17,
  ERROR_SPEC: -18,
} as const;

/** By their numbers. */
export const STATES = ["active", "complete", "idle", "off"] as const;
export const ALLOWED = ["only", "open", "all"] as const;
export const AFTER = ["free", "stop"] as const;
export const TOKEN_KINDS = ["normal", "control", "end_of_generation"] as const;
export const FINISHES = [
  "none",
  "span",
  "end_of_generation",
  "max_tokens",
  "context_full",
  "cancelled",
  "error",
] as const;

export const SAMPLER_OPTIONS = new Struct({
  mode: "i32",
  after: "i32",
  top_k: "u32",
  temperature: "f32",
  top_p: "f32",
  min_p: "f32",
  seed: "u32",
  has_seed: "u32",
});

export const TRIE_INFO = new Struct({
  tries: "u32",
  leaves: "u64",
  nodes: "u64",
  bytes: "u64",
  max_token: "i32",
  max_depth: "u32",
  empty_leaves: "u64",
  outside_vocabulary: "u64",
});

export const CACHE_STATS = new Struct({
  capacity: "u32",
  held: "u64",
  hits: "u64",
  content_hits: "u64",
  misses: "u64",
  evictions: "u64",
});

export const SESSION_OPTIONS = new Struct({
  n_ctx: "u32",
  n_batch: "u32",
  n_threads: "u32",
  n_gpu_layers: "u32",
  after: "i32",
  seed: "u32",
  has_seed: "u32",
});

export const SESSION_INFO = new Struct({
  generating: "i32",
  has_trie: "i32",
  state: "i32",
  finish: "i32",
  slot: "i32",
  n_ctx: "u32",
  n_vocab: "u32",
  prompt_tokens: "u64",
  tokens: "u64",
  forced_tokens: "u64",
  sampled_tokens: "u64",
  forward_passes: "u64",
  forward_passes_saved: "u64",
  prompt_tokens_reused: "u64",
  starved: "u64",
  seconds: "f64",
});

export const CHOICE = new Struct({
  best: "u32",
  values: "u64",
  mass: "f64",
  forward_passes: "u64",
  seconds: "f64",
});

function returns<const Result extends CType, const Arguments extends CType[]>(
  result: Result,
  ...given: Arguments
): Signature<Arguments, Result> {
  return { arguments: given, result };
}

/** A function that returns a status. */
function status<const Arguments extends CType[]>(...given: Arguments): Signature<Arguments, "i32"> {
  return { arguments: given, result: "i32" };
}

export const FUNCTIONS = {
  tokentrie_abi_version: returns("u32"),
  tokentrie_features: returns("u32"),
  tokentrie_last_error: returns("string"),
  tokentrie_status_name: returns("string", "i32"),

  tokentrie_vocab_new: status("usize", "buffer", "usize", "buffer"),
  tokentrie_vocab_from_pieces: status("buffer", "usize", "buffer", "buffer", "usize", "buffer"),
  tokentrie_vocab_size: status("handle", "buffer"),
  tokentrie_vocab_end_of_generation: status("handle", "buffer", "usize", "buffer"),
  tokentrie_vocab_bytes: status("handle", "buffer", "usize", "buffer", "usize", "buffer"),
  tokentrie_vocab_free: status("handle"),

  tokentrie_trie_from_json: status("buffer", "usize", "handle", "buffer"),
  tokentrie_trie_from_sequences: status("buffer", "usize", "buffer", "buffer", "usize", "buffer", "usize", "buffer"),
  tokentrie_trie_from_rtkt: status("buffer", "usize", "buffer"),
  tokentrie_trie_to_rtkt: status("handle", "buffer", "usize", "buffer"),
  tokentrie_trie_open: status("buffer", "usize", "i32", "buffer"),
  tokentrie_trie_save: status("handle", "buffer", "usize", "handle"),
  tokentrie_trie_select: status("handle", "buffer", "usize", "buffer"),
  tokentrie_trie_path: status("handle", "usize", "buffer", "usize", "buffer"),
  tokentrie_trie_get_info: status("handle", "buffer"),
  tokentrie_trie_children: status("handle", "buffer", "usize", "buffer", "usize", "buffer"),
  tokentrie_trie_forced: status("handle", "buffer", "usize", "buffer", "usize", "buffer"),
  tokentrie_trie_find: status("handle", "buffer", "usize", "buffer"),
  tokentrie_trie_leaf_tokens: status("handle", "u32", "buffer", "usize", "buffer"),
  tokentrie_trie_leaf_name: status("handle", "u32", "buffer", "usize", "buffer"),
  tokentrie_trie_free: status("handle"),

  tokentrie_cache_new: status("usize", "buffer"),
  tokentrie_cache_trie: status("handle", "buffer", "usize", "handle", "buffer"),
  tokentrie_cache_get_stats: status("handle", "buffer"),
  tokentrie_cache_clear: status("handle"),
  tokentrie_cache_free: status("handle"),

  tokentrie_constraint_from_json: status("buffer", "usize", "handle", "buffer"),
  tokentrie_constraint_json: status("handle", "buffer", "usize", "buffer"),
  tokentrie_constraint_free: status("handle"),

  tokentrie_sampler_new: status("handle", "handle", "buffer", "buffer", "usize", "buffer"),
  tokentrie_sampler_allowed: status("handle", "buffer", "usize", "buffer", "buffer"),
  tokentrie_sampler_apply: status("handle", "buffer", "usize"),
  tokentrie_sampler_sample: status("handle", "buffer", "usize", "buffer"),
  tokentrie_sampler_advance: status("handle", "buffer", "usize", "buffer", "usize", "buffer"),
  tokentrie_sampler_accept: status("handle", "buffer", "usize"),
  tokentrie_sampler_rollback: status("handle", "usize"),
  tokentrie_sampler_reset: status("handle"),
  tokentrie_sampler_activate: status("handle", "buffer", "usize"),
  tokentrie_sampler_deactivate: status("handle"),
  tokentrie_sampler_clone: status("handle", "buffer"),
  tokentrie_sampler_forced: status("handle", "buffer", "usize", "buffer"),
  tokentrie_sampler_bitmask: status("handle", "buffer", "usize"),
  tokentrie_sampler_state: status("handle", "buffer", "buffer"),
  tokentrie_sampler_leaf: status("handle", "buffer", "buffer", "usize", "buffer"),
  tokentrie_sampler_free: status("handle"),

  tokentrie_session_open: status("buffer", "usize", "buffer", "buffer"),
  tokentrie_session_prefill: status("handle", "buffer", "usize", "i32", "buffer"),
  tokentrie_session_generate: status("handle", "u32", "f32", "f32", "callback", "address"),
  tokentrie_session_start: status("handle", "u32", "f32", "f32"),
  tokentrie_session_next: status("handle", "i32", "buffer", "buffer", "usize", "buffer", "buffer"),
  tokentrie_session_cancel: status("handle"),
  tokentrie_session_close: status("handle"),
  tokentrie_session_set_token_trie: status("handle", "buffer", "usize", "i32"),
  tokentrie_session_set_trie: status("handle", "handle", "i32"),
  tokentrie_session_clear_token_trie: status("handle"),
  tokentrie_session_get_info: status("handle", "buffer"),
  tokentrie_session_leaf: status("handle", "buffer", "buffer", "usize", "buffer"),
  tokentrie_session_vocab: status("handle", "buffer"),
  tokentrie_session_tokenize: status("handle", "buffer", "usize", "i32", "i32", "buffer", "usize", "buffer"),
  tokentrie_session_texts: status(
    "handle",
    "buffer",
    "usize",
    "buffer",
    "usize",
    "buffer",
    "usize",
    "buffer",
    "usize",
    "buffer",
  ),
  tokentrie_session_choose: status(
    "handle",
    "buffer",
    "usize",
    "buffer",
    "usize",
    "buffer",
    "usize",
    "buffer",
    "usize",
    "buffer",
  ),
  tokentrie_session_choose_leaves: status("handle", "buffer", "usize", "handle", "buffer", "usize", "buffer"),

  eliza_inference_llm_stream_open: returns("address", "buffer", "i32", "i32", "i32"),
  eliza_inference_llm_stream_supported: returns("i32"),
  eliza_inference_llm_stream_prefill: returns("i32", "address", "buffer", "i32", "i32"),
  eliza_inference_llm_stream_generate: returns("i32", "address", "i32", "f32", "f32", "callback", "address"),
  eliza_inference_llm_stream_next: returns(
    "i32",
    "address",
    "buffer",
    "usize",
    "buffer",
    "buffer",
    "usize",
    "buffer",
    "buffer",
    "buffer",
  ),
  eliza_inference_llm_stream_cancel: returns("void", "address"),
  eliza_inference_llm_stream_close: returns("void", "address"),
  eliza_inference_set_token_trie: returns("i32", "address", "buffer", "usize", "i32"),
  eliza_inference_clear_token_trie: returns("i32", "address"),
  eliza_inference_free_string: returns("void", "address"),
} as const;

export type FunctionName = keyof typeof FUNCTIONS;
/** Every function, as TypeScript calls it. */
export type Functions = { readonly [Name in FunctionName]: Callable<(typeof FUNCTIONS)[Name]> };
