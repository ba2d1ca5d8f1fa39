import type { ChosenValues } from "./thread/protocol.js";

/** Value that the model chooses, and the probability of each: exact, whatever a greedy walk would have found. */
export class Choice {
  /** The most probable value. */
  readonly name: string;
  /** Its number in the list. */
  readonly index: number;
  /**
   * Probability of every value, in the order of the list; together they are 1. With `top` or `maxRows` lower bounds,
   * and NaN for a value that was not scored.
   */
  readonly probabilities: Float64Array;
  /** The probability that the model says any of the values unasked. */
  readonly mass: number;
  /** Lower and upper bound of `mass`: equal where all values were scored. */
  readonly massBounds: readonly [number, number];
  /** True if no value can be more probable than the first. */
  readonly certain: boolean;
  /** Numbers of values, the most probable first: all of them, or `top`. */
  readonly ranking: readonly number[];
  readonly values: readonly string[];
  readonly stats: { readonly forwardPasses: number; readonly seconds: number };

  /** @internal */
  constructor(chosen: ChosenValues) {
    this.values = chosen.names;
    this.index = chosen.best;
    this.name = chosen.names[chosen.best] ?? "";
    this.probabilities = chosen.probabilities;
    this.mass = chosen.mass;
    this.massBounds = chosen.massBounds;
    this.certain = chosen.certain;
    this.ranking = chosen.ranking;
    this.stats = { forwardPasses: chosen.forwardPasses, seconds: chosen.seconds };
  }

  /** The probability of the value that was chosen. */
  get probability(): number {
    return this.probabilities[this.index] ?? 0;
  }

  /** Log probability of every value as the output, under the model's whole vocabulary. */
  get logprobs(): Float64Array {
    const mass = Math.log(this.mass);
    return this.probabilities.map((probability) => Math.log(probability) + mass);
  }

  /** Values and their probabilities, the most probable first. */
  items(): [value: string, probability: number][] {
    const items = this.values.map((value, index): [string, number] => [value, this.probabilities[index] ?? 0]);
    return items.sort(([, a], [, b]) => (Number.isNaN(b) ? -1 : Number.isNaN(a) ? 1 : b - a));
  }
}
