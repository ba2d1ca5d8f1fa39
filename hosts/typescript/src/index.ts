export {
  ArgumentError,
  BusyError,
  CancelledError,
  HandleError,
  LibraryError,
  ModelError,
  PayloadError,
  TokenizerError,
  TokenNotAllowedError,
  TokenTrieError,
  VocabularyError,
} from "./errors.js";
export {
  type Tokenize,
  TokenizerCache,
  type TokenizerCacheOptions,
} from "./tokenizer/cache.js";
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
