/**
 * WebAssembly, for pages, and wherever there is no library of the machine. C reads and writes the memory of the module,
 * so what is lent to it is copied there for the call, and back where C may write.
 */
import { ArgumentError, BusyError, LibraryError, TokenizerError } from "../errors.js";
import type { Callable, CType, ForeignLibrary, Memory, Signature } from "./backend.js";

type Export = (...given: (number | bigint)[]) => number | bigint | undefined;

/** What the module must be able to do beside the functions of the header: `crates/tokentrie-wasm`. */
type Imports = Record<string, Record<string, (...given: number[]) => number | undefined>>;

interface Own {
  readonly memory: WebAssembly.Memory;
  /** Memory for calls with room for so many bytes, at a multiple of 16; 0 where there is none left. */
  readonly tokentrie_wasm_memory: (bytes: number) => number;
}

/** Turns a text into tokens. */
export type Tokenizes = (text: string) => ArrayLike<number>;

const KEPT = 1 << 21;
const LARGEST = 2 ** 32 - 1;
/** Rows from here on are read where they are: only the logits that may be chosen are copied. */
const LONG_ROW = 512;
/** So many of them at most. */
const FEW = 1024;
const ALIGNED = 16;
const ONLY = 0;

const up = (bytes: number) => Math.ceil(bytes / ALIGNED) * ALIGNED;
const decoder = new TextDecoder();

/** Memory of the module: where it begins may change whenever it grows. */
class Views {
  bytes = new Uint8Array(0);
  words = new Int32Array(0);
  floats = new Float32Array(0);

  constructor(private readonly memory: WebAssembly.Memory) {}

  /** These views, made again where the memory has grown. */
  now(): this {
    const { buffer } = this.memory;
    if (this.bytes.buffer !== buffer) {
      this.bytes = new Uint8Array(buffer);
      this.words = new Int32Array(buffer);
      this.floats = new Float32Array(buffer);
    }
    return this;
  }
}

/** A module of WebAssembly as a library. What stops it by a fault leaves it broken, and every later call says so. */
export class WasmLibrary implements ForeignLibrary {
  readonly #exports: Record<string, unknown>;
  readonly #own: Own;
  readonly #views: Views;
  readonly #tokenizers: (Tokenizes | undefined)[] = [];
  #tokens: ArrayLike<number> = [];
  #thrown: { readonly error: unknown } | undefined;
  #inside = false;
  #broken: LibraryError | undefined;

  private constructor(
    readonly path: string,
    instantiate: (imports: Imports) => WebAssembly.Instance,
  ) {
    this.#exports = instantiate({ tokentrie: this.#imports() }).exports;
    this.#own = this.#exports as unknown as Own;
    if (!(this.#exports["memory"] instanceof WebAssembly.Memory) || !this.#exports["tokentrie_wasm_memory"])
      throw new LibraryError(`${path} is no module of tokentrie: it has no tokentrie_wasm_memory`);
    this.#views = new Views(this.#own.memory);
  }

  /** @throws LibraryError if it is no module of this kind. */
  static of(module: WebAssembly.Module, path: string): WasmLibrary {
    return new WasmLibrary(path, (imports) => {
      try {
        return new WebAssembly.Instance(module, imports);
      } catch (error) {
        throw new LibraryError(`${path} is no module of tokentrie: ${(error as Error).message}`, { cause: error });
      }
    });
  }

  /** What it is broken by; undefined while it is whole. */
  get broken(): LibraryError | undefined {
    return this.#broken;
  }

  /** Bytes of memory that the module has; they never become fewer. */
  get memoryBytes(): number {
    return this.#own.memory.buffer.byteLength;
  }

  /** Keeps a tokenizer, by which the module asks for the tokens of texts, under a number. */
  addTokenizer(tokenizes: Tokenizes): number {
    return this.#tokenizers.push(tokenizes) - 1;
  }

  find<S extends Signature>(name: string, signature: S): Callable<S> | null {
    const found = this.#exports[name];
    if (typeof found !== "function") return null;
    const lends = signature.arguments.map((type, at) => [type, at] as const);
    const lent = lends.filter(([type]) => type === "buffer" || type === "input").map(([, at]) => at);
    const call = found as Export;
    const read = this.#reader(signature.result);
    // Several functions that a step calls have a row as their only input.
    const rowAt = /^tokentrie_sampler_(sample|advance)$/.test(name) ? 1 : -1;
    const given = (...all: unknown[]) => read(this.#call(call, signature.arguments, lent, all, rowAt));
    return given as Callable<S>;
  }

  #call(call: Export, types: readonly CType[], lent: readonly number[], given: unknown[], rowAt: number) {
    if (this.#broken) throw this.#broken;
    if (this.#inside) throw new BusyError("a tokenizer calls the module that asks it: it may not");
    const numbers = types.map((type, at) => numberOf(type, given[at]));
    let result: number | bigint | undefined;
    this.#inside = true;
    this.#thrown = undefined;
    try {
      result = this.#lend(call, types, lent, given, numbers, rowAt);
    } catch (error) {
      if (error instanceof ArgumentError) throw error;
      throw this.#break(error);
    } finally {
      this.#inside = false;
    }
    const thrown = this.#thrown as { readonly error: unknown } | undefined;
    if (thrown === undefined || typeof result !== "number" || result >= 0) return result;
    const reason = thrown.error instanceof Error ? thrown.error.message : String(thrown.error);
    throw new TokenizerError(`the tokenizer: ${reason}`, { cause: thrown.error });
  }

  /** Copies what is lent into the module, calls, and copies back. */
  #lend(
    call: Export,
    types: readonly CType[],
    lent: readonly number[],
    given: unknown[],
    numbers: (number | bigint)[],
    rowAt: number,
  ): number | bigint | undefined {
    const row = rowAt >= 0 ? (given[rowAt] as Float32Array) : null;
    let bytes = 0;
    for (const at of lent) bytes += up((given[at] as Memory | null)?.byteLength ?? 0);
    const isLong = row !== null && row.length >= LONG_ROW;
    const base = this.#own.tokentrie_wasm_memory(bytes + (isLong ? 4 * FEW + 2 * ALIGNED : 0)) >>> 0;
    if (base === 0) throw new ArgumentError(`a call needs ${bytes} bytes, and the module can get no more memory`);
    const views = this.#views.now();
    let next = base;
    for (const at of lent) {
      const memory = given[at] as Memory | null;
      if (memory === null) continue;
      numbers[at] = next;
      // A buffer that was given away has no bytes, and no view of it can be made.
      if (memory.byteLength > 0 && (at !== rowAt || !isLong)) views.bytes.set(bytesOf(memory), next);
      next += up(memory.byteLength);
    }
    if (isLong) this.#copyRow(row, numbers[0] as bigint, numbers[rowAt] as number, next);
    const result = call(...numbers);
    const after = this.#views.now();
    for (const at of lent) {
      const memory = given[at] as Memory | null;
      if (memory === null || types[at] !== "buffer" || memory.byteLength === 0) continue;
      const begins = numbers[at] as number;
      bytesOf(memory).set(after.bytes.subarray(begins, begins + memory.byteLength));
    }
    if (bytes > KEPT) this.#own.tokentrie_wasm_memory(0);
    return result;
  }

  /** What of a row may be chosen from: the module reads no other logit of it. All where that is much, or not known. */
  #copyRow(row: Float32Array, sampler: bigint, to: number, free: number): void {
    const [ids, count, kind] = [free + 2 * ALIGNED, free, free + ALIGNED];
    const allowed = this.#exports["tokentrie_sampler_allowed"] as Export;
    const status = allowed(sampler, ids, FEW, count, kind);
    const views = this.#views.now();
    const found = views.words[count >> 2] as number;
    if (status !== 0 || views.words[kind >> 2] !== ONLY) {
      views.floats.set(row, to >> 2);
      return;
    }
    const { words, floats } = views;
    const [first, begins] = [ids >> 2, to >> 2];
    for (let at = first; at < first + found; at++) {
      const id = words[at] as number;
      // The module refuses a row that is too short before it reads it.
      if (id < row.length) floats[begins + id] = row[id] as number;
    }
  }

  #reader(result: CType): (raw: number | bigint | undefined) => unknown {
    if (result === "string") return (raw) => this.#string(raw as number);
    if (result === "u32" || result === "usize" || result === "address") return (raw) => (raw as number) >>> 0;
    if (result === "handle") return (raw) => Number(raw);
    return (raw) => raw;
  }

  #string(at: number): string {
    if (at === 0) return "";
    const { bytes } = this.#views.now();
    return decoder.decode(bytes.subarray(at, bytes.indexOf(0, at)));
  }

  /** What a call that did not come back leaves behind. */
  #break(error: unknown): LibraryError {
    let said = "";
    try {
      // A panic leaves its sentence where errors do.
      const last = this.#exports["tokentrie_last_error"] as Export;
      said = this.#string(last() as number);
    } catch {
      // Then nothing is known of it.
    }
    const reason = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    const fault = said.startsWith("a fault of the library") ? said : "a fault of the library, or no memory is left";
    const message = `${fault} (${reason}). The module stopped and cannot be used any more: load it anew`;
    this.#broken = new LibraryError(message, { cause: error });
    return this.#broken;
  }

  /** What the module asks its host for. */
  #imports(): Imports[string] {
    return {
      now: () => performance.now(),
      local_time: () => {
        const now = new Date();
        return now.getTime() - now.getTimezoneOffset() * 60_000;
      },
      tokenize: (tokenizer: number, text: number, length: number) =>
        this.#tokenize(tokenizer, text >>> 0, length >>> 0),
      take_tokens: (to: number) => {
        const { words } = this.#views.now();
        words.set(this.#tokens, (to >>> 0) >> 2);
        this.#tokens = [];
      },
    };
  }

  /** How many tokens there are; -1 where the tokenizer failed. Nothing may be thrown through the module. */
  #tokenize(tokenizer: number, text: number, length: number): number {
    try {
      const { bytes } = this.#views.now();
      const found = this.#tokenizers[tokenizer]?.(decoder.decode(bytes.subarray(text, text + length)));
      if (found === undefined) throw new TypeError("there is no such tokenizer");
      this.#tokens = Int32Array.from(found, (id) => (Number.isInteger(id) && id >= 0 && id < 2 ** 31 ? id : -1));
      return this.#tokens.length;
    } catch (error) {
      this.#thrown = { error };
      return -1;
    }
  }
}

function bytesOf(memory: Memory): Uint8Array {
  return new Uint8Array(memory.buffer, memory.byteOffset, memory.byteLength);
}

function numberOf(type: CType, given: unknown): number | bigint {
  if (type === "handle") return BigInt(given as number);
  if (type === "buffer" || type === "input") return 0;
  // What is more than there can be is refused for what it is, and not taken for less.
  if (type === "usize") return Math.min(given as number, LARGEST);
  return given as number;
}
