import { setImmediate } from "node:timers/promises";
import { BusyError, HandleError, LibraryError, ModelError, PayloadError } from "../errors.js";
import { floatOf, integerOf } from "../ffi/numbers.js";
import { Constraint } from "../native/constraint.js";
import { idsOf } from "../native/vocab.js";
import { modeNumber, payloadText, type TokenTreeMode, type TokenTreePayload } from "../tree/payload.js";
import { warn, warnLeftOut } from "../warning.js";
import { cancelling } from "./cancelling.js";
import { Run } from "./run.js";
import type { OnToken, StreamBinding, StreamOptions, StreamSampling, StreamStep } from "./binding.js";

export interface StreamArguments {
  readonly promptTokens: Int32Array | readonly number[];
  /** Text in place of them, for a library that takes text: constraints are tokenised together with its end. */
  readonly promptText?: string;
  /** Cache slot of the prompt; -1, unless given, is the stream's own. Calls on one slot wait for each other. */
  readonly slotId?: number;
  /** Limit on the output: 256 unless given. */
  readonly maxTokens?: number;
  /** 0 unless given: the most probable token. */
  readonly temperature?: number;
  /** 1 unless given: all. */
  readonly topP?: number;
  /** All options as JSON, in place of these three, for a library that reads them. */
  readonly request?: string;
  /** Values, one of which must begin the output: a payload as object or JSON text, or a trie of the same library. */
  readonly tokenTreePayload?: TokenTreePayload | string | MadeBefore | null;
  /** Mode of the choice: `"greedy"` unless given. */
  readonly tokenTreeMode?: TokenTreeMode;
  readonly signal?: AbortSignal;
  /** Each token; last, exactly once, also after an error or a cancel, `(-1, "", true)`. */
  readonly onToken?: OnToken;
  /** Each text that is not empty. */
  readonly onText?: (text: string) => void;
  /** Each step of the pull form: what a draft proposed, and what of it was taken. */
  readonly onAccept?: (step: StreamStep) => void;
}

/** A trie or a constraint that a library has built. */
export interface MadeBefore {
  readonly handle: number;
  readonly library?: object;
}

export interface StreamResult {
  readonly text: string;
  readonly tokens: number[];
  /** From the start to the first text; null if none came. */
  readonly firstTokenMs: number | null;
  /** Tokens proposed by a draft model; 0 without one. */
  readonly drafted: number;
  readonly accepted: number;
}

/** Libraries that were warned about. */
const warned = new WeakSet<object>();

/**
 * Runs generations through any streaming library. The trie is set after the prompt was taken and cleared in `finally`;
 * a library without tries is warned about once, and goes on without.
 *
 * @example
 * const runner = new StreamRunner(elizaBinding(loadLibrary()));
 * const { text } = await runner.run({ modelPath }, { promptTokens, tokenTreePayload, onToken });
 */
export class StreamRunner<Handle> {
  readonly #binding: StreamBinding<Handle>;
  readonly #busy = new Set<Handle>();
  readonly #slots = new Map<number, Promise<unknown>>();

  constructor(binding: StreamBinding<Handle>) {
    this.#binding = binding;
  }

  /** Opens a stream, generates, and closes it, whatever happens. */
  async run(options: StreamOptions, given: StreamArguments): Promise<StreamResult> {
    const run = new Run(given);
    try {
      this.#need("llmStreamOpen", "llmStreamPrefill", "llmStreamClose");
      const stream = await this.#binding.llmStreamOpen?.(options);
      if (isNone(stream)) throw new ModelError(`open failed: ${options.modelPath}${this.#why()}`);
      try {
        return await this.#whole(stream, given, run);
      } finally {
        await this.#binding.llmStreamClose?.(stream);
      }
    } finally {
      run.finish();
    }
  }

  /**
   * Generates on a stream that is open.
   *
   * @throws BusyError if it is generating already.
   * @throws CancelledError if the signal aborts; `partial` is what had come.
   * @throws ModelError, PayloadError if the library refuses the prompt, the payload or the generation.
   */
  async generate(stream: Handle, given: StreamArguments): Promise<StreamResult> {
    const run = new Run(given);
    try {
      return await this.#whole(stream, given, run);
    } finally {
      run.finish();
    }
  }

  async #whole(stream: Handle, given: StreamArguments, run: Run): Promise<StreamResult> {
    checkArguments(given);
    this.#need("llmStreamPrefill");
    if (!this.#binding.llmStreamGenerate) this.#need("llmStreamNext");
    if (this.#busy.has(stream)) {
      throw new BusyError("generate failed: -1: this stream is generating; cancel it, or wait for its end");
    }
    this.#busy.add(stream);
    try {
      await this.#inSlot(given.slotId ?? -1, () => this.#generate(stream, given, run));
    } finally {
      this.#busy.delete(stream);
    }
    return run.result();
  }

  async #generate(stream: Handle, given: StreamArguments, run: Run): Promise<void> {
    run.checkAborted();
    const cancel = () => this.#binding.llmStreamCancel?.(stream);
    try {
      await cancelling(given.signal, cancel, async () => {
        await this.#prefill(stream, given);
        run.checkAborted();
        await this.#constrained(stream, given, () => this.#produce(stream, given, run));
      });
    } catch (error) {
      // After any failure, such as one in a user's callback, no generation continues in the background.
      cancel();
      run.checkAborted();
      throw error;
    }
    run.checkAborted();
  }

  async #prefill(stream: Handle, given: StreamArguments): Promise<void> {
    const { promptText, slotId = -1 } = given;
    if (promptText !== undefined) this.#need("llmStreamPrefillText");
    const prefilled =
      promptText === undefined
        ? this.#binding.llmStreamPrefill?.(stream, Int32Array.from(idsOf(given.promptTokens, "promptTokens")), slotId)
        : this.#binding.llmStreamPrefillText?.(stream, promptText, slotId);
    const taken = (await prefilled) ?? -1;
    if (taken < 0) throw new ModelError(`Prefill failed: ${taken}${this.#why()}`);
  }

  /** Sets the trie, if there is one, and clears it whatever happens. */
  async #constrained(stream: Handle, given: StreamArguments, generate: () => Promise<void>): Promise<void> {
    const payload = given.tokenTreePayload ?? null;
    if (payload === null) return generate();
    const set = this.#setter(stream, payload, modeNumber(given.tokenTreeMode ?? 0));
    const clear = this.#clearer(stream);
    if (set === null || clear === null) {
      const library = this.#binding.library ?? this.#binding;
      if (!warned.has(library)) {
        warned.add(library);
        warn("this library has no set_token_trie and clear_token_trie: the output is not constrained");
      }
      return generate();
    }
    try {
      const status = await set();
      // A requested constraint must never be dropped silently.
      if (typeof status === "number" && status < 0) {
        throw new PayloadError(`set_token_trie failed: ${status}${this.#why()}`);
      }
      // A constraint gave this warning when it was built.
      if (!(payload instanceof Constraint)) warnLeftOut((await this.#binding.leavesLeftOut?.(stream)) ?? 0);
      await generate();
    } finally {
      await clear();
    }
  }

  /** Returns the function that hands over the set; null if the library has none. */
  #setter(stream: Handle, set: TokenTreePayload | string | MadeBefore, mode: 0 | 1): (() => unknown) | null {
    const binding = this.#binding;
    if (typeof set === "object" && "handle" in set) {
      if (binding.library !== undefined && set.library !== undefined && binding.library !== set.library) {
        throw new HandleError("tokenTreePayload belongs to another library than the stream: make it with that one");
      }
      return binding.setTrie ? () => binding.setTrie?.(stream, set.handle, mode) : null;
    }
    const json = payloadText(set);
    if (binding.setTokenTrie) return () => binding.setTokenTrie?.(stream, json, mode);
    if (!binding.llmStreamSetTokenTrie) return null;
    return () => binding.llmStreamSetTokenTrie?.({ stream, triePayloadJson: json, mode });
  }

  #clearer(stream: Handle): (() => unknown) | null {
    const binding = this.#binding;
    if (binding.clearTokenTrie) return () => binding.clearTokenTrie?.(stream);
    return binding.llmStreamClearTokenTrie ? () => binding.llmStreamClearTokenTrie?.({ stream }) : null;
  }

  async #produce(stream: Handle, given: StreamArguments, run: Run): Promise<void> {
    const sampling: StreamSampling = {
      maxTokens: given.maxTokens ?? 256,
      temperature: given.temperature ?? 0,
      topP: given.topP ?? 1,
      ...(given.request === undefined ? {} : { request: given.request }),
    };
    if (this.#binding.llmStreamGenerate) {
      const onToken: OnToken = (token, text, isDone) => {
        try {
          run.onToken(token, text, isDone);
        } catch (error) {
          this.#binding.llmStreamCancel?.(stream);
          throw error;
        }
      };
      const status = await this.#binding.llmStreamGenerate(stream, sampling, onToken);
      if (status < 0 && !given.signal?.aborted) throw new ModelError(`generate failed: ${status}${this.#why()}`);
      return;
    }
    await this.#pull(stream, sampling, given, run);
  }

  async #pull(stream: Handle, sampling: StreamSampling, given: StreamArguments, run: Run): Promise<void> {
    const over: StreamStep = { tokens: [], text: "", done: true };
    let left = sampling.maxTokens;
    const next = () => this.#binding.llmStreamNext?.(stream, { ...sampling, maxTokens: left }) ?? over;
    let step = await next();
    try {
      for (; ; step = await next()) {
        run.onStep(step);
        left -= step.tokens.length;
        if (step.done || left <= 0 || given.signal?.aborted) break;
        // A library that returns at once must not starve the event loop, which delivers the signal.
        await setImmediate();
      }
    } finally {
      // The end of the generation is read too: until then the stream is busy.
      if (!step.done) this.#binding.llmStreamCancel?.(stream);
      left = 1;
      while (!step.done) step = await next();
    }
  }

  /** One call at a time on each shared cache. */
  async #inSlot(slotId: number, call: () => Promise<void>): Promise<void> {
    if (slotId < 0) return call();
    const turn = (this.#slots.get(slotId) ?? Promise.resolve()).then(call);
    const settled = turn.catch(() => {});
    this.#slots.set(slotId, settled);
    try {
      await turn;
    } finally {
      if (this.#slots.get(slotId) === settled) this.#slots.delete(slotId);
    }
  }

  #need(...names: (keyof StreamBinding<Handle>)[]): void {
    const missing = names.filter((name) => this.#binding[name] === undefined);
    if (missing.length > 0) {
      throw new LibraryError(`the library is missing streaming-LLM symbols: ${missing.join(", ")}`);
    }
  }

  #why(): string {
    const sentence = this.#binding.lastError?.() ?? "";
    return sentence === "" ? "" : `: ${sentence}`;
  }
}

/** Absence of a stream: C's NULL in any JavaScript representation. */
function isNone(stream: unknown): stream is null | undefined {
  return stream === null || stream === undefined || stream === 0 || stream === 0n;
}

/** @throws ArgumentError, PayloadError before anything is asked of the library. */
function checkArguments({ maxTokens = 256, temperature = 0, topP = 1, slotId = -1, tokenTreeMode }: StreamArguments) {
  integerOf(maxTokens, "maxTokens", "count");
  floatOf(temperature, "temperature");
  floatOf(topP, "topP");
  integerOf(slotId, "slotId", "i32");
  modeNumber(tokenTreeMode ?? 0);
}
