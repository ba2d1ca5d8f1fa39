/** The back end of a page without a server: the engine as WebAssembly, and the tiny model in transformers.js. */

import {
  ChatFormat,
  choose,
  constraint,
  generate,
  load,
  TokenTrieError,
  tokenizeParts,
  vocabFromTokenizerJson,
  vocabOf,
} from "../../tokentrie/dist/web/src/index.js";
import { Problem, tell } from "../problems.js";
import { tokenizerOf } from "./bpe.js";
import { Walk, wordsOf } from "./walk.js";

const file = (name) => new URL(`../../${name}`, import.meta.url);

/** Returns a function that makes its result on the first call; after a failure it tries again. */
function once(what, make) {
  let made;
  const failed = (error) => {
    made = undefined;
    tell(`${what} cannot be loaded: ${error.message}`, "gone");
    throw new Problem(`${what} cannot be loaded: ${error.message}`);
  };
  const begin = async () => {
    const waiting = setTimeout(() => tell(`Loading ${what.toLowerCase()}…`), 300);
    const found = await make().finally(() => clearTimeout(waiting));
    tell("");
    return found;
  };
  return () => (made ??= begin().catch(failed));
}

/** The module, and the vocabulary over which rules are shown. */
let words;
const engine = once("The engine", async () => {
  const [answer] = await Promise.all([fetch(file("model/tiny/tokenizer.json")), load()]);
  if (!answer.ok) throw new Error(`${answer.url}: ${answer.status} ${answer.statusText}`);
  const json = await answer.json();
  const tokenize = tokenizerOf(json);
  words = wordsOf(vocabFromTokenizerJson(json, { tokenize }), new Set(json.added_tokens.map((token) => token.id)));
});

const model = once("The model", async () => {
  await engine();
  const { AutoModelForCausalLM, AutoTokenizer, env, Tensor } = await import("../../model/transformers.min.js");
  env.allowRemoteModels = false;
  env.allowLocalModels = true;
  env.localModelPath = file("model/").pathname;
  // The browser keeps files as their server says.
  env.useBrowserCache = env.useWasmCache = false;
  const runtime = (ending) => file(`model/onnxruntime/ort-wasm-simd-threaded.${ending}`).href;
  env.backends.onnx.wasm.wasmPaths = { mjs: runtime("mjs"), wasm: runtime("wasm") };
  const [tokenizer, loaded] = await Promise.all([
    AutoTokenizer.from_pretrained("tiny"),
    AutoModelForCausalLM.from_pretrained("tiny", { dtype: "fp32", device: "wasm" }),
  ]);
  // Between two passes the page can redraw and handle clicks.
  const forward = async (inputs) => {
    await new Promise((done) => setTimeout(done));
    return loaded.forward(inputs);
  };
  const net = { config: loaded.config, forward };
  const vocab = vocabOf(tokenizer);
  const { bos_token: bos, eos_token: eos, chat_template: written } = tokenizer;
  return { net, tokenizer, vocab, format: new ChatFormat(written, { vocab, bos, eos }), Tensor };
});

/* ---- routes: the requests of the server, as far as the views need them ---- */

const thinks = ({ chat_template_kwargs: given }) => given?.enable_thinking;
const spent = ({ forwardPasses, forcedTokens }) => ({
  forward_passes: forwardPasses,
  forward_passes_saved: forcedTokens,
});

function samplingOptions({ max_tokens: maxTokens, temperature }) {
  return { maxTokens, ...(temperature > 0 ? { mode: "sampled", temperature } : {}) };
}

/** The tokens of a prompt that the template wrote: no token spans its end and the text after it. */
const idsOf = (prompt, vocab) => tokenizeParts(vocab, [[prompt, true]]);

/** Any text: a reply of a template that has no marker. */
const FREE = { reply: { tools: [], template: "none" } };

async function completion(body, signal, say) {
  const { net, tokenizer, vocab, Tensor } = await model();
  const decoder = new TextDecoder();
  const onStep = ({ tokens, choice }) => {
    for (const id of tokens) {
      const text = decoder.decode(vocab.bytes([id]), { stream: true });
      say({ text, ...(choice ? alternatives(choice, id, body.logprobs, vocab) : { x_steps: [{ role: "forced" }] }) });
    }
  };
  const set = constraint(body.constraint ?? FREE, vocab);
  try {
    const prompt = idsOf(body.prompt, vocab);
    const found = await generate(net, tokenizer, prompt, set, { Tensor, signal, onStep, ...samplingOptions(body) });
    const reason = found.finish === "max_tokens" ? "length" : "stop";
    say({ text: "", finish_reason: reason, x_steps: [], x_stats: spent(found) });
  } finally {
    set.free();
  }
}

/** Returns the alternatives of a token: probabilities are shares among the allowed tokens. */
function alternatives({ allowed: { kind, ids }, logits }, taken, most, vocab) {
  const may = kind === "only" ? Array.from(ids) : Array.from(logits.keys());
  may.sort((one, other) => logits[other] - logits[one]);
  const sum = may.reduce((all, id) => all + Math.exp(logits[id] - logits[may[0]]), 0);
  const pair = (id) => [vocab.text([id]), logits[id] - logits[may[0]] - Math.log(sum)];
  const [name, logprob] = pair(taken);
  return {
    x_steps: [may.length === vocab.size ? { role: "free" } : { role: "chosen", legal: may.length }],
    logprobs: {
      tokens: [name],
      token_logprobs: [logprob],
      top_logprobs: [Object.fromEntries(may.slice(0, most).map(pair))],
    },
  };
}

async function chat(body, signal, say) {
  const { net, tokenizer, format, Tensor } = await model();
  const { tools, tool_choice: toolChoice = "auto" } = body;
  const prompt = format.prompt(body.messages, { tools, enableThinking: thinks(body) });
  const asked = { toolChoice, generationPrompt: prompt.turn ?? undefined };
  const set = format.constraint(tools, asked);
  const parser = format.parser({ tools, ...asked });
  const tellAll = (events) =>
    events
      .map(deltaOf)
      .filter(Boolean)
      .forEach((delta) => say({ delta }));
  const onStep = ({ tokens }) => tokens.length > 0 && tellAll(parser.push(tokens));
  try {
    const found = await generate(net, tokenizer, prompt, set, { Tensor, signal, onStep, ...samplingOptions(body) });
    const isCut = found.finish === "max_tokens";
    const { message, events } = parser.finish(isCut);
    tellAll(events);
    const reason = isCut ? "length" : message.tool_calls?.length ? "tool_calls" : "stop";
    say({ delta: {}, finish_reason: reason, x_stats: spent(found) });
  } finally {
    parser.free();
    set.free();
  }
}

/** The message part for an event of a reply; some events have none. */
function deltaOf({ kind, text, index, id, name }) {
  if (kind === "reasoning") return { reasoning_content: text };
  if (kind === "content") return { content: text };
  if (kind === "call_begins") return { tool_calls: [{ index, id, function: { name } }] };
  return kind === "arguments" && { tool_calls: [{ index, function: { arguments: text } }] };
}

async function choice({ prompt, values: given }) {
  const { net, tokenizer, vocab, Tensor } = await model();
  const found = await choose(net, tokenizer, idsOf(prompt, vocab), given, { Tensor });
  const values = found.ranking.map((index) => ({
    value: given[index],
    index,
    probability: found.probabilities[given[index]],
  }));
  return { choice: found.name, index: found.index, mass: found.mass, values };
}

async function rendered(body) {
  const { format } = await model();
  return { prompt: format.prompt(body.messages, { enableThinking: thinks(body) }).text };
}

const ANSWERS = { "apply-template": rendered, "v1/choose": choice };
const STREAMS = { "v1/completions": completion, "v1/chat/completions": chat };

let last = Promise.resolve();

/** Queues work after earlier requests: the model answers one at a time. Throws Problem. */
function inTurn(param, signal, work) {
  const done = last.then(() => {
    signal?.throwIfAborted();
    return work();
  });
  last = done.catch(() => {});
  return done.catch((error) => {
    if (!(error instanceof TokenTrieError)) throw error;
    throw new Problem(error.message, { status: 400, param: error.message.startsWith("$") ? param : null });
  });
}

async function ask(method, path, body, { signal } = {}) {
  if (path !== "v1/models") return inTurn("constraint", signal, () => ANSWERS[path](body));
  await engine();
  return { data: [{ id: "tiny" }] };
}

async function* stream(path, body, { signal } = {}) {
  const events = [];
  let isOver = false;
  let wake = () => {};
  const say = (one) => {
    events.push({ choices: [one] });
    wake();
  };
  const work = inTurn(body.messages ? "tools" : "constraint", signal, () => STREAMS[path](body, signal, say));
  const over = () => {
    isOver = true;
    wake();
  };
  work.then(over, over);
  while (events.length > 0 || !isOver) {
    if (events.length > 0) yield events.shift();
    else await new Promise((done) => (wake = done));
  }
  await work;
}

/* ---- requests as programs ---- */

const json = (value) => JSON.stringify(value, null, 2);
const MODEL = `const tokenizer = await AutoTokenizer.from_pretrained("my-model");
const model = await AutoModelForCausalLM.from_pretrained("my-model");
`;

/** Returns the beginning of a program: its imports, and the model that it asks, if any. */
function head(names, model = "") {
  const others = model && 'import { AutoModelForCausalLM, AutoTokenizer, Tensor } from "@huggingface/transformers";\n';
  return `${others}import { ${names} } from "tokentrie-web";\n\nawait load();\n${model}`;
}

function javascript({ path, body }) {
  const options = `{ Tensor, maxTokens: ${body.max_tokens} }`;
  if (path === "v1/completions")
    return `${head("generate, load", MODEL)}const prompt = ${json(body.prompt)};
const constraint = ${json(body.constraint)};
const { text } = await generate(model, tokenizer, prompt, constraint, ${options});
console.log(text);
`;
  if (path === "v1/chat/completions")
    return `${head("ChatFormat, generate, load, vocabOf", MODEL)}const tools = ${json(body.tools ?? [])};
const format = new ChatFormat(tokenizer.chat_template, { vocab: vocabOf(tokenizer) });
const prompt = format.prompt(${json(body.messages)}, { tools, enableThinking: ${thinks(body) ?? true} });
const asked = { toolChoice: ${json(body.tool_choice ?? "auto")}, generationPrompt: prompt.turn ?? undefined };
const { tokens } = await generate(model, tokenizer, prompt, format.constraint(tools, asked), ${options});
console.log(format.parse(tokens, { tools, ...asked }).message);
`;
  return `${head("constraint, load, Sampler, vocabFromTokenizerJson")}const file = await fetch("model/tokenizer.json");
const vocab = vocabFromTokenizerJson(await file.text());
const sampler = Sampler.create(vocab, constraint(${json(body.constraint)}, vocab));
`;
}

/** See the back end of the server. */
export const backend = {
  views: ["rules", "write", "chat", "template"],
  model: "tiny",
  ask,
  stream,
  programs: { JSON: ({ body }) => json(body.constraint ?? body), JavaScript: javascript },
  walk: (spec) => new Walk(words, constraint(spec, words.vocab)),
  chatFormat: (template, options) => new ChatFormat(template, options),
};
