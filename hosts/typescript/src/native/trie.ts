import { ArgumentError } from "../errors.js";
import { Status, TRIE_INFO } from "../ffi/abi.js";
import { check, endsOf, joinTexts, makeHandle, Resource, readBytes, readInts, readText, utf8 } from "../ffi/call.js";
import { type Library, loadLibrary } from "../ffi/library.js";
import { integerOf } from "../ffi/numbers.js";
import { payloadText, describeValue, type TokenSequence, type TokenTreePayload } from "../tree/payload.js";
import { warnLeftOut } from "../warning.js";
import { idsOf, type Vocab } from "./vocab.js";

/** A legal value. Leaves are numbered in the order of their tokens. */
export interface Leaf {
  readonly index: number;
  /** null for a leaf without a name. */
  readonly name: string | null;
}

export interface TrieOptions {
  /** Leaves with ids outside it are left out, with a warning; it is an error if none is left. */
  readonly vocab?: Vocab;
  readonly library?: Library;
}

/** Legal values, packed: it never changes, and any number of samplers share it. */
export class Trie extends Resource {
  /** Leaves; of the first trie, where a payload has several. */
  readonly size: number;
  /** Nodes, with the root. */
  readonly nodes: number;
  /** Memory that it takes. */
  readonly byteLength: number;
  /** Labels of the spans; one empty label where the trie was not made of a payload. */
  readonly paths: readonly string[];
  /** Leaves of the payload that were left out: `empty` have no tokens, `outside` need ids outside the vocabulary. */
  readonly skipped: { readonly empty: number; readonly outside: number };

  /** @internal */
  constructor(library: Library, handle: number, isMapped = false) {
    super(library, handle, library.functions.tokentrie_trie_free);
    const { tokentrie_trie_get_info, tokentrie_trie_path } = library.functions;
    const memory = TRIE_INFO.write();
    check(library, tokentrie_trie_get_info(handle, memory));
    const info = TRIE_INFO.read(memory);
    this.size = info.leaves;
    this.nodes = info.nodes;
    this.byteLength = info.bytes;
    if (!isMapped) this.weighs(info.bytes);
    this.skipped = { empty: info.emptyLeaves, outside: info.outsideVocabulary };
    this.paths = Array.from(
      { length: info.tries },
      (_, number) =>
        readText(library, (buffer, capacity, count) => tokentrie_trie_path(handle, number, buffer, capacity, count)) ??
        "",
    );
  }

  /**
   * The tries of a payload, one for each path; they are never merged, and the first is active at the start.
   *
   * @param payload - an object, or its JSON text.
   * @throws PayloadError that says where it is malformed, or that no leaf is usable.
   * @example
   * const trie = Trie.fromPayload({ modelId: "m", descriptors: [{ path: "action", leaves }] });
   */
  static fromPayload(payload: TokenTreePayload | string, options: TrieOptions = {}): Trie {
    const library = options.library ?? options.vocab?.library ?? loadLibrary();
    const json = utf8(payloadText(payload), "payload");
    const vocab = options.vocab?.handleIn(library) ?? 0;
    const { tokentrie_trie_from_json } = library.functions;
    const trie = new Trie(
      library,
      makeHandle(library, (out) => tokentrie_trie_from_json(json, json.length, vocab, 0, out)),
    );
    warnLeftOut(trie.skipped.outside);
    return trie;
  }

  /**
   * A trie of token sequences, named or not.
   *
   * @throws SetError for an empty sequence, or none at all.
   * @throws ArgumentError if there are not as many names as sequences.
   * @example
   * const trie = Trie.fromSequences([[1, 2], [1, 3]], ["A", "B"]);
   */
  static fromSequences(
    sequences: readonly (readonly number[] | Int32Array)[],
    names?: readonly string[],
    library = loadLibrary(),
  ): Trie {
    if (!Array.isArray(sequences))
      throw new ArgumentError(`sequences is ${describeValue(sequences)}: a list is needed`);
    const named = names === undefined ? null : joinTexts(names, "names");
    if (named !== null && named.ends.length !== sequences.length) {
      throw new ArgumentError(`${named.ends.length} names for ${sequences.length} sequences: one each is needed`);
    }
    const parts = Array.from(sequences as readonly (readonly number[] | Int32Array)[], (sequence, index) =>
      idsOf(sequence, `sequences[${index}]`),
    );
    const ends = endsOf(parts.length);
    let length = 0;
    parts.forEach((part, index) => {
      length += part.length;
      ends[index] = BigInt(length);
    });
    const tokens = new Int32Array(length);
    parts.forEach((part, index) => {
      tokens.set(part, Number(ends[index]) - part.length);
    });
    const { tokentrie_trie_from_sequences } = library.functions;
    const handle = makeHandle(library, (out) =>
      tokentrie_trie_from_sequences(
        tokens,
        length,
        ends,
        named?.bytes ?? null,
        named?.bytes.length ?? 0,
        named?.ends ?? null,
        parts.length,
        out,
      ),
    );
    return new Trie(library, handle);
  }

  /** @throws PayloadError if the bytes are damaged, in microseconds whatever they claim. */
  static fromRtkt(bytes: Uint8Array, library = loadLibrary()): Trie {
    if (!(bytes instanceof Uint8Array))
      throw new ArgumentError(`bytes is ${describeValue(bytes)}: a Uint8Array is needed`);
    const { tokentrie_trie_from_rtkt } = library.functions;
    return new Trie(
      library,
      makeHandle(library, (out) => tokentrie_trie_from_rtkt(bytes, bytes.length, out)),
    );
  }

  /**
   * Maps a `.ttrie` file: microseconds for any size.
   *
   * @param options - `verify` reads and checks all of it.
   * @throws FileError if it cannot be read or is damaged.
   */
  static open(path: string, options: { verify?: boolean; library?: Library } = {}): Trie {
    const library = options.library ?? loadLibrary();
    const name = utf8(path, "path");
    const { tokentrie_trie_open } = library.functions;
    return new Trie(
      library,
      makeHandle(library, (out) => tokentrie_trie_open(name, name.length, Number(options.verify ?? false), out)),
      true,
    );
  }

  /** Writes the first of these tries to a `.ttrie` file; with a vocabulary it is refused for another one later. */
  save(path: string, vocab?: Vocab): void {
    const name = utf8(path, "path");
    const { tokentrie_trie_save } = this.library.functions;
    check(this.library, tokentrie_trie_save(this.handle, name, name.length, vocab?.handleIn(this.library) ?? 0));
  }

  /** The first of these tries in the binary form RTKT, which has a path and no names. */
  toRtkt(): Uint8Array {
    const { tokentrie_trie_to_rtkt } = this.library.functions;
    const read = readBytes(this.library, (buffer, capacity, count) =>
      tokentrie_trie_to_rtkt(this.handle, buffer, capacity, count),
    );
    return read ?? new Uint8Array(0);
  }

  /** One of the tries of a payload, by its path. */
  select(path: string): Trie {
    const name = utf8(path, "path");
    const { tokentrie_trie_select } = this.library.functions;
    const handle = makeHandle(this.library, (out) => tokentrie_trie_select(this.handle, name, name.length, out));
    return new Trie(this.library, handle);
  }

  /**
   * Tokens that continue this prefix, ascending; none at the end of a leaf that cannot go on.
   *
   * @throws TokenNotAllowedError if the prefix leads out of the trie.
   */
  children(prefix: readonly number[] | Int32Array = []): Int32Array {
    const given = idsOf(prefix, "prefix");
    const { tokentrie_trie_children } = this.library.functions;
    return readInts(this.library, (buffer, capacity, count) =>
      tokentrie_trie_children(this.handle, given, given.length, buffer, capacity, count),
    );
  }

  /**
   * Tokens that must follow this prefix, up to the next choice or the end of a leaf.
   *
   * @throws TokenNotAllowedError if the prefix leads out of the trie.
   */
  forced(prefix: readonly number[] | Int32Array = []): Int32Array {
    const given = idsOf(prefix, "prefix");
    const { tokentrie_trie_forced } = this.library.functions;
    return readInts(this.library, (buffer, capacity, count) =>
      tokentrie_trie_forced(this.handle, given, given.length, buffer, capacity, count),
    );
  }

  /** The number of the leaf with these tokens, or null. */
  find(tokens: readonly number[] | Int32Array): number | null {
    const given = idsOf(tokens, "tokens");
    const found = new Uint32Array(1);
    const { tokentrie_trie_find } = this.library.functions;
    const status = check(this.library, tokentrie_trie_find(this.handle, given, given.length, found));
    return status === Status.NONE ? null : (found[0] as number);
  }

  /** The name of a leaf; null if it has none. */
  leafName(index: number): string | null {
    const number = integerOf(index, "index", "u32");
    const { tokentrie_trie_leaf_name } = this.library.functions;
    return readText(this.library, (buffer, capacity, count) =>
      tokentrie_trie_leaf_name(this.handle, number, buffer, capacity, count),
    );
  }

  leafTokens(index: number): Int32Array {
    const number = integerOf(index, "index", "u32");
    const { tokentrie_trie_leaf_tokens } = this.library.functions;
    return readInts(this.library, (buffer, capacity, count) =>
      tokentrie_trie_leaf_tokens(this.handle, number, buffer, capacity, count),
    );
  }

  /** Every leaf in its order; a leaf without a name has an empty one here. */
  *leaves(): Generator<TokenSequence> {
    for (let index = 0; index < this.size; index++) {
      yield { name: this.leafName(index) ?? "", tokens: Array.from(this.leafTokens(index)) };
    }
  }
}
