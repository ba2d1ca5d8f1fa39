/**
 * WebAssembly, for pages and for machines without a shared library. C reads and writes only the module's own memory, so
 * lent memory is copied there for the call, and copied back where C may write.
 */
import { ArgumentError, BusyError, LibraryError, TokenizerError } from "../errors.js";
import type { Callable, CType, ForeignLibrary, Memory, Signature } from "./backend.js";
import { wasm, type WasmMemory, type WasmModule } from "./webassembly.js";

type Export = (...given: (number | bigint)[]) => number | bigint | undefined;

/** Functions that the module imports, by module name and function name. */
type Imports = Record<string, Record<string, (...given: number[]) => number | undefined>>;

/** Exports of the module beside the functions of the header: `crates/tokentrie-wasm`. */
interface ModuleExports {
  readonly memory: WasmMemory;
  /** Address of call memory for this many bytes, a multiple of 16; 0 if the memory is exhausted. */
  readonly tokentrie_wasm_memory: (bytes: number) => number;
}

/** Turns a text into tokens. */
export type Tokenizes = (text: string) => ArrayLike<number>;

const KEPT = 1 << 21;
const LARGEST = 2 ** 32 - 1;
/** Row length from which only the logits of allowed tokens are copied, not the whole row. */
const LONG_ROW = 512;
/** Maximum number of allowed tokens whose logits are copied one by one. */
const FEW = 1024;
const ALIGNED = 16;
const ONLY = 0;
/** Memory beside a row: a count, a kind, and ids. */
const ROOM_OF_ROW = 4 * FEW + 4 * ALIGNED;

const up = (bytes: number) => Math.ceil(bytes / ALIGNED) * ALIGNED;
const decoder = new TextDecoder();

/** Memory of the module: its buffer is replaced whenever it grows. */
class Views {
  bytes = new Uint8Array(0);
  words = new Int32Array(0);

  constructor(private readonly memory: WasmMemory) {}

  /** Returns these views, recreated after the memory has grown. */
  now(): this {
    const { buffer } = this.memory;
    if (this.bytes.buffer !== buffer) {
      this.bytes = new Uint8Array(buffer);
      this.words = new Int32Array(buffer);
    }
    return this;
  }

  /** Copies memory into the module. A detached buffer has no bytes, and no view of it can be created. */
  write(memory: Memory, to: number): void {
    if (memory.byteLength === 0) return;
    if (memory instanceof Int32Array) this.words.set(memory, to >> 2);
    else this.bytes.set(bytesOf(memory), to);
  }

  /** Copies the memory back. */
  read(memory: Memory, from: number): void {
    if (memory.byteLength === 0) return;
    if (memory instanceof Int32Array) memory.set(this.words.subarray(from >> 2, (from >> 2) + memory.length));
    else bytesOf(memory).set(this.bytes.subarray(from, from + memory.byteLength));
  }
}

/** Arguments of a function whose memory is lent. */
class Lends {
  readonly lent: readonly number[];

  constructor(readonly types: readonly CType[]) {
    this.lent = types.flatMap((type, at) => (type === "buffer" || type === "input" ? [at] : []));
  }
}

type RowCall = [sampler: number, row: Float32Array, length: number, token: Int32Array | null];

/** Allowed tokens, in the module's memory. */
interface AllowedBuffer {
  readonly sampler: bigint;
  readonly row: number;
  readonly ids: number;
  readonly count: number;
  readonly out: number;
}

/** A module of WebAssembly as a library. After a fault the module is broken, and every later call reports that. */
export class WasmLibrary implements ForeignLibrary {
  readonly #exports: Record<string, unknown>;
  readonly #own: ModuleExports;
  readonly #views: Views;
  readonly #tokenizers: (Tokenizes | undefined)[] = [];
  #tokens: ArrayLike<number> = [];
  #thrown: { readonly error: unknown } | undefined;
  #allowed: Export | undefined;
  #inside = false;
  /** Memory for calls: its address, and the size that is already allocated. */
  #base = 0;
  #have = 0;
  #broken: LibraryError | undefined;

  private constructor(
    readonly path: string,
    instantiate: (imports: Imports) => { readonly exports: Record<string, unknown> },
  ) {
    this.#exports = instantiate({ tokentrie: this.#imports(), env: { now: () => performance.now() } }).exports;
    this.#own = this.#exports as unknown as ModuleExports;
    if (!(this.#exports["memory"] instanceof wasm.Memory) || !this.#exports["tokentrie_wasm_memory"])
      throw new LibraryError(`${path} is not a module of tokentrie: it has no tokentrie_wasm_memory`);
    this.#views = new Views(this.#own.memory);
  }

  /** @throws LibraryError if it is not a module of this kind. */
  static of(module: WasmModule, path: string): WasmLibrary {
    return new WasmLibrary(path, (imports) => {
      try {
        return new wasm.Instance(module, imports);
      } catch (error) {
        throw new LibraryError(`${path} is not a module of tokentrie: ${(error as Error).message}`, { cause: error });
      }
    });
  }

  /** The error that broke it; undefined while it is whole. */
  get broken(): LibraryError | undefined {
    return this.#broken;
  }

  /** Bytes of memory that the module has; they never become fewer. */
  get memoryBytes(): number {
    return this.#own.memory.buffer.byteLength;
  }

  /** Registers a tokenizer under a number, by which the module calls it. */
  addTokenizer(tokenizes: Tokenizes): number {
    return this.#tokenizers.push(tokenizes) - 1;
  }

  find<S extends Signature>(name: string, signature: S): Callable<S> | null {
    const found = this.#exports[name];
    if (typeof found !== "function") return null;
    const call = found as Export;
    const read = this.#reader(signature.result);
    const lends = new Lends(signature.arguments);
    let given = (...all: unknown[]): unknown => read(this.#call(() => this.#lend(call, lends, all)));
    // The objects of a stopped module are lost with it.
    if (name.endsWith("_free")) given = this.#whileWhole(given);
    // Functions that every decode step calls, with a row.
    if (name === "tokentrie_sampler_sample") given = this.#withRow(given, (...all) => this.#sample(call, all));
    if (name === "tokentrie_sampler_apply") given = this.#withRow(given, (...all) => this.#apply(call, all));
    return given as Callable<S>;
  }

  /** Frees nothing once the module is broken: the garbage collector must not throw, and `using` not hide the fault. */
  #whileWhole(free: (...given: unknown[]) => unknown) {
    return (...given: unknown[]): unknown => (this.#broken ? 0 : free(...given));
  }

  /** Runs a call, unless the module is broken; an exception of the call breaks it. */
  #call<Result>(run: () => Result): Result {
    if (this.#broken) throw this.#broken;
    if (this.#inside) throw new BusyError("a tokenizer calls the module that asks it: it may not");
    let result: Result;
    this.#inside = true;
    this.#thrown = undefined;
    try {
      result = run();
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

  /** Memory in the module with room for so many bytes, until the next call. */
  #room(bytes: number): number {
    if (bytes <= this.#have) return this.#base;
    this.#base = this.#own.tokentrie_wasm_memory(bytes) >>> 0;
    this.#have = this.#base === 0 ? 0 : bytes;
    if (this.#base === 0) throw new ArgumentError(`a call needs ${bytes} bytes, and the module can get no more memory`);
    return this.#base;
  }

  /** Copies lent memory into the module, calls the function, and copies the memory back. */
  #lend(call: Export, { types, lent }: Lends, given: readonly unknown[]): number | bigint | undefined {
    const numbers = types.map((type, at) => numberOf(type, given[at]));
    let bytes = ALIGNED;
    for (const at of lent) bytes += up((given[at] as Memory | null)?.byteLength ?? 0);
    let next = this.#room(bytes);
    const views = this.#views.now();
    for (const at of lent) {
      const memory = given[at] as Memory | null;
      if (memory === null) continue;
      numbers[at] = next;
      views.write(memory, next);
      next += up(memory.byteLength);
    }
    const result = call(...numbers);
    const after = this.#views.now();
    for (const at of lent) {
      const memory = given[at] as Memory | null;
      if (memory !== null && types[at] === "buffer") after.read(memory, numbers[at] as number);
    }
    if (bytes > KEPT) {
      this.#have = 0;
      this.#own.tokentrie_wasm_memory(0);
    }
    return result;
  }

  /** Long rows are not copied whole: if few tokens are allowed, the module gets only their logits. */
  #withRow(all: (...given: unknown[]) => unknown, few: (...given: RowCall) => number | null) {
    return (...given: unknown[]): unknown => {
      const [, row, length] = given as RowCall;
      if (row === null || row.length < LONG_ROW || row.length !== length || 4 * length > KEPT) return all(...given);
      return this.#call(() => few(...(given as RowCall))) ?? all(...given);
    };
  }

  #sample(call: Export, [sampler, row, length, token]: RowCall): number | null {
    const found = this.#fewOf(sampler, row, length);
    if (found === null) return null;
    const status = call(found.sampler, found.row, length, found.out) as number;
    if (token !== null) token[0] = this.#views.now().words[found.out >> 2] as number;
    return status;
  }

  #apply(call: Export, [sampler, row, length]: RowCall): number | null {
    const found = this.#fewOf(sampler, row, length);
    if (found === null) return null;
    const status = call(found.sampler, found.row, length) as number;
    if (status < 0) return status;
    const { words } = this.#views.now();
    const bits = new Int32Array(row.buffer, row.byteOffset, length);
    row.fill(-Infinity);
    const [first, begins] = [found.ids >> 2, found.row >> 2];
    for (let at = first; at < first + found.count; at++) {
      const id = words[at] as number;
      bits[id] = words[begins + id] as number;
    }
    return status;
  }

  /** Copies the logits of the allowed tokens; null if these are many, or not known. */
  #fewOf(handle: number, row: Float32Array, length: number): AllowedBuffer | null {
    this.#allowed ??= this.#exports["tokentrie_sampler_allowed"] as Export;
    const begins = this.#room(4 * length + ROOM_OF_ROW);
    const out = begins + up(4 * length);
    const ids = out + 2 * ALIGNED;
    const sampler = BigInt(handle);
    const status = this.#allowed(sampler, ids, FEW, out, out + ALIGNED);
    const { words } = this.#views.now();
    if (status !== 0 || words[(out + ALIGNED) >> 2] !== ONLY) return null;
    const count = words[out >> 2] as number;
    // Copied as integers, because a NaN copied as a number could lose bits.
    const bits = new Int32Array(row.buffer, row.byteOffset, length);
    const [first, to] = [ids >> 2, begins >> 2];
    for (let at = first; at < first + count; at++) {
      const id = words[at] as number;
      // A row that is too short is refused by the module.
      if (id < length) words[to + id] = bits[id] as number;
    }
    return { sampler, row: begins, ids, count, out };
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

  /** Records a call that ended in a fault. */
  #break(error: unknown): LibraryError {
    let said = "";
    try {
      // A panic leaves its message where errors leave theirs.
      const last = this.#exports["tokentrie_last_error"] as Export;
      said = this.#string(last() as number);
    } catch {
      // Without a message the cause stays unknown.
    }
    const reason = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    const fault = said.startsWith("a fault of the library") ? said : "a fault of the library, or no memory is left";
    const message = `${fault} (${reason}). The module stopped and cannot be used any more: load it anew`;
    this.#broken = new LibraryError(message, { cause: error });
    return this.#broken;
  }

  /** Functions that the module imports from its host. */
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

  /** Returns the number of tokens; -1 if the tokenizer failed. An exception must not pass through the module. */
  #tokenize(tokenizer: number, text: number, length: number): number {
    try {
      const { bytes } = this.#views.now();
      const found = this.#tokenizers[tokenizer]?.(decoder.decode(bytes.subarray(text, text + length)));
      if (found === undefined) throw new TypeError("unknown tokenizer");
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
  if (type === "handle") {
    // The module is not at fault, and stays usable.
    if (!Number.isSafeInteger(given)) throw new ArgumentError(`${String(given)} is not an object of this library`);
    return BigInt(given as number);
  }
  if (type === "buffer" || type === "input") return 0;
  // The library refuses the largest value; truncation would turn a larger one into a small valid one.
  if (type === "usize") return Math.min(given as number, LARGEST);
  return given as number;
}
