import type { OnToken, StreamBinding, StreamOptions, StreamSampling, StreamStep } from "../../src/session/binding.js";

/** A streaming library that is no library: it keeps the contract, plays a script, and notes what is asked of it. */
export class MockStreams {
  readonly calls: string[] = [];
  readonly setArguments: unknown[][] = [];
  readonly open = new Set<string>();
  closed = 0;
  #generating = new Set<string>();
  #cancelled = new Set<string>();
  #at = 0;

  constructor(
    readonly script: readonly StreamStep[],
    readonly returns: { readonly prefill?: number; readonly set?: number; readonly generate?: number } = {},
  ) {}

  count(name: string): number {
    return this.calls.filter((call) => call === name).length;
  }

  /** All functions, or all but some: a library that lacks these symbols. */
  binding(...without: string[]): StreamBinding<string> {
    const all: Record<string, unknown> = {
      llmStreamOpen: (_: StreamOptions) => {
        this.calls.push("open");
        const handle = `<handle ${this.open.size}>`;
        this.open.add(handle);
        return handle;
      },
      llmStreamPrefill: (_handle: string, tokens: Int32Array) => {
        this.calls.push("prefill");
        return this.returns.prefill ?? tokens.length;
      },
      llmStreamGenerate: async (handle: string, _: StreamSampling, onToken: OnToken) => {
        this.calls.push("generate");
        if (this.#generating.has(handle)) return -1;
        this.#generating.add(handle);
        this.#cancelled.delete(handle);
        for (const { tokens, text } of this.script) {
          await new Promise((resolve) => setTimeout(resolve, 1));
          if (this.#cancelled.has(handle)) break;
          Array.from(tokens).forEach((token) => {
            onToken(token, text, false);
          });
        }
        this.#generating.delete(handle);
        onToken(-1, "", true);
        return this.returns.generate ?? 0;
      },
      llmStreamNext: () => {
        this.calls.push("next");
        return this.script[this.#at++] ?? { tokens: [], text: "", done: true };
      },
      llmStreamCancel: (handle: string) => {
        this.calls.push("cancel");
        if (this.#generating.has(handle)) this.#cancelled.add(handle);
      },
      llmStreamClose: (handle: string) => {
        this.calls.push("close");
        if (this.open.delete(handle)) this.closed += 1;
      },
      setTokenTrie: (...given: unknown[]) => {
        this.calls.push("set_token_trie");
        this.setArguments.push(given);
        return this.returns.set ?? 0;
      },
      clearTokenTrie: () => {
        this.calls.push("clear_token_trie");
        return 0;
      },
    };
    for (const name of without) delete all[name];
    return all;
  }
}

/** Steps of one token each. */
export function steps(...texts: string[]): StreamStep[] {
  return texts.map((text, index) => ({ tokens: [10 + index], text, done: index === texts.length - 1 }));
}

/** The warnings of this package that come while something runs. */
export async function warningsOf(run: () => unknown): Promise<string[]> {
  const messages: string[] = [];
  const listen = (warning: Error) => {
    if (warning.name === "TokenTrieWarning") messages.push(warning.message);
  };
  process.on("warning", listen);
  try {
    await run();
    await new Promise((resolve) => setTimeout(resolve, 5)); // they come later than what they warn about
  } finally {
    process.off("warning", listen);
  }
  return messages;
}
