import { CACHE_STATS } from "../ffi/abi.js";
import { check, makeHandle, Resource, utf8 } from "../ffi/call.js";
import { type Library, loadLibrary } from "../ffi/library.js";
import { payloadText, type TokenTreePayload } from "../tree/payload.js";
import { integerOf } from "../ffi/numbers.js";
import { warnLeftOut } from "../warning.js";
import { Trie } from "./trie.js";
import type { Vocab } from "./vocab.js";

export interface TrieCacheStats {
  readonly capacity: number;
  /** Number of entries: a trie has one for each payload text that requested it. */
  readonly held: number;
  /** Answered by the same text. */
  readonly hits: number;
  /** Answered by the same content in another text: other white space, or another order of leaves. */
  readonly contentHits: number;
  readonly misses: number;
  readonly evictions: number;
}

/**
 * Keeps the tries of payloads, those that were used last. A trie from it is freed like any other; what the cache holds
 * stays.
 *
 * @example
 * const cache = TrieCache.create();
 * const sampler = Sampler.create(vocab, cache.trie(payload, vocab));
 */
export class TrieCache extends Resource {
  private constructor(library: Library, handle: number) {
    super(library, handle, library.functions.tokentrie_cache_free);
  }

  /** @param capacity - entries that it keeps, one for each text. */
  static create(capacity = 128, library = loadLibrary()): TrieCache {
    const { tokentrie_cache_new } = library.functions;
    const room = integerOf(capacity, "capacity", "size");
    return new TrieCache(
      library,
      makeHandle(library, (out) => tokentrie_cache_new(room, out)),
    );
  }

  /**
   * The tries of a payload, as `Trie.fromPayload`.
   *
   * @throws PayloadError that says where it is malformed, or that no leaf is usable.
   */
  trie(payload: TokenTreePayload | string, vocab?: Vocab): Trie {
    const json = utf8(payloadText(payload), "payload");
    const words = vocab?.handleIn(this.library) ?? 0;
    const { tokentrie_trie_from_json } = this.library.functions;
    const handle = makeHandle(this.library, (out) =>
      tokentrie_trie_from_json(json, json.length, words, this.handle, out),
    );
    const trie = new Trie(this.library, handle);
    warnLeftOut(trie.skipped.outside);
    return trie;
  }

  get stats(): TrieCacheStats {
    const memory = CACHE_STATS.write();
    check(this.library, this.library.functions.tokentrie_cache_get_stats(this.handle, memory));
    return CACHE_STATS.read(memory);
  }

  /** Forgets every trie; those that are in use stay usable. */
  clear(): void {
    check(this.library, this.library.functions.tokentrie_cache_clear(this.handle));
  }
}
