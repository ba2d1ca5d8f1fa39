import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Library, loadLibrary } from "../../src/index.js";
import { ROOT } from "./cases.js";

/**
 * The library that `TOKENTRIE_LIB` names; null where it names none. One that cannot be loaded is an error: tests that
 * are skipped by mistake test nothing.
 */
export const LIBRARY: Library | null = process.env["TOKENTRIE_LIB"] ? loadLibrary() : null;
export const NO_LIBRARY = LIBRARY ? false : "TOKENTRIE_LIB names no library";

export const NO_FILES = LIBRARY?.backend === "wasm" ? "a module of WebAssembly has no files" : false;

/** The tiny model inside the Python package. */
export const MODEL = join(ROOT, "python", "tokentrie", "models", "tiny.gguf");

export const NO_MODEL =
  NO_LIBRARY ||
  (LIBRARY?.hasLlama ? false : "the library of TOKENTRIE_LIB was built without llama.cpp") ||
  (existsSync(MODEL) ? false : `there is no ${MODEL}`);
