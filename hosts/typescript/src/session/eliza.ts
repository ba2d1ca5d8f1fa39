import { ArgumentError, ModelError } from "../errors.js";
import { FUNCTIONS, type FunctionName, type Functions, SESSION_INFO } from "../ffi/abi.js";
import { check, SizeOut, text, utf8 } from "../ffi/call.js";
import type { Library } from "../ffi/library.js";
import { floatOf, integerOf } from "../ffi/numbers.js";
import { idsOf } from "../native/vocab.js";
import { describeValue } from "../tree/payload.js";
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
  const info = find("tokentrie_session_get_info");
  const lastError = () => library.functions.tokentrie_last_error();
  const setTokenTrie = (stream: number, json: string, mode: number) => {
    const bytes = utf8(json, "payload");
    return set?.(address(stream), bytes, bytes.length, integerOf(mode, "mode", "i32")) ?? -1;
  };
  return {
    library,
    lastError,
    ...(open && {
      llmStreamOpen: ({ modelPath, contextTokens = 0, threads = 0, gpuLayers = 0 }) => {
        const path = utf8(modelPath, "modelPath");
        if (path.includes(0))
          throw new ArgumentError(`modelPath is ${describeValue(modelPath)}: a path has no zero in it`);
        const stream = open(
          Uint8Array.of(...path, 0),
          integerOf(contextTokens, "contextTokens", "i32"),
          integerOf(threads, "threads", "i32"),
          integerOf(gpuLayers, "gpuLayers", "i32"),
        );
        if (!stream) throw new ModelError(`open failed: ${lastError()}`);
        return Number(stream);
      },
    }),
    ...(prefill && {
      llmStreamPrefill: (stream: number, tokens: Int32Array, slotId: number) =>
        prefill(address(stream), idsOf(tokens, "tokens"), tokens.length, integerOf(slotId, "slotId", "i32")),
    }),
    ...(generate && {
      llmStreamGenerate: (stream, { maxTokens, temperature, topP }, onToken) =>
        generate(
          address(stream),
          integerOf(maxTokens, "maxTokens", "i32"),
          floatOf(temperature, "temperature"),
          floatOf(topP, "topP"),
          onToken,
          0,
        ),
    }),
    ...(next && { llmStreamNext: pull(library, next) }),
    ...(cancel && { llmStreamCancel: (stream: number) => cancel(address(stream)) }),
    ...(close && { llmStreamClose: (stream: number) => close(address(stream)) }),
    ...(set && {
      setTokenTrie,
      llmStreamSetTokenTrie: ({ stream, triePayloadJson, mode }) => setTokenTrie(stream, triePayloadJson, mode),
    }),
    ...(clear && {
      clearTokenTrie: (stream: number) => clear(address(stream)),
      llmStreamClearTokenTrie: ({ stream }) => clear(address(stream)),
    }),
    ...(info && {
      leavesLeftOut: (stream: number) => {
        const memory = SESSION_INFO.write();
        check(library, info(address(stream), memory));
        return SESSION_INFO.read(memory).outsideVocabulary;
      },
    }),
  };
}

/** A stream is a value that `open` returned: any other address would be foreign memory. */
const address = (stream: unknown) => integerOf(stream, "stream", "size");

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
      address(stream),
      tokens,
      Math.min(tokens.length, integerOf(maxTokens, "maxTokens", "i32")),
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
