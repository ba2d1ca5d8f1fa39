import { ModelError } from "../errors.js";
import { FUNCTIONS, type FunctionName, type Functions } from "../ffi/abi.js";
import { SizeOut, text, utf8 } from "../ffi/call.js";
import type { Library } from "../ffi/library.js";
import type { StreamBinding, StreamSampling, StreamStep } from "./binding.js";

/**
 * A library by the names that one agent runtime looks for, called on this thread: nothing else runs until a generation
 * ends, but for the callback. Functions that the library lacks are left out. `Session` does not block.
 *
 * @example
 * const runner = new StreamRunner(elizaBinding(loadLibrary()));
 */
export function elizaBinding(library: Library): StreamBinding<number> {
  const find = <Name extends FunctionName>(name: Name): Functions[Name] | null =>
    name in FUNCTIONS && library.has(name) ? library.functions[name] : null;
  const open = find("eliza_inference_llm_stream_open");
  const prefill = find("eliza_inference_llm_stream_prefill");
  const generate = find("eliza_inference_llm_stream_generate");
  const next = find("eliza_inference_llm_stream_next");
  const cancel = find("eliza_inference_llm_stream_cancel");
  const close = find("eliza_inference_llm_stream_close");
  const set = find("eliza_inference_set_token_trie");
  const clear = find("eliza_inference_clear_token_trie");
  const lastError = () => library.functions.tokentrie_last_error();
  return {
    lastError,
    ...(open && {
      llmStreamOpen: ({ modelPath, contextTokens = 0, threads = 0, gpuLayers = 0 }) => {
        const stream = open(utf8(`${modelPath}\0`), contextTokens, threads, gpuLayers);
        if (!stream) throw new ModelError(`open failed: ${lastError()}`);
        return Number(stream);
      },
    }),
    ...(prefill && {
      llmStreamPrefill: (stream: number, tokens: Int32Array, slotId: number) =>
        prefill(stream, tokens, tokens.length, slotId),
    }),
    ...(generate && {
      llmStreamGenerate: (stream, { maxTokens, temperature, topP }, onToken) =>
        generate(stream, maxTokens, temperature, topP, onToken, 0),
    }),
    ...(next && { llmStreamNext: pull(library, next) }),
    ...(cancel && { llmStreamCancel: (stream: number) => cancel(stream) }),
    ...(close && { llmStreamClose: (stream: number) => close(stream) }),
    ...(set && {
      setTokenTrie: (stream: number, json: string, mode: 0 | 1) => {
        const bytes = utf8(json);
        return set(stream, bytes, bytes.length, mode);
      },
    }),
    ...(clear && { clearTokenTrie: (stream: number) => clear(stream) }),
  };
}

const TOKENS_A_STEP = 64;
const BYTES_A_STEP = 16_384;

function pull(
  library: Library,
  next: Functions["eliza_inference_llm_stream_next"],
): (stream: number, sampling: StreamSampling) => StreamStep {
  const tokens = new Int32Array(TOKENS_A_STEP);
  const piece = new Uint8Array(BYTES_A_STEP);
  const [drafted, accepted, count] = [new Int32Array(1), new Int32Array(1), new SizeOut()];
  return (stream, { maxTokens }) => {
    const status = next(
      stream,
      tokens,
      Math.min(tokens.length, maxTokens),
      count.memory,
      piece,
      piece.length,
      drafted,
      accepted,
      null,
    );
    if (status < 0) throw new ModelError(`next failed: ${status}: ${library.functions.tokentrie_last_error()}`);
    const end = piece.indexOf(0);
    return {
      tokens: tokens.slice(0, count.value),
      text: text(piece.subarray(0, end < 0 ? piece.length : end)),
      done: status === 1,
      drafted: drafted[0] ?? 0,
      accepted: accepted[0] ?? 0,
    };
  };
}
