import { ArgumentError } from "../errors.js";
import { check, endsOf, makeHandle, Resource, readBytes, readInts, SizeOut, text, utf8 } from "../ffi/call.js";
import { type Library, loadLibrary } from "../ffi/library.js";
import { integerOf } from "../ffi/numbers.js";
import { describeValue } from "../tree/payload.js";

export interface PiecesOptions {
  /** Ids of tokens that end the output. */
  readonly endOfGeneration?: readonly number[];
  /** Ids of other tokens that are no text. */
  readonly control?: readonly number[];
  readonly library?: Library;
}

/** Memory that the library needs for a token, besides its bytes. */
const BYTES_A_TOKEN = 32;

const NORMAL = 0;
const CONTROL = 1;
const END_OF_GENERATION = 2;

/** The tokens of a model. */
export class Vocab extends Resource {
  /** Number of tokens in the vocabulary. */
  readonly size: number;

  /** @internal */
  constructor(library: Library, handle: number) {
    super(library, handle, library.functions.tokentrie_vocab_free);
    const size = new SizeOut();
    check(library, library.functions.tokentrie_vocab_size(handle, size.memory));
    this.size = size.value;
  }

  /**
   * A vocabulary of this size. Only the tokens that end the output are known.
   *
   * @throws VocabularyError if one of these is outside.
   * @example
   * const vocab = Vocab.ofSize(32_000, [2]);
   */
  static ofSize(size: number, endOfGeneration: readonly number[] = [], library = loadLibrary()): Vocab {
    const ids = idsOf(endOfGeneration, "endOfGeneration");
    const { tokentrie_vocab_new } = library.functions;
    const count = integerOf(size, "size", "size");
    return new Vocab(
      library,
      makeHandle(library, (out) => tokentrie_vocab_new(count, ids, ids.length, out)),
    );
  }

  /**
   * The bytes of every token, in the order of their ids; a string stands for its UTF-8.
   *
   * @example
   * const vocab = Vocab.fromPieces(["a", "bc", "</s>"], { endOfGeneration: [2] });
   */
  static fromPieces(pieces: readonly (string | Uint8Array)[], options: PiecesOptions = {}): Vocab {
    const library = options.library ?? loadLibrary();
    if (!Array.isArray(pieces)) throw new ArgumentError(`pieces is ${describeValue(pieces)}: a list is needed`);
    const parts = Array.from(pieces as readonly (string | Uint8Array)[], (piece, index) =>
      piece instanceof Uint8Array ? piece : utf8(piece, `pieces[${index}]`),
    );
    const ends = endsOf(parts.length);
    let length = 0;
    parts.forEach((part, index) => {
      length += part.length;
      ends[index] = BigInt(length);
    });
    const bytes = new Uint8Array(length);
    parts.forEach((part, index) => {
      bytes.set(part, Number(ends[index]) - part.length);
    });
    const kinds = new Uint8Array(parts.length).fill(NORMAL);
    mark(kinds, options.control ?? [], CONTROL, "control");
    mark(kinds, options.endOfGeneration ?? [], END_OF_GENERATION, "endOfGeneration");
    const { tokentrie_vocab_from_pieces } = library.functions;
    const vocab = new Vocab(
      library,
      makeHandle(library, (out) => tokentrie_vocab_from_pieces(bytes, length, ends, kinds, parts.length, out)),
    );
    vocab.weighs(length + BYTES_A_TOKEN * parts.length);
    return vocab;
  }

  /** Tokens that end the output, ascending. */
  get endOfGeneration(): Int32Array {
    const { tokentrie_vocab_end_of_generation } = this.library.functions;
    return readInts(this.library, (buffer, capacity, count) =>
      tokentrie_vocab_end_of_generation(this.handle, buffer, capacity, count),
    );
  }

  /**
   * The bytes of these tokens, one after the other: whole characters only where the tokens are whole.
   *
   * @throws VocabularyError for ids outside, and where only the size is known.
   */
  bytes(ids: readonly number[] | Int32Array): Uint8Array {
    const given = idsOf(ids, "ids");
    const { tokentrie_vocab_bytes } = this.library.functions;
    const read = readBytes(this.library, (buffer, capacity, count) =>
      tokentrie_vocab_bytes(this.handle, given, given.length, buffer, capacity, count),
    );
    return read ?? new Uint8Array(0);
  }

  /** Their text; bytes that are no UTF-8 become U+FFFD. */
  text(ids: readonly number[] | Int32Array): string {
    return text(this.bytes(ids));
  }
}

function mark(kinds: Uint8Array, ids: readonly number[], kind: number, name: string): void {
  for (const id of idsOf(ids, name)) {
    if (id < 0 || id >= kinds.length)
      throw new ArgumentError(`${name}: unknown token ${id}: there are ${kinds.length} pieces`);
    kinds[id] = kind;
  }
}

/**
 * Ids as C takes them. A typed array is lent as it is.
 *
 * @throws ArgumentError for anything that is not an integer of 32 bits: stored, 2^32 would become 0.
 */
export function idsOf(ids: Int32Array | readonly number[], name: string): Int32Array {
  if (ids instanceof Int32Array) return ids;
  if (!Array.isArray(ids) && !isIntegers(ids)) {
    throw new ArgumentError(`${name} is ${describeValue(ids)}: a list of token ids is needed`);
  }
  const wrong = ids.findIndex((id) => typeof id !== "number" || (id | 0) !== id);
  if (wrong >= 0) throw new ArgumentError(`${name}[${wrong}] is ${describeValue(ids[wrong])}: a token id is needed`);
  return Int32Array.from(ids);
}

/** Arrays of integers that can be converted without loss, or are refused by value. */
function isIntegers(ids: unknown): boolean {
  return [Uint8Array, Uint16Array, Uint32Array, Int8Array, Int16Array].some((kind) => ids instanceof kind);
}
