/** Functions that the module has beside those of the header: `crates/tokentrie-wasm`. */
import { LibraryError } from "../../typescript/src/errors.js";
import { type Callable, type Signature, signature } from "../../typescript/src/ffi/backend.js";
import { check } from "../../typescript/src/ffi/call.js";
import type { Library } from "../../typescript/src/ffi/library.js";

export const OWN = {
  tokentrie_wasm_result: signature("string"),
  tokentrie_vocab_from_tokenizer_json: signature("i32", "input", "usize", "input", "usize", "i32", "buffer"),
  tokentrie_vocab_tokenize: signature("i32", "handle", "input", "usize"),
  tokentrie_vocab_tokenize_parts: signature("i32", "handle", "input", "usize"),
  tokentrie_choice_new: signature("i32", "handle", "usize", "input", "usize", "input", "usize", "buffer"),
  tokentrie_choice_after: signature("i32", "input", "usize", "handle", "input", "usize", "input", "usize", "buffer"),
  tokentrie_constraint_after: signature("i32", "input", "usize", "handle", "input", "usize", "buffer"),
  tokentrie_choice_want: signature("i32", "handle", "buffer", "usize", "buffer"),
  tokentrie_choice_take: signature("i32", "handle", "input", "usize"),
  tokentrie_choice_result: signature("i32", "handle"),
  tokentrie_choice_free: signature("i32", "handle"),
  tokentrie_template_render: signature("i32", "input", "usize"),
  tokentrie_format_new: signature("i32", "input", "usize", "handle", "buffer"),
  tokentrie_format_analysis: signature("i32", "handle"),
  tokentrie_format_render: signature("i32", "handle", "input", "usize"),
  tokentrie_format_free: signature("i32", "handle"),
  tokentrie_parser_new: signature("i32", "handle", "input", "usize", "buffer"),
  tokentrie_parser_push: signature("i32", "handle", "input", "usize"),
  tokentrie_parser_push_tokens: signature("i32", "handle", "input", "usize"),
  tokentrie_parser_finish: signature("i32", "handle", "i32"),
  tokentrie_parser_free: signature("i32", "handle"),
} as const satisfies Record<string, Signature>;

type OwnFunctions = { readonly [Name in keyof typeof OWN]: Callable<(typeof OWN)[Name]> };
const found = new WeakMap<Library, Map<string, unknown>>();

/**
 * A function of the module.
 *
 * @throws LibraryError where the library has none: it is not a module, or one without that part.
 */
export function own<Name extends keyof OwnFunctions>(library: Library, name: Name): OwnFunctions[Name] {
  let functions = found.get(library);
  if (functions === undefined) found.set(library, (functions = new Map<string, unknown>()));
  let one = functions.get(name);
  if (one === undefined) {
    one = library.find(name, OWN[name]) ?? undefined;
    if (one === undefined) throw new LibraryError(`${library.path} has no function ${name}: load another module`);
    functions.set(name, one);
  }
  return one as OwnFunctions[Name];
}

/** Returns the JSON text that a function made. */
export function made(library: Library, status: number): unknown {
  check(library, status);
  return JSON.parse(own(library, "tokentrie_wasm_result")());
}
