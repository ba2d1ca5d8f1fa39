import { ArgumentError, BusyError, CancelledError, PayloadError, SpecError } from "../errors.js";
import { AFTER, BATCHING, type EngineInfo } from "../ffi/abi.js";
import { type Library, loadLibrary } from "../ffi/library.js";
import { Constraint, constraintOf } from "../native/constraint.js";
import type { DrawOptions } from "../native/sampler.js";
import { jsonText, type Spec, specText } from "../native/spec.js";
import { Trie } from "../native/trie.js";
import { floatOf, integerOf } from "../ffi/numbers.js";
import { idsOf, Vocab } from "../native/vocab.js";
import { modeNumber, describeValue, type TokenTreeMode, type TokenTreePayload } from "../tree/payload.js";
import { cancelling } from "./cancelling.js";
import { type ChatEvent, type ChatMessage, type ChatOptions, type ChatReply, chatText, replyOf } from "./chat.js";
import { Choice } from "./choice.js";
import { type DecideOptions, type Decision, type DecisionData, decisionOf, type Question } from "./decision.js";
import { type GeneratedToken, Generation, type GenerationResult } from "./generation.js";
import { forLibrary } from "./names.js";
import { type Probability, probabilityOf } from "./probability.js";
import type { ChoiceJson, Outcome, SessionInfo } from "./thread/protocol.js";
import { RemoteSession } from "./thread/remote.js";
import { type StreamArguments, type StreamResult, StreamRunner } from "./runner.js";
import { type RunToolsOptions, runTools, type ToolRun } from "./tools.js";
import { Turns } from "./turns.js";
import { warn } from "../warning.js";

export interface SessionOptions {
  /** Tokens that the context holds: 4096 unless given, or what the model was trained on if that is less. */
  readonly nCtx?: number;
  /** Tokens of one forward pass: 512 unless given. */
  readonly nBatch?: number;
  /** As many as pay off, unless given. */
  readonly nThreads?: number;
  /** Layers on the graphics card: none unless given. */
  readonly nGpuLayers?: number;
  /** After a value: `"stop"` (unless given), or `"free"` text. */
  readonly after?: (typeof AFTER)[number];
  /** For `tokenTreeMode: "sampled"` and temperatures: of the operating system unless given. */
  readonly seed?: number;
  /**
   * Calls that run at once in common forward passes, of all sessions of this file with the same options: up to 128.
   * Each has `nCtx` tokens; all sessions share the memory. With 1, unless given, each session has a context of its own.
   */
  readonly slots?: number;
  /** With `slots`: calls that may wait for one; one more is a BusyError at once. 1024 unless given. */
  readonly maxQueue?: number;
  /**
   * Contents of a forward pass: `"free"`, something of every call that runs, unless given; or `"fixed"`, tokens of one
   * call, which gets the same logits whatever runs beside it.
   */
  readonly batching?: (typeof BATCHING)[number];
  /**
   * The response template of the model's author, as `tokenizer_config.json` has it for transformers: an object, or JSON
   * of one. Chats are read and constrained by it where the chat template does not show how.
   */
  readonly responseTemplate?: object | string;
  /**
   * Source of drafts, tokens that are guessed ahead so that one forward pass verifies several: `"prompt"`, the text of
   * each generation; `"ngram"`, all texts of this session; or the path of a GGUF with the same vocabulary. Outputs stay
   * the same.
   */
  readonly draft?: string;
  readonly library?: Library;
}

/** Text, in which names of control tokens become those tokens; or token ids, for text that is not trusted. */
export type Prompt = string | readonly number[] | Int32Array;

export interface GenerateOptions {
  /**
   * Values, one of which must begin the output: a payload as object or JSON text, or a trie. Without it text is
   * free.
   */
  readonly tokenTreePayload?: TokenTreePayload | string | Trie;
  /** The same for any kind of constraint: a spec, such as `{ regex: "[0-9]+" }`, or one that was made before. */
  readonly constraint?: Spec | Constraint | Trie;
  /** Mode of the choice: `"greedy"` unless given. */
  readonly tokenTreeMode?: TokenTreeMode;
  readonly signal?: AbortSignal;
  /** Limit on the output: 256 unless given. */
  readonly maxTokens?: number;
  /** 0 unless given: the most probable token. */
  readonly temperature?: number;
  /** 1 unless given: all. */
  readonly topP?: number;
  /** From 0 to 63: a cache that sessions of the same file and options share. */
  readonly slotId?: number;
  /** Sampling options of every token, in place of `tokenTreeMode`, `temperature` and `topP`. */
  readonly sampling?: DrawOptions & { readonly mode?: "greedy" | "sampled" };
  /** Sampling options of the free text after a value, where they differ. */
  readonly freeSampling?: DrawOptions & { readonly mode?: "greedy" | "sampled" };
  /** Tokens that close a value; not for forms. */
  readonly endTokens?: readonly number[];
  /** Stop texts: each ends the output, and is not part of it; not for forms. */
  readonly stop?: string | readonly string[];
  /** Text allowed after a value, in place of the session's `after`; not for forms. */
  readonly after?: (typeof AFTER)[number];
  /** Decode forced tokens together with what follows them: yes, unless given. */
  readonly skipAhead?: boolean;
  /** Chooses the most probable value of each slot of a form as a whole. */
  readonly exact?: boolean;
  /** Reports the probability of every value of every slot of a form. */
  readonly probabilities?: boolean;
  /** Number of alternatives to report beside the log probability of each token among the allowed ones. */
  readonly logprobs?: number;
  /** Reports the allowed tokens at each choice, as a hash chain for others to check; not for forms. */
  readonly receipt?: boolean;
  /** Number of particles, 1 to 4096, of a draw from the constraint as a whole: docs/probabilities.md. */
  readonly correct?: number;
  /** Added to the logits of tokens, by their ids, before anything else; not with `exact` or `probabilities`. */
  readonly logitBias?: Readonly<Record<number, number>>;
  /** With slots, calls of higher priority go first; 0 unless given. */
  readonly priority?: number;
}

export interface ChooseOptions {
  readonly signal?: AbortSignal;
  /** Scores only as much as this many best values need. */
  readonly top?: number;
  /** Reads at most this many rows of logits, and reports bounds. */
  readonly maxRows?: number;
  /** Width of a beam search: this many best prefixes of each length are kept; a better value may be missed. */
  readonly beam?: number;
  /** One of these tokens must follow a value, and counts with it. */
  readonly endTokens?: readonly number[];
  /** With slots, calls of higher priority go first; 0 unless given. */
  readonly priority?: number;
}

export interface ProbabilityOptions {
  readonly signal?: AbortSignal;
  /** The bounds are close enough when they differ by this share of the upper one; 0.01 unless given. */
  readonly tolerance?: number;
  /** Limit on the rows of logits for the bounds; 1024 unless given. */
  readonly maxRows?: number;
  /** Number of draws where the bounds are not close enough; 64 unless given, 0 for none. */
  readonly samples?: number;
  /** Limit on the tokens of a text; the room of the context unless given. */
  readonly maxTokens?: number;
  /** Seed of the draws; that of the session, or one of the operating system, unless given. */
  readonly seed?: number;
  /** One of these tokens must follow a text; the end of generation unless given. With `[]` none must. */
  readonly endTokens?: readonly number[];
  /** A text, whose probability is found, too. */
  readonly text?: string;
  /** Seconds after which the call returns what is known by then. */
  readonly timeout?: number;
  /** With slots, calls of higher priority go first; 0 unless given. */
  readonly priority?: number;
}

/** Texts; a trie or a payload; a spec or a constraint with few values. */
export type ChoiceValues = readonly string[] | Trie | Constraint | TokenTreePayload | Spec;

/** Texts of choices, and what stands around them. */
export interface TextsOptions {
  /** End of the prompt: the texts are tokenized as they follow it. */
  readonly prefix?: string;
  readonly suffix?: string;
}

const EMPTY: Outcome = {
  finish: "none",
  state: "idle",
  leaf: null,
  values: null,
  value: null,
  probabilities: {},
  logprobs: [],
  receipt: null,
  stats: {
    promptTokens: 0,
    promptTokensReused: 0,
    tokens: 0,
    forcedTokens: 0,
    sampledTokens: 0,
    forwardPasses: 0,
    forwardPassesSaved: 0,
    starved: 0,
    seconds: 0,
  },
};

/**
 * A model that is open, with a context of its own or a share of an engine. Forward passes run on a thread of their own,
 * so nothing here blocks.
 *
 * @example
 * await using session = await Session.open("model.gguf");
 * const choice = await session.choose("The sky is", [" blue", " green"]);
 */
export class Session implements AsyncDisposable {
  readonly #remote: RemoteSession;
  readonly #runner: StreamRunner<number>;
  readonly #turns = new Turns();
  readonly #after: (typeof AFTER)[number];
  #running: Generation | null = null;
  #vocab: Promise<Vocab> | null = null;
  #closed: Promise<void> | null = null;

  private constructor(remote: RemoteSession, after: (typeof AFTER)[number]) {
    this.#remote = remote;
    this.#after = after;
    this.#runner = new StreamRunner(remote);
  }

  /**
   * Loads a GGUF. Sessions of one file share its weights.
   *
   * @throws ModelError if the file is not a model; LibraryError if the library has no llama.cpp; SpecError for an
   * invalid response template; ArgumentError for a draft that is not supported.
   */
  static async open(path: string, options: SessionOptions = {}): Promise<Session> {
    const after = AFTER.indexOf(options.after ?? "stop");
    if (after < 0) throw new ArgumentError(`after is ${describeValue(options.after)}: "free" or "stop" is needed`);
    const { responseTemplate } = options;
    const batching = BATCHING.indexOf(options.batching ?? "free");
    if (batching < 0)
      throw new ArgumentError(`batching is ${describeValue(options.batching)}: "free" or "fixed" is needed`);
    const settings = {
      nCtx: integerOf(options.nCtx ?? 0, "nCtx", "u32"),
      nBatch: integerOf(options.nBatch ?? 0, "nBatch", "u32"),
      nThreads: integerOf(options.nThreads ?? 0, "nThreads", "u32"),
      nGpuLayers: integerOf(options.nGpuLayers ?? 0, "nGpuLayers", "u32"),
      after,
      slots: integerOf(options.slots ?? 1, "slots", "u32"),
      maxQueue: integerOf(options.maxQueue ?? 0, "maxQueue", "u32"),
      batching,
      seed: options.seed === undefined ? null : integerOf(options.seed, "seed", "u32"),
      responseTemplate:
        responseTemplate === undefined
          ? null
          : typeof responseTemplate === "string"
            ? responseTemplate
            : jsonText(responseTemplate),
      draft: options.draft ?? null,
    };
    const remote = await RemoteSession.open(options.library ?? loadLibrary(), path, settings);
    return new Session(remote, AFTER[after] ?? "stop");
  }

  /**
   * Generates after a prompt. It begins at once; one at a time.
   *
   * @throws BusyError (from the result) if another one runs.
   * @throws PayloadError (from the result) if the payload is refused: nothing is generated without it.
   */
  generate(prompt: Prompt, options: GenerateOptions = {}): Generation {
    // Taken before the first `await`, so that exactly one of two concurrent calls runs.
    const isBusy = this.#running !== null;
    const generation = new Generation(async (push, signal) => {
      if (isBusy) throw new BusyError("this session is generating: wait for its result, or open another session");
      const aborted = (): CancelledError<GenerationResult> => {
        const partial: GenerationResult = { text: "", tokens: [], firstTokenMs: null, ...EMPTY };
        return new CancelledError("the generation was cancelled by its signal", partial, signal.reason);
      };
      return this.#turns.take(signal, aborted, () => this.#generate(prompt, options, push, signal));
    }, options.signal);
    if (!isBusy) {
      this.#running = generation;
      const done = () => {
        this.#running = null;
      };
      generation.result.then(done, done);
    }
    return generation;
  }

  /**
   * The exact probability of every value as the continuation of the prompt, and the most probable one.
   *
   * @param values - texts; a trie or a payload: then its leaves, which have names; or a spec or a constraint with few
   *   values, such as `{ integer: { min: 1, max: 6 } }`.
   * @throws SetError if there are no values; SpecError if those of a constraint cannot be listed; CancelledError if the
   *   signal aborts.
   */
  choose(prompt: Prompt, values: ChoiceValues, options: ChooseOptions = {}): Promise<Choice> {
    const { signal, ...how } = options;
    return this.#cancelled("choice", signal, () => this.#choose(prompt, values, how));
  }

  /**
   * The probability that the model writes any text of a constraint after the prompt, between hard bounds:
   * docs/probabilities.md.
   *
   * @throws SpecError that says which part of the constraint or which option is wrong; CancelledError if the signal
   *   aborts.
   * @example
   * const { estimate, lower, upper } = await session.probability("Room ", { regex: "[0-9]+" });
   */
  probability(
    prompt: Prompt,
    constraint: Spec | Constraint | Trie,
    options: ProbabilityOptions = {},
  ): Promise<Probability> {
    const { signal, ...how } = options;
    return this.#cancelled("probability", signal, () => this.#probability(prompt, constraint, how));
  }

  /**
   * Answers typed questions about a state, a text, JSON or a conversation, each with the exact probability of every
   * option. The state is decoded once for all of them.
   *
   * @throws SpecError that says which question or option is wrong, as `$.questions.team.options[1]`.
   * @throws CancelledError if the signal aborts.
   * @example
   * const { answers } = await session.decide("I was charged twice.", {
   *   refund: { type: "predicate" },
   *   team: { type: "choice", options: ["billing", "access"] },
   * });
   */
  decide<Name extends string>(
    state: DecisionData,
    questions: { readonly [name in Name]: Question },
    options: DecideOptions = {},
  ): Promise<Decision<Name>> {
    const { signal, ...how } = options;
    const request = () => jsonText({ state, questions, ...forLibrary(how) });
    return this.#cancelled("decision", signal, async () =>
      decisionOf<Name>(await this.#remote.call("decide", request())),
    );
  }

  /**
   * Answers a conversation in the model's own format. Calls of tools are right by construction, whatever the model:
   * the name is a tool's, the arguments follow its schema. Of a conversation that goes on only new tokens are decoded.
   *
   * @throws SpecError that says which message, tool or option is wrong, as `$.messages[0].role`.
   * @throws CancelledError if the signal aborts; `partial` is the reply so far, or null.
   * @example
   * const { message } = await session.chat([{ role: "user", content: "Ring twice" }], { tools: [ring] });
   */
  chat(messages: readonly ChatMessage[], options: ChatOptions = {}): Promise<ChatReply> {
    const { signal, onEvent } = options;
    const aborted = (partial: ChatReply | null): CancelledError<ChatReply | null> =>
      new CancelledError("the chat was cancelled by its signal", partial, signal?.reason);
    return this.#turns.take(
      signal,
      () => aborted(null),
      async () => {
        const request = chatText(messages, options);
        const cancel = () => this.#remote.llmStreamCancel();
        let thrown: { error: unknown } | null = null;
        const tell = (json: string) => {
          if (thrown !== null) return;
          try {
            onEvent?.(JSON.parse(json) as ChatEvent);
          } catch (error) {
            thrown = { error };
            cancel();
          }
        };
        const json = await cancelling(signal, cancel, () => this.#remote.chat(request, tell));
        if (thrown !== null) throw (thrown as { error: unknown }).error;
        const reply = json === null ? null : replyOf(json);
        if (reply === null || reply.finish === "cancelled" || reply.finish === "timed_out") throw aborted(reply);
        return reply;
      },
    );
  }

  /**
   * Chats, and runs the functions that the model calls, until it calls none. `toolChoice` other than `"none"` counts
   * for the first reply alone.
   *
   * @throws ArgumentError for a tool without a function; what `chat` throws.
   * @example
   * const ring = tool({ name: "ring", parameters: z.object({ times: z.int() }), run: ({ times }) => bell(times) });
   * const { reply } = await session.runTools([{ role: "user", content: "Ring twice" }], { tools: [ring] });
   */
  runTools(messages: readonly ChatMessage[], options: RunToolsOptions): Promise<ToolRun> {
    return runTools((said, asked) => this.chat(said, asked), messages, options);
  }

  /** State of the session, also while it generates. */
  get info(): SessionInfo {
    return this.#remote.info();
  }

  /** Load and statistics of the engine that sessions opened with `slots` share; `null` without. */
  get engine(): EngineInfo | null {
    return this.#remote.engine();
  }

  /** Takes a turn for a call that has no partial result when its signal aborts. */
  #cancelled<Result>(what: string, signal: AbortSignal | undefined, run: () => Promise<Result>): Promise<Result> {
    const aborted = (): CancelledError<null> =>
      new CancelledError(`the ${what} was cancelled by its signal`, null, signal?.reason);
    return this.#turns.take(signal, aborted, async () => {
      try {
        return await cancelling(signal, () => this.#remote.llmStreamCancel(), run);
      } catch (error) {
        throw signal?.aborted ? aborted() : error;
      }
    });
  }

  async #choose(prompt: Prompt, values: ChoiceValues, how: Omit<ChooseOptions, "signal">): Promise<Choice> {
    if (typeof values !== "object" || values === null) {
      throw new ArgumentError(`values is ${describeValue(values)}: texts, a trie, a payload or a spec is needed`);
    }
    const asked = askedOf(prompt, how);
    if (Array.isArray(values) || isSpec(values)) {
      return toChoice(await this.#remote.call("choose", jsonText({ ...asked, choices: values })));
    }
    const set = values instanceof Constraint ? values : await this.#trieOf(values as Trie | TokenTreePayload);
    return toChoice(await this.#following(set, () => this.#remote.call("choose", jsonText(asked))));
  }

  async #probability(
    prompt: Prompt,
    constraint: Spec | Constraint | Trie,
    how: Omit<ProbabilityOptions, "signal">,
  ): Promise<Probability> {
    if (typeof constraint !== "object" || constraint === null) {
      throw new ArgumentError(`constraint is ${describeValue(constraint)}: a spec, a constraint or a trie is needed`);
    }
    const asked = askedOf(prompt, how);
    const find = (given: object) => this.#remote.call("probability", jsonText({ ...asked, ...given }));
    const isMade = constraint instanceof Constraint || constraint instanceof Trie;
    const found = await (isMade ? this.#following(constraint, () => find({})) : find({ constraint }));
    for (const warning of found.warnings) warn(warning);
    return probabilityOf(found);
  }

  /** Makes a call whose request names no constraint inside one that was made before. */
  async #following<Result>(set: Constraint | Trie, call: () => Promise<Result>): Promise<Result> {
    await this.#remote.call("setTrie", set.handleIn(this.#remote.library), 0);
    try {
      return await call();
    } finally {
      await this.#remote.call("clearTokenTrie");
    }
  }

  /**
   * Writes the KV cache of a common prompt prefix to a file, which a later process can load.
   *
   * @throws FileError if the file cannot be written.
   */
  savePrefix(path: string, prompt: Prompt, options: { readonly signal?: AbortSignal } = {}): Promise<void> {
    return this.#cancelled("prefix", options.signal, async () => {
      await this.#remote.call("prefill", typeof prompt === "string" ? prompt : idsOf(prompt, "prompt"), -1);
      await this.#remote.call("savePrefix", path);
    });
  }

  /**
   * Loads a file of `savePrefix`: prompts that begin with its prefix skip that part of the prefill. Load files that you
   * trust, as models are.
   *
   * @returns its tokens.
   * @throws FileError if the file is damaged, or of another model or another llama.cpp.
   */
  loadPrefix(path: string): Promise<number> {
    return this.#cancelled("prefix", undefined, () => this.#remote.call("loadPrefix", path));
  }

  /** A trie of texts in the tokens of this model, named by themselves. */
  async texts(texts: readonly string[], options: TextsOptions = {}): Promise<Trie> {
    const { prefix = "", suffix = "" } = options;
    return new Trie(
      this.#remote.library,
      await this.#remote.call("values", jsonText({ choice: texts, prefix, suffix })),
    );
  }

  /**
   * A constraint of any kind in the tokens of this model. Build a constraint once if it is used often.
   *
   * @throws SpecError that says which part is wrong, as `$.then[1].integer.min`.
   * @example
   * using amount = await session.constraint({ then: [{ integer: { min: 1, max: 99 } }, " kg"] });
   */
  async constraint(spec: Spec | string): Promise<Constraint> {
    return constraintOf(this.#remote.library, await this.#remote.call("constraint", specText(spec)));
  }

  /** Plain text as token ids; `addSpecial` adds what begins a text, `parseSpecial` reads names of control tokens. */
  tokenize(text: string, options: { addSpecial?: boolean; parseSpecial?: boolean } = {}): Promise<Int32Array> {
    return this.#remote.call("tokenize", text, options.addSpecial ?? false, options.parseSpecial ?? false);
  }

  /** The tokens of the model. */
  vocab(): Promise<Vocab> {
    this.#vocab ??= this.#remote.call("vocab").then((handle) => new Vocab(this.#remote.library, handle));
    return this.#vocab;
  }

  /** Cancels what runs and frees the session. Closing again does nothing. */
  close(): Promise<void> {
    this.#closed ??= (async () => {
      const running = this.#running;
      running?.cancel(new Error("the session was closed"));
      await running?.result.catch(() => {});
      await this.#remote.close();
    })();
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #generate(
    prompt: Prompt,
    options: GenerateOptions,
    push: (token: GeneratedToken) => void,
    signal: AbortSignal,
  ): Promise<GenerationResult> {
    const whole = (stream: StreamResult): GenerationResult => ({
      text: stream.text,
      tokens: stream.tokens,
      firstTokenMs: stream.firstTokenMs,
      ...(this.#remote.outcome ?? EMPTY),
    });
    this.#remote.outcome = null;
    const request = requestOf(options, this.#after);
    const set = await this.#setOf(options);
    try {
      const isText = typeof prompt === "string";
      const stream = await this.#runner.generate(this.#remote.handle, {
        promptTokens: isText ? [] : idsOf(prompt, "prompt"),
        ...(isText ? { promptText: prompt } : {}),
        ...(set === undefined ? {} : { tokenTreePayload: set }),
        tokenTreeMode: options.tokenTreeMode ?? 0,
        maxTokens: options.maxTokens ?? 256,
        temperature: options.temperature ?? 0,
        topP: options.topP ?? 1,
        slotId: options.slotId ?? -1,
        request,
        signal,
        onToken: (id, text, isDone) => {
          if (!isDone) push({ id, text });
        },
      });
      return whole(stream);
    } catch (error) {
      if (!(error instanceof CancelledError)) throw error;
      throw new CancelledError(error.message, whole(error.partial as StreamResult), error.cause);
    } finally {
      // Made here of a spec, for this generation alone.
      if (set instanceof Constraint && set !== options.constraint) set.free();
    }
  }

  /** @throws PayloadError, SpecError for null: a set without values must not become no set. */
  async #setOf({ tokenTreePayload, constraint }: GenerateOptions): Promise<StreamArguments["tokenTreePayload"]> {
    if (tokenTreePayload === null) throw new PayloadError("tokenTreePayload is null: leave it out for free text");
    if (constraint === null) throw new SpecError("constraint is null: leave it out for free text");
    if (constraint === undefined) return tokenTreePayload;
    if (tokenTreePayload !== undefined) throw new ArgumentError("constraint and tokenTreePayload: give one of them");
    return constraint instanceof Constraint || constraint instanceof Trie ? constraint : this.constraint(constraint);
  }

  async #trieOf(values: Trie | TokenTreePayload): Promise<Trie> {
    if (values instanceof Trie) return values;
    return Trie.fromPayload(values, { vocab: await this.vocab() });
  }
}

/** The fields of a request after a prompt. */
function askedOf(prompt: Prompt, options: object): Record<string, unknown> {
  return { prompt: typeof prompt === "string" ? prompt : Array.from(idsOf(prompt, "prompt")), ...forLibrary(options) };
}

/** Returns whether the values are a spec: neither a trie, nor a constraint, nor a payload. */
function isSpec(values: ChoiceValues): values is Spec {
  return !(values instanceof Trie || values instanceof Constraint) && !("descriptors" in values);
}

function toChoice(values: ChoiceJson): Choice {
  for (const warning of values.warnings) warn(warning);
  return new Choice(values);
}

/** The options of a generation as the library reads them; `usual` is what follows a value in this session. */
function requestOf(options: GenerateOptions, usual: (typeof AFTER)[number]): string {
  const { sampling, freeSampling, endTokens, stop, after, skipAhead, exact, probabilities } = options;
  const { logprobs, receipt, correct, logitBias, priority } = options;
  const told = { probabilities, logprobs, receipt, correct };
  const how = forLibrary({ endTokens, stop, after, skipAhead, exact, ...told, logitBias, priority });
  const { tokenTreeMode, temperature, topP, maxTokens } = options;
  if (sampling === undefined) {
    // The mode applies to the value, the temperature to free text.
    const draw = { temperature: floatOf(temperature ?? 0, "temperature"), topP: floatOf(topP ?? 1, "topP") };
    const free = forLibrary(freeSampling ?? { ...draw, mode: draw.temperature > 0 ? "sampled" : "greedy" });
    const isFree = options.constraint === undefined && options.tokenTreePayload === undefined;
    const ofValue = forLibrary({ ...draw, mode: modeNumber(tokenTreeMode ?? 0) === 1 ? "sampled" : "greedy" });
    how["sampling"] = isFree ? free : ofValue;
    const isFollowed = (after ?? usual) === "free";
    if (!isFree && (freeSampling !== undefined || isFollowed)) how["free_sampling"] = free;
  } else if (tokenTreeMode !== undefined || temperature !== undefined || topP !== undefined) {
    throw new ArgumentError("sampling and tokenTreeMode, temperature or topP: give one of them");
  } else {
    how["sampling"] = forLibrary(sampling);
    if (freeSampling !== undefined) how["free_sampling"] = forLibrary(freeSampling);
  }
  return jsonText({ ...how, max_tokens: integerOf(maxTokens ?? 256, "maxTokens", "count") });
}
