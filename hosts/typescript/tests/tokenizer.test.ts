import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ArgumentError, httpTokenizer, TokenizerCache, TokenizerError } from "../src/index.js";

describe("TokenizerCache", () => {
  const byLength = (calls: string[]) => (text: string) => {
    calls.push(text);
    return [text.length];
  };

  it("asks once for what is asked for at the same time", async () => {
    const calls: string[] = [];
    const cache = new TokenizerCache(async (text) => byLength(calls)(text));
    const all = await Promise.all([
      cache.tokenize("m", "AB"),
      cache.tokenize("m", "AB"),
      cache.tokenizeMany("m", ["AB"]),
    ]);
    assert.deepEqual(all, [[2], [2], new Map([["AB", [2]]])]);
    assert.deepEqual(calls, ["AB"]);
  });

  it("forgets a model, and what was asked for meanwhile is not kept", async () => {
    const calls: string[] = [];
    const cache = new TokenizerCache(byLength(calls));
    await cache.tokenize("m", "AB");
    await cache.tokenize("other", "AB");
    cache.forget("m");
    assert.equal(cache.cachedSize("m"), 0);
    assert.equal(cache.cachedSize("other"), 1);
    const late = cache.tokenize("m", "AB");
    cache.forget("m");
    assert.deepEqual(await late, [2]);
    assert.equal(cache.cachedSize("m"), 0);
    assert.deepEqual(calls, ["AB", "AB", "AB"]);
  });

  it("drops what was not asked for longest", async () => {
    const calls: string[] = [];
    const cache = new TokenizerCache(byLength(calls), { maxEntriesPerModel: 2 });
    for (const text of ["A", "B", "A", "C", "A", "B"]) await cache.tokenize("m", text);
    assert.deepEqual(calls, ["A", "B", "C", "B"]);
  });

  it("keeps a number of models", async () => {
    const cache = new TokenizerCache(byLength([]), { maxModels: 2 });
    for (const model of ["a", "b", "c"]) await cache.tokenize(model, "A");
    assert.deepEqual(
      ["a", "b", "c"].map((model) => cache.cachedSize(model)),
      [0, 1, 1],
    );
  });

  it("does not keep errors, and gives copies that nobody can change", async () => {
    let fails = true;
    const ids = [1, 2];
    const cache = new TokenizerCache(() => {
      if (fails) throw new Error("down");
      return ids;
    });
    await assert.rejects(cache.tokenize("m", "A"), /down/);
    fails = false;
    const tokens = await cache.tokenize("m", "A");
    ids.push(3);
    assert.deepEqual(await cache.tokenize("m", "A"), [1, 2]);
    assert.throws(() => (tokens as number[]).push(9), TypeError);
  });

  it("takes typed arrays and refuses what holds no ids", async () => {
    assert.deepEqual(await new TokenizerCache(() => Int32Array.of(7) as unknown as number[]).tokenize("m", "A"), [7]);
    for (const wrong of [undefined, "12", [1, -1], [1.5], [Number.NaN], [null]]) {
      const cache = new TokenizerCache(() => wrong as unknown as number[]);
      await assert.rejects(cache.tokenize("m", "A"), TokenizerError);
    }
  });

  it("refuses caps that are none", () => {
    for (const cap of [0, -1, 1.5, Number.NaN]) {
      assert.throws(() => new TokenizerCache(() => [], { maxEntriesPerModel: cap }), ArgumentError);
      assert.throws(() => new TokenizerCache(() => [], { maxModels: cap }), ArgumentError);
    }
  });
});

describe("httpTokenizer", () => {
  it("sends the text and reads the tokens", async () => {
    const sent: unknown[] = [];
    const fetch = async (url: string, init: RequestInit) => {
      sent.push(url, JSON.parse(init.body as string));
      return new Response('{"tokens": [5, 6]}');
    };
    assert.deepEqual(await httpTokenizer("http://localhost:8080/", { fetch })("REPLY", "m"), [5, 6]);
    assert.deepEqual(sent, ["http://localhost:8080/tokenize", { content: "REPLY", add_special: false }]);
  });

  it("says which status came", async () => {
    const fetch = async () => new Response("nope", { status: 500 });
    await assert.rejects(async () => httpTokenizer("http://x", { fetch })("A", "m"), /HTTP 500.*nope/);
  });
});
