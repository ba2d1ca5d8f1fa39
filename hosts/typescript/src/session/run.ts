import { CancelledError } from "../errors.js";
import type { OnToken, StreamStep } from "./binding.js";
import type { StreamArguments, StreamResult } from "./runner.js";

/** Events and result of one generation. */
export class Run {
  readonly #given: StreamArguments;
  readonly #started = performance.now();
  readonly #tokens: number[] = [];
  #text = "";
  #firstTokenMs: number | null = null;
  #drafted = 0;
  #accepted = 0;
  #finished = false;

  constructor(given: StreamArguments) {
    this.#given = given;
  }

  /** The library's own last call is not passed on: `finish` makes it, also where the library does not. */
  readonly onToken: OnToken = (token, text, isDone) => {
    if (this.#finished || (isDone && token < 0 && text === "")) return;
    if (token >= 0) this.#tokens.push(token);
    this.#take(text);
    this.#given.onToken?.(token, text, false);
  };

  onStep(step: StreamStep): void {
    const tokens = Array.from(step.tokens);
    this.#tokens.push(...tokens);
    this.#drafted += step.drafted ?? 0;
    this.#accepted += step.accepted ?? 0;
    this.#take(step.text);
    this.#given.onAccept?.(step);
    // The text belongs to all tokens of the step: it is passed with the last.
    tokens.forEach((token, index) => {
      this.#given.onToken?.(token, index === tokens.length - 1 ? step.text : "", false);
    });
  }

  finish(): void {
    if (this.#finished) return;
    this.#finished = true;
    this.#given.onToken?.(-1, "", true);
  }

  checkAborted(): void {
    const { signal } = this.#given;
    if (!signal?.aborted) return;
    throw new CancelledError("the generation was cancelled by its signal", this.result(), signal.reason);
  }

  result(): StreamResult {
    return {
      text: this.#text,
      tokens: [...this.#tokens],
      firstTokenMs: this.#firstTokenMs,
      drafted: this.#drafted,
      accepted: this.#accepted,
    };
  }

  #take(text: string): void {
    if (text === "") return;
    this.#firstTokenMs ??= performance.now() - this.#started;
    this.#text += text;
    this.#given.onText?.(text);
  }
}
