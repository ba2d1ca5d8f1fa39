import "./ffi/files.js";

export {
  ArgumentError,
  BusyError,
  CancelledError,
  FileError,
  HandleError,
  LibraryError,
  ModelError,
  PayloadError,
  SetError,
  SpecError,
  TokenizerError,
  TokenNotAllowedError,
  TokenTrieError,
  VocabularyError,
} from "./errors.js";
export { type Library, loadLibrary } from "./ffi/library.js";
export { Constraint, constraint } from "./native/constraint.js";
export { Form, type FormValues, type ValueOf } from "./native/form.js";
export { type Allowed, type DrawOptions, Sampler, type SamplerOptions } from "./native/sampler.js";
export type { FormPart, Spec, SpecInteger, SpecLimits, SpecMarker, SpecPart } from "./native/spec.js";
export { type Leaf, Trie, type TrieOptions } from "./native/trie.js";
export { TrieCache, type TrieCacheStats } from "./native/trie-cache.js";
export { type PiecesOptions, Vocab } from "./native/vocab.js";
export type { OnToken, StreamBinding, StreamOptions, StreamSampling, StreamStep } from "./session/binding.js";
export type {
  ChatEvent,
  ChatMessage,
  ChatOptions,
  ChatReply,
  ChatStats,
  CustomCall,
  FunctionCall,
  ToolCall,
} from "./session/chat.js";
export type { CustomTool, NamedTool, Tool, ToolChoice } from "./session/definitions.js";
export { Choice, type ChoiceValue } from "./session/choice.js";
export type { Answer, DecideOptions, Decision, DecisionData, Question } from "./session/decision.js";
export type { Probability, TextProbability } from "./session/probability.js";
export { elizaBinding } from "./session/eliza.js";
export { type GeneratedToken, Generation, type GenerationResult } from "./session/generation.js";
export type { EngineInfo } from "./ffi/abi.js";
export type { GenerationStats, Receipt, ReceiptBranch, SessionInfo, TokenLogprob } from "./session/thread/protocol.js";
export { type StreamArguments, type StreamResult, StreamRunner } from "./session/runner.js";
export {
  type ChooseOptions,
  type GenerateOptions,
  type ProbabilityOptions,
  type Prompt,
  Session,
  type SessionOptions,
  type TextsOptions,
} from "./session/session.js";
export { type RunnableTool, type RunToolsOptions, tool, type ToolRun } from "./session/tools.js";
export { type Tokenize, TokenizerCache, type TokenizerCacheOptions } from "./tokenizer/cache.js";
export { type HttpTokenizerOptions, httpTokenizer } from "./tokenizer/http.js";
export { buildDescriptor, type TokenMap } from "./tree/descriptor.js";
export {
  buildPayload,
  checkPayload,
  MAX_TOKEN_ID,
  parsePayload,
  type TokenSequence,
  type TokenTreeDescriptor,
  type TokenTreeMode,
  type TokenTreePayload,
} from "./tree/payload.js";
export { decodeRtkt, encodeRtkt } from "./tree/rtkt.js";
export {
  buildTokenTrie,
  countNodes,
  countTerminals,
  estimateTrieBytes,
  forcedRun,
  isUniqueContinuation,
  step,
  type TokenTrieNode,
  TRIE_ROOT_TOKEN_ID,
  trieLeaves,
} from "./tree/trie.js";
