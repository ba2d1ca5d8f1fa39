export {
  ArgumentError,
  BusyError,
  HandleError,
  LibraryError,
  PayloadError,
  SetError,
  SpecError,
  TokenizerError,
  TokenNotAllowedError,
  TokenTrieError,
  VocabularyError,
} from "../../typescript/src/errors.js";
export { type Library, loadLibrary } from "../../typescript/src/ffi/library.js";
export { Constraint, constraint } from "../../typescript/src/native/constraint.js";
export { Form, type FormValues, type ValueOf } from "../../typescript/src/native/form.js";
export { type Allowed, type DrawOptions, Sampler, type SamplerOptions } from "../../typescript/src/native/sampler.js";
export type {
  FormPart,
  Spec,
  SpecInteger,
  SpecLimits,
  SpecMarker,
  SpecPart,
} from "../../typescript/src/native/spec.js";
export { type Leaf, Trie, type TrieOptions } from "../../typescript/src/native/trie.js";
export { TrieCache, type TrieCacheStats } from "../../typescript/src/native/trie-cache.js";
export { type PiecesOptions, Vocab } from "../../typescript/src/native/vocab.js";
export type { ChatEvent, ChatMessage, CustomCall, FunctionCall, ToolCall } from "../../typescript/src/session/chat.js";
export type { CustomTool, NamedTool, Tool, ToolChoice } from "../../typescript/src/session/definitions.js";
export { Choice, type ChoiceValue } from "../../typescript/src/session/choice.js";
export type { TokenSequence, TokenTreePayload } from "../../typescript/src/tree/payload.js";
export {
  ChatFormat,
  type ChatFormatOptions,
  ChatParser,
  type ChatPrompt,
  type ParsedReply,
  type ParseOptions,
  type RenderOptions,
  renderTemplate,
  type ReplyOptions,
} from "./chat.js";
export { chooseRows, type ChooseRowsOptions, type RowsOf } from "./choose.js";
export { isWhole, load, type LoadOptions, memoryBytes, type Source } from "./load.js";
export {
  choose,
  type Constrains,
  generate,
  type GenerateOptions,
  type ModelLike,
  type PromptLike,
  rowsOf,
  type TensorClass,
  type TensorLike,
  TokenTrieLogitsProcessor,
  type TransformersOptions,
  type WriteResult,
  type WrittenStep,
} from "./transformers.js";
export {
  type TextPart,
  tokenize,
  tokenizeParts,
  type TokenizerOptions,
  type TransformersTokenizer,
  vocabFromTokenizerJson,
  vocabOf,
} from "./vocab.js";
