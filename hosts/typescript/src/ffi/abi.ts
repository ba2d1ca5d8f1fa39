/** Declarations of the headers in `include`. Made by `npm run abi`: do not edit. */
import { type Callable, signature } from "./backend.js";
import { Struct } from "./struct.js";

/** A library fits if its upper 16 bits are these and its lower ones are no smaller. */
export const ABI_VERSION = 65536;

export const FEATURE_LLAMA = 1;
export const FEATURE_THIS_CPU = 2;

export const Status = {
  NONE: 1,
  OK: 0,
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

/** Names of the constants, by number. */
export const MODES = ["greedy", "sampled"] as const;
export const STATES = ["active", "complete", "idle", "off"] as const;
export const ALLOWED = ["only", "open", "all"] as const;
export const AFTER = ["free", "stop"] as const;
export const BATCHING = ["free", "fixed"] as const;
export const TOKEN_KINDS = ["normal", "control", "end_of_generation"] as const;
export const FINISHES = [
  "none",
  "span",
  "end_of_generation",
  "max_tokens",
  "context_full",
  "cancelled",
  "error",
  "timed_out",
  "stop_text",
  "tool_calls",
] as const;

/** Fields of the structure `tokentrie_trie_info`. */
export interface TrieInfo {
  /** Number of tries, by path. What follows is of the first. */
  readonly tries: number;
  /** Number of its leaves. */
  readonly leaves: number;
  /** Nodes, with the root. */
  readonly nodes: number;
  /** Bytes of memory held. */
  readonly bytes: number;
  /** Largest token id used. */
  readonly maxToken: number;
  /** Tokens of the longest leaf. */
  readonly maxDepth: number;
  /** Leaves of the payload that were left out: they have no tokens. */
  readonly emptyLeaves: number;
  /** Leaves of the payload that were left out: the vocabulary does not have their ids. */
  readonly outsideVocabulary: number;
}

export const TRIE_INFO = new Struct<TrieInfo>({
  tries: "u32",
  leaves: "u64",
  nodes: "u64",
  bytes: "u64",
  maxToken: "i32",
  maxDepth: "u32",
  emptyLeaves: "u64",
  outsideVocabulary: "u64",
});

/** Fields of the structure `tokentrie_cache_stats`. */
export interface CacheStats {
  /** Payloads that can be held. */
  readonly capacity: number;
  /** Payloads that are held. */
  readonly held: number;
  /** Found by the text. */
  readonly hits: number;
  /** Other text with the same content. */
  readonly contentHits: number;
  /** Number of payloads built. */
  readonly misses: number;
  /** Texts that had to leave. */
  readonly evictions: number;
}

export const CACHE_STATS = new Struct<CacheStats>({
  capacity: "u32",
  held: "u64",
  hits: "u64",
  contentHits: "u64",
  misses: "u64",
  evictions: "u64",
});

/** Fields of the structure `tokentrie_sampler_options`. */
export interface SamplerOptions {
  /** Mode of the choice: TOKENTRIE_MODE_… */
  readonly mode: number;
  /** Text after a leaf: TOKENTRIE_AFTER_… */
  readonly after: number;
  /** Number of candidates kept; 0: all. */
  readonly topK: number;
  /** 0 takes the highest; not used in greedy mode. */
  readonly temperature: number;
  /** 0 counts as 1: all. */
  readonly topP: number;
  /** Minimum probability relative to the best; 0: all. */
  readonly minP: number;
  /** Seed of the draw. */
  readonly seed: number;
  /** 0: the seed comes from the operating system. */
  readonly hasSeed: number;
  /** 0 counts as 1: all. */
  readonly typicalP: number;
  /** 0 counts as 1: no penalty. In greedy mode too, as the next three. */
  readonly repeatPenalty: number;
  /** Penalty on written tokens; 0: none. */
  readonly presencePenalty: number;
  /** Penalty per occurrence; 0: none. */
  readonly frequencyPenalty: number;
  /** Number of the last accepted tokens that penalties count. -1: all; 0: 64. */
  readonly penaltyLastN: number;
}

export const SAMPLER_OPTIONS = new Struct<SamplerOptions>({
  mode: "i32",
  after: "i32",
  topK: "u32",
  temperature: "f32",
  topP: "f32",
  minP: "f32",
  seed: "u32",
  hasSeed: "u32",
  typicalP: "f32",
  repeatPenalty: "f32",
  presencePenalty: "f32",
  frequencyPenalty: "f32",
  penaltyLastN: "i32",
});

/** Fields of the structure `tokentrie_session_options`. */
export interface SessionOptions {
  /** Tokens of context. 0: 4096, or what the model was trained on if that is less. */
  readonly nCtx: number;
  /** The most tokens in one forward pass. 0: 512. */
  readonly nBatch: number;
  /** 0: as many as pay off. */
  readonly nThreads: number;
  /** Layers on a graphics card. */
  readonly nGpuLayers: number;
  /** TOKENTRIE_AFTER_FREE: text goes on after the leaf; TOKENTRIE_AFTER_STOP: the generation ends with it. */
  readonly after: number;
  /** Seed of the draws. */
  readonly seed: number;
  /** 0: the seed comes from the operating system. */
  readonly hasSeed: number;
  /** Calls of sessions of one file and the same options that run at once, up to 128. 0: a context for each session. */
  readonly slots: number;
  /** With slots: calls that may wait for one; one more gives TOKENTRIE_ERROR_BUSY at once. 0: 1024. */
  readonly maxQueue: number;
  /** Contents of a forward pass: TOKENTRIE_BATCHING_… */
  readonly batching: number;
}

export const SESSION_OPTIONS = new Struct<SessionOptions>({
  nCtx: "u32",
  nBatch: "u32",
  nThreads: "u32",
  nGpuLayers: "u32",
  after: "i32",
  seed: "u32",
  hasSeed: "u32",
  slots: "u32",
  maxQueue: "u32",
  batching: "i32",
});

/** Fields of the structure `tokentrie_session_info`. */
export interface SessionInfo {
  /** 1 while a generation runs. */
  readonly generating: number;
  /** 1 while a trie is set. */
  readonly hasTrie: number;
  /** State of the trie in the last generation: TOKENTRIE_STATE_… */
  readonly state: number;
  /** Reason for the end of the last generation: TOKENTRIE_FINISH_… */
  readonly finish: number;
  /** Slot of the last prefill, or -1. */
  readonly slot: number;
  /** Context size in tokens. */
  readonly nCtx: number;
  /** Tokens of the vocabulary. */
  readonly nVocab: number;
  /** Tokens that the next generation begins after. */
  readonly promptTokens: number;
  /** Tokens of the last generation. */
  readonly tokens: number;
  /** Number of forced tokens among them. */
  readonly forcedTokens: number;
  /** Number of those that were chosen among several, and of a token that only ended the output. */
  readonly sampledTokens: number;
  /** Number of its forward passes. */
  readonly forwardPasses: number;
  /** Tokens of it that needed none of their own. */
  readonly forwardPassesSaved: number;
  /** Tokens of the prompt that were in the cache already. */
  readonly promptTokensReused: number;
  /** Times that no legal token had a usable logit. */
  readonly starved: number;
  /** Its duration in seconds. */
  readonly seconds: number;
  /** Leaves without tokens that were left out of what was set or asked for last. */
  readonly emptyLeaves: number;
  /** Leaves that were left out of it because the vocabulary does not have their ids. */
  readonly outsideVocabulary: number;
}

export const SESSION_INFO = new Struct<SessionInfo>({
  generating: "i32",
  hasTrie: "i32",
  state: "i32",
  finish: "i32",
  slot: "i32",
  nCtx: "u32",
  nVocab: "u32",
  promptTokens: "u64",
  tokens: "u64",
  forcedTokens: "u64",
  sampledTokens: "u64",
  forwardPasses: "u64",
  forwardPassesSaved: "u64",
  promptTokensReused: "u64",
  starved: "u64",
  seconds: "f64",
  emptyLeaves: "u64",
  outsideVocabulary: "u64",
});

/** Fields of the structure `tokentrie_engine_info`. */
export interface EngineInfo {
  /** Calls that may run at once. */
  readonly slots: number;
  /** Number of running calls. */
  readonly running: number;
  /** Number of waiting calls. */
  readonly queued: number;
  /** Calls that were begun. */
  readonly calls: number;
  /** Number of forward passes. */
  readonly passes: number;
  /** Number of tokens in them. */
  readonly tokens: number;
  /** Tokens that were not decoded, because another call begins with them. */
  readonly tokensReused: number;
  /** Cells of the cache that hold something, counted once for each sequence. */
  readonly cells: number;
  /** Forward passes that failed. */
  readonly failedPasses: number;
  /** Seconds that llama.cpp took for them. */
  readonly decodeSeconds: number;
  /** Seconds that all else in them took: what is decoded next, constraints, choosing tokens. */
  readonly ownSeconds: number;
}

export const ENGINE_INFO = new Struct<EngineInfo>({
  slots: "u32",
  running: "u64",
  queued: "u64",
  calls: "u64",
  passes: "u64",
  tokens: "u64",
  tokensReused: "u64",
  cells: "u64",
  failedPasses: "u64",
  decodeSeconds: "f64",
  ownSeconds: "f64",
});

export const FUNCTIONS = {
  tokentrie_abi_version: signature("u32"),
  tokentrie_features: signature("u32"),
  tokentrie_last_error: signature("string"),
  tokentrie_status_name: signature("string", "i32"),
  tokentrie_vocab_new: signature("i32", "usize", "input", "usize", "buffer"),
  tokentrie_vocab_from_pieces: signature("i32", "input", "usize", "input", "input", "usize", "buffer"),
  tokentrie_vocab_size: signature("i32", "handle", "buffer"),
  tokentrie_vocab_end_of_generation: signature("i32", "handle", "buffer", "usize", "buffer"),
  tokentrie_vocab_bytes: signature("i32", "handle", "input", "usize", "buffer", "usize", "buffer"),
  tokentrie_vocab_free: signature("i32", "handle"),
  tokentrie_trie_from_json: signature("i32", "input", "usize", "handle", "handle", "buffer"),
  tokentrie_trie_from_sequences: signature(
    "i32",
    "input",
    "usize",
    "input",
    "input",
    "usize",
    "input",
    "usize",
    "buffer",
  ),
  tokentrie_trie_from_rtkt: signature("i32", "input", "usize", "buffer"),
  tokentrie_trie_to_rtkt: signature("i32", "handle", "buffer", "usize", "buffer"),
  tokentrie_trie_open: signature("i32", "input", "usize", "i32", "buffer"),
  tokentrie_trie_save: signature("i32", "handle", "input", "usize", "handle"),
  tokentrie_trie_select: signature("i32", "handle", "input", "usize", "buffer"),
  tokentrie_trie_path: signature("i32", "handle", "usize", "buffer", "usize", "buffer"),
  tokentrie_trie_get_info: signature("i32", "handle", "buffer"),
  tokentrie_trie_children: signature("i32", "handle", "input", "usize", "buffer", "usize", "buffer"),
  tokentrie_trie_forced: signature("i32", "handle", "input", "usize", "buffer", "usize", "buffer"),
  tokentrie_trie_find: signature("i32", "handle", "input", "usize", "buffer"),
  tokentrie_trie_leaf_tokens: signature("i32", "handle", "u32", "buffer", "usize", "buffer"),
  tokentrie_trie_leaf_name: signature("i32", "handle", "u32", "buffer", "usize", "buffer"),
  tokentrie_trie_free: signature("i32", "handle"),
  tokentrie_cache_new: signature("i32", "usize", "buffer"),
  tokentrie_cache_get_stats: signature("i32", "handle", "buffer"),
  tokentrie_cache_clear: signature("i32", "handle"),
  tokentrie_cache_free: signature("i32", "handle"),
  tokentrie_constraint_from_json: signature("i32", "input", "usize", "handle", "buffer"),
  tokentrie_constraint_json: signature("i32", "handle", "buffer", "usize", "buffer"),
  tokentrie_constraint_trie: signature("i32", "handle", "buffer"),
  tokentrie_constraint_texts: signature("i32", "handle", "buffer", "usize", "buffer"),
  tokentrie_constraint_warnings: signature("i32", "handle", "buffer", "usize", "buffer"),
  tokentrie_constraint_free: signature("i32", "handle"),
  tokentrie_sampler_new: signature("i32", "handle", "handle", "input", "input", "usize", "buffer"),
  tokentrie_sampler_allowed: signature("i32", "handle", "buffer", "usize", "buffer", "buffer"),
  tokentrie_sampler_apply: signature("i32", "handle", "buffer", "usize"),
  tokentrie_sampler_sample: signature("i32", "handle", "input", "usize", "buffer"),
  tokentrie_sampler_advance: signature("i32", "handle", "input", "usize", "buffer", "usize", "buffer"),
  tokentrie_sampler_accept: signature("i32", "handle", "input", "usize"),
  tokentrie_sampler_rollback: signature("i32", "handle", "usize"),
  tokentrie_sampler_reset: signature("i32", "handle"),
  tokentrie_sampler_activate: signature("i32", "handle", "input", "usize"),
  tokentrie_sampler_deactivate: signature("i32", "handle"),
  tokentrie_sampler_clone: signature("i32", "handle", "buffer"),
  tokentrie_sampler_forced: signature("i32", "handle", "buffer", "usize", "buffer"),
  tokentrie_sampler_bitmask: signature("i32", "handle", "buffer", "usize"),
  tokentrie_sampler_state: signature("i32", "handle", "buffer", "buffer"),
  tokentrie_sampler_leaf: signature("i32", "handle", "buffer", "buffer", "usize", "buffer"),
  tokentrie_sampler_values: signature("i32", "handle", "buffer", "usize", "buffer"),
  tokentrie_sampler_free: signature("i32", "handle"),
  tokentrie_session_open: signature("i32", "input", "usize", "input", "buffer"),
  tokentrie_session_prefill: signature("i32", "handle", "input", "usize", "buffer"),
  tokentrie_session_save_prefix: signature("i32", "handle", "input", "usize"),
  tokentrie_session_load_prefix: signature("i32", "handle", "input", "usize", "buffer"),
  tokentrie_session_generate: signature("i32", "handle", "input", "usize", "callback", "address"),
  tokentrie_session_start: signature("i32", "handle", "input", "usize"),
  tokentrie_session_result: signature("i32", "handle", "buffer", "usize", "buffer"),
  tokentrie_session_next: signature("i32", "handle", "i32", "buffer", "buffer", "usize", "buffer", "buffer"),
  tokentrie_session_cancel: signature("i32", "handle"),
  tokentrie_session_set_draft: signature("i32", "handle", "input", "usize"),
  tokentrie_session_close: signature("i32", "handle"),
  tokentrie_session_set_token_trie: signature("i32", "handle", "input", "usize", "i32"),
  tokentrie_session_set_trie: signature("i32", "handle", "handle", "i32"),
  tokentrie_session_clear_token_trie: signature("i32", "handle"),
  tokentrie_session_get_info: signature("i32", "handle", "buffer"),
  tokentrie_session_engine: signature("i32", "handle", "buffer"),
  tokentrie_session_vocab: signature("i32", "handle", "buffer"),
  tokentrie_session_tokenize: signature("i32", "handle", "input", "usize", "i32", "i32", "buffer", "usize", "buffer"),
  tokentrie_session_choose: signature("i32", "handle", "input", "usize"),
  tokentrie_session_probability: signature("i32", "handle", "input", "usize"),
  tokentrie_session_decide: signature("i32", "handle", "input", "usize"),
  tokentrie_session_set_response_template: signature("i32", "handle", "input", "usize"),
  tokentrie_chat_prompt: signature("i32", "handle", "input", "usize", "buffer", "usize", "buffer"),
  tokentrie_chat_start: signature("i32", "handle", "input", "usize"),
  eliza_inference_llm_stream_open: signature("address", "input", "i32", "i32", "i32"),
  eliza_inference_llm_stream_supported: signature("i32"),
  eliza_inference_llm_stream_prefill: signature("i32", "address", "input", "i32", "i32"),
  eliza_inference_llm_stream_generate: signature("i32", "address", "i32", "f32", "f32", "callback", "address"),
  eliza_inference_llm_stream_next: signature(
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
  eliza_inference_llm_stream_cancel: signature("void", "address"),
  eliza_inference_llm_stream_close: signature("void", "address"),
  eliza_inference_set_token_trie: signature("i32", "address", "input", "usize", "i32"),
  eliza_inference_clear_token_trie: signature("i32", "address"),
  eliza_inference_free_string: signature("void", "address"),
} as const;

export type FunctionName = keyof typeof FUNCTIONS;
/** Every function, as TypeScript calls it. */
export type Functions = { readonly [Name in FunctionName]: Callable<(typeof FUNCTIONS)[Name]> };
