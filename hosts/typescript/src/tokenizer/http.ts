import { ArgumentError, TokenizerError } from "../errors.js";
import { describeValue } from "../tree/payload.js";
import type { Tokenize } from "./cache.js";

export interface HttpTokenizerOptions {
  /** Function for requests: `fetch` unless given. */
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>;
  readonly signal?: AbortSignal;
}

/**
 * Tokenizes by a llama.cpp server: `POST {baseUrl}/tokenize` with `{content, add_special: false}`.
 *
 * @throws TokenizerError (each call) if the server answers with an error or without `tokens[]`.
 * @example
 * const cache = new TokenizerCache(httpTokenizer("http://127.0.0.1:8080"));
 */
export function httpTokenizer(baseUrl: string, options: HttpTokenizerOptions = {}): Tokenize {
  if (typeof baseUrl !== "string") throw new ArgumentError(`baseUrl is ${describeValue(baseUrl)}: a string is needed`);
  const url = `${baseUrl.replace(/\/+$/, "")}/tokenize`;
  const send = options.fetch ?? fetch;
  return async (text) => {
    const response = await send(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ content: text, add_special: false }),
      ...(options.signal && { signal: options.signal }),
    });
    if (!response.ok)
      throw new TokenizerError(`${url}: HTTP ${response.status}: ${describeValue(await response.text())}`);
    const body: unknown = await response.json();
    const tokens = typeof body === "object" && body !== null && "tokens" in body ? body.tokens : undefined;
    if (!Array.isArray(tokens)) throw new TokenizerError(`${url}: the answer has no tokens[]: ${describeValue(body)}`);
    return tokens as number[];
  };
}
