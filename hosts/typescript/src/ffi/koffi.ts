/** `koffi`, for Node. The package contains machine code: its installation compiles nothing. */
import { createRequire } from "node:module";
import { LibraryError } from "../errors.js";
import type { Backend, Callable, CType, ForeignLibrary, Signature, TokenCallback } from "./backend.js";

/** The part of koffi that is used. */
interface Koffi {
  load(path: string): { func(name: string, result: unknown, parameters: unknown[]): Raw };
  proto(definition: string): unknown;
  pointer(type: unknown): unknown;
}

type Raw = (...given: unknown[]) => unknown;

const TYPES: Record<Exclude<CType, "callback">, string> = {
  void: "void",
  i32: "int32_t",
  u32: "uint32_t",
  f32: "float",
  f64: "double",
  usize: "size_t",
  handle: "uint64_t",
  // As wide as a pointer, and represented as a number, as in bun.
  address: "uintptr_t",
  buffer: "void *",
  input: "void *",
  string: "const char *",
};

/** @throws LibraryError if koffi is not installed. */
export function koffiBackend(): Backend {
  let koffi: Koffi;
  try {
    koffi = createRequire(import.meta.url)("koffi") as Koffi;
  } catch (error) {
    throw new LibraryError("this runtime calls C by koffi, which is not installed: npm install koffi", {
      cause: error,
    });
  }
  const callback = koffi.pointer(koffi.proto("void (int32_t token, const char *text, int32_t is_done, void *user)"));
  return { name: "koffi", load: (path) => new KoffiLibrary(koffi, callback, path) };
}

class KoffiLibrary implements ForeignLibrary {
  readonly #library: ReturnType<Koffi["load"]>;

  constructor(
    koffi: Koffi,
    private readonly callback: unknown,
    readonly path: string,
  ) {
    this.#library = koffi.load(path);
  }

  find<S extends Signature>(name: string, signature: S): Callable<S> | null {
    const type = (of: CType) => (of === "callback" ? this.callback : TYPES[of]);
    let raw: Raw;
    try {
      raw = this.#library.func(name, type(signature.result), signature.arguments.map(type));
    } catch (error) {
      if (error instanceof Error && /cannot find (function|symbol)/i.test(error.message)) return null;
      throw error;
    }
    const at = signature.arguments.indexOf("callback");
    return (at < 0 ? raw : withCallback(raw, at)) as Callable<S>;
  }
}

function withCallback(call: Raw, at: number): Raw {
  return (...given) => {
    const onToken = given[at] as TokenCallback;
    let thrown: { error: unknown } | undefined;
    const callback = (token: number, text: string | null, isDone: number) => {
      // An exception must not pass through C frames.
      try {
        if (thrown === undefined) onToken(token, text ?? "", isDone !== 0);
      } catch (error) {
        thrown = { error };
      }
    };
    const result = call(...given.with(at, callback));
    if (thrown !== undefined) throw thrown.error;
    return result;
  };
}
