/** Libraries in files, for bun and Node. */
import { existsSync, readFileSync, realpathSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { LibraryError } from "../errors.js";
import { describeValue } from "../tree/payload.js";
import type { Backend, ForeignLibrary } from "./backend.js";
import { bunBackend } from "./bun.js";
import { koffiBackend } from "./koffi.js";
import { BUILD, Library, loadBy } from "./library.js";
import { WasmLibrary } from "./wasm.js";
import { wasm } from "./webassembly.js";

/** WebAssembly, used on machines for which there is no shared library. */
const MODULES: Backend = {
  name: "wasm",
  load: (path) => WasmLibrary.of(new wasm.Module(readFileSync(path)), path),
};

let native: Backend | undefined;
const loaded = new Map<string, Library>();

function loadFile(path?: string): Library {
  if (path !== undefined && (typeof path !== "string" || path === "")) {
    throw new LibraryError(`path is ${describeValue(path)}: the file of a library is needed`);
  }
  const file = path ?? findLibrary();
  // Two paths to one file are one library, and share its handles.
  const real = existsSync(file) ? realpathSync(file) : file;
  let library = loaded.get(real);
  if (library === undefined) {
    const backend = file.endsWith(".wasm")
      ? MODULES
      : (native ??= "bun" in process.versions ? bunBackend() : koffiBackend());
    let foreign: ForeignLibrary;
    try {
      foreign = backend.load(file);
    } catch (error) {
      throw new LibraryError(`cannot load ${file}: ${(error as Error).message}`, { cause: error });
    }
    library = new Library(foreign, backend.name);
    loaded.set(real, library);
  }
  return library;
}

/** Returns the path of the library inside this package, for the machine that this runs on. */
export function packagedLibrary(): string {
  const file =
    { win32: "tokentrie.dll", darwin: "libtokentrie.dylib" }[process.platform as string] ?? "libtokentrie.so";
  // Compiled, this file is dist/ffi/library.js; as a source it is src/ffi/library.ts, as deep.
  return fileURLToPath(new URL(`../../lib/${process.platform}-${process.arch}/${file}`, import.meta.url));
}

function findLibrary(): string {
  // An empty variable counts as unset.
  const named = process.env["TOKENTRIE_LIB"];
  if (named) {
    if (!existsSync(named)) throw new LibraryError(`TOKENTRIE_LIB names ${named}, which is not there`);
    return named;
  }
  const packaged = packagedLibrary();
  if (existsSync(packaged)) return packaged;
  throw new LibraryError(
    `no library of tokentrie for ${process.platform}-${process.arch}: this package has no ${packaged}; ` +
      `build one and set TOKENTRIE_LIB to it: ${BUILD} --features llama (with sessions), or ${BUILD} (without)`,
  );
}

loadBy(loadFile);
