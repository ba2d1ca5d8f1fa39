import { LRUCache } from "lru-cache";
import { ArgumentError, TokenizerError } from "../errors.js";
import { MAX_TOKEN_ID, describeValue } from "../tree/payload.js";

/** Turns a text into token ids, for the model that is named. */
export type Tokenize = (text: string, modelId: string) => readonly number[] | Promise<readonly number[]>;

export interface TokenizerCacheOptions {
  /** Texts that are kept for each model; 4096 unless given. The least recently used one is evicted first. */
  readonly maxEntriesPerModel?: number;
  /** Maximum number of models that have entries; 16 unless given. */
  readonly maxModels?: number;
}

interface OfModel {
  readonly known: LRUCache<string, readonly number[]>;
  /** Texts with a pending request: a second request for one waits for the same answer. */
  readonly asked: Map<string, Promise<readonly number[]>>;
}

/**
 * Caches the results of a tokenizer, separately for each model. Errors are not cached.
 *
 * @example
 * const cache = new TokenizerCache((text) => vocab.tokenize(text));
 * const tokens = await cache.tokenizeMany("my-model", ["REPLY", "STOP"]);
 */
export class TokenizerCache {
  readonly #tokenize: Tokenize;
  readonly #maxEntries: number;
  readonly #models: LRUCache<string, OfModel>;

  /** @throws ArgumentError if a cap is not a positive integer. */
  constructor(tokenize: Tokenize, options: TokenizerCacheOptions = {}) {
    this.#tokenize = tokenize;
    this.#maxEntries = positive(options.maxEntriesPerModel ?? 4096, "maxEntriesPerModel");
    this.#models = new LRUCache({ max: positive(options.maxModels ?? 16, "maxModels") });
  }

  /** @throws TokenizerError if the tokenizer gives something else than ids; its own errors pass through. */
  async tokenize(modelId: string, text: string): Promise<readonly number[]> {
    const model = this.#model(modelId);
    const known = model.known.get(text);
    if (known !== undefined) return known;
    let asked = model.asked.get(text);
    if (asked === undefined) {
      // Not inside #ask: a tokenizer may throw before it waits, and then there is nothing to take out yet.
      asked = this.#ask(model, modelId, text).finally(() => model.asked.delete(text));
      model.asked.set(text, asked);
    }
    return asked;
  }

  /** Tokens of many texts: each distinct text is requested once, all at the same time. */
  async tokenizeMany(modelId: string, texts: Iterable<string>): Promise<Map<string, readonly number[]>> {
    if (typeof texts !== "object" || texts === null || !(Symbol.iterator in texts)) {
      throw new ArgumentError(`texts is ${describeValue(texts)}: a list is needed`);
    }
    const distinct = [...new Set(texts)];
    const tokens = await Promise.all(distinct.map((text) => this.tokenize(modelId, text)));
    return new Map(distinct.map((text, index) => [text, tokens[index] ?? []]));
  }

  /** Returns the number of cached texts of a model. */
  cachedSize(modelId: string): number {
    return this.#models.peek(modelId)?.known.size ?? 0;
  }

  /** Forgets a model, for example after a reload. Pending requests are answered, but not cached. */
  forget(modelId: string): void {
    this.#models.delete(modelId);
  }

  #model(modelId: string): OfModel {
    let model = this.#models.get(modelId);
    if (model === undefined) {
      model = { known: new LRUCache({ max: this.#maxEntries }), asked: new Map() };
      this.#models.set(modelId, model);
    }
    return model;
  }

  async #ask(model: OfModel, modelId: string, text: string): Promise<readonly number[]> {
    const tokens = checkIds(await this.#tokenize(text, modelId), text);
    model.known.set(text, tokens);
    return tokens;
  }
}

/** Frozen copies, so that one caller cannot change the ids of another. */
function checkIds(tokens: unknown, text: string): readonly number[] {
  const given: unknown = ArrayBuffer.isView(tokens) ? Array.from(tokens as Int32Array) : tokens;
  if (!Array.isArray(given)) {
    throw new TokenizerError(
      `tokenizer, text ${describeValue(text)}: tokens[] is needed, not ${describeValue(tokens)}`,
    );
  }
  const ids = given as number[];
  const wrong = ids.findIndex((id) => !Number.isInteger(id) || id < 0 || id > MAX_TOKEN_ID);
  if (wrong >= 0) {
    throw new TokenizerError(
      `tokenizer, text ${describeValue(text)}: tokens[${wrong}] is ${describeValue(ids[wrong])}, no token id`,
    );
  }
  return Object.freeze([...ids]);
}

/** Room for all of them is taken at once. */
const MOST = 2 ** 24;

function positive(value: number, name: string): number {
  if (Number.isInteger(value) && value > 0 && value <= MOST) return value;
  throw new ArgumentError(`${name} is ${describeValue(value)}: an integer from 1 to ${MOST} is needed`);
}
