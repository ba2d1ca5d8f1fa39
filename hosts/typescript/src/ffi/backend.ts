/** Foreign function interface that a runtime must offer: `bun.ts`, `koffi.ts` and `wasm.ts` do. */

/**
 * Types of arguments and results, as the header writes them:
 *
 * - `i32`, `u32`, `f32`, `f64`, `usize`: numbers. `handle`: a number below 2^53 that C takes as `uint64_t`.
 * - `address`: the same as `void *`. `buffer`: memory of a typed array, lent for one call; null for none. `input`: a
 *   buffer that C only reads.
 * - `string`: a result that ends with a zero, copied.
 * - `callback`: `void (*)(int32_t, const char *, int32_t, void *)`, called during the call, on the calling thread.
 */
export type CType =
  "void" | "i32" | "u32" | "f32" | "f64" | "usize" | "handle" | "address" | "buffer" | "input" | "string" | "callback";

export interface Signature<Arguments extends readonly CType[] = readonly CType[], Result extends CType = CType> {
  readonly arguments: Arguments;
  readonly result: Result;
}

export function signature<const Result extends CType, const Arguments extends CType[]>(
  result: Result,
  ...given: Arguments
): Signature<Arguments, Result> {
  return { arguments: given, result };
}

/** One token, its text, and whether the generation is over. */
export type TokenCallback = (token: number, text: string, isDone: boolean) => void;

export type Memory = Int32Array | Uint32Array | Uint8Array | Float32Array | Float64Array | BigUint64Array;

interface ToTypeScript {
  void: undefined;
  i32: number;
  u32: number;
  f32: number;
  f64: number;
  usize: number;
  handle: number;
  address: number;
  buffer: Memory | null;
  input: Memory | null;
  string: string;
  callback: TokenCallback;
}

/** The TypeScript function that calls a C function of this signature. */
export type Callable<S> =
  S extends Signature<infer Arguments, infer Result>
    ? (...given: { -readonly [Index in keyof Arguments]: ToTypeScript[Arguments[Index]] }) => ToTypeScript[Result]
    : never;

/** A loaded shared library. It is never unloaded: objects that it made may be in use until the process ends. */
export interface ForeignLibrary {
  readonly path: string;
  /** The function of this name, or null if the library has none. */
  find<S extends Signature>(name: string, signature: S): Callable<S> | null;
}

export interface Backend {
  readonly name: "bun:ffi" | "koffi" | "wasm";
  /** @throws Error of the runtime's own if the file cannot be loaded. */
  load(path: string): ForeignLibrary;
}
