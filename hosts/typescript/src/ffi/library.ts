import { LibraryError } from "../errors.js";
import { ABI_VERSION, FEATURE_LLAMA, FEATURE_THIS_CPU, FUNCTIONS, type FunctionName, type Functions } from "./abi.js";
import type { Backend, Callable, ForeignLibrary, Signature } from "./backend.js";

/** @internal */
export const BUILD = "cargo build --release -p tokentrie-c";

/** A shared library of tokentrie that fits this package. */
export class Library {
  readonly path: string;
  readonly backend: Backend["name"];
  /** `tokentrie_abi_version()`: major in the upper 16 bits, minor in the lower ones. */
  readonly version: number;
  /** True if it can open models. */
  readonly hasLlama: boolean;
  /** True if it needs more than x86-64-v3 or plain aarch64: it may not run on other machines. */
  readonly isForThisCpu: boolean;
  /** Every function; each symbol is looked up at its first use. */
  readonly functions: Functions;

  readonly #foreign: ForeignLibrary;

  /** @throws LibraryError if it is not a library of tokentrie, or of a version that does not fit. */
  constructor(foreign: ForeignLibrary, backend: Backend["name"]) {
    this.#foreign = foreign;
    this.path = foreign.path;
    this.backend = backend;
    const abiVersion = foreign.find("tokentrie_abi_version", FUNCTIONS.tokentrie_abi_version);
    if (abiVersion === null)
      throw new LibraryError(`${this.path} is not a library of tokentrie: no tokentrie_abi_version`);
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

  /** @internal A function that the header does not have; null if the library has none of this name. */
  find<S extends Signature>(name: string, signature: S): Callable<S> | null {
    return this.#foreign.find(name, signature);
  }

  /** @internal What it was made of. */
  get foreign(): ForeignLibrary {
    return this.#foreign;
  }

  /** Returns whether the library has this function. */
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

type Loader = (path?: string) => Library;
let loader: Loader | undefined;

/** @internal Sets the source of libraries: files in bun and Node, a module in a page. */
export function loadBy(loads: Loader): void {
  loader = loads;
}

/**
 * Loads a library, once for each file.
 *
 * @param path - unless given: the file that `TOKENTRIE_LIB` names, else the one inside this package. In a page it is
 *   the module that was loaded before.
 * @throws LibraryError if there is none, it cannot be loaded, or it does not fit.
 */
export function loadLibrary(path?: string): Library {
  if (loader === undefined) throw new LibraryError("nothing is loaded yet: await load() first");
  return loader(path);
}
