import type { Outcome } from "./thread/protocol.js";

/** One token of a generation. */
export interface GeneratedToken {
  readonly id: number;
  /** The whole characters that it completes; often none. */
  readonly text: string;
}

/** Result of a generation. */
export interface GenerationResult extends Outcome {
  readonly text: string;
  readonly tokens: readonly number[];
  /** From the start to the first text; null if none came. */
  readonly firstTokenMs: number | null;
}

type Produce = (push: (token: GeneratedToken) => void, signal: AbortSignal) => Promise<GenerationResult>;

/**
 * A generation that runs: iterate over its tokens, wait for its result, or both. Leaving the loop cancels it; when the
 * loop is left, the session is free again.
 *
 * @example
 * const generation = session.generate(prompt, { tokenTreePayload });
 * for await (const { text } of generation) process.stdout.write(text);
 * const { leaf, stats } = await generation.result;
 */
export class Generation implements AsyncIterable<GeneratedToken> {
  /** The whole of it; rejects with what went wrong, `CancelledError` for a cancel. */
  readonly result: Promise<GenerationResult>;

  readonly #tokens: GeneratedToken[] = [];
  readonly #abort = new AbortController();
  readonly #waiting: (() => void)[] = [];
  #over = false;

  /** @internal */
  constructor(produce: Produce, signal?: AbortSignal) {
    const either = signal === undefined ? this.#abort.signal : AbortSignal.any([signal, this.#abort.signal]);
    this.result = produce((token) => {
      this.#tokens.push(token);
      this.#wake();
    }, either).finally(() => {
      this.#over = true;
      this.#wake();
    });
    // The iterator reports errors too: an unread `result` must not raise an unhandled rejection.
    this.result.catch(() => {});
  }

  /** Ends it soon; `result` rejects then. */
  cancel(reason?: unknown): void {
    this.#abort.abort(reason);
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<GeneratedToken, void, void> {
    let whole = false;
    try {
      for (let at = 0; ; at++) {
        while (at >= this.#tokens.length && !this.#over) {
          await new Promise<void>((resolve) => this.#waiting.push(resolve));
        }
        const token = this.#tokens[at];
        if (token === undefined) break;
        yield token;
      }
      whole = true;
      await this.result;
    } finally {
      if (!whole) {
        this.cancel(new Error("the loop over its tokens was left"));
        await this.result.catch(() => {});
      }
    }
  }
}
