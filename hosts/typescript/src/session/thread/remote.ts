import { Worker } from "node:worker_threads";
import { ArgumentError, BusyError, HandleError, TokenTrieError } from "../../errors.js";
import { ENGINE_INFO, type EngineInfo, SESSION_INFO, Status } from "../../ffi/abi.js";
import { check } from "../../ffi/call.js";
import { Library } from "../../ffi/library.js";
import { describeValue } from "../../tree/payload.js";
import { cancelling } from "../cancelling.js";
import type { OnToken, StreamBinding, StreamSampling } from "../binding.js";
import {
  type Answer,
  type CallName,
  type Calls,
  type Outcome,
  type Request,
  type SessionInfo,
  reviveError,
  type SessionSettings,
  type TokenMessage,
} from "./protocol.js";

interface Waiting {
  readonly resolve: (value: never) => void;
  readonly reject: (error: Error) => void;
}

/** A session of the library, called from a thread of its own; it is one stream for `StreamRunner`. */
export class RemoteSession implements StreamBinding<number> {
  readonly library: Library;
  /** Outcome of the last generation. */
  outcome: Outcome | null = null;
  readonly setTokenTrie?: (stream: number, json: string, mode: 0 | 1) => Promise<void>;
  readonly setTrie?: (stream: number, trie: number, mode: 0 | 1) => Promise<void>;
  readonly clearTokenTrie?: () => Promise<void>;
  readonly leavesLeftOut = (): Promise<number> => this.call("leavesLeftOut");
  #handle = 0;

  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  #onToken: OnToken | null = null;
  #thrown: { error: unknown } | null = null;
  #ended: Error | null = null;
  #calls = 0;

  private constructor(library: Library) {
    this.library = library;
    // Left out where the library has not these functions: the runner warns then, and goes on without a trie.
    if (library.has("tokentrie_session_clear_token_trie")) {
      this.clearTokenTrie = () => this.call("clearTokenTrie");
      if (library.has("tokentrie_session_set_token_trie")) {
        this.setTokenTrie = (_stream, json, mode) => this.call("setTokenTrie", json, mode);
      }
      if (library.has("tokentrie_session_set_trie")) {
        this.setTrie = (_stream, trie, mode) => this.call("setTrie", trie, mode);
      }
    }
    // Sources run as they are in bun; compiled, the worker lies beside this file in the same way.
    const file = import.meta.url.endsWith(".ts") ? "./worker.ts" : "./worker.js";
    this.#worker = new Worker(new URL(file, import.meta.url), {
      workerData: { library: library.path },
      // Flags of the program, such as `--input-type` or those of a test runner, are for its own files.
      execArgv: [],
    });
    this.#worker.unref();
    this.#worker.on("message", (message: Answer | TokenMessage) => this.#take(message));
    this.#worker.on("error", (error: Error) => this.#end(error));
    this.#worker.on("exit", () => this.#end(new HandleError("this session was closed")));
  }

  static async open(library: Library, path: string, settings: SessionSettings): Promise<RemoteSession> {
    if (!(library instanceof Library))
      throw new ArgumentError(`library is ${describeValue(library)}: loadLibrary() gives one`);
    library.needLlama();
    const remote = new RemoteSession(library);
    try {
      remote.#handle = await remote.call("open", path, settings);
    } catch (error) {
      await remote.#worker.terminate();
      throw error;
    }
    return remote;
  }

  get handle(): number {
    return this.#handle;
  }

  /** One of the blocking calls. The process stays alive for its answer. */
  call<Name extends CallName>(name: Name, ...given: Parameters<Calls[Name]>): Promise<ReturnType<Calls[Name]>> {
    if (this.#ended) return Promise.reject(this.#ended);
    const id = ++this.#calls;
    return new Promise((resolve, reject) => {
      try {
        this.#worker.postMessage({ id, call: name, given } satisfies Request);
      } catch (error) {
        // For example a function or a symbol, which cannot be sent to a thread.
        reject(new ArgumentError(`${name}: ${(error as Error).message}`, { cause: error }));
        return;
      }
      this.#waiting.set(id, { resolve, reject });
      this.#worker.ref();
    });
  }

  llmStreamPrefill(_stream: number, tokens: Int32Array, slotId: number): Promise<number> {
    return this.call("prefill", tokens, slotId);
  }

  llmStreamPrefillText(_stream: number, prompt: string, slotId: number): Promise<number> {
    return this.call("prefill", prompt, slotId);
  }

  /** Sampling follows the request. */
  async llmStreamGenerate(_stream: number, { request }: StreamSampling, onToken: OnToken): Promise<number> {
    if (this.#onToken !== null) throw new BusyError("this session is generating");
    if (request === undefined) throw new ArgumentError("a generation of a session is a request: there is none");
    this.#onToken = onToken;
    this.#thrown = null;
    this.outcome = null;
    try {
      const { outcome, error } = await this.call("generate", request);
      this.outcome = outcome;
      if (error !== null) throw reviveError(error);
    } finally {
      this.#onToken = null;
    }
    const thrown = this.#thrown as { error: unknown } | null;
    if (thrown !== null) throw thrown.error;
    return 0;
  }

  /** Answers a request; each event as JSON. */
  async chat(request: string, onEvent: (json: string) => void): Promise<string | null> {
    if (this.#onToken !== null) throw new BusyError("this session is generating");
    this.#onToken = (_token, json) => onEvent(json);
    this.#thrown = null;
    try {
      const { reply, error } = await this.call("chat", request);
      if (error !== null) throw reviveError(error);
      return reply;
    } finally {
      this.#onToken = null;
    }
  }

  /** Called on this thread while the other one waits for tokens: the library allows that. */
  llmStreamCancel(): void {
    // Its status is not news: there is nothing to cancel, or it is cancelled.
    if (this.#ended === null) this.library.functions.tokentrie_session_cancel(this.#handle);
  }

  info(): SessionInfo {
    if (this.#ended) throw this.#ended;
    const memory = SESSION_INFO.write();
    check(this.library, this.library.functions.tokentrie_session_get_info(this.#handle, memory));
    const info = SESSION_INFO.read(memory);
    return {
      isGenerating: info.generating !== 0,
      hasTrie: info.hasTrie !== 0,
      nCtx: info.nCtx,
      nVocab: info.nVocab,
      promptTokens: info.promptTokens,
    };
  }

  engine(): EngineInfo | null {
    if (this.#ended) throw this.#ended;
    const memory = ENGINE_INFO.write();
    const status = this.library.functions.tokentrie_session_engine(this.#handle, memory);
    if (status === Status.NONE) return null;
    check(this.library, status);
    return ENGINE_INFO.read(memory);
  }

  async close(): Promise<void> {
    if (this.#ended) return;
    // A running generation is cancelled first, or closing would wait for it.
    const closing = new AbortController();
    closing.abort();
    await cancelling(
      closing.signal,
      () => this.llmStreamCancel(),
      () => this.call("close"),
    );
    this.#end(new HandleError("this session was closed"));
    await this.#worker.terminate();
  }

  #take(message: Answer | TokenMessage): void {
    if (!("id" in message)) {
      try {
        if (this.#thrown === null) this.#onToken?.(message.token, message.text, false);
      } catch (error) {
        // The error rejects the generation; the message handler must not throw it.
        this.#thrown = { error };
      }
      return;
    }
    const waiting = this.#waiting.get(message.id);
    this.#waiting.delete(message.id);
    if (this.#waiting.size === 0) this.#worker.unref();
    if ("error" in message) waiting?.reject(reviveError(message.error));
    else waiting?.resolve(message.value as never);
  }

  #end(error: Error): void {
    this.#ended ??= error instanceof TokenTrieError ? error : new TokenTrieError(error.message, { cause: error });
    for (const { reject } of this.#waiting.values()) reject(this.#ended);
    this.#waiting.clear();
  }
}
