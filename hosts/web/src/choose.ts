/** The exact probability of every value, from rows of logits that a model computes asynchronously. */
import { ArgumentError } from "../../typescript/src/errors.js";
import { check, makeHandle, readInts, Resource, utf8 } from "../../typescript/src/ffi/call.js";
import { Status } from "../../typescript/src/ffi/abi.js";
import type { Library } from "../../typescript/src/ffi/library.js";
import { integerOf } from "../../typescript/src/ffi/numbers.js";
import { Constraint } from "../../typescript/src/native/constraint.js";
import { type Spec, specText } from "../../typescript/src/native/spec.js";
import { Trie } from "../../typescript/src/native/trie.js";
import { idsOf, type Vocab } from "../../typescript/src/native/vocab.js";
import { Choice } from "../../typescript/src/session/choice.js";
import type { ChoiceJson } from "../../typescript/src/session/thread/protocol.js";
import { describeValue } from "../../typescript/src/tree/payload.js";
import { made, own } from "./own.js";

/**
 * Rows of logits, one more than `path` has tokens: that after the prompt, and that after each token of the path. Only
 * those of the last `wanted` tokens are read where fewer are asked for; the others may be missing, at the beginning.
 */
export type RowsOf = (
  prompt: Int32Array,
  path: Int32Array,
  wanted: number,
) => Promise<readonly Float32Array[]> | readonly Float32Array[];

export interface ChooseRowsOptions {
  /** Tokens of which one must follow a value; those that the set brings unless given, often none. */
  readonly endTokens?: readonly number[];
  /** Scores only as much as this many best values need. */
  readonly top?: number;
  /** Approximate limit on the rows to read; past it the result has bounds. */
  readonly maxRows?: number;
  /** Width of a beam search: this many best prefixes of each length are kept; a better value may be missed. */
  readonly beam?: number;
  /** Tokens that a prompt and a value may have together. */
  readonly room?: number;
  readonly signal?: AbortSignal;
}

/** Scoring task: a set after tokens, or a spec after a text, whose end is tokenised together with the values. */
export type ScoringTask =
  | { readonly prompt: ArrayLike<number>; readonly set: Trie | Constraint; readonly nVocab: number }
  | { readonly prompt: string; readonly spec: Spec | string; readonly vocab: Vocab; readonly nVocab: number };

/** A choice in the module, while it is scored. */
class Scoring extends Resource {
  static of(asked: ScoringTask, { endTokens, top, maxRows, beam, room }: ChooseRowsOptions): Scoring {
    const ends = endTokens && Array.from(idsOf(endTokens, "endTokens"));
    const json = utf8(
      JSON.stringify({ end_tokens: ends, top, max_rows: maxRows, beam, room, n_vocab: asked.nVocab }),
      "options",
    );
    if ("spec" in asked) {
      const { library } = asked.vocab;
      const [spec, prompt] = [utf8(specText(asked.spec), "spec"), utf8(asked.prompt, "prompt")];
      const begin = own(library, "tokentrie_choice_after");
      return new Scoring(library, (out) =>
        begin(spec, spec.length, asked.vocab.handle, prompt, prompt.length, json, json.length, out),
      );
    }
    const { set } = asked;
    if (!(set instanceof Trie || set instanceof Constraint))
      throw new ArgumentError(`set is ${describeValue(set)}: a Trie or a Constraint is needed`);
    const prompt = idsOf(Array.from(asked.prompt), "prompt");
    const begin = own(set.library, "tokentrie_choice_new");
    return new Scoring(set.library, (out) =>
      begin(set.handle, asked.nVocab, prompt, prompt.length, json, json.length, out),
    );
  }

  private constructor(library: Library, begin: (out: Uint32Array) => number) {
    super(library, makeHandle(library, begin), own(library, "tokentrie_choice_free"));
  }

  /** Returns the batch that it needs next; null when it is over. */
  want(): Int32Array | null {
    let status = 0;
    const want = own(this.library, "tokentrie_choice_want");
    const ints = readInts(this.library, (buffer, capacity, count) => {
      status = want(this.handle, buffer, capacity, count);
      return status;
    });
    return status === Status.NONE ? null : ints;
  }

  take(row: Float32Array): void {
    if (!(row instanceof Float32Array))
      throw new ArgumentError(`a row is ${describeValue(row)}: a Float32Array is needed`);
    check(this.library, own(this.library, "tokentrie_choice_take")(this.handle, row, row.length));
  }

  result(): ChoiceJson {
    return made(this.library, own(this.library, "tokentrie_choice_result")(this.handle)) as ChoiceJson;
  }
}

/** A path of a tree to a node whose row is wanted, and that is not a prefix of another such path. */
interface Path {
  readonly tokens: Int32Array;
  /** For the prompt, and for each token, true if the row after it is still missing. */
  readonly wanted: readonly boolean[];
}

function pathsOf(ints: Int32Array): { prompt: Int32Array; paths: Path[] } {
  const length = ints[0] as number;
  const prompt = ints.subarray(1, 1 + length);
  const wantsRoot = ints[1 + length] === 1;
  const nodes = ints.subarray(2 + length);
  const count = nodes.length / 3;
  const [token, parent, wanted] = [0, 1, 2].map((field) => (node: number) => nodes[3 * node + field] as number);
  if (!token || !parent || !wanted) throw new TypeError("three fields");
  // Nodes come depth first, so earlier paths have given all rows of the common prefix.
  const goesOn = new Uint8Array(count);
  for (let node = count - 1; node >= 0; node--) {
    if (wanted(node) || goesOn[node]) if (parent(node) >= 0) goesOn[parent(node)] = 1;
  }
  const given = new Uint8Array(count);
  const paths: Path[] = [];
  let root = wantsRoot;
  for (let leaf = 0; leaf < count; leaf++) {
    if (!wanted(leaf) || goesOn[leaf]) continue;
    const upwards: number[] = [];
    for (let node = leaf; node >= 0; node = parent(node)) upwards.push(node);
    upwards.reverse();
    paths.push({
      tokens: Int32Array.from(upwards, token),
      wanted: [root, ...upwards.map((node) => wanted(node) === 1 && given[node] === 0)],
    });
    root = false;
    for (const node of upwards) given[node] = 1;
  }
  if (root) paths.push({ tokens: new Int32Array(0), wanted: [true] });
  return { prompt, paths };
}

/** Scores what is asked for, over any rows. */
export async function scoreRows(rows: RowsOf, asked: ScoringTask, options: ChooseRowsOptions): Promise<Choice> {
  const began = performance.now();
  const scoring = Scoring.of(asked, options);
  let forwardPasses = 0;
  try {
    for (let ints = scoring.want(); ints !== null; ints = scoring.want()) {
      const want = pathsOf(ints);
      for (const { tokens, wanted } of want.paths) {
        options.signal?.throwIfAborted();
        const needed = wanted.length - wanted.indexOf(true);
        const found = await rows(want.prompt, tokens, needed);
        forwardPasses += 1;
        for (let at = 0; at < wanted.length; at++) {
          if (!wanted[at]) continue;
          const row = found[found.length - wanted.length + at];
          if (row === undefined) throw new ArgumentError(`rows gave ${found.length}: ${needed} are needed`);
          scoring.take(row);
        }
      }
    }
    const stats = { forward_passes: forwardPasses, seconds: (performance.now() - began) / 1000 };
    return new Choice({ ...scoring.result(), stats });
  } finally {
    scoring.free();
  }
}

/**
 * The probability of every value of a set after a prompt, over any rows of logits. Each row is read once.
 *
 * @param rows - computes rows, such as `rowsOf(model, Tensor)` for a model of transformers.js.
 * @param nVocab - number of logits of a row that are used.
 * @param prompt - token ids, at least one.
 * @param set - a trie, or a constraint whose values can be listed.
 * @throws ArgumentError, SpecError before anything is computed; whatever `rows` throws.
 * @example
 * const set = Trie.fromSequences([[3], [4, 2]], ["A", "B"]);
 * const choice = await chooseRows((prompt, path) => myRows(prompt, path), 32_000, [1, 5, 7], set);
 */
export async function chooseRows(
  rows: RowsOf,
  nVocab: number,
  prompt: ArrayLike<number>,
  set: Trie | Constraint,
  options: ChooseRowsOptions = {},
): Promise<Choice> {
  return scoreRows(rows, { prompt, set, nVocab: integerOf(nVocab, "nVocab", "count") }, options);
}
