/** The tiny model in transformers.js: loaded when it is first asked for, of the page's own files. */

import { ChatFormat, vocabOf } from "./tokentrie/dist/web/src/index.js";

let made;

/** Returns the model that answers; after a failure it is loaded again. */
export function model() {
  made ??= begin().catch((error) => {
    made = undefined;
    throw error;
  });
  return made;
}

async function begin() {
  const began = performance.now();
  const { AutoModelForCausalLM, AutoTokenizer, env, Tensor } = await import("./model/transformers.min.js");
  env.allowRemoteModels = false;
  env.allowLocalModels = true;
  env.localModelPath = new URL("model/", import.meta.url).pathname;
  // The browser keeps files as their server says.
  env.useBrowserCache = env.useWasmCache = false;
  const runtime = (ending) => new URL(`model/onnxruntime/ort-wasm-simd-threaded.${ending}`, import.meta.url).href;
  env.backends.onnx.wasm.wasmPaths = { mjs: runtime("mjs"), wasm: runtime("wasm") };
  const [tokenizer, net] = await Promise.all([
    AutoTokenizer.from_pretrained("tiny"),
    AutoModelForCausalLM.from_pretrained("tiny", { dtype: "fp32", device: "wasm" }),
  ]);
  const vocab = vocabOf(tokenizer);
  const { bos_token: bos, eos_token: eos, chat_template: template } = tokenizer;
  const format = new ChatFormat(template, { vocab, bos, eos });
  return { net, tokenizer, vocab, format, Tensor, seconds: (performance.now() - began) / 1000 };
}
