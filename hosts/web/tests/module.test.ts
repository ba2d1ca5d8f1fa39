/** Loading the module, vocabularies, and what strangers give it. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import type { WasmLibrary } from "../../typescript/src/ffi/wasm.js";
import {
  ArgumentError,
  BusyError,
  ChatFormat,
  chooseRows,
  constraint,
  HandleError,
  isWhole,
  type Library,
  LibraryError,
  load,
  loadLibrary,
  memoryBytes,
  Sampler,
  type Spec,
  SpecError,
  tokenize,
  TokenizerError,
  TokenTrieError,
  Trie,
  Vocab,
  vocabFromTokenizerJson,
  VocabularyError,
} from "../src/index.js";
import { CORE_MODULE, NO_CORE, NO_MODEL, tinyTokenizer, WEB, withMemory } from "./support.js";

const bytes = () => readFileSync(join(WEB, "wasm", "tokentrie.wasm"));
const words = ["a", "b", "ab", "1", "2", "</s>"];
const vocabOfWords = (library?: Library) =>
  Vocab.fromPieces(words, { endOfGeneration: [5], ...(library ? { library } : {}) });

describe("loading", () => {
  it("takes bytes, a module, an answer, a file; what is none is refused", async () => {
    const module = await WebAssembly.compile(bytes());
    const answer = () => new Response(bytes(), { headers: { "content-type": "application/wasm" } });
    for (const source of [bytes(), module, answer(), new URL(`file://${WEB}/wasm/tokentrie.wasm`)]) {
      const library = await load({ source });
      assert.equal(Trie.fromSequences([[1, 2]], ["A"], library).size, 1);
    }
    const empty = Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0);
    for (const source of [new Uint8Array(9), empty, new Response("", { status: 404 }), "file:///there/is/none.wasm"]) {
      await assert.rejects(load({ source }), LibraryError);
    }
  });

  it("twice gives the same library while it is whole", async () => {
    const library = await load();
    assert.equal(await load(), library);
    assert.equal(loadLibrary(), library);
    assert.throws(() => loadLibrary("other"), LibraryError);
    assert.ok(memoryBytes(library) > 0);
  });

  it("objects of two modules are not mixed", async () => {
    const [one, other] = [await load({ source: bytes() }), await load({ source: bytes() })];
    const trie = Trie.fromSequences([[1]], ["A"], one);
    assert.throws(() => Sampler.create(Vocab.ofSize(4, [], other), trie), HandleError);
    await load();
  });
});

describe("a vocabulary of tokenizer.json", { skip: NO_MODEL }, () => {
  before(() => load());

  it("has its bytes, and follows sets and rules", () => {
    const vocab = vocabFromTokenizerJson(tinyTokenizer());
    assert.equal(vocab.size, 2554);
    assert.deepEqual([...vocab.endOfGeneration], [0, 2]);
    using years = constraint({ regex: "(19|20)[0-9]{2}" }, vocab);
    using sampler = Sampler.create(vocab, years, { after: "stop" });
    for (const id of sampler.allowed().ids) assert.match(vocab.text([id]), /^(1|2|19|20)/);
    const row = new Float32Array(vocab.size);
    let text = "";
    while (sampler.state !== "complete") text += vocab.text(sampler.advance(row));
    assert.match(text, /^(19|20)[0-9]{2}$/);
  });

  it("asks a tokenizer for texts, and says what it throws", () => {
    assert.throws(() => constraint({ choice: ["yes"] }, vocabFromTokenizerJson(tinyTokenizer())), TokenTrieError);
    let fails = false;
    const vocab: Vocab = vocabFromTokenizerJson(tinyTokenizer(), {
      tokenize: (text) => {
        if (fails) throw new RangeError(`not ${text}`);
        // One token a byte: those of GPT-2's alphabet begin after the control tokens.
        return [...new TextEncoder().encode(text)].map((byte) => byteIds(byte));
      },
    });
    const names = JSON.parse(tinyTokenizer()).model.vocab as Record<string, number>;
    function byteIds(byte: number): number {
      return names[byte === 32 ? "Ġ" : byte === 10 ? "Ċ" : String.fromCharCode(byte)] ?? 0;
    }
    assert.equal(vocab.text(tokenize(vocab, "yes")), "yes");
    assert.equal(constraint({ choice: ["yes", "no"] }, vocab).trie().size, 2);
    fails = true;
    assert.throws(
      () => constraint({ choice: ["maybe"] }, vocab),
      (error: Error) => error instanceof TokenizerError && error.cause instanceof RangeError,
    );
    fails = false;
    assert.equal(constraint({ choice: ["maybe"] }, vocab).trie().size, 1);
  });

  it("may not be asked by its tokenizer", () => {
    let seen: unknown;
    const vocab: Vocab = vocabFromTokenizerJson(tinyTokenizer(), {
      tokenize: (text) => {
        try {
          loadLibrary().functions.tokentrie_vocab_size(0, new Uint32Array(2));
        } catch (error) {
          seen = error;
        }
        return text ? [100] : [];
      },
    });
    tokenize(vocab, "x");
    assert.ok(seen instanceof BusyError);
  });
});

describe("what strangers give", () => {
  before(() => load());

  it("is refused by type, and the module goes on", () => {
    const vocab = vocabOfWords();
    for (const [give, kind] of [
      [() => vocabFromTokenizerJson("{"), VocabularyError],
      [() => vocabFromTokenizerJson({ model: {} }), VocabularyError],
      [() => constraint('{"regex": "("}', vocab), SpecError],
      [() => constraint({ regex: "(a{1000}){1000}" }, vocab), TokenTrieError],
      [() => constraint("[".repeat(1_000_000), vocab), SpecError],
      [() => constraint(`{"one_of": [${'{"one_of": ['.repeat(5000)}`, vocab), SpecError],
      [() => Vocab.ofSize(2 ** 40), ArgumentError],
      [() => Trie.fromSequences([[-1]]), TokenTrieError],
      [() => Sampler.create(6, Trie.fromSequences([[1]])).sample(new Float32Array(2)), TokenTrieError],
    ] as const) {
      assert.throws(give, kind, String(give));
    }
    const freed = Trie.fromSequences([[1]]);
    freed.free();
    assert.throws(() => Sampler.create(6, freed), HandleError);
    assert.deepEqual(constraint({ regex: "(a|b)1" }, vocab).texts(), ["a1", "b1"]);
  });

  it("rows whose buffer was given away, and rows while memory grows", async () => {
    const library = await load({ source: bytes() });
    const sampler = Sampler.create(1000, Trie.fromSequences([[5], [700]], ["A", "B"]));
    const row = new Float32Array(1000);
    row[700] = 2;
    assert.equal(sampler.sample(row), 700);
    const gone = new Float32Array(1000);
    structuredClone(gone.buffer, { transfer: [gone.buffer] });
    assert.throws(() => sampler.sample(gone), TokenTrieError);
    assert.throws(() => sampler.apply(gone), TokenTrieError);
    const before = memoryBytes(library);
    const large = Trie.fromSequences(Array.from({ length: 300_000 }, (_, n) => [n % 1000, n]));
    assert.ok(memoryBytes(library) > before, "it has grown");
    assert.equal(sampler.sample(row), 700);
    sampler.apply(row);
    assert.deepEqual([row[0], row[5], row[700]], [-Infinity, 0, 2]);
    large.free();
  });

  it("a row that is long is masked bit for bit as one that is short", () => {
    const nan = new Float32Array(Int32Array.of(0x7fa00001).buffer)[0] as number;
    for (const length of [400, 2000]) {
      const sampler = Sampler.create(400, Trie.fromSequences([[5], [300], [399]]));
      const row = Float32Array.from({ length }, (_, id) => id / 7);
      const bits = new Int32Array(row.buffer);
      bits[300] = 0x7fa00001;
      sampler.apply(row);
      assert.deepEqual([row[5], row[399], bits[300]], [Math.fround(5 / 7), Math.fround(57), 0x7fa00001]);
      assert.equal(row.filter((logit) => logit === -Infinity).length, length - 3);
      const starved = new Float32Array(length).fill(nan);
      sampler.apply(starved);
      assert.deepEqual([starved[5], starved[300]], [0, -Infinity]);
    }
  });

  it("a fault leaves a library that says so, and another can be loaded", async () => {
    const library = await load({ source: bytes() });
    const vocab = vocabOfWords(library);
    // Memory behind the end, which no caller of this package gives.
    const end = memoryBytes(library) - 64;
    const foreign = library.foreign as WasmLibrary;
    const broken = foreign.find("tokentrie_vocab_bytes", {
      arguments: ["handle", "address", "usize", "buffer", "usize", "buffer"],
      result: "i32",
    } as const);
    assert.ok(broken);
    assert.throws(() => broken(vocab.handle, end, 1000, null, 0, new Uint32Array(2)), TokenTrieError);
    assert.ok(!isWhole(library));
    assert.throws(() => vocab.text([0]), LibraryError);
    assert.throws(() => vocabOfWords(library), { name: "LibraryError", message: /load it anew/ });
    const again = await load();
    assert.notEqual(again, library);
    assert.equal(vocabOfWords().size, 6);
  });

  it("without memory a call fails, and another module goes on", async () => {
    const module = withMemory(bytes(), 32);
    const library = await load({ source: module });
    // What is lent has no room: nothing has begun, so the module stays whole.
    const sampler = Sampler.create(
      Vocab.ofSize(16_000_000, [], library),
      Trie.fromSequences([[1], [2]], undefined, library),
    );
    const row = new Float32Array(16_000_000);
    assert.throws(() => sampler.apply(row), { name: "ArgumentError", message: /memory/ });
    assert.ok(isWhole(library) && row[0] === 0);
    assert.ok(memoryBytes(library) <= 32 << 20);
    assert.deepEqual([...sampler.allowed().ids], [1, 2]);
    // What it makes inside has none: that stops it, and says so.
    const sequences = Array.from({ length: 400_000 }, (_, at) => [at % 1000, Math.floor(at / 1000), 7]);
    assert.throws(() => Trie.fromSequences(sequences, undefined, library), { name: "LibraryError", message: /memory/ });
    assert.ok(!isWhole(library));
    assert.throws(() => sampler.state, { name: "LibraryError", message: /load it anew/ });
    sampler.free();
    const again = await load();
    assert.equal(Trie.fromSequences(sequences, undefined, again).size, 400_000);
  });

  it("what the smallest file has not says so", { skip: NO_CORE }, async () => {
    const library = await load({ source: readFileSync(CORE_MODULE), core: true });
    assert.ok(Buffer.byteLength(readFileSync(CORE_MODULE)) < bytes().length / 2);
    const vocab = vocabOfWords(library);
    using sampler = Sampler.create(vocab, constraint({ regex: "ab?" }, vocab), { after: "stop" });
    assert.deepEqual([...sampler.allowed().ids], [0, 2]);
    const slot = { slot: "n", value: { integer: {} } };
    const think = { begin: "a", end: "b", then: { regex: "1" } };
    const larger: Spec[] = [{ grammar: "s : 'a' ;" }, { gbnf: 'root ::= "a"' }, { form: ["a", slot] }, { think }];
    for (const spec of [...larger, { sequence: [{ regex: "a" }, { regex: "b" }] }, { lark: 'start: "a"' }]) {
      const named = { name: "SpecError", message: /has no (grammar|form|lark).* load\(\) says which module has it/ };
      assert.throws(() => constraint(spec, vocab), named);
    }
    using letters = Sampler.create(vocab, constraint({ regex: "\\p{Ll}+" }, vocab), { after: "stop" });
    assert.deepEqual([...letters.allowed().ids], [0, 1, 2]);
    const categories = { name: "SpecError", message: /this build knows general categories/ };
    assert.throws(() => constraint({ regex: "\\p{Greek}+" }, vocab), categories);
    assert.throws(() => new ChatFormat("{{ messages }}", { library }), {
      name: "LibraryError",
      message: /another module/,
    });
    assert.equal(await load({ core: true }), library);
    assert.ok(new ChatFormat("{{ messages }}", { library: await load() }));
  });

  it("JSON Schema is in the larger file, and the smaller one says so", { skip: NO_CORE }, async () => {
    const schema = {
      json_schema: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] },
    } as const;
    const pieces = ["{", "}", '"', "n", ":", " ", "1", "-", "</s>"];
    const small = Vocab.fromPieces(pieces, {
      endOfGeneration: [8],
      library: await load({ source: readFileSync(CORE_MODULE) }),
    });
    const named = { name: "SpecError", message: /has no json_schema.* load\(\) says which module has it/ };
    assert.throws(() => constraint(schema, small), named);
    const vocab = Vocab.fromPieces(pieces, { endOfGeneration: [8], library: await load({ source: bytes() }) });
    using sampler = Sampler.create(vocab, constraint(schema, vocab), { after: "stop" });
    sampler.accept([0, 2, 3, 2, 4, 6]);
    assert.throws(() => sampler.accept([2]), { name: "TokenNotAllowedError" });
    sampler.accept([1]);
    assert.equal(sampler.state, "complete");
  });
});

describe("choices", () => {
  before(() => load());

  it("are exact: the sum over a tree of every path's own probability", async () => {
    // A model of four tokens: after token 1 all are alike, otherwise 3 is three times as probable as each other one.
    const rowAfter = (last: number | undefined) =>
      last === 1 ? Float32Array.of(0, 0, 0, 0) : Float32Array.of(0, 0, 0, Math.log(3));
    const rows = (prompt: Int32Array, path: Int32Array) => [prompt.at(-1), ...path].map((token) => rowAfter(token));
    const set = Trie.fromSequences([[1, 2], [3]], ["yes", "no"]);
    const choice = await chooseRows(rows, 4, [0], set);
    assert.equal(choice.name, "no");
    const byName = Object.fromEntries(choice.items());
    assert.ok(Math.abs((byName["no"] ?? 0) - 0.5 / (0.5 + 1 / 24)) < 1e-6);
    assert.ok(Math.abs(choice.mass - (0.5 + 1 / 24)) < 1e-6);
    await assert.rejects(
      chooseRows(() => [], 4, [0], set),
      ArgumentError,
    );
    await assert.rejects(chooseRows(rows, 4, [], set), ArgumentError);
    await assert.rejects(chooseRows(rows, 4, [9], set), ArgumentError);
    await assert.rejects(chooseRows(rows, 9, [0], set), TokenTrieError);
    const failing = () => Promise.reject(new TypeError("no model"));
    await assert.rejects(chooseRows(failing, 4, [0], set), TypeError);
  });
});
