/** `bun:ffi`, which is part of bun. */
import { createRequire } from "node:module";
import type { Backend, Callable, CType, ForeignLibrary, Signature, TokenCallback } from "./backend.js";

/** The used part of `bun:ffi`; importing its own types would import all types of bun. */
interface BunFfi {
  dlopen(
    path: string,
    symbols: Record<string, { args: string[]; returns: string }>,
  ): {
    symbols: Record<string, (...given: unknown[]) => unknown>;
  };
  JSCallback: new (
    callback: (...given: never[]) => unknown,
    definition: { args: string[]; returns: string },
  ) => { readonly ptr: number | null; close(): void };
  CString: new (pointer: number) => { toString(): string };
}

const TYPES: Record<CType, string> = {
  void: "void",
  i32: "i32",
  u32: "u32",
  f32: "f32",
  f64: "f64",
  usize: "u64_fast",
  handle: "u64_fast",
  address: "ptr",
  buffer: "ptr",
  input: "ptr",
  string: "ptr",
  callback: "function",
};

type Raw = (...given: unknown[]) => unknown;

export function bunBackend(): Backend {
  // Not an import, because bundlers for other runtimes would try to resolve the module.
  const ffi = createRequire(import.meta.url)("bun:ffi") as BunFfi;
  return { name: "bun:ffi", load: (path) => new BunLibrary(ffi, path) };
}

class BunLibrary implements ForeignLibrary {
  constructor(
    private readonly ffi: BunFfi,
    readonly path: string,
  ) {
    // Fails here, not at the first function, if the library does not exist. `dlopen` needs at least one symbol.
    try {
      ffi.dlopen(path, { tokentrie_abi_version: { args: [], returns: "u32" } });
    } catch (error) {
      if (!isMissingSymbol(error)) throw error;
    }
  }

  find<S extends Signature>(name: string, signature: S): Callable<S> | null {
    const definition = { args: signature.arguments.map((type) => TYPES[type]), returns: TYPES[signature.result] };
    let raw: Raw | undefined;
    try {
      raw = this.ffi.dlopen(this.path, { [name]: definition }).symbols[name];
    } catch (error) {
      if (!isMissingSymbol(error)) throw error;
    }
    return raw === undefined ? null : (this.#wrap(raw, signature) as Callable<S>);
  }

  /** Most functions have no wrapper: it would cost as much as the call itself. */
  #wrap(raw: Raw, signature: Signature): Raw {
    let call = raw;
    if (signature.arguments.includes("callback")) call = this.#withCallback(call, signature);
    if (signature.result === "string") {
      const pointed = call;
      call = (...given) => {
        const pointer = pointed(...given) as number | null;
        return pointer ? new this.ffi.CString(pointer).toString() : "";
      };
    }
    return call;
  }

  #withCallback(call: Raw, signature: Signature): Raw {
    const at = signature.arguments.indexOf("callback");
    const definition = { args: ["i32", "ptr", "i32", "ptr"], returns: "void" };
    return (...given) => {
      const onToken = given[at] as TokenCallback;
      let thrown: { error: unknown } | undefined;
      const callback = new this.ffi.JSCallback((token: number, text: number, isDone: number) => {
        // An exception must not pass through C frames.
        try {
          if (thrown === undefined) onToken(token, text ? new this.ffi.CString(text).toString() : "", isDone !== 0);
        } catch (error) {
          thrown = { error };
        }
      }, definition);
      try {
        const result = call(...given.with(at, callback.ptr));
        if (thrown !== undefined) throw thrown.error;
        return result;
      } finally {
        callback.close();
      }
    };
  }
}

function isMissingSymbol(error: unknown): boolean {
  return error instanceof Error && /symbol .* not found/i.test(error.message);
}
