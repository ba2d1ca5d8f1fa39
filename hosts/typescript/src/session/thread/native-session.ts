/** The blocking calls of one session; they run on the thread that `worker.ts` is. */
import { ModelError } from "../../errors.js";
import { CHOICE, FINISHES, SESSION_INFO, SESSION_OPTIONS, type SessionInfo, STATES, Status } from "../../ffi/abi.js";
import { check, errorOf, joined, makeHandle, readInts, readText, SizeOut, text, utf8 } from "../../ffi/call.js";
import type { Library } from "../../ffi/library.js";
import { constraintHandle } from "../../native/constraint.js";
import type { StreamSampling } from "../binding.js";
import {
  type Calls,
  type ChosenValues,
  type Outcome,
  type PlainError,
  plain,
  type Receipt,
  type SessionSettings,
  type TextsRequest,
  type TokenLogprob,
} from "./protocol.js";

/** What is read of the JSON of a generation. */
interface Said {
  readonly value: string | null;
  readonly values: Readonly<Record<string, string>>;
  readonly probabilities: Readonly<Record<string, readonly number[]>>;
  /** A library before this has none. */
  readonly logprobs?: readonly TokenLogprob[];
  readonly receipt?: Receipt | null;
}

/** What is read of the JSON of a choice. */
interface Chosen {
  readonly index: number;
  readonly names: readonly (string | null)[];
  readonly probabilities: readonly (number | null)[];
  readonly ranking: number[];
  readonly certain: boolean;
  readonly warnings: readonly string[];
  readonly mass: number;
  readonly mass_bounds: readonly [number, number];
  readonly stats: { readonly forward_passes: number; readonly seconds: number };
}

export class NativeSession implements Calls {
  readonly #library: Library;
  readonly #onToken: (token: number, text: string) => void;
  #handle = 0;
  /** Made when the first constraint is. */
  #vocab = 0;

  constructor(library: Library, onToken: (token: number, text: string) => void) {
    this.#library = library;
    this.#onToken = onToken;
  }

  open(path: string, settings: SessionSettings): number {
    this.#library.needLlama();
    const name = utf8(path, "path");
    const options = SESSION_OPTIONS.write({
      nCtx: settings.nCtx,
      nBatch: settings.nBatch,
      nThreads: settings.nThreads,
      nGpuLayers: settings.nGpuLayers,
      after: settings.after,
      slots: settings.slots,
      maxQueue: settings.maxQueue,
      batching: settings.batching,
      seed: settings.seed ?? 0,
      hasSeed: Number(settings.seed !== null),
    });
    const { tokentrie_session_open } = this.#library.functions;
    this.#handle = makeHandle(this.#library, (out) => tokentrie_session_open(name, name.length, options, out));
    return this.#handle;
  }

  tokenize(given: string, addSpecial: boolean, parseSpecial: boolean): Int32Array {
    const bytes = utf8(given, "text");
    const { tokentrie_session_tokenize } = this.#library.functions;
    return readInts(this.#library, (buffer, capacity, count) =>
      tokentrie_session_tokenize(
        this.#handle,
        bytes,
        bytes.length,
        Number(addSpecial),
        Number(parseSpecial),
        buffer,
        capacity,
        count,
      ),
    );
  }

  prefill(tokens: Int32Array, slotId: number): number {
    const taken = new SizeOut();
    const { tokentrie_session_prefill } = this.#library.functions;
    this.#check(tokentrie_session_prefill(this.#handle, tokens, tokens.length, slotId, taken.memory));
    return taken.value;
  }

  prefillText(prompt: string, slotId: number): number {
    const [taken, bytes] = [new SizeOut(), utf8(prompt, "prompt")];
    const { tokentrie_session_prefill_text } = this.#library.functions;
    this.#check(tokentrie_session_prefill_text(this.#handle, bytes, bytes.length, slotId, taken.memory));
    return taken.value;
  }

  savePrefix(path: string): void {
    const bytes = utf8(path, "path");
    this.#check(this.#library.functions.tokentrie_session_save_prefix(this.#handle, bytes, bytes.length));
  }

  loadPrefix(path: string): number {
    const [taken, bytes] = [new SizeOut(), utf8(path, "path")];
    const { tokentrie_session_load_prefix } = this.#library.functions;
    this.#check(tokentrie_session_load_prefix(this.#handle, bytes, bytes.length, taken.memory));
    return taken.value;
  }

  setTokenTrie(json: string, mode: number): void {
    const bytes = utf8(json, "payload");
    const { tokentrie_session_set_token_trie } = this.#library.functions;
    this.#check(tokentrie_session_set_token_trie(this.#handle, bytes, bytes.length, mode));
  }

  setTrie(trie: number, mode: number): void {
    this.#check(this.#library.functions.tokentrie_session_set_trie(this.#handle, trie, mode));
  }

  leavesLeftOut(): number {
    return this.#info().outsideVocabulary;
  }

  clearTokenTrie(): void {
    this.#check(this.#library.functions.tokentrie_session_clear_token_trie(this.#handle));
  }

  generate({ maxTokens, temperature, topP, request }: StreamSampling): { outcome: Outcome; error: PlainError | null } {
    const { functions } = this.#library;
    if (request === undefined) {
      this.#check(functions.tokentrie_session_start(this.#handle, maxTokens, temperature, topP));
    } else {
      const json = utf8(request, "request");
      this.#check(functions.tokentrie_session_start_json(this.#handle, json, json.length));
    }
    const status = this.#pull();
    // Read at once: the sentence of another call would be there later.
    const error = status < 0 ? plain(errorOf(this.#library, status)) : null;
    return { outcome: this.#outcome(), error };
  }

  chat(request: string): { reply: string | null; error: PlainError | null } {
    const json = utf8(request, "request");
    const { tokentrie_chat_start, tokentrie_chat_message } = this.#library.functions;
    this.#check(tokentrie_chat_start(this.#handle, json, json.length));
    const status = this.#pull();
    const error = status < 0 ? plain(errorOf(this.#library, status)) : null;
    const reply = readText(this.#library, (buffer, capacity, count) =>
      tokentrie_chat_message(this.#handle, buffer, capacity, count),
    );
    return { reply, error };
  }

  vocab(): number {
    const { tokentrie_session_vocab } = this.#library.functions;
    return makeHandle(this.#library, (out) => tokentrie_session_vocab(this.#handle, out));
  }

  constraint(spec: string): number {
    this.#vocab ||= this.vocab();
    return constraintHandle(this.#library, spec, this.#vocab);
  }

  texts({ texts, prefix, suffix }: TextsRequest): number {
    const { bytes, ends } = joined(texts, "texts");
    const [before, after] = [utf8(prefix, "prefix"), utf8(suffix, "suffix")];
    const { tokentrie_session_texts } = this.#library.functions;
    return makeHandle(this.#library, (out) =>
      tokentrie_session_texts(
        this.#handle,
        bytes,
        bytes.length,
        ends,
        texts.length,
        before,
        before.length,
        after,
        after.length,
        out,
      ),
    );
  }

  choose(prompt: string, texts: readonly string[]): ChosenValues {
    const given = utf8(prompt, "prompt");
    const { bytes, ends } = joined(texts, "values");
    const { tokentrie_session_choose } = this.#library.functions;
    return this.#chosen(texts.length, (probabilities, choice) =>
      tokentrie_session_choose(
        this.#handle,
        given,
        given.length,
        bytes,
        bytes.length,
        ends,
        texts.length,
        probabilities,
        probabilities.length,
        choice,
      ),
    );
  }

  chooseJson(request: string): ChosenValues {
    const json = utf8(request, "request");
    this.#check(this.#library.functions.tokentrie_session_choose_json(this.#handle, json, json.length));
    const chosen = this.#result<Chosen>();
    if (chosen === null) throw new ModelError("there is no choice");
    const numbers = (known: readonly (number | null)[]) => Float64Array.from(known, (number) => number ?? Number.NaN);
    return {
      probabilities: numbers(chosen.probabilities),
      best: chosen.index,
      mass: chosen.mass,
      forwardPasses: chosen.stats.forward_passes,
      seconds: chosen.stats.seconds,
      warnings: chosen.warnings,
      names: chosen.names.map((name) => name ?? ""),
      bounds: { mass: chosen.mass_bounds, certain: chosen.certain, ranking: chosen.ranking },
    };
  }

  decide(request: string): string {
    const json = utf8(request, "request");
    this.#check(this.#library.functions.tokentrie_session_decide_json(this.#handle, json, json.length));
    const answers = this.#text();
    if (answers === null) throw new ModelError("there are no answers");
    return answers;
  }

  chooseLeaves(tokens: Int32Array, trie: number, leaves: number): ChosenValues {
    const { tokentrie_session_choose_leaves } = this.#library.functions;
    return this.#chosen(leaves, (probabilities, choice) =>
      tokentrie_session_choose_leaves(
        this.#handle,
        tokens,
        tokens.length,
        trie,
        probabilities,
        probabilities.length,
        choice,
      ),
    );
  }

  close(): void {
    if (this.#vocab !== 0) this.#check(this.#library.functions.tokentrie_vocab_free(this.#vocab));
    this.#vocab = 0;
    this.#check(this.#library.functions.tokentrie_session_close(this.#handle));
  }

  /** Takes every token of a generation that was started; the status with which it ended. */
  #pull(): number {
    const { tokentrie_session_next } = this.#library.functions;
    const token = new Int32Array(1);
    const isDone = new Int32Array(1);
    const length = new SizeOut();
    let piece = new Uint8Array(256);
    for (;;) {
      const status = tokentrie_session_next(this.#handle, -1, token, piece, piece.length, length.memory, isDone);
      if (status === Status.ERROR_BUFFER) piece = new Uint8Array(length.value);
      else if (isDone[0] !== 0 || status < 0) return status;
      else if (status !== Status.NONE) this.#onToken(token[0] as number, text(piece.subarray(0, length.value)));
    }
  }

  #outcome(): Outcome {
    const info = this.#info();
    return {
      finish: FINISHES[info.finish] ?? "none",
      state: STATES[info.state] ?? "off",
      leaf: this.#leaf(),
      ...this.#said(),
      stats: {
        promptTokens: info.promptTokens,
        promptTokensReused: info.promptTokensReused,
        tokens: info.tokens,
        forcedTokens: info.forcedTokens,
        sampledTokens: info.sampledTokens,
        forwardPasses: info.forwardPasses,
        forwardPassesSaved: info.forwardPassesSaved,
        starved: info.starved,
        seconds: info.seconds,
      },
    };
  }

  #info(): SessionInfo {
    const memory = SESSION_INFO.write();
    this.#check(this.#library.functions.tokentrie_session_get_info(this.#handle, memory));
    return SESSION_INFO.read(memory);
  }

  #leaf(): Outcome["leaf"] {
    const { tokentrie_session_leaf } = this.#library.functions;
    const index = new Uint32Array(1);
    const length = new SizeOut();
    let name = new Uint8Array(256);
    let status = tokentrie_session_leaf(this.#handle, index, name, name.length, length.memory);
    if (status === Status.ERROR_BUFFER) {
      name = new Uint8Array(length.value);
      status = tokentrie_session_leaf(this.#handle, index, name, name.length, length.memory);
    }
    if (this.#check(status) === Status.NONE) return null;
    return { index: index[0] as number, name: text(name.subarray(0, length.value)) || null };
  }

  #said(): Pick<Outcome, "value" | "values" | "probabilities" | "logprobs" | "receipt"> {
    // An older library has no results.
    const said = this.#library.has("tokentrie_session_result") ? this.#result<Said>() : null;
    const values = said === null || Object.keys(said.values).length === 0 ? null : said.values;
    const { value = null, probabilities = {}, logprobs = [], receipt = null } = said ?? {};
    return { value, values, probabilities, logprobs, receipt };
  }

  /** What the last generation, choice or decision gave. */
  #result<Result>(): Result | null {
    const json = this.#text();
    return json === null ? null : (JSON.parse(json) as Result);
  }

  #text(): string | null {
    return readText(this.#library, (buffer, capacity, count) =>
      this.#library.functions.tokentrie_session_result(this.#handle, buffer, capacity, count),
    );
  }

  #chosen(count: number, call: (probabilities: Float64Array, choice: Uint8Array) => number): ChosenValues {
    const probabilities = new Float64Array(count);
    const memory = CHOICE.write();
    this.#check(call(probabilities, memory));
    const { best, mass, forwardPasses, seconds } = CHOICE.read(memory);
    return { probabilities, best, mass, forwardPasses, seconds };
  }

  #check(status: number): number {
    return check(this.#library, status);
  }
}
