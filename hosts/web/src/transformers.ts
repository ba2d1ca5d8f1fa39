/** transformers.js: a processor of logits for its own loop, a loop that skips ahead, and exact choices. */
import { ArgumentError } from "../../typescript/src/errors.js";
import { makeHandle, utf8 } from "../../typescript/src/ffi/call.js";
import { Constraint, constraint, constraintOf } from "../../typescript/src/native/constraint.js";
import { type Allowed, Sampler, type SamplerOptions } from "../../typescript/src/native/sampler.js";
import { type Spec, specText } from "../../typescript/src/native/spec.js";
import { Trie } from "../../typescript/src/native/trie.js";
import { Vocab } from "../../typescript/src/native/vocab.js";
import type { Choice } from "../../typescript/src/session/choice.js";
import { describeValue } from "../../typescript/src/tree/payload.js";
import type { ChatPrompt } from "./chat.js";
import { type ChooseRowsOptions, type RowsOf, scoreRows } from "./choose.js";
import { made as madeBy, own } from "./own.js";
import { type TransformersTokenizer, tokenize, tokenizeParts, vocabOf } from "./vocab.js";

/** Parts of a tensor of transformers.js that are used. */
export interface TensorLike {
  readonly dims: readonly number[];
  readonly data: ArrayLike<number> | ArrayLike<bigint>;
  readonly type: string;
  to(type: "float32"): TensorLike;
}

/** Parts of a model of transformers.js that are used. */
export interface ModelLike {
  forward(inputs: Record<string, unknown>): Promise<Record<string, TensorLike>>;
  readonly config?: { readonly vocab_size?: number };
}

/** Makes tensors: the class `Tensor` of transformers.js, so that this package need not bring one. */
export type TensorClass = new (type: "int64", data: BigInt64Array, dims: number[]) => unknown;

/** A spec, or a constraint built from one. */
export type Constrains = Spec | string | Constraint | Trie;

/**
 * Token ids, which are taken as they are; text that is trusted, in which names of control tokens are those tokens; or
 * the prompt of a conversation, of which only what the template wrote is trusted.
 */
export type PromptLike = string | ArrayLike<number> | ChatPrompt;

/** Returns the token ids of a chat prompt; text and token ids are returned unchanged. */
function idsOrText(prompt: PromptLike, vocab: Vocab): string | ArrayLike<number> {
  return typeof prompt === "object" && "parts" in prompt ? tokenizeParts(vocab, prompt.parts) : prompt;
}

function made(set: Constrains, vocab: Vocab): Constraint | Trie {
  return set instanceof Constraint || set instanceof Trie ? set : constraint(set, vocab);
}

/** A value that is a prefix of others ends only with an end-of-generation token. */
const ending = (vocab: Vocab): SamplerOptions => ({ after: "stop", endTokens: Array.from(vocab.endOfGeneration) });

const wordsOf = (tokenizer: TransformersTokenizer | Vocab): Vocab =>
  tokenizer instanceof Vocab ? tokenizer : vocabOf(tokenizer);

/** transformers.js calls its processors as functions. */
class Callable {
  constructor() {
    const call = (ids: bigint[][], logits: TensorLike): TensorLike =>
      (call as unknown as ProcessorCall)._call(ids, logits);
    return Object.setPrototypeOf(call, new.target.prototype) as Callable;
  }
}

interface ProcessorCall {
  _call(ids: bigint[][], logits: TensorLike): TensorLike;
}

/**
 * Restricts the output to what a constraint allows, in `model.generate` of transformers.js. Each row of a batch is
 * followed on its own. After a value only the end of generation may come, unless `after: "free"` says otherwise.
 *
 * One is for one call of `generate`; `reset()` makes it ready for another.
 *
 * @example
 * const only = new TokenTrieLogitsProcessor(tokenizer, { choice: ["yes", "no"] });
 * const output = await model.generate({ ...tokenizer("Is it on? "), logits_processor: [only], max_new_tokens: 20 });
 */
export class TokenTrieLogitsProcessor extends Callable implements ProcessorCall {
  readonly #first: Sampler;
  #rows: { readonly sampler: Sampler; seen: number }[] = [];

  /** @throws SpecError, VocabularyError: it says what, where, and with which value. */
  constructor(tokenizer: TransformersTokenizer | Vocab, set: Constrains, options: SamplerOptions = {}) {
    super();
    const vocab = wordsOf(tokenizer);
    this.#first = Sampler.create(vocab, made(set, vocab), { ...ending(vocab), ...options });
  }

  /** The samplers, one for each row of the batch. */
  get samplers(): readonly Sampler[] {
    return this.#rows.map(({ sampler }) => sampler);
  }

  /** Begins again: the next call of `generate` has another prompt. */
  reset(): void {
    for (const { sampler } of this.#rows) sampler.free();
    this.#rows = [];
  }

  /** @internal Method that transformers.js calls before each token. */
  _call(ids: bigint[][], logits: TensorLike): TensorLike {
    const { data, dims } = logits;
    const width = dims.at(-1) ?? 0;
    if (!(data instanceof Float32Array))
      throw new ArgumentError(`logits are ${describeValue(logits.type)}: a tensor of float32 is needed`);
    if (this.#rows.length === 0) this.#rows = ids.map((row) => ({ sampler: this.#first.clone(), seen: row.length }));
    if (ids.length !== this.#rows.length)
      throw new ArgumentError(`${ids.length} rows come where ${this.#rows.length} came before: reset() begins again`);
    this.#rows.forEach((row, index) => {
      const tokens = ids[index] ?? [];
      if (tokens.length < row.seen)
        throw new ArgumentError("the tokens became fewer: reset() begins again with another prompt");
      // A finished row gets padding until the whole batch is finished.
      if (row.sampler.state !== "off") {
        const fresh = tokens.slice(row.seen).map(Number);
        if (fresh.length > 0) row.sampler.accept(fresh);
      }
      row.seen = tokens.length;
      row.sampler.apply(data.subarray(index * width, (index + 1) * width));
    });
    return logits;
  }
}

/** Rows of logits of a tensor, of its first batch: the last `count`. */
function rowsIn(logits: TensorLike, count: number): Float32Array[] {
  const floats = logits.to("float32");
  const [, length = 0, width = 0] = floats.dims;
  const data = floats.data as Float32Array;
  return Array.from({ length: Math.min(count, length) }, (_, at) => {
    const row = length - Math.min(count, length) + at;
    return data.subarray(row * width, (row + 1) * width);
  });
}

/** A model with its KV cache, as transformers.js passes it on. */
class Context {
  #past: Record<string, TensorLike> = {};
  length = 0;
  passes = 0;

  constructor(
    private readonly model: ModelLike,
    private readonly tensor: TensorClass,
  ) {}

  #ints(values: ArrayLike<number> | number, fill?: number): unknown {
    const all = typeof values === "number" ? new Array<number>(values).fill(fill ?? 0) : values;
    const data = BigInt64Array.from(all, (value: number) => BigInt(value));
    return new this.tensor("int64", data, [1, data.length]);
  }

  /** Reads these tokens after what was read before; with `keep` they count as read. The last `count` rows. */
  async read(tokens: ArrayLike<number>, count: number, keep: boolean): Promise<Float32Array[]> {
    const length = this.length + tokens.length;
    const hasPast = Object.keys(this.#past).length > 0;
    const outputs = await this.model.forward({
      input_ids: this.#ints(tokens),
      attention_mask: this.#ints(length, 1),
      past_key_values: hasPast ? this.#past : null,
    });
    this.passes += 1;
    if (keep) {
      const present = Object.entries(outputs).filter(([name]) => name.startsWith("present"));
      this.#past = Object.fromEntries(
        present.map(([name, tensor]) => [name.replace("present", "past_key_values"), tensor]),
      );
      this.length = length;
    }
    const { logits } = outputs;
    if (logits === undefined) throw new ArgumentError("the model gives no logits");
    return rowsIn(logits, count);
  }
}

/**
 * Rows of a model of transformers.js for `chooseRows`: the prompt is read once, each path after it in one pass.
 *
 * @param tensor - the class `Tensor` of transformers.js.
 */
export function rowsOf(model: ModelLike, tensor: TensorClass): RowsOf {
  let known: { readonly prompt: Int32Array; readonly context: Context; readonly row: Float32Array } | undefined;
  return async (prompt, path, wanted) => {
    if (known === undefined || known.prompt.join() !== prompt.join()) {
      const context = new Context(model, tensor);
      const [row] = await context.read(prompt, 1, true);
      if (row === undefined) throw new ArgumentError("the model gives no row after the prompt");
      known = { prompt: prompt.slice(), context, row: row.slice() };
    }
    if (path.length === 0) return [known.row];
    const after = await known.context.read(path, Math.min(wanted, path.length), false);
    return wanted > path.length ? [known.row, ...after] : after;
  };
}

export interface TransformersOptions {
  /** The class `Tensor` of transformers.js. */
  readonly Tensor: TensorClass;
  readonly signal?: AbortSignal;
}

/**
 * Chooses the value that the model prefers after a prompt, with the probability of each: exact, whatever a greedy walk
 * would find.
 *
 * @param given - the prompt: of a conversation, token ids, or text, whose end is tokenised together with the values.
 * @example
 * const choice = await choose(model, tokenizer, "The sky is", [" blue", " green"], { Tensor });
 */
export async function choose(
  model: ModelLike,
  tokenizer: TransformersTokenizer | Vocab,
  given: PromptLike,
  values: readonly string[] | Constrains,
  options: TransformersOptions & ChooseRowsOptions,
): Promise<Choice> {
  const vocab = wordsOf(tokenizer);
  const set = Array.isArray(values) ? { choice: values as readonly string[] } : (values as Constrains);
  const nVocab = Math.min(model.config?.vocab_size ?? vocab.size, vocab.size);
  const rows = rowsOf(model, options.Tensor);
  const prompt = idsOrText(given, vocab);
  if (typeof prompt !== "string") return scoreRows(rows, { prompt, set: made(set, vocab), nVocab }, options);
  if (set instanceof Constraint || set instanceof Trie)
    throw new ArgumentError("a set that was made before stands after token ids, and the prompt is text: give its spec");
  return scoreRows(rows, { prompt, spec: set, vocab, nVocab }, options);
}

/** Result of a generation. */
export interface WriteResult {
  readonly tokens: readonly number[];
  readonly text: string;
  /** Filled fields of a form, by name; null without any. `form.values(written)` gives it its types. */
  readonly values: Readonly<Record<string, string>> | null;
  /** `"span"`: the value is complete, and nothing may follow it. */
  readonly finish: "span" | "end_of_generation" | "max_tokens";
  /** Forced tokens: each came without a forward pass of its own. */
  readonly forcedTokens: number;
  readonly forwardPasses: number;
}

/** Tokens that came at once: one that the model chose, or forced ones. */
export interface WrittenStep {
  readonly tokens: readonly number[];
  /** Text that they add; half of a character comes with its other half. */
  readonly text: string;
  /** Alternatives to a token that was chosen, and the model's logits, which change after the call. */
  readonly choice?: { readonly allowed: Allowed; readonly logits: Float32Array };
}

export interface GenerateOptions extends TransformersOptions, SamplerOptions {
  /** Limit on the output: 256 unless given. */
  readonly maxTokens?: number;
  /** Called with tokens as they come. An exception that it throws ends the generation. */
  readonly onStep?: (step: WrittenStep) => void;
}

/**
 * Generates what a constraint allows, and skips ahead: tokens that must come are read together with the next choice, so
 * a forward pass runs only where several tokens are allowed.
 *
 * @example
 * const { text } = await generate(model, tokenizer, "Born on ", { regex: "[0-9]{4}-[0-9]{2}" }, { Tensor });
 */
export async function generate(
  model: ModelLike,
  tokenizer: TransformersTokenizer | Vocab,
  given: PromptLike,
  set: Constrains,
  options: GenerateOptions,
): Promise<WriteResult> {
  const { Tensor, signal, maxTokens = 256, onStep, ...draws } = options;
  const vocab = wordsOf(tokenizer);
  const ends = new Set(vocab.endOfGeneration);
  const after = placePrompt(idsOrText(given, vocab), set, vocab);
  const sampler = Sampler.create(vocab, after.set, { ...ending(vocab), ...draws });
  const context = new Context(model, Tensor);
  const [tokens, waiting] = [[] as number[], after.prompt];
  let [finish, forcedTokens] = ["max_tokens" as WriteResult["finish"], 0];
  const decoder = new TextDecoder();
  try {
    while (tokens.length < maxTokens) {
      const came = Array.from(sampler.forced()).slice(0, maxTokens - tokens.length);
      let choice: WrittenStep["choice"];
      if (came.length > 0) {
        sampler.accept(came);
        forcedTokens += came.length;
      } else if (isOver(sampler, ends)) {
        finish = "span";
        break;
      } else {
        signal?.throwIfAborted();
        const [row] = await context.read(waiting.splice(0), 1, true);
        const logits = row as Float32Array;
        if (onStep !== undefined) choice = { allowed: sampler.allowed(), logits };
        const token = sampler.sample(logits);
        sampler.accept(token);
        came.push(token);
      }
      const end = came.findIndex((token) => ends.has(token));
      const said = end < 0 ? came : came.slice(0, end);
      tokens.push(...said);
      waiting.push(...said);
      if (said.length > 0)
        onStep?.({
          tokens: said,
          text: decoder.decode(vocab.bytes(said), { stream: true }),
          ...(choice && { choice }),
        });
      if (end >= 0) {
        finish = "end_of_generation";
        break;
      }
    }
    const rest = decoder.decode();
    if (rest !== "") onStep?.({ tokens: [], text: rest });
    const [text, { values }, { passes }] = [vocab.text(tokens), sampler, context];
    return { tokens, text, values, finish, forcedTokens, forwardPasses: passes };
  } finally {
    sampler.free();
  }
}

/** The tokens of a prompt, and what stands after them: tokens may cross from a text into the first value. */
function placePrompt(prompt: string | ArrayLike<number>, set: Constrains, vocab: Vocab) {
  if (typeof prompt !== "string") return { prompt: Array.from(prompt), set: made(set, vocab) };
  if (set instanceof Constraint || set instanceof Trie) return { prompt: tokenize(vocab, prompt), set };
  const [spec, text] = [utf8(specText(set), "spec"), utf8(prompt, "prompt")];
  const { library } = vocab;
  const after = own(library, "tokentrie_constraint_after");
  const handle = makeHandle(library, (out) => after(spec, spec.length, vocab.handle, text, text.length, out));
  const left = madeBy(library, 0) as number[];
  return { prompt: left, set: constraintOf(library, handle) };
}

/** Returns whether nothing but the end of generation is allowed. */
function isOver(sampler: Sampler, ends: ReadonlySet<number>): boolean {
  const { kind, ids } = sampler.allowed();
  return kind === "only" && ids.every((id) => ends.has(id));
}
