/** Vocabularies, tries and samplers of the real library. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { FUNCTIONS, type FunctionName, Status } from "../src/ffi/abi.js";
import type { CType, Signature } from "../src/ffi/backend.js";
import { makeHandle, utf8 } from "../src/ffi/call.js";
import {
  ArgumentError,
  buildTokenTrie,
  constraint,
  decodeRtkt,
  encodeRtkt,
  FileError,
  forcedRun,
  HandleError,
  PayloadError,
  Sampler,
  SetError,
  type Spec,
  SpecError,
  step,
  TokenNotAllowedError,
  type TokenSequence,
  type TokenTrieNode,
  Trie,
  TrieCache,
  trieLeaves,
  Vocab,
  VocabularyError,
} from "../src/index.js";
import { hostCases, ROOT } from "./support/cases.js";
import { LIBRARY, NO_FILES, NO_LIBRARY } from "./support/library.js";
import { warningsOf } from "./support/streams.js";

const leaves: TokenSequence[] = [
  { name: "REPLY", tokens: [1, 2] },
  { name: "REPLY_THREAD", tokens: [1, 2, 3] },
  { name: "STOP", tokens: [9] },
];
const payload = { modelId: "m", descriptors: [{ path: "action", leaves }] };
const row = (best: Record<number, number> = {}, length = 16) =>
  Float32Array.from({ length }, (_, token) => best[token] ?? token / 100);

describe("the cases of hosts, in the library", { skip: NO_LIBRARY }, () => {
  for (const { id, input } of hostCases("session_script")) {
    it(id, () => {
      assert.ok(LIBRARY);
      const bytes = utf8(input.payload_text);
      const { tokentrie_trie_from_json } = LIBRARY.functions;
      const trie = new Trie(
        LIBRARY,
        makeHandle(LIBRARY, (out) => tokentrie_trie_from_json(bytes, input.payload_len, 0, 0, out)),
      );
      assert.equal(trie.size, 2);
      assert.ok(tokentrie_trie_from_json(bytes, bytes.length, 0, 0, new Uint32Array(2)) < 0);
    });
  }

  for (const { id, input, expect } of hostCases("codec_rtkt_optional")) {
    if (!input.leaves?.length && !input.hex) continue;
    it(id, () => {
      if (input.hex) {
        assert.throws(
          () => Trie.fromRtkt(Buffer.from(input.hex, "hex")),
          (error: Error) => error instanceof PayloadError && error.message.includes(expect.error_contains),
        );
        return;
      }
      const trie = Trie.fromPayload({ modelId: "m", descriptors: [input] });
      assert.equal(Buffer.from(trie.toRtkt()).toString("hex"), expect.hex);
      const read = Trie.fromRtkt(Buffer.from(expect.hex, "hex"));
      assert.deepEqual(read.paths, [expect.decoded_path]);
      assert.deepEqual(
        [...read.leaves()].map(({ tokens }) => tokens),
        expect.decoded_token_sequences_in_order,
      );
    });
  }
});

describe("the trie of the library", { skip: NO_LIBRARY }, () => {
  it("is that of host_tries.json", () => {
    const { cases } = JSON.parse(readFileSync(join(ROOT, "tests", "vectors", "host_tries.json"), "utf8"));
    for (const { id, payload, payload_text, error, tries } of cases) {
      const read = () => Trie.fromPayload(payload_text ?? JSON.stringify(payload));
      if (error) {
        assert.throws(read, PayloadError, id);
        continue;
      }
      using trie = read();
      assert.deepEqual(
        trie.paths,
        tries.map(({ path }: { path: string }) => path),
        id,
      );
      for (const expect of tries) {
        using selected = trie.select(expect.path);
        assert.equal(selected.nodes, expect.nodes, id);
        assert.deepEqual([...selected.leaves()], expect.leaves, id);
        for (const { prefix, children, forced } of expect.at) {
          assert.deepEqual([...selected.children(prefix)], children, id);
          assert.deepEqual([...selected.forced(prefix)], forced, id);
        }
      }
    }
  });

  it("is the one that is built here", () => {
    const leaf = fc.record({
      name: fc.string({ unit: "binary", maxLength: 3 }),
      tokens: fc.array(fc.constantFrom(0, 1, 2, 2 ** 31 - 1), { minLength: 1, maxLength: 4 }),
    });
    fc.assert(
      fc.property(fc.array(leaf, { minLength: 1, maxLength: 10 }), (sequences) => {
        using trie = Trie.fromPayload({ modelId: "m", descriptors: [{ path: "p", leaves: sequences }] });
        using same = Trie.fromSequences(
          sequences.map(({ tokens }) => tokens),
          sequences.map(({ name }) => name),
        );
        const here = buildTokenTrie(sequences);
        for (const there of [trie, same]) {
          assert.deepEqual([...there.leaves()], [...trieLeaves(here)]);
          for (const { tokens } of trieLeaves(here)) checkPath(there, here, tokens);
        }
        const bytes = encodeRtkt({ path: "p", leaves: sequences });
        assert.deepEqual([...trie.toRtkt()], [...bytes]);
        using read = Trie.fromRtkt(bytes);
        assert.deepEqual(
          [...read.leaves()].map(({ tokens }) => tokens),
          decodeRtkt(bytes).sequences,
        );
      }),
      { numRuns: 60 },
    );
  });

  function checkPath(trie: Trie, here: TokenTrieNode, tokens: readonly number[]): void {
    let node: TokenTrieNode | null = here;
    for (let length = 0; length <= tokens.length; length++) {
      if (length > 0) node = node && step(node, tokens[length - 1] as number);
      assert.ok(node);
      const prefix = tokens.slice(0, length);
      assert.deepEqual([...trie.children(prefix)], [...node.children.keys()]);
      assert.deepEqual([...trie.forced(prefix)], forcedRun(node));
      assert.equal(trie.find(prefix) !== null, node.isTerminal);
    }
  }

  it("tells its leaves, its size, and what leads out of it", () => {
    const trie = Trie.fromSequences([[3], [1, 2], [1, 4]]);
    assert.deepEqual([trie.size, trie.nodes, trie.paths], [3, 5, [""]]);
    assert.ok(trie.byteLength > 0);
    assert.deepEqual([trie.find([1, 4]), trie.find([1]), trie.find([7])], [1, null, null]);
    assert.deepEqual([trie.leafName(0), [...trie.leafTokens(0)]], [null, [1, 2]]);
    assert.throws(() => trie.children([1, 3]), TokenNotAllowedError);
    assert.throws(() => trie.leafTokens(3), ArgumentError);
    assert.deepEqual(Trie.fromSequences([Int32Array.of(1)], ["é"]).leafName(0), "é");
  });

  it("refuses sequences that make none", () => {
    assert.throws(() => Trie.fromSequences([[1], []]), SetError);
    assert.throws(() => Trie.fromSequences([]), SetError);
    assert.throws(() => Trie.fromSequences([[1]], []), { name: "ArgumentError", message: /0 names for 1 sequences/ });
    assert.throws(() => Trie.fromSequences([[1, 2 ** 32]]), { name: "ArgumentError", message: /sequences\[0\]\[1\]/ });
  });

  it("leaves out what the vocabulary cannot spell, and says so", async () => {
    using vocab = Vocab.ofSize(4);
    const warnings = await warningsOf(() => {
      const trie = Trie.fromPayload(payload, { vocab });
      assert.deepEqual([trie.size, trie.skipped], [2, { empty: 0, outside: 1 }]);
    });
    assert.match(warnings.join(), /1 leaves need ids outside the vocabulary/);
    using tiny = Vocab.ofSize(1);
    assert.throws(() => Trie.fromPayload(payload, { vocab: tiny }), PayloadError);
  });

  it("goes to a file and comes back", { skip: NO_FILES }, () => {
    const folder = mkdtempSync(join(tmpdir(), "tokentrie-"));
    try {
      const file = join(folder, "sét.ttrie");
      Trie.fromPayload(payload).save(file);
      for (const verify of [false, true]) {
        using trie = Trie.open(file, { verify });
        assert.deepEqual([...trie.leaves()], leaves);
      }
      assert.throws(() => Trie.open(join(folder, "none.ttrie")), FileError);
      writeFileSync(join(folder, "text.ttrie"), "no trie");
      assert.throws(() => Trie.open(join(folder, "text.ttrie")), FileError);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe("constraint", { skip: NO_LIBRARY }, () => {
  const END = 256;
  const vectors = JSON.parse(readFileSync(join(ROOT, "tests", "vectors", "specs.json"), "utf8"));
  /** One token a byte, and one that ends the output; a list of texts needs a tokenizer, which this has not. */
  const bytes = () =>
    Vocab.fromPieces([...Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte)), "</s>"], {
      endOfGeneration: [END],
    });

  it("takes and refuses texts as in every host", () => {
    using vocab = bytes();
    let walked = 0;
    for (const { spec, legal, illegal, canonical } of vectors.valid) {
      // A number that this language has rounded already.
      if (Number.isInteger(spec.integer?.min) && !Number.isSafeInteger(spec.integer.min)) continue;
      let made: ReturnType<typeof constraint>;
      try {
        made = constraint(spec, vocab);
      } catch (error) {
        assert.ok(error instanceof SpecError && error.message.length > 10, String(error));
        continue;
      }
      assert.deepEqual(JSON.parse(made.toString()), canonical ?? spec);
      assert.deepEqual(JSON.parse(JSON.stringify(made)), canonical ?? spec);
      const takes = (text: string) => {
        using sampler = Sampler.create(vocab, made, { endTokens: [END] });
        try {
          sampler.accept([...utf8(text), END]);
          return true;
        } catch (error) {
          assert.ok(error instanceof TokenNotAllowedError, String(error));
          return false;
        }
      };
      for (const text of legal ?? []) assert.ok(takes(text), `${JSON.stringify(spec)} should take ${text}`);
      for (const text of illegal ?? []) assert.ok(!takes(text), `${JSON.stringify(spec)} should refuse ${text}`);
      walked += Number(legal !== undefined);
      made.free();
    }
    assert.ok(walked > 12, `${walked} specs have texts`);
  });

  it("names what cannot be read or used, and where", () => {
    using vocab = bytes();
    for (const { text, place, says } of vectors.invalid) {
      assert.throws(
        () => constraint(text, vocab),
        (error: Error) => error instanceof SpecError && error.message.includes(place) && error.message.includes(says),
        text,
      );
    }
    for (const { spec, place } of vectors.unusable) {
      assert.throws(
        () => constraint(spec, vocab),
        (error: Error) =>
          [SpecError, PayloadError, VocabularyError].some((kind) => error instanceof kind) &&
          error.message.startsWith(place.split("[")[0]),
      );
    }
  });

  it("refuses what JSON would leave out or change", () => {
    using vocab = bytes();
    const wrong: [unknown, string][] = [
      [{ integer: { min: Number.NaN } }, "$.integer.min"],
      [{ integer: { max: Number.POSITIVE_INFINITY } }, "$.integer.max"],
      [{ integer: { max: 5n } }, "$.integer.max: 5n"],
      [{ regex: /a+/ }, "$.regex: an object of RegExp"],
      [{ then: ["a", undefined] }, "$.then[1]: undefined"],
      [{ json_schema: { properties: { a: () => 1 } } }, "$.json_schema.properties.a: a function"],
      [new Map([["regex", "a"]]), "$: an object of Map"],
      [null, "$"],
      [7, "$"],
    ];
    for (const [spec, says] of wrong) {
      assert.throws(
        () => constraint(spec as Spec, vocab),
        (error: Error) => error instanceof SpecError && error.message.includes(says),
        says,
      );
    }
    using one = constraint({ integer: { min: 1, max: undefined as unknown as number } }, vocab);
    assert.deepEqual(one.toJSON(), { integer: { min: 1 } });
  });

  it("warns of what a user should hear", async () => {
    using vocab = bytes();
    const near = { name: "near", tokens: [97] };
    const payload = { descriptors: [{ path: "a", leaves: [near, { name: "far", tokens: [97, 900] }] }] };
    const said = await warningsOf(() => {
      for (const spec of [{ regex: "[0-9]" }, { payload }, { grammar: 'a : "x" ; unused : "x" ;', lenient: true }]) {
        constraint(spec as Spec, vocab).free();
      }
    });
    assert.equal(said.length, 2, said.join("; "));
    assert.match(said[0] as string, /^payload: dropped 1 leaf/);
    assert.match(said[1] as string, /^grammar, .*unused/);
  });

  it("is made for one vocabulary, and outlives nobody who follows it", () => {
    using vocab = bytes();
    const digits = constraint({ regex: "[0-9]" }, vocab);
    assert.throws(() => Sampler.create(100, digits), VocabularyError);
    using sampler = Sampler.create(vocab, digits);
    digits.free();
    assert.deepEqual([...sampler.allowed().ids], [...utf8("0123456789")]);
    assert.equal(sampler.set, digits);
    assert.throws(() => Sampler.create(vocab, digits), HandleError);
    assert.throws(() => digits.toJSON(), HandleError);
  });
});

describe("TrieCache", { skip: NO_LIBRARY }, () => {
  it("builds the same content once, keeps so many, and forgets", () => {
    using cache = TrieCache.create(2);
    const text = JSON.stringify(payload);
    for (const given of [text, text, ` ${text}`, payload]) {
      using trie = cache.trie(given);
      assert.deepEqual([...trie.leaves()], leaves);
    }
    const { capacity, hits, contentHits, misses } = cache.stats;
    assert.deepEqual([capacity, hits, contentHits, misses], [2, 2, 1, 1]);
    const other = (id: number) => ({
      modelId: "m",
      descriptors: [{ path: "p", leaves: [{ name: "A", tokens: [id] }] }],
    });
    using kept = cache.trie(other(1));
    cache.trie(other(2)).free();
    assert.ok(cache.stats.held <= 2 && cache.stats.evictions > 0);
    cache.clear();
    assert.equal(cache.stats.held, 0);
    assert.equal(kept.find([1]), 0);
    assert.throws(() => cache.trie("{"), PayloadError);
    assert.throws(() => TrieCache.create(-1), ArgumentError);
  });
});

describe("Vocab", { skip: NO_LIBRARY }, () => {
  it("knows its pieces and which tokens end the output", () => {
    const vocab = Vocab.fromPieces(["a", "é", Uint8Array.of(0xc3), "</s>", "<x>"], {
      endOfGeneration: [3],
      control: [4],
    });
    assert.deepEqual([vocab.size, [...vocab.endOfGeneration]], [5, [3]]);
    assert.deepEqual([vocab.text([0, 1, 0]), [...vocab.bytes([2])], vocab.text([2])], ["aéa", [0xc3], "\ufffd"]);
    assert.throws(() => vocab.bytes([5]), VocabularyError);
    assert.throws(() => Vocab.fromPieces(["a"], { control: [1] }), ArgumentError);
  });

  it("may be a size", () => {
    const vocab = Vocab.ofSize(100, [7, 5]);
    assert.deepEqual([vocab.size, [...vocab.endOfGeneration]], [100, [5, 7]]);
    assert.throws(() => vocab.bytes([1]), VocabularyError);
    for (const size of [-1, 1.5, Number.NaN, 2 ** 60]) assert.throws(() => Vocab.ofSize(size), ArgumentError);
    assert.throws(() => Vocab.ofSize(5, [5]), VocabularyError);
  });
});

describe("Sampler", { skip: NO_LIBRARY }, () => {
  it("walks to a leaf, and back", () => {
    using sampler = Sampler.create(16, payload);
    assert.deepEqual([sampler.state, sampler.depth, sampler.leaf], ["active", 0, null]);
    assert.deepEqual(sampler.allowed(), { kind: "only", ids: Int32Array.of(1, 9) });
    assert.deepEqual([...sampler.forced()], []);
    assert.equal(sampler.sample(row()), 9);
    assert.deepEqual([...sampler.advance(row({ 1: 5 }))], [1, 2]);
    assert.deepEqual([sampler.depth, sampler.allowed().kind], [2, "open"]);
    sampler.accept(3);
    assert.deepEqual([sampler.state, sampler.leaf], ["complete", { index: 1, name: "REPLY_THREAD" }]);
    sampler.rollback(3);
    assert.deepEqual([sampler.state, sampler.depth], ["active", 0]);
    sampler.accept([9]);
    assert.deepEqual(sampler.leaf, { index: 2, name: "STOP" });
    assert.equal(sampler.allowed().kind, "all");
    sampler.reset();
    assert.equal(sampler.state, "active");
  });

  it("masks in place and keeps the bits of what may come", () => {
    using sampler = Sampler.create(16, payload);
    const logits = row({ 1: -0, 9: 0.1 });
    sampler.apply(logits.subarray(0));
    assert.deepEqual([...logits].filter(Number.isFinite), [-0, Math.fround(0.1)]);
    assert.ok(Object.is(logits[1], -0));
    const words = new Uint32Array(1);
    sampler.fillBitmask(words);
    assert.equal(words[0], (1 << 1) | (1 << 9));
    const wide = row({}, 20);
    sampler.apply(wide);
    assert.deepEqual(
      [...wide.keys()].filter((token) => Number.isFinite(wide[token])),
      [1, 9],
    );
  });

  it("takes a token that ends a value, and the ending that was asked for", () => {
    using vocab = Vocab.ofSize(16, [15]);
    using sampler = Sampler.create(vocab, payload, { endTokens: [5], after: "stop" });
    sampler.accept([1, 2]);
    assert.deepEqual(sampler.allowed(), { kind: "only", ids: Int32Array.of(3, 5) });
    sampler.accept(5);
    assert.deepEqual([sampler.leaf?.name, sampler.allowed()], ["REPLY", { kind: "only", ids: Int32Array.of(15) }]);
  });

  it("draws by its seed", () => {
    const draws = (seed: number) => {
      using sampler = Sampler.create(16, payload, {
        mode: "sampled",
        temperature: 5,
        topK: 8,
        topP: 0.99,
        minP: 0,
        seed,
      });
      return Array.from({ length: 40 }, () => sampler.sample(row()));
    };
    assert.deepEqual(draws(3), draws(3));
    assert.deepEqual(new Set(draws(3)), new Set([1, 9]));
    assert.notDeepEqual(draws(3), draws(4));
    // Of two that are as probable each surprises as much as the mean: one is enough.
    using typical = Sampler.create(16, payload, { mode: "sampled", typicalP: 0.3, seed: 3 });
    const level = Array.from({ length: 40 }, () => typical.sample(new Float32Array(16)));
    assert.deepEqual(new Set(level), new Set([1]));
  });

  it("penalises what was accepted, greedily too", () => {
    const twice = { modelId: "m", descriptors: [{ path: "a", leaves: [] as { name: string; tokens: number[] }[] }] };
    for (const tokens of [1, 9].flatMap((one) => [1, 9].flatMap((two) => [1, 9].map((three) => [one, two, three])))) {
      twice.descriptors[0]?.leaves.push({ name: tokens.join(), tokens });
    }
    const row = new Float32Array(16);
    row[1] = 2;
    row[9] = 1.5;
    const written = (options: object) => {
      using sampler = Sampler.create(16, twice, { endTokens: [15], ...options });
      return Array.from({ length: 3 }, () => {
        const token = sampler.sample(row);
        sampler.accept(token);
        return token;
      });
    };
    assert.deepEqual(written({}), [1, 1, 1]);
    assert.deepEqual(written({ repeatPenalty: 2 }), [1, 9, 1]);
    assert.deepEqual(written({ presencePenalty: 0.75 }), [1, 9, 1]);
    assert.deepEqual(written({ frequencyPenalty: 0.3, penaltyLastN: 1 }), [1, 1, 1]);
    assert.deepEqual(written({ frequencyPenalty: 0.6, penaltyLastN: -1 }), [1, 9, 1]);
  });

  it("copies itself, and changes between tries", () => {
    const two = {
      modelId: "m",
      descriptors: [...payload.descriptors, { path: "color", leaves: [{ name: "red", tokens: [4] }] }],
    };
    using sampler = Sampler.create(16, two);
    using copy = sampler.clone();
    copy.accept(9);
    assert.deepEqual([sampler.state, copy.state], ["active", "complete"]);
    sampler.activate("color");
    assert.deepEqual([...sampler.allowed().ids], [4]);
    sampler.deactivate();
    assert.deepEqual([sampler.state, sampler.allowed().kind], ["idle", "all"]);
    assert.throws(() => sampler.activate("size"), /size/);
  });

  it("keeps the greatest legal logit for any row, as a plain search does", () => {
    const logit = fc.float({ noDefaultInfinity: false, noNaN: false });
    using sampler = Sampler.create(16, payload);
    fc.assert(
      fc.property(fc.float32Array({ minLength: 16, maxLength: 20 }), logit, (logits, extra) => {
        logits[9] = extra;
        const value = (token: number) =>
          Number.isNaN(logits[token]) ? Number.NEGATIVE_INFINITY : (logits[token] as number);
        assert.equal(sampler.sample(logits), value(9) > value(1) ? 9 : 1);
      }),
    );
  });

  it("refuses what may not come, and stays as it was", () => {
    using sampler = Sampler.create(16, payload);
    assert.throws(
      () => sampler.accept(4),
      (error: TokenNotAllowedError) => {
        assert.ok(error instanceof TokenNotAllowedError);
        assert.equal(error.status, "TOKENTRIE_ERROR_NOT_ALLOWED");
        assert.match(error.message, /4/);
        return true;
      },
    );
    assert.throws(() => sampler.accept([1, 8]), TokenNotAllowedError);
    assert.equal(sampler.depth, 0);
    assert.throws(() => sampler.rollback(1), TokenNotAllowedError);
    assert.throws(() => sampler.rollback(-1), ArgumentError);
    assert.throws(() => sampler.accept(1.5), ArgumentError);
  });

  it("refuses rows and masks that are too short, or of another kind, before anything is written", () => {
    using sampler = Sampler.create(16, payload);
    const short = row({}, 15);
    assert.throws(() => sampler.apply(short), ArgumentError);
    assert.deepEqual([...short], [...row({}, 15)]);
    assert.throws(() => sampler.sample(short), ArgumentError);
    assert.throws(() => sampler.advance(new Float32Array(0)), ArgumentError);
    assert.throws(() => sampler.fillBitmask(new Uint32Array(0)), ArgumentError);
    for (const wrong of [new Float64Array(16), [1, 2], null, undefined, "row"]) {
      assert.throws(() => sampler.sample(wrong as never), { name: "ArgumentError", message: /Float32Array/ });
      assert.throws(() => sampler.fillBitmask(wrong as never), ArgumentError);
    }
  });

  it("refuses settings that are none", () => {
    const wrong = [
      { mode: 2 },
      { after: "later" },
      { topK: -1 },
      { seed: 0.5 },
      { endTokens: [16] },
      { endTokens: [0.5] },
      { temperature: Number.NaN },
      { topP: -1 },
      { typicalP: 1.5 },
      { repeatPenalty: -1 },
      { penaltyLastN: -2 },
      { penaltyLastN: 0.5 },
      { temperature: "hot" },
      { seed: 2 ** 32 },
      { tempreature: 0.5 },
    ];
    for (const settings of wrong) {
      const error = { message: new RegExp(Object.keys(settings)[0] === "mode" ? "mode" : "is|unknown option") };
      assert.throws(() => Sampler.create(16, payload, settings as never), error, JSON.stringify(settings));
    }
    assert.throws(() => Sampler.create(16, payload, { tempreature: 0.5 } as never), {
      name: "ArgumentError",
      message: /unknown option tempreature: expected one of .*temperature/,
    });
    assert.throws(() => Sampler.create(16, '{"descriptors": 5}'), { name: "PayloadError", message: /line 1/ });
  });
});

describe("handles", { skip: NO_LIBRARY }, () => {
  it("that were freed, or are of another kind, are refused and never used", () => {
    const trie = Trie.fromSequences([[1]]);
    const vocab = Vocab.ofSize(4);
    const sampler = Sampler.create(vocab, trie);
    trie.free();
    trie.free();
    assert.throws(
      () => trie.children([]),
      (error: HandleError) => {
        assert.ok(error instanceof HandleError);
        assert.equal(error.status, "TOKENTRIE_ERROR_HANDLE");
        return true;
      },
    );
    assert.equal(sampler.sample(new Float32Array(4)), 1, "what was made from it stays usable");
    sampler.free();
    assert.throws(() => sampler.sample(new Float32Array(4)), HandleError);
    const again = Trie.fromSequences([[2]]);
    assert.notEqual(again.handle, trie.handle);
    assert.throws(() => trie.find([2]), HandleError);
    assert.ok(LIBRARY);
    for (const handle of [0, 1, vocab.handle, 2 ** 53 - 1]) {
      assert.equal(LIBRARY.functions.tokentrie_trie_free(handle), Status.ERROR_HANDLE);
    }
  });
});

describe("bad input", { skip: NO_LIBRARY }, () => {
  /** Arguments of a function that are all nothing, but for sizes. */
  const nothing = (types: readonly CType[], size: number) =>
    types.map((type) => (type === "buffer" ? null : type === "callback" ? () => {} : type === "usize" ? size : 0));

  for (const [name, { arguments: types, result }] of Object.entries(FUNCTIONS) as [FunctionName, Signature][]) {
    if (result !== "i32" || types.length === 0 || name === "tokentrie_status_name") continue;
    it(`${name} refuses NULL and handles that are none, whatever the lengths say`, (t) => {
      if (!LIBRARY?.has(name)) {
        t.skip("the library was built without llama.cpp");
        return;
      }
      const call = LIBRARY.functions[name] as unknown as (...given: unknown[]) => number;
      for (const size of [0, 1, 2 ** 28, 2 ** 28 + 1, Number.MAX_SAFE_INTEGER]) {
        const status = call(...nothing(types, size));
        assert.ok(status < 0, `${size}: ${status}`);
        assert.notEqual(status, Status.ERROR_PANIC);
        assert.notEqual(LIBRARY.functions.tokentrie_last_error(), "");
      }
    });
  }

  it("that is no UTF-8, larger than the limit, or has ends that lie is refused", () => {
    assert.ok(LIBRARY);
    const { tokentrie_trie_from_json, tokentrie_trie_from_sequences } = LIBRARY.functions;
    const out = new Uint32Array(2);
    const latin1 = Buffer.from('{"descriptors": [{"path": "\xe9"}]}', "latin1");
    assert.ok(tokentrie_trie_from_json(latin1, latin1.length, 0, 0, out) < 0);
    assert.equal(tokentrie_trie_from_json(latin1, 2 ** 28 + 1, 0, 0, out), Status.ERROR_LIMIT);
    if (!NO_FILES) {
      assert.equal(LIBRARY.functions.tokentrie_trie_open(Uint8Array.of(0xff), 1, 0, out), Status.ERROR_TEXT);
    }
    const tokens = Int32Array.of(1, 2);
    for (const ends of [[1n], [3n, 3n], [2n, 1n], [0n, 2n], [1n, 1n], [2n ** 63n, 2n]]) {
      const memory = BigUint64Array.from(ends);
      const status = tokentrie_trie_from_sequences(tokens, 2, memory, null, 0, null, ends.length, out);
      assert.ok(status < 0, ends.join());
    }
    assert.deepEqual([...out], [0, 0], "nothing was written");
  });

  it("of any kind gives an error of this package or a trie, and nothing else", () => {
    const text = fc.oneof(fc.json(), fc.string({ unit: "binary" }), fc.constant(JSON.stringify(payload)));
    fc.assert(
      fc.property(text, fc.nat(), fc.string({ maxLength: 3 }), (given, at, put) => {
        const cut = at % (given.length + 1);
        for (const changed of [given, given.slice(0, cut), given.slice(0, cut) + put + given.slice(cut)]) {
          try {
            Trie.fromPayload(changed).free();
          } catch (error) {
            assert.ok(error instanceof PayloadError, String(error));
          }
        }
        try {
          Trie.fromRtkt(Buffer.from(given)).free();
        } catch (error) {
          assert.ok(error instanceof PayloadError, String(error));
        }
      }),
    );
  });
});

it("what nobody freed is freed when nobody has it any more", { skip: NO_LIBRARY }, async () => {
  const trie = Trie.fromPayload(payload);
  let highest = 0;
  for (let round = 0; round < 40; round++) {
    // The slot of a handle is its lower 20 bits; slots are used again when what was in them is freed.
    for (let number = 0; number < 50; number++) highest = Math.max(highest, Sampler.create(16, trie).handle % 2 ** 20);
    collectGarbage();
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  assert.ok(highest < 1000, `2000 samplers took ${highest} slots`);
});

function collectGarbage(): void {
  const { Bun } = globalThis as { Bun?: { gc(wait: boolean): void } };
  if (Bun) {
    Bun.gc(true);
    return;
  }
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
}
