import { ArgumentError } from "../errors.js";
import { AFTER, ALLOWED, SAMPLER_OPTIONS, type SamplerOptions as Numbers, STATES, Status } from "../ffi/abi.js";
import { check, makeHandle, Resource, readInts, readText, SizeOut, text, utf8 } from "../ffi/call.js";
import { modeNumber, describeValue, type TokenTreeMode, type TokenTreePayload } from "../tree/payload.js";
import type { Library } from "../ffi/library.js";
import { integerOf } from "../ffi/numbers.js";
import { Constraint } from "./constraint.js";
import { type Leaf, Trie } from "./trie.js";
import { idsOf, Vocab } from "./vocab.js";

/** Sampling settings of the library. A missing setting has no effect; a missing seed comes from the system. */
export type DrawOptions = Partial<Omit<Numbers, "mode" | "after" | "hasSeed">>;

/** Options of a sampler. */
export interface SamplerOptions extends DrawOptions {
  /** Mode of the choice: `"greedy"` unless given. */
  readonly mode?: TokenTreeMode;
  /** Tokens that may end a value, such as a closing quote. */
  readonly endTokens?: readonly number[];
  /** After a value: `"free"` text (unless given), or `"stop"`: only end of generation. */
  readonly after?: (typeof AFTER)[number];
}

/** Allowed next tokens. */
export interface Allowed {
  /**
   * `"only"`: these ids alone. `"open"`: everything; these go on, all others end the value that ends here. `"all"`:
   * everything, none is listed.
   */
  readonly kind: (typeof ALLOWED)[number];
  /** Token ids, ascending: at most `count`. */
  readonly ids: Int32Array;
}

/** Walks a trie or another constraint over rows of logits: each a `Float32Array` at least as long as the vocabulary. */
export class Sampler extends Resource {
  // Functions and buffers of every step, looked up and allocated once.
  readonly #sample: (sampler: number, row: Float32Array, length: number, token: Int32Array) => number;
  readonly #token = new Int32Array(1);
  readonly #kind = new Int32Array(1);

  private constructor(set: Trie | Constraint, handle: number) {
    super(set.library, handle, set.library.functions.tokentrie_sampler_free);
    this.#sample = set.library.functions.tokentrie_sampler_sample;
    this.set = set;
  }

  /** Trie or constraint that it walks. */
  readonly set: Trie | Constraint;

  /**
   * @param vocab - a vocabulary, or the number of its tokens; then no token is known to end the output.
   * @param set - a trie, a constraint, or a payload as object or JSON text.
   * @throws PayloadError, VocabularyError, ArgumentError: it says what, where, and with which value.
   * @example
   * const sampler = Sampler.create(32_000, { modelId: "m", descriptors: [{ path: "action", leaves }] });
   */
  static create(
    vocab: Vocab | number,
    set: Trie | Constraint | TokenTreePayload | string,
    options: SamplerOptions = {},
  ): Sampler {
    if (typeof vocab !== "number" && !(vocab instanceof Vocab)) {
      throw new ArgumentError(`vocab is ${describeValue(vocab)}: a Vocab or the number of tokens is needed`);
    }
    const isMade = set instanceof Trie || set instanceof Constraint;
    const library = isMade ? set.library : typeof vocab === "number" ? undefined : vocab.library;
    const words = typeof vocab === "number" ? Vocab.ofSize(vocab, [], library) : vocab;
    const walked = isMade ? set : Trie.fromPayload(set, { vocab: words });
    const { mode = 0, after = "free", endTokens = [], ...draw } = options;
    const settings = SAMPLER_OPTIONS.write({
      temperature: 1,
      ...draw,
      mode: modeNumber(mode),
      after: afterNumber(after),
      ...seedOf(words.library, draw.seed),
    });
    const ends = idsOf(endTokens, "endTokens");
    const { tokentrie_sampler_new } = words.library.functions;
    const handle = makeHandle(words.library, (out) =>
      tokentrie_sampler_new(walked.handleIn(words.library), words.handle, settings, ends, ends.length, out),
    );
    // The sampler keeps what it needs of it.
    if (words !== vocab) words.free();
    return new Sampler(walked, handle);
  }

  /** Returns the allowed tokens. */
  allowed(): Allowed {
    const { tokentrie_sampler_allowed } = this.library.functions;
    const kind = this.#kind;
    const ids = readInts(this.library, (buffer, capacity, count) =>
      tokentrie_sampler_allowed(this.handle, buffer, capacity, count, kind),
    );
    return { kind: ALLOWED[kind[0] as number] ?? "only", ids };
  }

  /** The tokens that must come next: no forward pass is needed for them. */
  forced(): Int32Array {
    const { tokentrie_sampler_forced } = this.library.functions;
    return readInts(this.library, (buffer, capacity, count) =>
      tokentrie_sampler_forced(this.handle, buffer, capacity, count),
    );
  }

  /** Sets the logits of tokens that are not allowed to -Infinity, in place; the others keep their bits. */
  apply(row: Float32Array): void {
    checkRow(row);
    check(this.library, this.library.functions.tokentrie_sampler_apply(this.handle, row, row.length));
  }

  /** Chooses a token without accepting it. The cost grows with the allowed tokens, not with the row. */
  sample(row: Float32Array): number {
    checkRow(row);
    const status = this.#sample(this.handle, row, row.length, this.#token);
    if (status < 0) check(this.library, status);
    return this.#token[0] as number;
  }

  /** Chooses and accepts a token, then accepts the forced tokens after it. Returns all tokens to append. */
  advance(row: Float32Array): Int32Array {
    checkRow(row);
    const { tokentrie_sampler_advance } = this.library.functions;
    return readInts(this.library, (buffer, capacity, count) =>
      tokentrie_sampler_advance(this.handle, row, row.length, buffer, capacity, count),
    );
  }

  /**
   * Accepts all of these tokens or none.
   *
   * @throws TokenNotAllowedError if one may not come; the state stays as it was.
   */
  accept(tokens: number | readonly number[] | Int32Array): void {
    const ids = idsOf(typeof tokens === "number" ? [tokens] : tokens, "tokens");
    check(this.library, this.library.functions.tokentrie_sampler_accept(this.handle, ids, ids.length));
  }

  /** Takes back the last tokens that were accepted. */
  rollback(count: number): void {
    check(
      this.library,
      this.library.functions.tokentrie_sampler_rollback(this.handle, integerOf(count, "count", "size")),
    );
  }

  /** Returns to the start of the first trie, and enforces it again. */
  reset(): void {
    check(this.library, this.library.functions.tokentrie_sampler_reset(this.handle));
  }

  /** Starts the trie with this path. */
  activate(path: string): void {
    const name = utf8(path, "path");
    check(this.library, this.library.functions.tokentrie_sampler_activate(this.handle, name, name.length));
  }

  /** Allows every token until `activate` or `reset`. */
  deactivate(): void {
    check(this.library, this.library.functions.tokentrie_sampler_deactivate(this.handle));
  }

  /** An independent copy at the same position. */
  clone(): Sampler {
    const { tokentrie_sampler_clone } = this.library.functions;
    return new Sampler(
      this.set,
      makeHandle(this.library, (out) => tokentrie_sampler_clone(this.handle, out)),
    );
  }

  /** Writes all words: bit i % 32 of word i / 32 is 1 where token i may come. */
  fillBitmask(words: Uint32Array | Int32Array): void {
    if (!(words instanceof Uint32Array || words instanceof Int32Array)) {
      throw new ArgumentError(`words: a Uint32Array or Int32Array is needed, not ${describeValue(words)}`);
    }
    check(this.library, this.library.functions.tokentrie_sampler_bitmask(this.handle, words, words.length));
  }

  /** `"active"`, `"complete"`, `"idle"` (deactivated) or `"off"` (something else was accepted). */
  get state(): (typeof STATES)[number] {
    return STATES[this.#position().state] ?? "off";
  }

  /** Number of tokens walked in the trie. */
  get depth(): number {
    return this.#position().depth;
  }

  /** The leaf that is complete, or null. */
  get leaf(): Leaf | null {
    const index = new Uint32Array(1);
    const count = new SizeOut();
    const { tokentrie_sampler_leaf } = this.library.functions;
    let name = new Uint8Array(64);
    let status = tokentrie_sampler_leaf(this.handle, index, name, name.length, count.memory);
    if (status === Status.ERROR_BUFFER) {
      name = new Uint8Array(count.value);
      status = tokentrie_sampler_leaf(this.handle, index, name, name.length, count.memory);
    }
    if (check(this.library, status) === Status.NONE) return null;
    return { index: index[0] as number, name: text(name.subarray(0, count.value)) || null };
  }

  /**
   * Filled fields of a form so far, by name, as text; null without any. `form.values(sampler)` gives it its types, once
   * all is filled.
   */
  get values(): Readonly<Record<string, string>> | null {
    const { tokentrie_sampler_values } = this.library.functions;
    const json = readText(this.library, (...room) => tokentrie_sampler_values(this.handle, ...room));
    return json === null ? null : (JSON.parse(json) as Record<string, string>);
  }

  #position(): { state: number; depth: number } {
    const state = new Int32Array(1);
    const depth = new SizeOut();
    check(this.library, this.library.functions.tokentrie_sampler_state(this.handle, state, depth.memory));
    return { state: state[0] as number, depth: depth.value };
  }
}

function checkRow(row: Float32Array): void {
  if (!(row instanceof Float32Array)) {
    throw new ArgumentError(
      `logits: a Float32Array is needed, not ${describeValue((row as object)?.constructor?.name)}`,
    );
  }
}

function afterNumber(after: (typeof AFTER)[number]): number {
  const number = AFTER.indexOf(after);
  if (number < 0) throw new ArgumentError(`after is ${describeValue(after)}: "free" or "stop" is needed`);
  return number;
}

/** Without a seed the library asks the system for one, and a module of WebAssembly cannot. */
function seedOf(library: Library, seed: number | undefined): { readonly seed?: number; readonly hasSeed: number } {
  if (seed !== undefined || library.backend !== "wasm") return { hasSeed: Number(seed !== undefined) };
  return { seed: crypto.getRandomValues(new Uint32Array(1))[0] as number, hasSeed: 1 };
}
