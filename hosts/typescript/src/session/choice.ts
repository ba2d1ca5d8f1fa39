import type { ChoiceJson } from "./thread/protocol.js";

/** Data that a text encodes: the number for an integer, the document for a schema, else the text. */
export type ChoiceValue =
  string | number | boolean | null | readonly ChoiceValue[] | { readonly [name: string]: ChoiceValue };

/** Value that the model chooses, and the probability of each: exact, whatever a greedy walk would have found. */
export class Choice {
  /** The most probable value; empty where it has no name. */
  readonly name: string;
  /** The most probable value as its spec reads it; of a list or a trie its name, or its number where it has none. */
  readonly value: ChoiceValue;
  /** Its number in the list. */
  readonly index: number;
  /**
   * Probability of every value by its name, or its number where it has none; together they are 1. With `top` or
   * `maxRows` lower bounds, and null for a value that was not scored.
   */
  readonly probabilities: Readonly<Record<string, number | null>>;
  /** The probability that the unconstrained model writes any of the values. */
  readonly mass: number;
  /** Lower and upper bound of `mass`: equal where all values were scored. */
  readonly massBounds: readonly [number, number];
  /** Log probability of every value under the whole vocabulary; null if it is impossible or was not scored. */
  readonly logprobs: readonly (number | null)[];
  /** True if no value can be more probable than the first. */
  readonly certain: boolean;
  /** Numbers of values, the most probable first: all of them, or `top`. */
  readonly ranking: readonly number[];
  /** Names of the values, in their order. */
  readonly values: readonly string[];
  readonly stats: { readonly forwardPasses: number; readonly seconds: number };
  readonly #keys: readonly string[];

  /** @internal */
  constructor(chosen: ChoiceJson) {
    this.values = chosen.names.map((name) => name ?? "");
    this.#keys = chosen.names.map((name, index) => name ?? String(index));
    this.index = chosen.index;
    this.name = chosen.name ?? "";
    this.value = chosen.value;
    this.probabilities = chosen.probabilities;
    this.logprobs = chosen.logprobs;
    this.mass = chosen.mass;
    this.massBounds = chosen.mass_bounds;
    this.certain = chosen.certain;
    this.ranking = chosen.ranking;
    this.stats = { forwardPasses: chosen.stats.forward_passes, seconds: chosen.stats.seconds };
  }

  /** The probability of the value that was chosen. */
  get probability(): number {
    return this.#share(this.index);
  }

  #share(index: number): number {
    return this.probabilities[this.#keys[index] ?? ""] ?? 0;
  }

  /** Names of values and their probabilities, the most probable first: those that were ranked. */
  items(): [name: string, probability: number][] {
    return this.ranking.map((index) => [this.#keys[index] ?? "", this.#share(index)]);
  }
}
