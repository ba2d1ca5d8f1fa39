/** Vocabularies of a `tokenizer.json`, and of a tokenizer of transformers.js. */
import { ArgumentError } from "../../typescript/src/errors.js";
import { makeHandle, utf8 } from "../../typescript/src/ffi/call.js";
import { type Library, loadLibrary } from "../../typescript/src/ffi/library.js";
import type { Tokenizes, WasmLibrary } from "../../typescript/src/ffi/wasm.js";
import { idsOf, Vocab } from "../../typescript/src/native/vocab.js";
import { isList, describeValue } from "../../typescript/src/tree/payload.js";
import { made, own } from "./own.js";

export interface TokenizerOptions {
  /**
   * Makes tokens of a text, without the special tokens around a prompt; text values need it. It is called as long as
   * the page lives.
   */
  readonly tokenize?: Tokenizes;
  /** Ids that end the output, besides the tokens with a well-known end name. */
  readonly endOfGeneration?: readonly number[];
  readonly library?: Library;
}

/**
 * The tokens of a model by its `tokenizer.json`: their bytes, their kinds, and which of them end the output.
 *
 * @param json - its text, or what `JSON.parse` makes of it.
 * @throws VocabularyError for a file that does not describe its tokens sufficiently.
 * @example
 * const json = await (await fetch("model/tokenizer.json")).text();
 * const vocab = vocabFromTokenizerJson(json, { tokenize: (text) => tokenizer.encode(text) });
 */
export function vocabFromTokenizerJson(json: string | object, options: TokenizerOptions = {}): Vocab {
  const library = options.library ?? loadLibrary();
  const text = utf8(typeof json === "string" ? json : JSON.stringify(json), "json");
  const ends = idsOf(options.endOfGeneration ?? [], "endOfGeneration");
  const { tokenize } = options;
  if (tokenize !== undefined && typeof tokenize !== "function")
    throw new ArgumentError(`tokenize is ${describeValue(tokenize)}: a function is needed`);
  const number = tokenize ? (library.foreign as WasmLibrary).addTokenizer(tokenize) : -1;
  const vocabOf = own(library, "tokentrie_vocab_from_tokenizer_json");
  return new Vocab(
    library,
    makeHandle(library, (out) => vocabOf(text, text.length, ends, ends.length, number, out)),
  );
}

/** Parts of a tokenizer of transformers.js that are used. */
export interface TransformersTokenizer {
  encode(text: string, options?: { add_special_tokens?: boolean }): number[];
  /** The parsed `tokenizer.json`, under the names that versions of transformers.js have for it. */
  readonly _tokenizerJSON?: object;
  readonly _tokenizer?: { readonly tokenizerJSON?: object; readonly config?: object };
  readonly eos_token_id?: number | null;
}

const known = new WeakMap<object, WeakMap<Library, Vocab>>();

/**
 * The tokens of a tokenizer of transformers.js, made once for each.
 *
 * @throws ArgumentError where it does not show its `tokenizer.json`: then `vocabFromTokenizerJson` takes the file.
 */
export function vocabOf(tokenizer: TransformersTokenizer, library: Library = loadLibrary()): Vocab {
  let made = known.get(tokenizer);
  if (made === undefined) known.set(tokenizer, (made = new WeakMap()));
  let vocab = made.get(library);
  if (vocab === undefined) {
    const json = tokenizer._tokenizerJSON ?? tokenizer._tokenizer?.tokenizerJSON ?? tokenizer._tokenizer?.config;
    if (json === undefined)
      throw new ArgumentError("the tokenizer does not show its tokenizer.json: vocabFromTokenizerJson takes the file");
    const eos = tokenizer.eos_token_id;
    vocab = vocabFromTokenizerJson(json, {
      tokenize: (text) => tokenizer.encode(text, { add_special_tokens: false }),
      endOfGeneration: typeof eos === "number" ? [eos] : [],
      library,
    });
    made.set(library, vocab);
  }
  return vocab;
}

/**
 * The tokens of a text, as the tokenizer of this vocabulary writes it.
 *
 * @throws VocabularyError where the text has the name of a control token: `tokenizeParts` says which names are meant.
 */
export function tokenize(vocab: Vocab, text: string): number[] {
  const bytes = utf8(text);
  const { library } = vocab;
  return made(library, own(library, "tokentrie_vocab_tokenize")(vocab.handle, bytes, bytes.length)) as number[];
}

/** A part of a text, and whether it is trusted: names of control tokens in it are then those tokens. */
export type TextPart = readonly [text: string, isTrusted: boolean];

/**
 * The tokens of a text in parts, such as `ChatFormat.prompt(messages).parts`. A name of a control token is that token
 * where all of its characters are trusted, and stays text elsewhere, also where it stands in several parts.
 *
 * @throws ArgumentError for malformed parts; VocabularyError where the vocabulary has no tokenizer.
 * @example
 * const ids = tokenizeParts(vocab, [["<|user|>", true], [typed, false], ["<|end|>", true]]);
 */
export function tokenizeParts(vocab: Vocab, parts: readonly TextPart[]): number[] {
  if (!isList(parts))
    throw new ArgumentError(`invalid parts: expected [[text, isTrusted], …], got ${describeValue(parts)}`);
  const json = utf8(JSON.stringify(parts), "parts");
  const { library } = vocab;
  return made(library, own(library, "tokentrie_vocab_tokenize_parts")(vocab.handle, json, json.length)) as number[];
}
