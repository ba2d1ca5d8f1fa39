/** transformers.js with a real model: that of the Python package, as ONNX. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import {
  ChatFormat,
  choose,
  Form,
  generate,
  load,
  type ModelLike,
  SpecError,
  type TensorClass,
  tokenizeParts,
  TokenTrieError,
  TokenTrieLogitsProcessor,
  type TransformersTokenizer,
  vocabOf,
  type WrittenStep,
} from "../src/index.js";
import { MODELS, NO_MODEL, ROOT, vectors } from "./support.js";

let transformers: any;
let tokenizer: any;
let model: any;
let Tensor: TensorClass;

const words = (): TransformersTokenizer => tokenizer as TransformersTokenizer;
const net = (): ModelLike => model as ModelLike;

describe("transformers.js", { skip: NO_MODEL }, () => {
  before(async () => {
    await load();
    transformers = await import("@huggingface/transformers");
    transformers.env.allowRemoteModels = false;
    transformers.env.localModelPath = MODELS;
    ({ Tensor } = transformers);
    tokenizer = await transformers.AutoTokenizer.from_pretrained("tiny");
    model = await transformers.AutoModelForCausalLM.from_pretrained("tiny", { dtype: "fp32" });
  });

  const inputs = (prompt: string) => tokenizer(prompt, { add_special_tokens: false });
  async function written(prompt: string, processor: TokenTrieLogitsProcessor, options: object = {}): Promise<string> {
    const given = inputs(prompt);
    const output = await model.generate({ ...given, logits_processor: [processor], max_new_tokens: 40, ...options });
    const ids = output.tolist()[0].slice(given.input_ids.dims[1]).map(Number);
    return tokenizer.decode(ids, { skip_special_tokens: true });
  }

  it("gives the examples that all hosts share, and skips ahead", async () => {
    for (const { name, prompt, constraint, text, tokens } of vectors("examples").generations) {
      // Texts that a model would write on are taken back by whoever owns the output, and rules begin inside a prompt
      // where it is known how the tokenizer cuts texts.
      if (JSON.stringify(constraint).includes('"text"') || name.startsWith("a rule that begins")) continue;
      const found = await generate(net(), words(), prompt, constraint, { Tensor });
      assert.deepEqual([found.text.trimStart(), found.tokens], [text, tokens], name);
      assert.ok(
        found.forwardPasses + found.forcedTokens >= tokens.length && found.forwardPasses <= tokens.length,
        name,
      );
    }
  });

  it("chooses the values that all hosts choose, with their types", async () => {
    for (const { name, request, chosen, value, probabilities } of vectors("examples").choices) {
      const choice = await choose(net(), words(), request.prompt, request.choices, { Tensor });
      assert.deepEqual([choice.name, choice.value], [chosen, value], name);
      assert.deepEqual(Object.keys(choice.probabilities).sort(), Object.keys(probabilities).sort(), name);
      for (const [option, share] of Object.entries(choice.probabilities))
        assert.ok(Math.abs((share ?? Number.NaN) - probabilities[option]) < 0.05, `${name}: ${option} ${share}`);
    }
  });

  it("its own loop is held by the processor, and gives the same", async () => {
    const example = vectors("examples").generations[0];
    const only = new TokenTrieLogitsProcessor(words(), example.constraint);
    assert.equal(await written(example.prompt, only), example.text);
    assert.equal(only.samplers.length, 1);
    await assert.rejects(written("another prompt altogether, which is longer", only), TokenTrieError);
    only.reset();
    assert.equal(await written(example.prompt, only), example.text);
    const year = new TokenTrieLogitsProcessor(words(), { regex: "(19|20)[0-9]{2}" });
    assert.match(await written("Born in ", year, { do_sample: true }), /^(19|20)[0-9]{2}$/);
    assert.throws(() => new TokenTrieLogitsProcessor(words(), { regex: "(" }), SpecError);
  });

  it("follows each row of a batch on its own", async () => {
    const prompts = ["<|im_start|>user\nYes or no?<|im_end|>\n", "<|im_start|>user\nNo, or yes?<|im_end|>\n"];
    tokenizer.padding_side = "left";
    const given = tokenizer(prompts, { add_special_tokens: false, padding: true });
    const only = new TokenTrieLogitsProcessor(words(), { choice: ["yes indeed", "no"] });
    const output = await model.generate({ ...given, logits_processor: [only], max_new_tokens: 12 });
    const length = given.input_ids.dims[1];
    for (const row of output.tolist()) {
      const text = tokenizer.decode(row.slice(length).map(Number), { skip_special_tokens: true });
      assert.ok(["yes indeed", "no"].includes(text), text);
    }
  });

  it("chooses exactly: as adding up every token of every value, one after the other", async () => {
    const lines = readFileSync(join(ROOT, "tools", "tiny_model", "heldout.jsonl"), "utf8")
      .trim()
      .split("\n");
    const questions = lines.map((line) => JSON.parse(line)).filter((_, index) => index % 40 === 0);
    let right = 0;
    for (const { prompt, choices, answer } of questions) {
      const ids: number[] = tokenizer.encode(prompt, { add_special_tokens: false });
      const choice = await choose(net(), words(), ids, choices, { Tensor });
      right += Number(choice.name === answer);
      const naive: number[] = [];
      for (const value of choices)
        naive.push(await summed(ids, tokenizer.encode(value, { add_special_tokens: false })));
      choice.logprobs.forEach((logprob, index) => {
        const [found, wanted] = [logprob ?? -Infinity, naive[index] as number];
        // A value that others go on from ends where none of their tokens comes: less than its tokens alone.
        assert.ok(found <= wanted + 1e-3, `${choices[index]}: ${found} ${wanted}`);
        const isPrefix = choices.some((other: string) => other !== choices[index] && other.startsWith(choices[index]));
        if (!isPrefix) assert.ok(Math.abs(found - wanted) < 2e-3, `${choices[index]}: ${found} ${wanted}`);
      });
    }
    assert.ok(right >= 0.8 * questions.length, `${right} of ${questions.length}`);
  });

  /** The log of the probability of these tokens, from whole passes. */
  async function summed(prompt: number[], value: number[]): Promise<number> {
    const ids = BigInt64Array.from([...prompt, ...value].map(BigInt));
    const ones = new BigInt64Array(ids.length).fill(1n);
    const { logits } = await model.forward({
      input_ids: new Tensor("int64", ids, [1, ids.length]),
      attention_mask: new Tensor("int64", ones, [1, ids.length]),
    });
    const width = logits.dims[2];
    return value.reduce((sum, token, at) => {
      const row = (logits.data as Float32Array).subarray((prompt.length + at - 1) * width).subarray(0, width);
      const high = row.reduce((a, b) => Math.max(a, b));
      const total = row.reduce((all, logit) => all + Math.exp(logit - high), 0);
      return sum + (row[token] as number) - high - Math.log(total);
    }, 0);
  }

  it("fills a form with types", async () => {
    const city = { slot: "city", value: { choice: ["Bonn", "Oslo"] } } as const;
    const guests = { slot: "guests", value: { integer: { min: 1, max: 12 } } } as const;
    const form = new Form('{"city": "', city, '", "guests": ', guests, "}");
    const steps: WrittenStep[] = [];
    const onStep = (step: WrittenStep) => steps.push(step);
    const found = await generate(net(), words(), "A trip: ", form, { Tensor, onStep });
    assert.equal(steps.map(({ text }) => text).join(""), found.text);
    assert.deepEqual(
      steps.flatMap(({ tokens }) => tokens),
      found.tokens,
    );
    const chosen = steps.filter(({ choice }) => choice !== undefined);
    assert.equal(chosen.length, found.tokens.length - found.forcedTokens);
    for (const { tokens, choice } of chosen) assert.ok(choice?.allowed.ids.includes(tokens[0] as number));
    const stop = () => {
      throw new RangeError("stop");
    };
    await assert.rejects(generate(net(), words(), "A trip: ", form, { Tensor, onStep: stop }), RangeError);
    const values: { readonly city: "Bonn" | "Oslo"; readonly guests: number } = form.values(found);
    assert.deepEqual(JSON.parse(found.text), values);
    assert.equal((await generate(net(), words(), "Is it on? ", { choice: ["yes", "no"] }, { Tensor })).values, null);
  });

  it("reads no control token in what a stranger says", async () => {
    const vocab = vocabOf(words());
    const { bos_token: bos, eos_token: eos, chat_template } = tokenizer;
    using format = new ChatFormat(chat_template, { vocab, bos, eos });
    const asked = (content: string) => format.prompt([{ role: "user", content }]);
    const name = vocab.text([vocab.endOfGeneration.at(-1) as number]);
    const ends = (ids: readonly number[]) => ids.filter((id) => vocab.endOfGeneration.includes(id)).length;
    const plain = ends(tokenizeParts(vocab, asked("Hi").parts));
    for (const said of [name, `a${name}b`, name.slice(0, -1), name + name]) {
      const { parts, text } = asked(said);
      const ids = tokenizeParts(vocab, parts);
      assert.deepEqual([ends(ids), vocab.text(ids)], [plain, text], said);
    }
    const values = ["yes", "no"];
    const choice = await choose(net(), words(), asked(name), values, { Tensor });
    assert.deepEqual(choice.items().length, 2);
    for (const parts of ["text", [["a"]], [["a", 1]], [[1, true]]])
      assert.throws(() => tokenizeParts(vocab, parts as never), { name: "ArgumentError", message: /parts/ });
  });

  it("calls a tool in the model's own format", async () => {
    const { request, tool_calls } = vectors("examples").chat;
    const vocab = vocabOf(words());
    const { bos_token: bos, eos_token: eos, chat_template } = tokenizer;
    using format = new ChatFormat(chat_template, { vocab, bos, eos });
    const tools = request.tools;
    const prompt = format.prompt(request.messages, { tools });
    const { text, turn, parts } = prompt;
    const options = { toolChoice: "required", generationPrompt: turn ?? "" };
    using reply = format.constraint(tools, options);
    assert.deepEqual(tokenizeParts(vocab, parts), tokenizer.encode(text, { add_special_tokens: false }));
    const found = await generate(net(), words(), prompt, reply, { Tensor, maxTokens: 96 });
    const { message } = format.parse(found.text, { tools, generationPrompt: turn ?? "" });
    const calls = message.tool_calls?.map(
      (call) =>
        call.type === "function" && { name: call.function.name, arguments: JSON.parse(call.function.arguments) },
    );
    assert.deepEqual(calls, tool_calls);
  });
});
