/** The cases that hosts are held to, of the kinds that need no library. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  buildDescriptor,
  buildTokenTrie,
  countNodes,
  countTerminals,
  estimateTrieBytes,
  httpTokenizer,
  isUniqueContinuation,
  step,
  TokenizerCache,
  TokenizerError,
  type TokenTrieNode,
} from "../src/index.js";
import { type Case, HOST_CASES, hostCases, NO_CASES } from "./support/cases.js";

/** Where each kind is run. A kind that is not listed here is one that nobody noticed. */
const RUN_IN: Record<string, string> = {
  build_trie: "here",
  build_descriptor: "here",
  build_descriptor_note: "here",
  tokenizer_cache: "here",
  session_script: "native.test.ts",
  runner_mock: "runner.test.ts",
  stream_mock: "runner.test.ts",
  abi_mock: "runner.test.ts",
  codec_rtkt_optional: "rtkt.test.ts",
};

it("every kind of case is run somewhere", { skip: HOST_CASES ? false : NO_CASES }, () => {
  assert.deepEqual([...new Set(HOST_CASES?.map(({ kind }) => kind))].sort(), Object.keys(RUN_IN).sort());
});

function walk(trie: TokenTrieNode, path: readonly number[]): TokenTrieNode | null {
  return path.reduce<TokenTrieNode | null>((node, token) => node && step(node, token), trie);
}

describe("build_trie", () => {
  for (const { id, input, expect } of hostCases("build_trie")) {
    it(id, () => {
      const trie = buildTokenTrie(input.leaves);
      assert.equal(countTerminals(trie), expect.terminals);
      assert.equal(countNodes(trie), expect.node_count_including_root);
      assert.equal(estimateTrieBytes(trie), expect.estimate_bytes);
      for (const wanted of expect.nodes) {
        const node = walk(trie, wanted.path);
        assert.equal(node !== null, wanted.exists);
        if (node === null) continue;
        assert.equal(node.tokenId, wanted.token_id);
        assert.equal(node.isTerminal, wanted.is_terminal);
        assert.deepEqual([...node.children.keys()], wanted.children);
        assert.equal(isUniqueContinuation(node), wanted.unique_continuation);
        assert.equal(node.leafName, wanted.leaf_name);
      }
    });
  }
});

describe("build_descriptor", () => {
  for (const { id, input, expect } of hostCases("build_descriptor")) {
    it(id, () => {
      assert.deepEqual(buildDescriptor(input.path, input.names, input.token_map), expect);
      assert.deepEqual(buildDescriptor(input.path, input.names, new Map(Object.entries(input.token_map))), expect);
    });
  }
  for (const { id, input, expect } of hostCases("build_descriptor_note")) {
    it(id, () => {
      const tokens = Object.fromEntries(input.names.map((name: string, index: number) => [name, [index]]));
      const names = (given: string[]) => buildDescriptor("action", given, tokens)?.leaves.map(({ name }) => name);
      assert.deepEqual(names(input.names), expect.code_unit_order);
      assert.deepEqual(names(input.names.toReversed()), expect.code_unit_order);
    });
  }
});

describe("tokenizer_cache", () => {
  for (const { id, input, expect } of hostCases("tokenizer_cache")) {
    it(id, () => (input.http_status ? checkHttp(input, expect) : checkCache(input, expect)));
  }

  async function checkCache(input: Case["input"], expect: Case["expect"]): Promise<void> {
    let backendCalls = 0;
    const cache = new TokenizerCache(
      (text) => {
        backendCalls += 1;
        return input["responses"][text];
      },
      { maxEntriesPerModel: input["max_entries_per_model"] ?? 100 },
    );
    const results: unknown[] = [];
    const sizes: number[] = [];
    for (const [call, model, what] of input["calls"]) {
      if (call === "tokenize") results.push(await cache.tokenize(model, what));
      else results.push(Object.fromEntries(await cache.tokenizeMany(model, what)));
      sizes.push(cache.cachedSize(model));
    }
    if (expect["results"]) assert.deepEqual(results, expect["results"]);
    if (expect["map"]) assert.deepEqual(results.at(-1), expect["map"]);
    if (expect["backend_calls"]) assert.equal(backendCalls, expect["backend_calls"]);
    for (const [model, size] of Object.entries(expect["cached_size"] ?? {}))
      assert.equal(cache.cachedSize(model), size);
    if (expect["cached_size_after_two"]) {
      assert.equal(sizes[1], expect["cached_size_after_two"]);
      assert.ok((sizes[2] ?? Number.NaN) <= expect["cached_size_after_three_at_most"]);
    }
  }

  async function checkHttp(input: Case["input"], expect: Case["expect"]): Promise<void> {
    const fetch = async () => new Response(JSON.stringify(input["body"]), { status: input["http_status"] });
    const cache = new TokenizerCache(httpTokenizer("http://localhost", { fetch }));
    const [[, model, text]] = input["calls"];
    await assert.rejects(cache.tokenize(model, text), (error: Error) => {
      assert.ok(error instanceof TokenizerError);
      assert.ok(error.message.includes(expect["error_contains"]), error.message);
      return true;
    });
    assert.equal(cache.cachedSize(model), 0);
  }
});
