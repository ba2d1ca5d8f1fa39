/** Loading the module: from beside this package, from anywhere else, again. */
import { LibraryError } from "../../typescript/src/errors.js";
import { Library, loadBy } from "../../typescript/src/ffi/library.js";
import { WasmLibrary } from "../../typescript/src/ffi/wasm.js";
import { describeValue } from "../../typescript/src/tree/payload.js";

/** Source of a module: its bytes, a response that has them, their address, or a compiled module. */
export type Source = string | URL | Response | BufferSource | WebAssembly.Module;

export interface LoadOptions {
  /** Unless given, the file beside this package. */
  readonly source?: Source | Promise<Source>;
  /** Loads the module of sets and regular languages: a smaller file, without JSON Schema, grammars, forms and chats. */
  readonly core?: boolean;
}

// The form that bundlers recognise: each address whole, in one expression.
const CORE = () => new URL("../../../wasm/tokentrie-core.wasm", import.meta.url);
const WHOLE = () => new URL("../../../wasm/tokentrie.wasm", import.meta.url);

const compiled = new Map<string, Promise<WebAssembly.Module>>();
let current: { readonly library: Library; readonly isCore: boolean } | undefined;

// No side-effect import, so that bundlers can drop unused code.
function lend(): void {
  loadBy((path) => {
    if (path !== undefined)
      throw new LibraryError(`path is ${describeValue(path)}: here a module is loaded with load()`);
    if (current === undefined) throw new LibraryError("nothing is loaded yet: await load() first");
    return current.library;
  });
}

/**
 * Loads the module. Objects created afterwards without `library` belong to it. A module that is already loaded and
 * intact is reused. After a fault, or with another source, a new module is loaded, which has none of the old objects.
 *
 * @throws LibraryError if there is none, or it does not fit this package.
 * @example
 * await load();
 * const vocab = Vocab.fromPieces(["a", "b"]);
 */
export async function load(options: LoadOptions = {}): Promise<Library> {
  const { core: isCore = false } = options;
  // The larger module has all functions of the smaller one.
  if (options.source === undefined && current !== undefined && (isCore || !current.isCore)) {
    if (isWhole(current.library)) return current.library;
  }
  const source = (await options.source) ?? (isCore ? CORE() : WHOLE());
  const path = typeof source === "string" ? source : source instanceof URL ? source.href : "the module";
  const library = new Library(WasmLibrary.of(await moduleOf(source), path), "wasm");
  current = { library, isCore };
  lend();
  return library;
}

/** Returns whether a library can be used: a fault of its own stops it for good. */
export function isWhole(library: Library): boolean {
  return (library.foreign as Partial<WasmLibrary>).broken === undefined;
}

/** Bytes of memory that the module of this library has; they never become fewer. */
export function memoryBytes(library: Library): number {
  return (library.foreign as WasmLibrary).memoryBytes;
}

async function moduleOf(source: Source): Promise<WebAssembly.Module> {
  if (source instanceof WebAssembly.Module) return source;
  try {
    if (source instanceof Response) return await compiledOf(source);
    if (typeof source !== "string" && !(source instanceof URL)) return await WebAssembly.compile(source);
    const place = String(source);
    let module = compiled.get(place);
    if (module === undefined) {
      module = fetchModule(place);
      compiled.set(place, module);
      // A failed load may succeed later.
      module.catch(() => compiled.delete(place));
    }
    return await module;
  } catch (error) {
    if (error instanceof LibraryError) throw error;
    const where = source instanceof Response ? source.url : source instanceof URL ? source.href : describeValue(source);
    throw new LibraryError(`${where} is not a module: ${(error as Error).message}`, { cause: error });
  }
}

async function fetchModule(place: string): Promise<WebAssembly.Module> {
  if (!place.startsWith("file:")) return compiledOf(await fetch(place));
  // Node's fetch reads no files. The name is not a literal: bundlers for pages would look for it.
  const fs = "node:fs/promises";
  const files = (await import(/* @vite-ignore */ fs)) as { readFile: (url: URL) => Promise<BufferSource> };
  return WebAssembly.compile(await files.readFile(new URL(place)));
}

async function compiledOf(response: Response): Promise<WebAssembly.Module> {
  if (!response.ok) throw new LibraryError(`${response.url}: ${response.status} ${response.statusText}`);
  // Compiled while it downloads, if the server sends its media type.
  if (response.headers.get("content-type")?.startsWith("application/wasm"))
    return WebAssembly.compileStreaming(response);
  return WebAssembly.compile(await response.arrayBuffer());
}
