/**
 * Shared steps of every call into the library: statuses become errors, results are read from buffers, handles freed.
 */
import {
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
  TokenNotAllowedError,
  TokenTrieError,
  VocabularyError,
} from "../errors.js";
import { Status } from "./abi.js";
import type { Library } from "./library.js";
import { isList, describeValue } from "../tree/payload.js";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/**
 * A text as C takes it.
 *
 * @throws ArgumentError for anything that is not a string, and for a lone surrogate: its encoding would be another
 * text.
 */
export function utf8(text: string, name = "text"): Uint8Array {
  return encoder.encode(textOf(text, name));
}

function textOf(text: unknown, name: string): string {
  if (typeof text !== "string") throw new ArgumentError(`${name} is ${describeValue(text)}: a string is needed`);
  if (!text.isWellFormed())
    throw new ArgumentError(`${name} is ${describeValue(text)}: it has half of a surrogate pair`);
  return text;
}

export const text = (bytes: Uint8Array): string => decoder.decode(bytes);

/** Turns an error status into an error with the library's message. Call it on the thread of the failed call. */
export function errorOf(library: Library, status: number): TokenTrieError {
  const name = library.functions.tokentrie_status_name(status);
  const error = new (classOf(status))(library.functions.tokentrie_last_error() || name);
  error.status = name;
  return error;
}

/** @throws TokenTrieError of the status's kind, if it is an error. */
export function check(library: Library, status: number): number {
  if (status < 0) throw errorOf(library, status);
  return status;
}

function classOf(status: number): new (message: string) => TokenTrieError {
  switch (status) {
    case Status.ERROR_HANDLE:
      return HandleError;
    case Status.ERROR_ARGUMENT:
    case Status.ERROR_BUFFER:
    case Status.ERROR_TEXT:
    case Status.ERROR_ROW:
    case Status.ERROR_LIMIT:
      return ArgumentError;
    case Status.ERROR_PAYLOAD:
      return PayloadError;
    case Status.ERROR_SET:
      return SetError;
    case Status.ERROR_SPEC:
      return SpecError;
    case Status.ERROR_FILE:
    case Status.ERROR_DAMAGED:
      return FileError;
    case Status.ERROR_VOCAB:
      return VocabularyError;
    case Status.ERROR_NOT_ALLOWED:
      return TokenNotAllowedError;
    case Status.ERROR_BUSY:
      return BusyError;
    case Status.ERROR_LLAMA:
      return LibraryError;
    case Status.ERROR_MODEL:
      return ModelError;
    case Status.ERROR_CANCELLED:
      return CancelledCall;
    default:
      return TokenTrieError;
  }
}

class CancelledCall extends CancelledError<undefined> {
  constructor(message: string) {
    super(message, undefined);
  }
}

/** A `size_t` that C writes: 64 bits, read without a bigint. Every platform of both runtimes is little-endian. */
export class SizeOut {
  readonly memory = new Uint32Array(2);

  get value(): number {
    return (this.memory[0] as number) + (this.memory[1] as number) * 2 ** 32;
  }
}

/** Scratch memory for results, which are then copied out. One thread uses it, for one call at a time. */
let ints = new Int32Array(256);
let bytes = new Uint8Array(256);
const count = new SizeOut();

type Filling<Buffer> = (buffer: Buffer, capacity: number, count: Uint32Array) => number;

/** Ids that a function writes. The buffer grows until they fit: a call that reports "too small" has no effect. */
export function readInts(library: Library, call: Filling<Int32Array>): Int32Array {
  let status = call(ints, ints.length, count.memory);
  if (status === Status.ERROR_BUFFER) {
    ints = new Int32Array(count.value);
    status = call(ints, ints.length, count.memory);
  }
  check(library, status);
  return ints.slice(0, count.value);
}

/** Bytes that a function writes; null for `TOKENTRIE_NONE`. */
export function readBytes(library: Library, call: Filling<Uint8Array>): Uint8Array | null {
  let status = call(bytes, bytes.length, count.memory);
  if (status === Status.ERROR_BUFFER) {
    bytes = new Uint8Array(count.value);
    status = call(bytes, bytes.length, count.memory);
  }
  return check(library, status) === Status.NONE ? null : bytes.slice(0, count.value);
}

export function readText(library: Library, call: Filling<Uint8Array>): string | null {
  const read = readBytes(library, call);
  return read === null ? null : text(read);
}

/** The handle that a function writes. */
export function makeHandle(library: Library, call: (handle: Uint32Array) => number): number {
  const handle = new SizeOut();
  check(library, call(handle.memory));
  return handle.value;
}

/**
 * Several texts in one buffer, and the offset at which each text ends.
 *
 * @throws ArgumentError as `utf8`.
 */
export function joinTexts(texts: readonly string[], name: string): { bytes: Uint8Array; ends: BigUint64Array } {
  if (!isList(texts)) throw new ArgumentError(`${name} is ${describeValue(texts)}: a list of strings is needed`);
  let most = 0;
  // Not `forEach`, which skips the holes of sparse arrays.
  for (let index = 0; index < texts.length; index++) most += 3 * textOf(texts[index], `${name}[${index}]`).length;
  const bytes = new Uint8Array(most);
  const ends = endsOf(texts.length);
  let length = 0;
  texts.forEach((item, index) => {
    const { written } = encoder.encodeInto(item, bytes.subarray(length)) as { written: number };
    length += written;
    ends[index] = BigInt(length);
  });
  return { bytes: bytes.subarray(0, length), ends };
}

/** Memory for the end offsets of `count` items. C gets memory even for zero items. */
export function endsOf(count: number): BigUint64Array {
  return new BigUint64Array(Math.max(count, 1)).subarray(0, count);
}

interface ForgottenHandle {
  readonly free: (handle: number) => number;
  readonly handle: number;
}

const COUNTED_BYTES = 1 << 16;

/** Frees handles that no caller freed. Programs with many large sets should free them explicitly. */
const forgotten = new FinalizationRegistry<ForgottenHandle>(({ free, handle }) => free(handle));

/** An object in the library, freed once: by `free()`, by `using`, or by the garbage collector. */
export abstract class Resource {
  /** The handle of the object in C. The library refuses a freed handle, and never reuses its number. */
  readonly handle: number;
  readonly library: Library;
  #held: ForgottenHandle | undefined;
  /** Memory in the library, as the garbage collector counts it. */
  protected weight: ArrayBuffer | undefined;

  protected constructor(library: Library, handle: number, free: (handle: number) => number) {
    // TypeScript enforces this; JavaScript can call `new` with any argument.
    if (!Number.isSafeInteger(handle) || handle < 0)
      throw new ArgumentError(`new ${new.target.name}(…) makes none: its static functions do`);
    this.library = library;
    this.handle = handle;
    this.#held = { free, handle };
    forgotten.register(this, this.#held, this);
  }

  /**
   * The handle for a call of this library: a handle of another library would name another object.
   *
   * @internal
   * @throws HandleError if it belongs to another library.
   */
  handleIn(library: Library): number {
    if (this.library === library) return this.handle;
    throw new HandleError(
      `this ${this.constructor.name} belongs to the library ${this.library.path}, and is used with ${library.path}: ` +
        "make it with that one",
    );
  }

  /** Reports the size of the object in the library to the garbage collector. */
  protected weighs(bytes: number): void {
    // An untouched buffer takes no memory, but the collector counts its size. Small objects are not counted.
    if (bytes >= COUNTED_BYTES) this.weight = new ArrayBuffer(bytes, { maxByteLength: bytes });
  }

  /** Frees it now. Freeing again does nothing; any other use throws `HandleError`. */
  free(): void {
    if (this.#held === undefined) return;
    forgotten.unregister(this);
    const { free, handle } = this.#held;
    this.#held = undefined;
    this.weight = undefined;
    check(this.library, free(handle));
  }

  [Symbol.dispose](): void {
    this.free();
  }
}
