/** Library functions that the streaming runner needs: any binding that has them will do, ours or another runtime's. */

export type Awaitable<T> = T | Promise<T>;

/** Called for each token, in order; the last call of a generation has `isDone`, and comes exactly once. */
export type OnToken = (tokenId: number, text: string, isDone: boolean) => void;

export interface StreamOptions {
  readonly modelPath: string;
  /** Tokens that the context holds; 0: the library's default. */
  readonly contextTokens?: number;
  readonly threads?: number;
  readonly gpuLayers?: number;
}

export interface StreamSampling {
  readonly maxTokens: number;
  readonly temperature: number;
  readonly topP: number;
  /** All options as JSON, in place of these, for a library that reads them. */
  readonly request?: string;
}

/** One step of the pull form. */
export interface StreamStep {
  readonly tokens: ArrayLike<number>;
  readonly text: string;
  readonly done: boolean;
  /** Tokens that a draft model proposed, and how many of them were taken. */
  readonly drafted?: number;
  readonly accepted?: number;
}

/**
 * Functions of a streaming library. Each is optional, like the symbols of a shared library: a missing one
 * is reported at its first use. Negative numbers are errors; errors may also be thrown.
 */
export interface StreamBinding<Handle> {
  /** Identity of the library that bindings share: it is warned about once, and tries of another one are refused. */
  readonly library?: object;
  /** @returns the stream; null, undefined or 0 where it cannot be opened. */
  llmStreamOpen?(options: StreamOptions): Awaitable<Handle | null | undefined>;
  /** @returns the number of tokens taken. */
  llmStreamPrefill?(stream: Handle, tokens: Int32Array, slotId: number): Awaitable<number>;
  /** The same with text, so that what follows it is tokenised together with its end. */
  llmStreamPrefillText?(stream: Handle, prompt: string, slotId: number): Awaitable<number>;
  /** The push form. @returns 0 */
  llmStreamGenerate?(stream: Handle, sampling: StreamSampling, onToken: OnToken): Awaitable<number>;
  /** The pull form, for libraries without the push form: at least one token, and no more than `maxTokens`. */
  llmStreamNext?(stream: Handle, sampling: StreamSampling): Awaitable<StreamStep>;
  /** Ends a generation soon; does nothing if none runs. */
  llmStreamCancel?(stream: Handle): void;
  llmStreamClose?(stream: Handle): Awaitable<void>;
  /**
   * @param json - the text of a payload.
   * @param mode - 0 greedy, 1 sampled.
   * @returns a status, or nothing at all.
   */
  setTokenTrie?(stream: Handle, json: string, mode: 0 | 1): unknown;
  /** The same for a trie that the library has built before. */
  setTrie?(stream: Handle, trie: number, mode: 0 | 1): unknown;
  clearTokenTrie?(stream: Handle): unknown;
  /** The same two as another agent runtime names them; looked for where those are missing. */
  llmStreamSetTokenTrie?(given: {
    readonly stream: Handle;
    readonly triePayloadJson: string;
    readonly mode: number;
  }): unknown;
  llmStreamClearTokenTrie?(given: { readonly stream: Handle }): unknown;
  /** Leaves of what was set last that need ids outside the vocabulary, so that they were left out. */
  leavesLeftOut?(stream: Handle): Awaitable<number>;
  /** Why the last call failed. */
  lastError?(): string;
}
