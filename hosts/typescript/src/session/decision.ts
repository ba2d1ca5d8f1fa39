/** Typed questions about a state, and their answers: `docs/decisions.md`. */

/** Input of a decision: text or JSON. */
export type DecisionData =
  string | boolean | number | null | readonly DecisionData[] | { readonly [key: string]: DecisionData };

/** Question of a decision; without instructions its name is asked. */
export type Question =
  | {
      readonly type: "predicate";
      readonly instructions?: DecisionData;
      readonly yes?: DecisionData;
      readonly no?: DecisionData;
    }
  | {
      readonly type: "choice";
      readonly instructions?: DecisionData;
      readonly options:
        | readonly (string | boolean | { readonly value: string | boolean; readonly description?: DecisionData })[]
        | { readonly [option: string]: DecisionData };
    }
  | {
      readonly type: "score";
      readonly instructions?: DecisionData;
      readonly levels: readonly (string | { readonly label: string; readonly description?: DecisionData })[];
    };

export interface DecideOptions {
  readonly signal?: AbortSignal;
  /** Instructions for all questions. */
  readonly instructions?: DecisionData;
  /** Text with which the assistant's turn begins; "Answer:" unless given, or nothing for a model trained to decide. */
  readonly prefix?: string;
  /** Solved examples, shown before the state in this order. */
  readonly examples?: readonly {
    readonly state: DecisionData;
    readonly answers: { readonly [question: string]: DecisionData };
  }[];
  /** Reads an option's own text, or a short label that stands for it: "text" unless given. */
  readonly readout?: "text" | "label";
  /** "optional": an option ends with its word; "required": the turn ends after it. "optional" unless given. */
  readonly end?: "optional" | "required";
  /** Counts an option in other cases, and after a space, as the option: yes, unless given. */
  readonly spellings?: boolean;
  /** Adds to each choice the option that none of the others is meant; where it wins, the value is null. */
  readonly noneOfThese?: boolean;
  /** Lists the options in the prompt: yes, unless given. */
  readonly listOptions?: boolean;
  /** Number of orders in which options are listed, 1 to 64; the answer is the mean over the orders. */
  readonly permute?: number;
  /**
   * "given", or in the orders of `permute`; "independent": all listed options stand at the same place of the prompt and
   * none sees another; "balanced": balanced orders, until the winner is settled. "given" unless given.
   */
  readonly order?: "given" | "independent" | "balanced";
  /** Probability with which the winner of balanced orders is that of their whole design; 0.95 unless given. */
  readonly orderConfidence?: number;
  /** Prior to divide out of the probabilities. */
  readonly prior?: "none" | "content-free";
  /** Threshold of the probability, below which the value is null. */
  readonly threshold?: number;
  /** Accuracy below which there is no answer, by the examples of the calibration. */
  readonly targetAccuracy?: number;
  /** Probability with which a prediction set has the right option, by the examples of the calibration. */
  readonly coverage?: number;
  /** Number of best options to report, for questions with thousands. */
  readonly top?: number;
  /** Most rows of logits that are read for such a question; 2048 unless given. */
  readonly maxRows?: number;
  /** The content of a file that `tokentrie decide --calibrate` made: it maps the probabilities to calibrated ones. */
  readonly calibration?: DecisionData;
  /** Text of the system message. */
  readonly system?: string;
  /** The user's message, with `{state}`, `{instructions}`, `{options}` and `{answer}`. */
  readonly prompt?: string;
  /** The seconds that it may take. */
  readonly timeout?: number;
  /** With slots, calls of higher priority go first; 0 unless given. */
  readonly priority?: number;
}

/** The answer to one question. */
export interface Answer {
  readonly type: "predicate" | "choice" | "score";
  /** A boolean, the option, or the expected level from 0; null below the threshold. */
  readonly value: string | boolean | number | null;
  /** The most probable option, by number. */
  readonly index: number;
  /** Probability of yes, for a predicate; else that of the most probable option. */
  readonly probability: number;
  /** Options in their order, each with its probability; together they are 1. Null for what was not scored. */
  readonly probabilities: readonly { readonly value: DecisionData; readonly probability: number | null }[];
  /** Confidence of the answer, from 0 to 1. */
  readonly confidence: number;
  /** Total probability that the model gives to the options. */
  readonly mass: number;
  /** Entropy of the probabilities, in nats. */
  readonly entropy: number;
  /** Share of the orders in which another option wins. */
  readonly flips: number;
  /** How the options were listed. */
  readonly order: "given" | "independent" | "balanced";
  /** Reason why that is not the order that was asked for. */
  readonly order_reason: string | null;
  /** With thousands of options: how many of the best ones no unscored option can surpass. */
  readonly certain: number | null;
  /** With thousands of options: the largest probability of an option that was not scored. */
  readonly unscored: number | null;
  /** Reason for a missing value. */
  readonly reason: string | null;
  /** With a coverage: the indices of the options one of which is right with that probability, the best first. */
  readonly prediction_set: readonly number[] | null;
  /** Advice where the options together have less than 1 % of the probability. */
  readonly warning: string | null;
  /** One for each order: the tokens before, and the texts that are scored, with the option of each. */
  readonly prompts: readonly {
    readonly tokens: readonly number[];
    /** Ranges of the tokens that hold one independent option each, as begin and end. */
    readonly branches: readonly (readonly [number, number])[];
    readonly values: readonly string[];
    readonly options: readonly number[];
    readonly probabilities: readonly (number | null)[];
  }[];
}

/** The answers to the questions about a state. */
export interface Decision<Name extends string = string> {
  readonly answers: { readonly [name in Name]: Answer };
  /** One of these follows an option, or with an optional end a token that does not continue its word. */
  readonly endTokens: readonly number[];
  readonly stats: { readonly forwardPasses: number; readonly tokensDecoded: number; readonly seconds: number };
}

/** @internal */
export function decisionOf<Name extends string>(json: string): Decision<Name> {
  const [said] = JSON.parse(json) as [
    {
      answers: { readonly [name in Name]: Answer };
      end_tokens: number[];
      stats: { forward_passes: number; tokens_decoded: number; seconds: number };
    },
  ];
  const { forward_passes: forwardPasses, tokens_decoded: tokensDecoded, seconds } = said.stats;
  return { answers: said.answers, endTokens: said.end_tokens, stats: { forwardPasses, tokensDecoded, seconds } };
}
