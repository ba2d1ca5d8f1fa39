/** The names that one agent runtime looks for, on the real library and the tiny model. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { CancelledError, elizaBinding, LibraryError, ModelError, StreamRunner, Vocab } from "../src/index.js";
import type { StreamBinding } from "../src/session/binding.js";
import { hostCases } from "./support/cases.js";
import { LIBRARY, MODEL, NO_LIBRARY, NO_MODEL } from "./support/library.js";

const sampling = { maxTokens: 50, temperature: 0, topP: 1 };

describe("the library by these names", { skip: NO_MODEL }, () => {
  let binding: Required<StreamBinding<number>>;
  let stream: number;
  before(() => {
    assert.ok(LIBRARY);
    binding = elizaBinding(LIBRARY) as Required<StreamBinding<number>>;
    stream = binding.llmStreamOpen({ modelPath: MODEL, threads: 1 }) as number;
  });
  after(() => binding.llmStreamClose(stream));

  const prompt = [5, 6, 7, 8];
  const payload = {
    modelId: "tiny",
    descriptors: [
      {
        path: "p",
        leaves: [
          { name: "A", tokens: [300, 301] },
          { name: "B", tokens: [400] },
        ],
      },
    ],
  };

  /** Eight tokens with a choice at each, so that no test depends on where the model would end. */
  const eight = Array.from({ length: 256 }, (_, n) =>
    Array.from({ length: 8 }, (_, bit) => ((n >> bit) & 1 ? 300 : 400)),
  );
  const long = eight.map((tokens, n) => ({ name: String(n), tokens }));
  const longPayload = { modelId: "tiny", descriptors: [{ path: "p", leaves: long }] };
  const follow = () => binding.llmStreamSetTokenTrie({ stream, triePayloadJson: JSON.stringify(longPayload), mode: 1 });

  it("generates one of the leaves, and says once that it is done", async () => {
    const seen: unknown[] = [];
    const { tokens } = await new StreamRunner(binding).generate(stream, {
      promptTokens: prompt,
      tokenTreePayload: payload,
      maxTokens: 2,
      onToken: (token, _text, isDone) => seen.push([token, isDone]),
    });
    assert.ok(
      [[300, 301], [400]].some((leaf) => leaf.every((token, index) => tokens[index] === token)),
      String(tokens),
    );
    assert.deepEqual(seen.at(-1), [-1, true]);
    assert.equal(seen.length, tokens.length + 1);
  });

  it("gives the same by the pull form", async () => {
    const { llmStreamGenerate: _, ...pull } = binding;
    const given = { promptTokens: prompt, maxTokens: 8 };
    const pushed = await new StreamRunner(binding).generate(stream, given);
    const pulled = await new StreamRunner<number>(pull).generate(stream, given);
    assert.deepEqual([pulled.tokens, pulled.text], [pushed.tokens, pushed.text]);
  });

  for (const { id, input, expect } of hostCases("abi_mock")) {
    it(id, async () => {
      await binding.llmStreamPrefill(stream, Int32Array.from(prompt), -1);
      if (input.cancel_after_tokens) {
        let [done, emitted] = [0, 0];
        follow();
        void binding.llmStreamGenerate(stream, { ...sampling, temperature: 5 }, (_token, _text, isDone) => {
          if (isDone) done += 1;
          else emitted += 1;
          if (emitted === input.cancel_after_tokens) binding.llmStreamCancel(stream);
        });
        assert.equal(done, expect.done_callbacks);
        assert.ok(emitted < expect.emitted_fewer_than);
      } else if (input.generate_then_close) {
        const other = binding.llmStreamOpen({ modelPath: MODEL, threads: 1 }) as number;
        await binding.llmStreamPrefill(other, Int32Array.from(prompt), -1);
        assert.equal(
          binding.llmStreamGenerate(other, { ...sampling, maxTokens: 1 }, () => {}),
          0,
        );
        void binding.llmStreamClose(other);
        assert.equal(
          binding.llmStreamGenerate(other, sampling, () => {}),
          -1,
        );
        assert.match(binding.lastError(), /handle|session/);
      } else if (input.generate_twice_concurrently) {
        const inside: unknown[] = [];
        follow();
        void binding.llmStreamGenerate(stream, { ...sampling, maxTokens: 1 }, (_token, _text, isDone) => {
          if (!isDone) inside.push(binding.llmStreamGenerate(stream, sampling, () => {}));
        });
        assert.deepEqual(inside, [expect.second_returns]);
      } else {
        binding.llmStreamCancel(stream);
        assert.equal(
          binding.llmStreamGenerate(stream, { ...sampling, maxTokens: 1 }, () => {}),
          0,
        );
      }
    });
  }

  it("is cancelled by a signal from inside a callback", async () => {
    const abort = new AbortController();
    const run = new StreamRunner(binding).generate(stream, {
      promptTokens: prompt,
      tokenTreePayload: longPayload,
      maxTokens: 500,
      temperature: 5,
      signal: abort.signal,
      onToken: () => abort.abort(),
    });
    await assert.rejects(run, CancelledError);
  });

  it("says why a payload is refused, and what was wrong with a file", async () => {
    const run = new StreamRunner(binding).generate(stream, {
      promptTokens: prompt,
      tokenTreePayload: '{"descriptors": 5}',
    });
    await assert.rejects(run, { name: "PayloadError", message: /set_token_trie failed: -\d+: payload, line 1/ });
    assert.throws(() => binding.llmStreamOpen({ modelPath: "/there/is/no.gguf" }), {
      name: "ModelError",
      message: /open failed: .*no\.gguf/,
    });
    assert.equal(await binding.llmStreamPrefill(stream, Int32Array.of(-1), -1), -1);
    assert.equal(await binding.llmStreamPrefill(3, Int32Array.of(1), -1), -1);
    await assert.rejects(new StreamRunner(binding).generate(stream, { promptTokens: [10 ** 9] }), ModelError);
  });
});

it(
  "a library without llama.cpp lacks these names, and the runner says which",
  {
    skip: NO_LIBRARY || LIBRARY?.hasLlama,
  },
  async () => {
    assert.ok(LIBRARY);
    const runner = new StreamRunner(elizaBinding(LIBRARY));
    await assert.rejects(runner.run({ modelPath: MODEL }, { promptTokens: [1] }), (error: Error) => {
      assert.ok(error instanceof LibraryError);
      assert.match(error.message, /missing streaming-LLM symbols: llmStreamOpen, llmStreamPrefill, llmStreamClose/);
      return true;
    });
    assert.equal(Vocab.ofSize(3, [], LIBRARY).size, 3);
  },
);
