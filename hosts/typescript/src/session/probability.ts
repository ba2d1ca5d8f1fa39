import { ofLibrary } from "./names.js";
import type { ProbabilityJson } from "./thread/protocol.js";

/** The probability that the model writes any text of a constraint: `docs/probabilities.md`. */
export interface Probability {
  /** The estimate, inside the bounds: their common value, the mean of draws, or the middle. */
  readonly estimate: number;
  /** Its natural logarithm; null if it is 0. */
  readonly logprob: number | null;
  /** Standard error of the draws; 0 where there were none, and the bounds say all. */
  readonly standardError: number;
  /** Interval that holds the probability for 95 of 100 seeds; the bounds where there were no draws. */
  readonly interval: readonly [number, number];
  /** The probability is at least this. */
  readonly lower: number;
  /** The probability is at most this. */
  readonly upper: number;
  /** Probability of texts that are longer than `maxTokens` or the context; it is part of `upper` alone. */
  readonly cut: number;
  /** True if the bounds are equal up to single precision. */
  readonly exact: boolean;
  /** Number of draws that were made. */
  readonly samples: number;
  /** The probability of the text that was given; null unless one was. */
  readonly text: TextProbability | null;
  /** True if `timeout` ended the call: the bounds hold, and no draw counts. */
  readonly timedOut: boolean;
  readonly stats: {
    /** Rows of logits that were read. */
    readonly rows: number;
    readonly forwardPasses: number;
    readonly tokensDecoded: number;
    readonly seconds: number;
  };
}

/** The probability of one text of a constraint. */
export interface TextProbability {
  /** Natural logarithm of the probability that the model writes it; null if that is 0. */
  readonly logprob: number | null;
  /** Bounds of that probability. */
  readonly bounds: readonly [number, number];
  /** Its share of the estimated probability of the constraint. */
  readonly share: number;
  readonly shareBounds: readonly [number, number];
}

/** Converts what the library found. */
export function probabilityOf({ text, stats, warnings: _, ...found }: ProbabilityJson): Probability {
  const own = { text: text && ofLibrary(text), stats: ofLibrary(stats) };
  return { ...ofLibrary(found), ...own } as unknown as Probability;
}
