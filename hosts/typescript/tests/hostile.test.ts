/** Values of every wrong kind, in every place: an error of this package that names the value; nothing is changed. */
import assert from "node:assert/strict";
import { copyFileSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import {
  ArgumentError,
  buildDescriptor,
  buildPayload,
  buildTokenTrie,
  constraint,
  decodeRtkt,
  elizaBinding,
  encodeRtkt,
  Form,
  type GenerateOptions,
  HandleError,
  httpTokenizer,
  type Library,
  LibraryError,
  loadLibrary,
  ModelError,
  parsePayload,
  Sampler,
  Session,
  SetError,
  StreamRunner,
  TokenizerCache,
  TokenTrieError,
  Trie,
  TrieCache,
  Vocab,
} from "../src/index.js";
import { LIBRARY, MODEL, NO_FILES, NO_LIBRARY, NO_MODEL } from "./support/library.js";
import { MockStreams, steps, warningsOf } from "./support/streams.js";

const LONE = "a\ud800b";
const JUNK: readonly unknown[] = [
  null,
  -1,
  1.5,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  2 ** 32 + 3,
  2 ** 60,
  10n,
  "",
  "5",
  LONE,
  true,
  {},
  [],
  [LONE],
  [1.5],
  ["5"],
  [null],
  // eslint-disable-next-line no-sparse-arrays
  [, 1],
  Symbol("junk"),
  () => 1,
  new Date(0),
  new Float64Array([1]),
  new BigInt64Array([1n]),
];
const shownJunk = (junk: unknown) => (Array.isArray(junk) ? `[${junk.map(String).join()}]` : String(junk));

/** That each call gives something or an error of this package, and never one of the language. */
async function typed(calls: Readonly<Record<string, (junk: never) => unknown>>): Promise<void> {
  const wrong: string[] = [];
  for (const [name, call] of Object.entries(calls)) {
    for (const junk of JUNK) {
      try {
        await call(junk as never);
      } catch (error) {
        const isTyped = error instanceof TokenTrieError && error.message.length > 10;
        if (!isTyped) wrong.push(`${name}(${shownJunk(junk)}): ${String(error)}`);
      }
    }
  }
  assert.deepEqual(wrong, []);
}

describe("what needs no library", () => {
  it("takes or refuses any value", () =>
    typed({
      buildPayload: (junk) => buildPayload("m", junk),
      "buildPayload.modelId": (junk) => buildPayload(junk, [{ path: "p", leaves: [{ name: "a", tokens: [1] }] }]),
      "buildDescriptor.path": (junk) => buildDescriptor(junk, ["a"], { a: [1] }),
      "buildDescriptor.names": (junk) => buildDescriptor("p", junk, { a: [1] }),
      "buildDescriptor.map": (junk) => buildDescriptor("p", ["a"], junk),
      "buildDescriptor.tokens": (junk) => buildDescriptor("p", ["a"], { a: junk }),
      buildTokenTrie: (junk) => buildTokenTrie(junk),
      "buildTokenTrie.leaf": (junk) => buildTokenTrie([junk]),
      "buildTokenTrie.name": (junk) => buildTokenTrie([{ name: junk, tokens: [1] }]),
      "buildTokenTrie.tokens": (junk) => buildTokenTrie([{ name: "a", tokens: junk }]),
      encodeRtkt: (junk) => encodeRtkt(junk),
      "encodeRtkt.path": (junk) => encodeRtkt({ path: junk, leaves: [] }),
      "encodeRtkt.leaves": (junk) => encodeRtkt({ path: "p", leaves: junk }),
      decodeRtkt: (junk) => decodeRtkt(junk),
      parsePayload: (junk) => parsePayload(junk),
      loadLibrary: (junk) => loadLibrary(junk),
      TokenizerCache: (junk) => new TokenizerCache(junk),
      "TokenizerCache.options": (junk) => new TokenizerCache(() => [1], { maxModels: junk }),
      "TokenizerCache.tokenize": (junk) => new TokenizerCache(() => [1]).tokenize("m", junk),
      "TokenizerCache.tokenizeMany": (junk) => new TokenizerCache(() => [1]).tokenizeMany("m", junk),
      httpTokenizer: (junk) => httpTokenizer(junk),
      "Form.values": (junk) => new Form({ slot: "a", value: { integer: {} } }).values(junk),
    }));
});

describe("what calls the library", { skip: NO_LIBRARY }, () => {
  const vocab = Vocab.ofSize(100, [2]);
  const trie = Trie.fromSequences([[1, 2], [3]], ["a", "b"]);

  it("takes or refuses any value", async () => {
    const sampler = Sampler.create(vocab, trie);
    const cache = TrieCache.create(4);
    await typed({
      "Vocab.ofSize": (junk) => Vocab.ofSize(junk),
      "Vocab.ofSize.ends": (junk) => Vocab.ofSize(10, junk),
      "Vocab.fromPieces": (junk) => Vocab.fromPieces(junk),
      "Vocab.fromPieces.piece": (junk) => Vocab.fromPieces([junk]),
      "Vocab.fromPieces.control": (junk) => Vocab.fromPieces(["a", "b"], { control: junk }),
      "vocab.bytes": (junk) => vocab.bytes(junk),
      "new Sampler": (junk) => new (Sampler as unknown as new (set: unknown, spec: unknown) => unknown)(vocab, junk),
      "new Vocab": (junk) => new Vocab(vocab.library, junk),
      "new Trie": (junk) => new Trie(vocab.library, junk),
      "Trie.fromPayload": (junk) => Trie.fromPayload(junk),
      "Trie.fromPayload.vocab": (junk) => Trie.fromPayload({ modelId: "m", descriptors: [] }, { vocab: junk }),
      "Trie.fromSequences": (junk) => Trie.fromSequences(junk),
      "Trie.fromSequences.one": (junk) => Trie.fromSequences([junk]),
      "Trie.fromSequences.names": (junk) => Trie.fromSequences([[1]], junk),
      "Trie.fromRtkt": (junk) => Trie.fromRtkt(junk),
      "Trie.open": (junk) => Trie.open(junk),
      "trie.save": (junk) => typeof junk === "string" || trie.save(junk),
      "trie.select": (junk) => trie.select(junk),
      "trie.children": (junk) => trie.children(junk),
      "trie.forced": (junk) => trie.forced(junk),
      "trie.find": (junk) => trie.find(junk),
      "trie.leafName": (junk) => trie.leafName(junk),
      "trie.leafTokens": (junk) => trie.leafTokens(junk),
      "TrieCache.create": (junk) => TrieCache.create(junk),
      "cache.trie": (junk) => cache.trie(junk),
      "Sampler.create.vocab": (junk) => Sampler.create(junk, trie),
      "Sampler.create.set": (junk) => Sampler.create(vocab, junk),
      "Sampler.create.mode": (junk) => Sampler.create(vocab, trie, { mode: junk }),
      "Sampler.create.after": (junk) => Sampler.create(vocab, trie, { after: junk }),
      "Sampler.create.endTokens": (junk) => Sampler.create(vocab, trie, { endTokens: junk }),
      "Sampler.create.topK": (junk) => Sampler.create(vocab, trie, { topK: junk }),
      "Sampler.create.temperature": (junk) => Sampler.create(vocab, trie, { temperature: junk }),
      "Sampler.create.seed": (junk) => Sampler.create(vocab, trie, { seed: junk }),
      "sampler.accept": (junk) => sampler.accept(junk),
      "sampler.rollback": (junk) => sampler.rollback(junk),
      "sampler.apply": (junk) => sampler.apply(junk),
      "sampler.sample": (junk) => sampler.sample(junk),
      "sampler.advance": (junk) => sampler.advance(junk),
      "sampler.activate": (junk) => sampler.activate(junk),
      "sampler.fillBitmask": (junk) => sampler.fillBitmask(junk),
      constraint: (junk) => constraint(junk, vocab),
      "constraint.vocab": (junk) => constraint({ any: {} }, junk),
    });
    assert.deepEqual([sampler.depth, [...sampler.allowed().ids]], [0, [1, 3]]);
  });

  it("says which value is wrong, and where", () => {
    const wrong: [() => unknown, RegExp][] = [
      [() => Sampler.create(vocab, trie, { topK: 2 ** 32 }), /^topK is 4294967296: an integer from 0 to 4294967295/],
      [() => Sampler.create(vocab, trie, { seed: 1.5 }), /^seed is 1\.5/],
      [() => Sampler.create(vocab, trie).accept("5" as never), /^tokens is "5": a list of token ids is needed/],
      [() => Sampler.create(vocab, trie).rollback(2 ** 60), /^count is 1152921504606847000/],
      [() => trie.leafName(2 ** 32), /^index is 4294967296/],
      [() => trie.select(LONE), /^path is .*half of a surrogate pair/],
      [() => Trie.fromSequences([[1]], [LONE]), /^names\[0\] is .*half of a surrogate pair/],
      [() => Vocab.fromPieces(["a", LONE]), /^pieces\[1\] is .*half of a surrogate pair/],
      [() => Vocab.fromPieces(["a"], { control: [-1] }), /unknown token -1/],
    ];
    for (const [call, says] of wrong) {
      assert.throws(call, (error: Error) => error instanceof ArgumentError && says.test(error.message), String(says));
    }
    assert.throws(() => Trie.fromSequences([]), SetError);
    assert.throws(() => Trie.fromSequences([], []), SetError);
    assert.throws(() => Trie.fromSequences([[]]), SetError);
    assert.deepEqual(
      [...Sampler.create(vocab, trie, { endTokens: new Uint16Array([7]) as never }).allowed().ids],
      [1, 3],
    );
  });

  it("warns of leaves outside the vocabulary by a cache, too", async () => {
    const payload = {
      modelId: "m",
      descriptors: [
        {
          path: "p",
          leaves: [
            { name: "a", tokens: [1] },
            { name: "b", tokens: [100] },
          ],
        },
      ],
    };
    const warnings = await warningsOf(() => TrieCache.create().trie(payload, vocab).skipped.outside);
    assert.deepEqual(warnings, ["payload: 1 leaves need ids outside the vocabulary and were left out"]);
  });

  it("tells the garbage collector what tries weigh, so that those that are forgotten go", async () => {
    const sequences = Array.from({ length: 300_000 }, (_, number) => [number >> 9, number & 511]);
    const bytes = Trie.fromSequences(sequences).toRtkt();
    const before = process.memoryUsage().rss;
    let largest = 0;
    let made = 0;
    for (let round = 0; round < 100; round++) {
      made += Trie.fromRtkt(bytes).byteLength;
      await setImmediate();
      largest = Math.max(largest, process.memoryUsage().rss - before);
    }
    assert.ok(largest < made / 2, `${largest} of ${made}`);
  });
});

describe("two libraries", { skip: NO_LIBRARY }, () => {
  /** The same code, loaded a second time: its handles are numbers of its own. */
  function second(): { library: Library; done: () => void } {
    const folder = mkdtempSync(join(tmpdir(), "tokentrie-second-"));
    const other = join(folder, `other${extname(LIBRARY?.path ?? "")}`);
    copyFileSync(LIBRARY?.path ?? "", other);
    return { library: loadLibrary(other), done: () => rmSync(folder, { recursive: true }) };
  }

  it("are not mixed", async () => {
    const { library, done } = second();
    try {
      const sequences = [[1, 2], [3]];
      const [ours, theirs] = [Trie.fromSequences(sequences), Trie.fromSequences(sequences, undefined, library)];
      const [vocab, others] = [Vocab.ofSize(9), Vocab.ofSize(9, [], library)];
      const payload = { modelId: "m", descriptors: [{ path: "p", leaves: [{ name: "a", tokens: [1] }] }] };
      for (const mixed of [
        () => Sampler.create(vocab, theirs),
        () => Sampler.create(others, ours),
        () => Trie.fromPayload(payload, { vocab: others, library: LIBRARY as Library }),
        ...(NO_FILES ? [] : [() => ours.save("/nowhere/set.ttrie", others)]),
        () => TrieCache.create().trie(payload, others),
      ]) {
        assert.throws(
          mixed,
          (error: Error) => error instanceof HandleError && /belongs to the library/.test(error.message),
        );
      }
      assert.equal(Sampler.create(others, theirs).depth, 0);
      if (LIBRARY?.hasLlama) {
        await using session = await Session.open(MODEL, { nThreads: 1 });
        const isMixed = (error: Error) =>
          error instanceof HandleError && /another library|the library/.test(error.message);
        await assert.rejects(session.generate("x", { tokenTreePayload: theirs }).result, isMixed);
        await assert.rejects(session.generate("x", { constraint: theirs }).result, isMixed);
        await assert.rejects(session.choose("x", theirs), isMixed);
        await assert.rejects(session.choose("x", constraint({ any: {} }, others)), isMixed);
        const runner = new StreamRunner(elizaBinding(LIBRARY));
        const run = runner.run({ modelPath: MODEL }, { promptTokens: [1], tokenTreePayload: theirs });
        await assert.rejects(run, HandleError);
        assert.ok((await session.generate("x", { maxTokens: 1 }).result).tokens.length <= 1);
      }
    } finally {
      done();
    }
  });

  it("are one where they are one file", () => {
    const folder = mkdtempSync(join(tmpdir(), "tokentrie-link-"));
    try {
      const link = join(folder, `link${extname(LIBRARY?.path ?? "")}`);
      symlinkSync(LIBRARY?.path ?? "", link);
      assert.equal(loadLibrary(link), LIBRARY);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe("streams", () => {
  const payload = { modelId: "m", descriptors: [{ path: "p", leaves: [{ name: "a", tokens: [1] }] }] };

  it("end exactly once, also where they fail before they begin", async () => {
    for (const [what, run] of Object.entries({
      "no open": (onToken: () => void) => new StreamRunner({}).run({ modelPath: "m" }, { promptTokens: [1], onToken }),
      "no prefill": (onToken: () => void) => new StreamRunner({}).generate(1, { promptTokens: [1], onToken }),
      busy: (onToken: () => void) => {
        const runner = new StreamRunner(new MockStreams(steps("a", "b")).binding());
        void runner.generate("h", { promptTokens: [1] });
        return runner.generate("h", { promptTokens: [1], onToken });
      },
      "a wrong number": (onToken: () => void) =>
        new StreamRunner(new MockStreams(steps("a")).binding()).generate("h", {
          promptTokens: [1],
          maxTokens: 0.5,
          onToken,
        }),
      "a payload": (onToken: () => void) =>
        new StreamRunner(new MockStreams(steps("a"), { set: -1 }).binding()).run(
          { modelPath: "m" },
          { promptTokens: [1], tokenTreePayload: payload, onToken },
        ),
    })) {
      const seen: unknown[] = [];
      await assert.rejects(
        run((...given: unknown[]) => seen.push(given)),
        TokenTrieError,
        what,
      );
      assert.deepEqual(seen, [[-1, "", true]], what);
    }
  });

  it("that are NULL, however that is said, are refused", async () => {
    for (const none of [null, undefined, 0, 0n]) {
      const mock = new MockStreams(steps("a"));
      const binding = { ...mock.binding(), llmStreamOpen: () => none, lastError: () => "no memory" } as never;
      await assert.rejects(
        new StreamRunner(binding).run({ modelPath: "m.gguf" }, { promptTokens: [1] }),
        (error: Error) => {
          assert.ok(error instanceof ModelError);
          assert.equal(error.message, "open failed: m.gguf: no memory");
          return true;
        },
      );
      assert.deepEqual([mock.count("prefill"), mock.count("generate")], [0, 0]);
    }
  });

  it("take numbers that C can hold, and no others", async () => {
    const runner = new StreamRunner(new MockStreams(steps("a")).binding());
    for (const [given, says] of [
      [{ maxTokens: 2 ** 32 + 1 }, /^maxTokens is 4294967297/],
      [{ maxTokens: "5" }, /^maxTokens is "5"/],
      [{ slotId: 1.5 }, /^slotId is 1\.5/],
      [{ slotId: 2 ** 32 }, /^slotId is 4294967296/],
      [{ temperature: "hot" }, /^temperature is "hot"/],
      [{ topP: Number.NaN }, /^topP is NaN/],
      [{ promptTokens: [2 ** 32] }, /^promptTokens\[0\] is 4294967296/],
      [{ promptTokens: "abc" }, /^promptTokens is "abc"/],
    ] as const) {
      const run = runner.generate("h", { promptTokens: [1], ...(given as object) });
      await assert.rejects(
        run,
        (error: Error) => error instanceof ArgumentError && says.test(error.message),
        String(says),
      );
    }
  });

  it("are constrained by the names of either runtime", async () => {
    const calls: unknown[] = [];
    const others = {
      llmStreamSetTokenTrie: (given: unknown) => calls.push(["set", given]),
      llmStreamClearTokenTrie: (given: unknown) => calls.push(["clear", given]),
    };
    const mock = new MockStreams(steps("a")).binding("setTokenTrie", "clearTokenTrie");
    const warnings = await warningsOf(() =>
      new StreamRunner({ ...mock, ...others }).generate("h", {
        promptTokens: [1],
        tokenTreePayload: payload,
        tokenTreeMode: 1,
      }),
    );
    assert.deepEqual(calls, [
      ["set", { stream: "h", triePayloadJson: JSON.stringify(payload), mode: 1 }],
      ["clear", { stream: "h" }],
    ]);
    assert.deepEqual(warnings, []);
  });

  it("of one library are warned about once, by how many bindings whatsoever", async () => {
    const library = {};
    const binding = () => ({ library, ...new MockStreams(steps("a")).binding("setTokenTrie", "clearTokenTrie") });
    const warnings = await warningsOf(async () => {
      for (let round = 0; round < 3; round++) {
        await new StreamRunner(binding()).generate("h", { promptTokens: [1], tokenTreePayload: payload });
      }
    });
    assert.equal(warnings.length, 1);
  });
});

describe("sessions", { skip: NO_MODEL }, () => {
  const outside = {
    modelId: "m",
    descriptors: [
      {
        path: "p",
        leaves: [
          { name: "in", tokens: [300] },
          { name: "out", tokens: [300, 10 ** 9] },
        ],
      },
    ],
  };

  it("warn of leaves outside the vocabulary, by whatever way they come", async () => {
    await using session = await Session.open(MODEL, { nThreads: 1 });
    const binding = elizaBinding(LIBRARY as Library);
    for (const run of [
      () => session.generate("x", { tokenTreePayload: outside }).result,
      () => session.generate("x", { tokenTreePayload: JSON.stringify(outside) }).result,
      () => session.generate("x", { constraint: { payload: outside } }).result,
      () => session.choose("x", outside),
      () => session.choose("x", { payload: outside }),
      () => session.choose("x", { payload: outside }, { top: 1 }),
      () =>
        new StreamRunner(binding).run(
          { modelPath: MODEL, threads: 1 },
          { promptTokens: [5, 6], tokenTreePayload: outside, maxTokens: 1 },
        ),
    ]) {
      const warnings = await warningsOf(run);
      assert.equal(warnings.length, 1, `${String(run)}: ${warnings.join("; ")}`);
      assert.match(warnings[0] as string, /^payload: (1 leaves need|dropped 1 leaf with) ids outside the vocabulary/);
    }
    const whole = { modelId: "m", descriptors: [{ path: "p", leaves: [{ name: "in", tokens: [300] }] }] };
    assert.deepEqual(await warningsOf(() => session.generate("x", { tokenTreePayload: whole }).result), []);
  });

  it("are constrained by the names of the other runtime", async () => {
    const binding = elizaBinding(LIBRARY as Library);
    const stream = (await binding.llmStreamOpen?.({ modelPath: MODEL, threads: 1 })) as number;
    await binding.llmStreamPrefill?.(stream, Int32Array.of(5, 6, 7), -1);
    const triePayloadJson = JSON.stringify({
      modelId: "m",
      descriptors: [{ path: "p", leaves: [{ name: "A", tokens: [300, 301] }] }],
    });
    assert.equal(binding.llmStreamSetTokenTrie?.({ stream, triePayloadJson, mode: 0 }), 0);
    const tokens: number[] = [];
    const sampling = { maxTokens: 2, temperature: 0, topP: 1 };
    assert.equal(
      binding.llmStreamGenerate?.(stream, sampling, (token) => tokens.push(token)),
      0,
    );
    assert.deepEqual(tokens, [300, 301, -1]);
    assert.equal(binding.llmStreamClearTokenTrie?.({ stream }), 0);
    assert.throws(() => binding.llmStreamSetTokenTrie?.({ stream, triePayloadJson: LONE, mode: 0 }), ArgumentError);
    assert.throws(() => binding.llmStreamOpen?.({ modelPath: MODEL, threads: 2 ** 32 }), ArgumentError);
    assert.throws(() => binding.llmStreamOpen?.({ modelPath: "a\0b" }), ArgumentError);
    await binding.llmStreamClose?.(stream);
  });

  it("open with numbers that C can hold, and no others", async () => {
    for (const [options, says] of [
      [{ nCtx: 2 ** 32 + 64 }, /^nCtx is 4294967360: an integer from 0 to 4294967295/],
      [{ seed: 2 ** 32 }, /^seed is 4294967296/],
      [{ seed: -1 }, /^seed is -1/],
      [{ nThreads: 1.5 }, /^nThreads is 1\.5/],
      [{ nBatch: "512" as never }, /^nBatch is "512"/],
      [{ nGpuLayers: Number.NaN }, /^nGpuLayers is NaN/],
    ] as const) {
      await assert.rejects(Session.open(MODEL, options), (error: Error) => {
        assert.ok(error instanceof ArgumentError);
        assert.match(error.message, says);
        return true;
      });
    }
    await assert.rejects(Session.open(LONE), ArgumentError);
    await assert.rejects(Session.open(5 as never), ArgumentError);
  });

  it("take or refuse any value, and count what they said alike", async () => {
    await using session = await Session.open(MODEL, { nThreads: 1, nCtx: 512 });
    const few = { maxTokens: 2 };
    await typed({
      "generate.prompt": (junk) => session.generate(junk, few).result,
      "generate.payload": (junk) => session.generate("x", { ...few, tokenTreePayload: junk }).result,
      "generate.constraint": (junk) => session.generate("x", { ...few, constraint: junk }).result,
      "generate.mode": (junk) => session.generate("x", { ...few, tokenTreeMode: junk }).result,
      "generate.temperature": (junk) => session.generate("x", { ...few, temperature: junk }).result,
      "generate.topP": (junk) => session.generate("x", { ...few, topP: junk }).result,
      "generate.slotId": (junk) => session.generate("x", { ...few, slotId: junk }).result,
      "generate.sampling": (junk) => session.generate("x", { ...few, sampling: junk }).result,
      "generate.sampling.topK": (junk) => session.generate("x", { ...few, sampling: { topK: junk } }).result,
      "generate.endTokens": (junk) => session.generate("x", { ...few, endTokens: junk }).result,
      "generate.after": (junk) => session.generate("x", { ...few, after: junk }).result,
      "choose.prompt": (junk) => session.choose(junk, ["a", "b"]),
      "choose.values": (junk) => session.choose("x", junk),
      "choose.value": (junk) => session.choose("x", ["a", junk]),
      "choose.top": (junk) => session.choose("x", ["a", "b"], { top: junk }),
      "choose.maxRows": (junk) => session.choose("x", ["a", "b"], { maxRows: junk }),
      texts: (junk) => session.texts(junk),
      "texts.prefix": (junk) => session.texts(["a"], { prefix: junk }),
      constraint: (junk) => session.constraint(junk),
      tokenize: (junk) => session.tokenize(junk),
      chat: (junk) => session.chat(junk, few),
      "chat.content": (junk) => session.chat([{ role: "user", content: junk }], few),
      "chat.tools": (junk) => session.chat([{ role: "user", content: "x" }], { ...few, tools: junk }),
      "chat.tool": (junk) => session.chat([{ role: "user", content: "x" }], { ...few, tools: [junk] }),
      "chat.maxTokens": (junk) => session.chat([{ role: "user", content: "x" }], { maxTokens: junk }),
      "chat.sampling": (junk) => session.chat([{ role: "user", content: "x" }], { ...few, sampling: junk }),
    });
    for (const [options, says] of [
      [{ maxTokens: 2 ** 32 + 1 }, /^maxTokens is 4294967297/],
      [{ maxTokens: "5" }, /^maxTokens is "5"/],
      [{ slotId: 1.5 }, /^slotId is 1\.5/],
      [{ temperature: "1" }, /^temperature is "1"/],
    ] as [GenerateOptions, RegExp][]) {
      await assert.rejects(session.generate("x", options).result, (error: Error) => {
        assert.ok(error instanceof ArgumentError, String(error));
        assert.match(error.message, says);
        return true;
      });
    }
    await assert.rejects(session.choose("x", ["a", LONE]), /\$\.choices\[1\] is .*half of a surrogate pair/);
    await assert.rejects(session.choose(LONE, ["a"]), /\$\.prompt is .*half of a surrogate pair/);

    const free = "<|im_start|>user\nTell me something.<|im_end|>\n<|im_start|>assistant\n";
    const finishes = new Set<string>();
    for (let seed = 0; seed < 20; seed++) {
      const generation = session.generate(free, { maxTokens: 200, sampling: { temperature: 0.8, seed } });
      let told = 0;
      for await (const _ of generation) told += 1;
      const { tokens, stats, finish } = await generation.result;
      finishes.add(finish);
      assert.deepEqual([tokens.length, stats.tokens], [told, told]);
    }
    assert.ok(finishes.has("end_of_generation"));
  });

  it("are refused by a library that is none", async () => {
    await assert.rejects(Session.open(MODEL, { library: {} as never }), TokenTrieError);
    assert.throws(() => loadLibrary(""), LibraryError);
  });
});
