import { existsSync, realpathSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { LibraryError } from "../errors.js";
import { shown } from "../tree/payload.js";
import { ABI_VERSION, FEATURE_LLAMA, FEATURE_THIS_CPU, FUNCTIONS, type FunctionName, type Functions } from "./abi.js";
import type { Backend, ForeignLibrary } from "./backend.js";
import { bunBackend } from "./bun.js";
import { koffiBackend } from "./koffi.js";

const BUILD = "cargo build --release -p tokentrie-c";

/** A shared library of tokentrie that fits this package. */
export class Library {
  readonly path: string;
  readonly backend: Backend["name"];
  /** `tokentrie_abi_version()`: major in the upper 16 bits, minor in the lower ones. */
  readonly version: number;
  /** Whether it can open models. */
  readonly hasLlama: boolean;
  /** Whether it was compiled for more than x86-64-v3 or plain aarch64: other machines may not run it. */
  readonly isForThisCpu: boolean;
  /** Every function; each is looked for when it is first asked for. */
  readonly functions: Functions;

  readonly #foreign: ForeignLibrary;

  /** @throws LibraryError if it is no library of tokentrie, or of a version that does not fit. */
  constructor(foreign: ForeignLibrary, backend: Backend["name"]) {
    this.#foreign = foreign;
    this.path = foreign.path;
    this.backend = backend;
    const abiVersion = foreign.find("tokentrie_abi_version", FUNCTIONS.tokentrie_abi_version);
    if (abiVersion === null)
      throw new LibraryError(`${this.path} is no library of tokentrie: no tokentrie_abi_version`);
    this.version = abiVersion();
    if (!fits(this.version)) {
      throw new LibraryError(
        `${this.path} has version ${shownVersion(this.version)} of the C ABI, ` +
          `this package needs ${shownVersion(ABI_VERSION)} or a later ${ABI_VERSION >>> 16}.x: ` +
          "install both from one release",
      );
    }
    this.functions = this.#lazyFunctions();
    const features = this.functions.tokentrie_features();
    this.hasLlama = (features & FEATURE_LLAMA) !== 0;
    this.isForThisCpu = (features & FEATURE_THIS_CPU) !== 0;
  }

  /** Whether the library has this function. */
  has(name: FunctionName): boolean {
    return this.#foreign.find(name, FUNCTIONS[name]) !== null;
  }

  /** @throws LibraryError if the library cannot open models. */
  needLlama(): void {
    if (this.hasLlama) return;
    throw new LibraryError(
      `${this.path} was built without llama.cpp, so it has no sessions: set TOKENTRIE_LIB to a library that was ` +
        `built with it (${BUILD} --features llama)`,
    );
  }

  #lazyFunctions(): Functions {
    const functions = {};
    for (const name of Object.keys(FUNCTIONS) as FunctionName[]) {
      Object.defineProperty(functions, name, {
        configurable: true,
        get: () => {
          const found = this.#foreign.find(name, FUNCTIONS[name]);
          if (found === null) throw new LibraryError(`${this.path} has no function ${name}`);
          Object.defineProperty(functions, name, { value: found });
          return found;
        },
      });
    }
    return functions as Functions;
  }
}

function fits(version: number): boolean {
  return version >>> 16 === ABI_VERSION >>> 16 && (version & 0xffff) >= (ABI_VERSION & 0xffff);
}

function shownVersion(version: number): string {
  return `${version >>> 16}.${version & 0xffff}`;
}

let backend: Backend | undefined;
const loaded = new Map<string, Library>();

/**
 * Loads a library, once for each file.
 *
 * @param path - unless given: the file that `TOKENTRIE_LIB` names, else the one inside this package.
 * @throws LibraryError if there is none, it cannot be loaded, or it does not fit.
 */
export function loadLibrary(path?: string): Library {
  if (path !== undefined && (typeof path !== "string" || path === "")) {
    throw new LibraryError(`path is ${shown(path)}: the file of a library is needed`);
  }
  const file = path ?? findLibrary();
  // The same file by another path is the same library: handles of one are those of the other.
  const real = existsSync(file) ? realpathSync(file) : file;
  let library = loaded.get(real);
  if (library === undefined) {
    backend ??= "bun" in process.versions ? bunBackend() : koffiBackend();
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

/** Where the library would be inside this package, for the machine that this runs on. */
export function packagedLibrary(): string {
  const file =
    { win32: "tokentrie.dll", darwin: "libtokentrie.dylib" }[process.platform as string] ?? "libtokentrie.so";
  // Compiled, this file is dist/ffi/library.js; as a source it is src/ffi/library.ts, as deep.
  return fileURLToPath(new URL(`../../lib/${process.platform}-${process.arch}/${file}`, import.meta.url));
}

function findLibrary(): string {
  // Empty counts as not set.
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
