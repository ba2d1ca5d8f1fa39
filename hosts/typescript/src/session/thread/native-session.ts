/** The blocking calls of one session; they run on the thread that `worker.ts` is. */
import { ModelError } from "../../errors.js";
import { FINISHES, SESSION_INFO, SESSION_OPTIONS, type SessionInfo, STATES, Status } from "../../ffi/abi.js";
import { check, errorOf, makeHandle, readInts, readText, SizeOut, text, utf8 } from "../../ffi/call.js";
import type { Library } from "../../ffi/library.js";
import { constraintHandle, trieHandle } from "../../native/constraint.js";
import { jsonText } from "../../native/spec.js";
import {
  type Calls,
  type ChoiceJson,
  type Outcome,
  type PlainError,
  plain,
  type ProbabilityJson,
  type Receipt,
  type SessionSettings,
  type TokenLogprob,
} from "./protocol.js";

/** Fields read from the JSON of a generation. */
interface GenerationJson {
  readonly leaf: { readonly index: number; readonly name: string | null } | null;
  readonly value: string | null;
  readonly values: Readonly<Record<string, string>>;
  readonly probabilities: Outcome["probabilities"];
  readonly logprobs: readonly TokenLogprob[];
  readonly receipt: Receipt | null;
}

export class NativeSession implements Calls {
  readonly #library: Library;
  readonly #onToken: (token: number, text: string) => void;
  #handle = 0;
  /** Created together with the first constraint. */
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
    this.#set("responseTemplate", settings.responseTemplate, "tokentrie_session_set_response_template");
    this.#set("draft", settings.draft, "tokentrie_session_set_draft");
    return this.#handle;
  }

  /** Calls a setter with a text that the session was opened with, and closes the session where that is refused. */
  #set(
    name: string,
    text: string | null,
    setter: "tokentrie_session_set_response_template" | "tokentrie_session_set_draft",
  ): void {
    if (text === null) return;
    const bytes = utf8(text, name);
    const status = this.#library.functions[setter](this.#handle, bytes, bytes.length);
    const failed = status === Status.OK ? null : errorOf(this.#library, status);
    if (failed === null) return;
    this.#library.functions.tokentrie_session_close(this.#handle);
    throw failed;
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

  prefill(prompt: string | Int32Array, slotId: number): number {
    const given = typeof prompt === "string" ? prompt : Array.from(prompt);
    const request = jsonText({ prompt: given, ...(slotId === -1 ? {} : { slot: slotId }) });
    const [taken, json] = [new SizeOut(), utf8(request, "request")];
    const { tokentrie_session_prefill } = this.#library.functions;
    this.#check(tokentrie_session_prefill(this.#handle, json, json.length, taken.memory));
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

  generate(request: string): { outcome: Outcome; error: PlainError | null } {
    const json = utf8(request, "request");
    this.#check(this.#library.functions.tokentrie_session_start(this.#handle, json, json.length));
    const status = this.#pull();
    // Read at once, because a later call would overwrite the error message.
    const error = status < 0 ? plain(errorOf(this.#library, status)) : null;
    return { outcome: this.#outcome(), error };
  }

  chat(request: string): { reply: string | null; error: PlainError | null } {
    const json = utf8(request, "request");
    this.#check(this.#library.functions.tokentrie_chat_start(this.#handle, json, json.length));
    const status = this.#pull();
    const error = status < 0 ? plain(errorOf(this.#library, status)) : null;
    const reply = this.#text();
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

  values(spec: string): number {
    const constraint = this.constraint(spec);
    try {
      return trieHandle(this.#library, constraint);
    } finally {
      this.#library.functions.tokentrie_constraint_free(constraint);
    }
  }

  choose(request: string): ChoiceJson {
    const json = utf8(request, "request");
    this.#check(this.#library.functions.tokentrie_session_choose(this.#handle, json, json.length));
    const chosen = this.#result<ChoiceJson>();
    if (chosen === null) throw new ModelError("the library returned no choice");
    return chosen;
  }

  probability(request: string): ProbabilityJson {
    const json = utf8(request, "request");
    this.#check(this.#library.functions.tokentrie_session_probability(this.#handle, json, json.length));
    const found = this.#result<ProbabilityJson>();
    if (found === null) throw new ModelError("the library returned no probability");
    return found;
  }

  decide(request: string): string {
    const json = utf8(request, "request");
    this.#check(this.#library.functions.tokentrie_session_decide(this.#handle, json, json.length));
    const answers = this.#text();
    if (answers === null) throw new ModelError("there are no answers");
    return answers;
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

  /** Returns the fields of a generation that failed, which are unknown. */
  #said(): Pick<Outcome, "leaf" | "value" | "values" | "probabilities" | "logprobs" | "receipt"> {
    const said = this.#result<GenerationJson>();
    if (said === null) {
      return { leaf: null, value: null, values: null, probabilities: {}, logprobs: [], receipt: null };
    }
    const { leaf, value, probabilities, logprobs, receipt } = said;
    return {
      leaf: leaf && { index: leaf.index, name: leaf.name || null },
      value,
      values: Object.keys(said.values).length === 0 ? null : said.values,
      probabilities,
      logprobs,
      receipt,
    };
  }

  /** Returns the result of the last call. */
  #result<Result>(): Result | null {
    const json = this.#text();
    return json === null ? null : (JSON.parse(json) as Result);
  }

  #text(): string | null {
    return readText(this.#library, (buffer, capacity, count) =>
      this.#library.functions.tokentrie_session_result(this.#handle, buffer, capacity, count),
    );
  }

  #check(status: number): number {
    return check(this.#library, status);
  }
}
