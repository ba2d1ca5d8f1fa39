/** A page in Chromium: the package as it is published, without a bundler, in the page and in a worker. */
import assert from "node:assert/strict";
import type { Server } from "node:http";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { Browser, Page } from "playwright-core";
import type * as Tokentrie from "../src/index.js";
import { CHROMIUM, launched, MODELS, NO_BUILD, NO_CHROMIUM, NO_MODEL, served, vectors, WEB } from "./support.js";

const SKIP = NO_CHROMIUM || NO_BUILD || NO_MODEL;

const PAGES: Record<string, string> = {
  "/": "<!doctype html><title>tokentrie</title>",
  "/worker.js": `import { constraint, load, Vocab } from "/dist/web/src/index.js";
    await load();
    const vocab = Vocab.fromPieces(["a", "b", "</s>"], { endOfGeneration: [2] });
    postMessage(constraint({ regex: "a|ab" }, vocab).texts());`,
};
const ROOTS: [prefix: string, folder: string][] = [
  ["/models/", MODELS],
  ["/ort/", join(WEB, "node_modules", "onnxruntime-web", "dist")],
  ["/transformers/", join(WEB, "node_modules", "@huggingface", "transformers", "dist")],
  ["/dist/", join(WEB, "dist")],
  ["/wasm/", join(WEB, "wasm")],
];

/** What page functions see of `window`. */
interface Loaded {
  tokentrie: typeof Tokentrie;
}

describe("Chromium", { skip: SKIP }, () => {
  let server: Server;
  let browser: Browser;
  let page: Page;
  let address = "";
  const faults: string[] = [];

  before(async () => {
    ({ server, address } = await served((path) => {
      const text = PAGES[path];
      if (text !== undefined) return { text };
      const root = ROOTS.find(([prefix]) => path.startsWith(prefix));
      return root && { file: join(root[1], path.slice(root[0].length)) };
    }));
    browser = await launched(CHROMIUM as string);
    page = await browser.newPage();
    page.on("pageerror", (error) => faults.push(String(error)));
    await page.goto(address);
    await page.evaluate(async () => {
      const name = "/dist/web/src/index.js";
      (globalThis as unknown as Loaded).tokentrie = await import(name);
      await (globalThis as unknown as Loaded).tokentrie.load();
    });
  });
  after(async () => {
    await browser?.close();
    server?.close();
    assert.deepEqual(faults, []);
  });

  it("sets, rules and draws", async () => {
    const found = await page.evaluate(() => {
      const { constraint, Sampler, Trie, Vocab } = (globalThis as unknown as Loaded).tokentrie;
      const vocab = Vocab.fromPieces(["a", "b", "ab", "1", "2", "</s>"], { endOfGeneration: [5] });
      const sampler = Sampler.create(vocab, constraint({ regex: "(a|b){2}[12]" }, vocab), { after: "stop" });
      const row = Float32Array.from({ length: 6 }, (_, id) => id);
      const tokens = [...sampler.advance(row), ...sampler.advance(row)];
      const set = Sampler.create(2000, Trie.fromSequences([[3, 4], [1500]], ["A", "B"]));
      const long = new Float32Array(2000);
      long[1500] = 1;
      return { tokens, drawn: set.sample(long), state: sampler.state };
    });
    assert.deepEqual(found, { tokens: [2, 4], drawn: 1500, state: "complete" });
  });

  it("templates as deep as they may be, and deeper", async () => {
    const cases = vectors("hostile_templates").map(({ name, parts, may_render }: Record<string, never>) => ({
      name,
      may: may_render,
      template: (parts as unknown as [string, number][]).map(([text, times]) => text.repeat(times)).join(""),
    }));
    const wrong = await page.evaluate((all: { name: string; may: boolean; template: string }[]) => {
      const { renderTemplate } = (globalThis as unknown as Loaded).tokentrie;
      return all.flatMap(({ name, may, template }) => {
        try {
          renderTemplate(template, [{ role: "user", content: "x" }], { bos: "<s>", eos: "</s>" });
          return may ? [] : [`${name}: rendered`];
        } catch (error) {
          return (error as Error).name === "SpecError" ? [] : [`${name}: ${String(error)}`];
        }
      });
    }, cases);
    assert.deepEqual(wrong, []);
  });

  it("in a worker", async () => {
    const texts = await page.evaluate(
      () =>
        new Promise((done, fail) => {
          const worker = new Worker("/worker.js", { type: "module" });
          worker.onmessage = ({ data }) => done(data);
          worker.onerror = ({ message }) => fail(new Error(message));
        }),
    );
    assert.deepEqual(texts, ["a", "ab"]);
  });

  it("a real model in transformers.js", async () => {
    const example = vectors("examples").generations[0];
    const found = await page.evaluate(async ({ prompt, constraint }) => {
      const { choose, generate, TokenTrieLogitsProcessor } = (globalThis as unknown as Loaded).tokentrie;
      const name = "/transformers/transformers.js";
      const { AutoModelForCausalLM, AutoTokenizer, env, Tensor } = await import(name);
      env.allowRemoteModels = false;
      env.allowLocalModels = true;
      env.localModelPath = "/models/";
      env.useBrowserCache = false;
      env.backends.onnx.wasm.wasmPaths = `${location.origin}/ort/`;
      const tokenizer = await AutoTokenizer.from_pretrained("tiny");
      const model = await AutoModelForCausalLM.from_pretrained("tiny", { dtype: "fp32", device: "wasm" });
      const only = new TokenTrieLogitsProcessor(tokenizer, constraint);
      const given = tokenizer(prompt, { add_special_tokens: false });
      const output = await model.generate({ ...given, logits_processor: [only], max_new_tokens: 20 });
      const ids = output.tolist()[0].slice(given.input_ids.dims[1]).map(Number);
      const written = await generate(model, tokenizer, prompt, constraint, { Tensor });
      const choice = await choose(model, tokenizer, prompt, constraint, { Tensor });
      return {
        texts: [tokenizer.decode(ids, { skip_special_tokens: true }), written.text, choice.name],
        passes: written.forwardPasses,
        sum: Object.values(choice.probabilities).reduce((a: number, b) => a + (b ?? Number.NaN), 0),
      };
    }, example);
    // A walk that takes the best token at each step need not end in the most probable value, and here it does not.
    assert.deepEqual(found.texts, [example.text, example.text, "cancel_room"]);
    assert.ok(found.passes < example.tokens.length && Math.abs(found.sum - 1) < 1e-9, JSON.stringify(found));
  });
});
