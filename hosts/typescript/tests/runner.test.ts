/** The streaming runner, on a library that is scripted: the cases of hosts, and what they leave open. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BusyError, CancelledError, LibraryError, ModelError, PayloadError, StreamRunner } from "../src/index.js";
import { hostCases } from "./support/cases.js";
import { MockStreams, steps, warningsOf } from "./support/streams.js";

const payload = { modelId: "m", descriptors: [{ path: "action", leaves: [{ name: "A", tokens: [1] }] }] };
const PUSH = ["llmStreamNext"];
const PULL = ["llmStreamGenerate"];

describe("runner_mock", () => {
  for (const { id, input, expect } of hostCases("runner_mock")) {
    it(id, async () => {
      const mock = new MockStreams(steps("x", "y"), {
        prefill: input.prefill_returns,
        generate: input.generate_returns,
      });
      const absent = input.symbols === "absent" ? ["setTokenTrie", "clearTokenTrie"] : [];
      const runner = new StreamRunner(mock.binding(...PUSH, ...absent));
      const generate = () =>
        runner.generate("<handle>", {
          promptTokens: [1],
          ...input.args,
          tokenTreePayload: input.payload,
          tokenTreeMode: input.mode,
        });
      const warnings = await warningsOf(async () => {
        if (expect.throws_contains) {
          await assert.rejects(generate(), (error: Error) => error.message.includes(expect.throws_contains));
        } else {
          await generate();
        }
      });
      if (expect.call_order) assert.deepEqual(mock.calls, expect.call_order);
      if (expect.set_args) assert.deepEqual(mock.setArguments, [expect.set_args]);
      if ("set_calls" in expect) assert.equal(mock.count("set_token_trie"), expect.set_calls);
      if ("clear_calls" in expect) assert.equal(mock.count("clear_token_trie"), expect.clear_calls);
      if ("generate_calls" in expect) assert.equal(mock.count("generate"), expect.generate_calls);
      if (expect.generate_still_called) assert.equal(mock.count("generate"), 1);
      assert.equal(warnings.length > 0, expect.warning ?? false);
    });
  }
});

describe("stream_mock", () => {
  for (const { id, input, expect } of hostCases("stream_mock")) {
    it(id, async () => {
      const mock = new MockStreams(input.steps ?? []);
      const runner = new StreamRunner(mock.binding(...PULL, input.remove));
      const chunks: string[] = [];
      let events = 0;
      const run = runner.run(
        { modelPath: "m.gguf" },
        {
          promptTokens: [1],
          onText: (text) => chunks.push(text),
          onAccept: () => {
            events += 1;
          },
        },
      );
      if (expect.throws_contains) {
        await assert.rejects(run, (error: Error) => {
          assert.ok(error instanceof LibraryError);
          assert.ok(error.message.includes(expect.throws_contains), error.message);
          return true;
        });
        return;
      }
      const result = await run;
      assert.equal(result.text, expect.text);
      assert.deepEqual([result.drafted, result.accepted], [expect.drafted, expect.accepted]);
      assert.deepEqual(
        ["open", "prefill", "close"].map((name) => mock.count(name)),
        [expect.open_calls, expect.prefill_calls, expect.close_calls],
      );
      assert.deepEqual(chunks, expect.text_chunks);
      assert.equal(events, expect.accept_events);
      assert.equal(result.firstTokenMs !== null, expect.first_token_ms_not_null);
    });
  }
});

describe("abi_mock", () => {
  for (const { id, input, expect } of hostCases("abi_mock")) {
    it(id, async () => {
      const mock = new MockStreams(steps("a", "b", "c"));
      const binding = mock.binding(...PUSH);
      const runner = new StreamRunner(binding);
      const stream = (await binding.llmStreamOpen?.({ modelPath: "m.gguf" })) as string;
      if (input.cancel_after_tokens) {
        let done = 0;
        let emitted = 0;
        await runner.generate(stream, {
          promptTokens: [1],
          onToken: (_token, _text, isDone) => {
            if (isDone) done += 1;
            else emitted += 1;
            if (emitted === input.cancel_after_tokens) binding.llmStreamCancel?.(stream);
          },
        });
        assert.equal(done, expect.done_callbacks);
        assert.ok(emitted < expect.emitted_fewer_than);
      } else if (input.generate_then_close) {
        await runner.generate(stream, { promptTokens: [1] });
        await binding.llmStreamClose?.(stream);
        assert.deepEqual([mock.open.size, mock.closed], [expect.open_handles, expect.close_count]);
      } else if (input.generate_twice_concurrently) {
        const sampling = { maxTokens: 3, temperature: 0, topP: 1 };
        const first = binding.llmStreamGenerate?.(stream, sampling, () => {});
        assert.equal(await binding.llmStreamGenerate?.(stream, sampling, () => {}), expect.second_returns);
        assert.equal(await first, 0);
        const running = runner.generate(stream, { promptTokens: [1] });
        await assert.rejects(
          runner.generate(stream, { promptTokens: [1] }),
          (error: Error) => error instanceof BusyError && error.message.includes(String(expect.second_returns)),
        );
        await running;
      } else {
        assert.equal(input.cancel_without_generate, true);
        binding.llmStreamCancel?.(stream);
        assert.equal((await runner.generate(stream, { promptTokens: [1] })).text, "abc");
      }
    });
  }
});

describe("the runner", () => {
  for (const [form, without] of [
    ["push", PUSH],
    ["pull", PULL],
  ] as const) {
    it(`says that it is done once, last (${form})`, async () => {
      const seen: unknown[] = [];
      const runner = new StreamRunner(new MockStreams(steps("a", "", "c")).binding(...without));
      const result = await runner.generate("h", { promptTokens: [1], onToken: (...given) => seen.push(given) });
      assert.deepEqual(seen, [
        [10, "a", false],
        [11, "", false],
        [12, "c", false],
        [-1, "", true],
      ]);
      assert.deepEqual([result.text, result.tokens], ["ac", [10, 11, 12]]);
    });

    it(`cancels by a signal, clears, and gives what had come (${form})`, async () => {
      const abort = new AbortController();
      const mock = new MockStreams(steps("a", "b", "c", "d", "e", "f", "g", "h"));
      const runner = new StreamRunner(mock.binding(...without));
      let done = 0;
      const run = runner.generate("h", {
        promptTokens: [1],
        tokenTreePayload: payload,
        signal: abort.signal,
        onToken: (_token, text, isDone) => {
          done += Number(isDone);
          if (text === "b") abort.abort(new Error("enough"));
        },
      });
      await assert.rejects(run, (error: CancelledError<{ text: string }>) => {
        assert.ok(error instanceof CancelledError);
        assert.equal(error.name, "AbortError");
        assert.equal((error.cause as Error).message, "enough");
        assert.ok(error.partial.text.startsWith("ab") && error.partial.text.length < 8, error.partial.text);
        return true;
      });
      assert.equal(done, 1);
      assert.ok(mock.count("cancel") >= 1);
      assert.equal(mock.count("clear_token_trie"), 1);
    });

    it(`cancels when a callback throws, and passes that on (${form})`, async () => {
      const mock = new MockStreams(steps("a", "b", "c"));
      const runner = new StreamRunner(mock.binding(...without));
      const onToken = (_: number, text: string) => {
        if (text === "a") throw new RangeError("mine");
      };
      const run = runner.generate("h", { promptTokens: [1], tokenTreePayload: payload, onToken });
      await assert.rejects(run, { name: "RangeError", message: "mine" });
      assert.ok(mock.count("cancel") >= 1);
      assert.equal(mock.count("clear_token_trie"), 1);
    });
  }

  it("does not begin where the signal was aborted before", async () => {
    const mock = new MockStreams(steps("a"));
    const run = new StreamRunner(mock.binding()).generate("h", { promptTokens: [1], signal: AbortSignal.abort() });
    await assert.rejects(run, CancelledError);
    assert.deepEqual(
      mock.calls.filter((call) => call !== "cancel"),
      [],
    );
  });

  it("refuses to go on without the trie that was asked for, and clears it", async () => {
    const mock = new MockStreams(steps("a"), { set: -1 });
    const binding = { ...mock.binding(), lastError: () => "payload, line 1: no" };
    const run = new StreamRunner(binding).generate("h", { promptTokens: [1], tokenTreePayload: payload });
    await assert.rejects(run, { name: "PayloadError", message: "set_token_trie failed: -1: payload, line 1: no" });
    assert.deepEqual([mock.count("generate"), mock.count("clear_token_trie")], [0, 1]);
  });

  it("refuses an invalid payload before the library sees it", async () => {
    const mock = new MockStreams(steps("a"));
    const bad = { modelId: "m", descriptors: [{ path: "p", leaves: [{ name: "A", tokens: [-1] }] }] };
    const run = new StreamRunner(mock.binding()).generate("h", { promptTokens: [1], tokenTreePayload: bad });
    await assert.rejects(run, PayloadError);
    assert.equal(mock.count("set_token_trie"), 0);
  });

  it("warns once for each library", async () => {
    const without = ["setTokenTrie", "clearTokenTrie", ...PUSH];
    const [one, other] = [
      new MockStreams(steps("a")).binding(...without),
      new MockStreams(steps("a")).binding(...without),
    ];
    const warnings = await warningsOf(async () => {
      for (const binding of [one, one, other]) {
        await new StreamRunner(binding).generate("h", { promptTokens: [1], tokenTreePayload: payload });
      }
    });
    assert.equal(warnings.length, 2);
    assert.match(warnings[0] ?? "", /not constrained/);
  });

  it("lets calls on one slot wait for each other, and no others", async () => {
    const mock = new MockStreams(steps("a", "b", "c"));
    let running = 0;
    let most = 0;
    const binding = mock.binding(...PUSH);
    const generate = binding.llmStreamGenerate?.bind(binding);
    binding.llmStreamGenerate = async (...given) => {
      most = Math.max(most, ++running);
      const status = (await generate?.(...given)) ?? -1;
      running -= 1;
      return status;
    };
    const runner = new StreamRunner(binding);
    const on = (slotId: number) =>
      ["x", "y", "z"].map((stream) => runner.generate(stream, { promptTokens: [1], slotId }));
    await Promise.all(on(3));
    assert.equal(most, 1);
    await Promise.all(on(-1));
    assert.equal(most, 3);
  });

  it("closes what it opened when something fails, and can be used again", async () => {
    const mock = new MockStreams(steps("a"), { generate: -1 });
    const runner = new StreamRunner(mock.binding(...PUSH));
    for (let round = 0; round < 2; round++) {
      await assert.rejects(runner.run({ modelPath: "m" }, { promptTokens: [1] }), ModelError);
    }
    assert.equal(mock.closed, 2);
    await assert.rejects(runner.generate("h", { promptTokens: [1] }), ModelError);
    await assert.rejects(runner.generate("h", { promptTokens: [1] }), ModelError);
  });
});
