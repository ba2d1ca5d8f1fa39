/** Messages between a session and the thread that does its blocking calls. */
import * as errors from "../../errors.js";
import type { FINISHES, STATES } from "../../ffi/abi.js";
import type { ChoiceValue } from "../choice.js";

export interface SessionSettings {
  readonly nCtx: number;
  readonly nBatch: number;
  readonly nThreads: number;
  readonly nGpuLayers: number;
  readonly after: number;
  readonly slots: number;
  readonly maxQueue: number;
  /** The number of one of `BATCHING`. */
  readonly batching: number;
  readonly seed: number | null;
  /** JSON of a response template. */
  readonly responseTemplate: string | null;
  readonly draft: string | null;
}

/** End of a generation, and its cost. */
export interface Outcome {
  readonly finish: (typeof FINISHES)[number];
  readonly state: (typeof STATES)[number];
  readonly leaf: { readonly index: number; readonly name: string | null } | null;
  /** Filled fields of a form, by name; null for other constraints. */
  readonly values: Readonly<Record<string, string>> | null;
  /** The text of the value, if it was completed; of a form the whole text. */
  readonly value: string | null;
  /** Probability of every value of each slot of a form, by the names of the slot and the value, if requested. */
  readonly probabilities: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /** Log probabilities of each token, if requested. */
  readonly logprobs: readonly TokenLogprob[];
  /** Alternatives to each token, if requested. */
  readonly receipt: Receipt | null;
  readonly stats: GenerationStats;
}

/** Allowed tokens of a generation: docs/receipts.md. Python's `verify_receipt` checks its JSON. */
export interface Receipt {
  readonly receipt: number;
  readonly vocabulary: string;
  readonly constraint: string | null;
  readonly prompt: string | readonly number[];
  readonly free: boolean;
  readonly end_tokens: readonly number[] | null;
  readonly steps: readonly { readonly token: number; readonly branch?: ReceiptBranch; readonly dropped?: boolean }[];
  readonly keyed: boolean;
  readonly seal: string;
}

/** Position at which several tokens were allowed. */
export interface ReceiptBranch {
  readonly mass: number;
  readonly probability: number;
  readonly runner_up: number;
  readonly mask: string;
}

/** Log probability of a token before temperature and truncation; null is the logarithm of 0. */
export interface TokenLogprob {
  readonly token: number;
  /** 0 where no other text was possible. */
  readonly logprob: number | null;
  /** The most probable tokens with their log probabilities, best first. */
  readonly top: readonly (readonly [number, number | null])[];
}

export interface SessionInfo {
  readonly isGenerating: boolean;
  /** True while a trie is set: from when the prompt was taken until the generation is over. */
  readonly hasTrie: boolean;
  /** Tokens that the context holds. */
  readonly nCtx: number;
  readonly nVocab: number;
  /** Number of tokens in the last prompt. */
  readonly promptTokens: number;
}

export interface GenerationStats {
  readonly promptTokens: number;
  /** Number of those that were in the KV cache. */
  readonly promptTokensReused: number;
  readonly tokens: number;
  /** Forced tokens: no forward pass was needed to choose them. */
  readonly forcedTokens: number;
  readonly sampledTokens: number;
  readonly forwardPasses: number;
  readonly forwardPassesSaved: number;
  /** Steps at which every legal logit was -Infinity or NaN. */
  readonly starved: number;
  readonly seconds: number;
}

/** JSON of a choice: docs/c-sessions.md. */
export interface ChoiceJson {
  readonly name: string | null;
  readonly value: ChoiceValue;
  readonly index: number;
  readonly names: readonly (string | null)[];
  readonly probabilities: Readonly<Record<string, number | null>>;
  readonly logprobs: readonly (number | null)[];
  readonly ranking: readonly number[];
  readonly certain: boolean;
  readonly mass: number;
  readonly mass_bounds: readonly [number, number];
  readonly warnings: readonly string[];
  readonly stats: { readonly forward_passes: number; readonly seconds: number };
}

/** JSON of a probability: docs/c-sessions.md. */
export interface ProbabilityJson {
  readonly text: object | null;
  readonly stats: object;
  readonly warnings: readonly string[];
}

/** Calls that the thread executes, by name, with their arguments and results. */
export interface Calls {
  open(path: string, settings: SessionSettings): number;
  tokenize(text: string, addSpecial: boolean, parseSpecial: boolean): Int32Array;
  prefill(prompt: string | Int32Array, slotId: number): number;
  savePrefix(path: string): void;
  loadPrefix(path: string): number;
  setTokenTrie(json: string, mode: number): void;
  setTrie(trie: number, mode: number): void;
  leavesLeftOut(): number;
  clearTokenTrie(): void;
  /** Tokens come as `TokenMessage` before it is answered. A generation that fails is answered too. */
  generate(request: string): { outcome: Outcome; error: PlainError | null };
  vocab(): number;
  /** Events come as `TokenMessage`, each as JSON, before it is answered. A chat that fails is answered too. */
  chat(request: string): { reply: string | null; error: PlainError | null };
  /** @returns the handle of the values of a constraint. */
  values(spec: string): number;
  /** @returns the handle of a constraint over the tokens of the model. */
  constraint(spec: string): number;
  choose(request: string): ChoiceJson;
  probability(request: string): ProbabilityJson;
  /** @returns the answers as JSON. */
  decide(request: string): string;
  close(): void;
}

export type CallName = keyof Calls;

export interface Request {
  readonly id: number;
  readonly call: CallName;
  readonly given: readonly unknown[];
}

export interface TokenMessage {
  readonly token: number;
  readonly text: string;
}

export type Answer =
  { readonly id: number; readonly value: unknown } | { readonly id: number; readonly error: PlainError };

/** An error as data. */
export interface PlainError {
  readonly kind: string;
  readonly message: string;
  readonly status: string | undefined;
}

export function plain(error: unknown): PlainError {
  if (!(error instanceof Error)) return { kind: "Error", message: String(error), status: undefined };
  const status = error instanceof errors.TokenTrieError ? error.status : undefined;
  return { kind: error.constructor.name, message: error.message, status };
}

const KINDS: Record<string, new (message: string) => errors.TokenTrieError> = {
  ArgumentError: errors.ArgumentError,
  BusyError: errors.BusyError,
  FileError: errors.FileError,
  HandleError: errors.HandleError,
  LibraryError: errors.LibraryError,
  ModelError: errors.ModelError,
  PayloadError: errors.PayloadError,
  SetError: errors.SetError,
  SpecError: errors.SpecError,
  TokenNotAllowedError: errors.TokenNotAllowedError,
  VocabularyError: errors.VocabularyError,
};

export function reviveError({ kind, message, status }: PlainError): errors.TokenTrieError {
  const isCancelled = status === "TOKENTRIE_ERROR_CANCELLED";
  const error = isCancelled
    ? new errors.CancelledError(message, undefined)
    : new (KINDS[kind] ?? errors.TokenTrieError)(message);
  if (status !== undefined) error.status = status;
  return error;
}
