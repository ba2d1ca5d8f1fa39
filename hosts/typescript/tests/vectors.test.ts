/** The same payload gives the same trie as in Rust and Python: they read the same file. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import {
  buildTokenTrie,
  checkPayload,
  countNodes,
  forcedRun,
  PayloadError,
  parsePayload,
  step,
  trieLeaves,
} from "../src/index.js";
import { ROOT } from "./support/cases.js";

interface Vector {
  readonly id: string;
  readonly payload?: unknown;
  readonly payload_text?: string;
  readonly error?: true;
  readonly tries: readonly {
    readonly path: string;
    readonly nodes: number;
    readonly leaves: readonly { readonly name: string; readonly tokens: readonly number[] }[];
    readonly at: readonly {
      readonly prefix: readonly number[];
      readonly children: readonly number[];
      readonly forced: readonly number[];
    }[];
  }[];
}

const { cases } = JSON.parse(readFileSync(join(ROOT, "tests", "vectors", "host_tries.json"), "utf8")) as {
  cases: Vector[];
};

describe("host_tries.json", () => {
  for (const vector of cases) {
    it(vector.id, () => {
      const read = () =>
        vector.payload_text === undefined ? checkPayload(vector.payload) : parsePayload(vector.payload_text);
      if (vector.error) {
        assert.throws(read, PayloadError);
        return;
      }
      const tries = read().descriptors.map(({ path, leaves }) => ({ path, trie: buildTokenTrie(leaves) }));
      const usable = tries.filter(({ trie }) => trie.children.size > 0);
      assert.deepEqual(
        usable.map(({ path, trie }) => ({ path, nodes: countNodes(trie), leaves: [...trieLeaves(trie)] })),
        vector.tries.map(({ path, nodes, leaves }) => ({ path, nodes, leaves })),
      );
      usable.forEach(({ trie }, index) => {
        for (const { prefix, children, forced } of vector.tries[index]?.at ?? []) {
          let node = trie;
          for (const token of prefix) node = step(node, token) ?? assert.fail(`there is no ${prefix.join()}`);
          assert.deepEqual([...node.children.keys()], children);
          assert.deepEqual(forcedRun(node), forced);
        }
      });
    });
  }
});
