import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import {
  buildDescriptor,
  buildPayload,
  buildTokenTrie,
  checkPayload,
  countNodes,
  countTerminals,
  estimateTrieBytes,
  forcedRun,
  isUniqueContinuation,
  PayloadError,
  parsePayload,
  step,
  type TokenSequence,
  trieLeaves,
} from "../src/index.js";
import { compareCodePoints } from "../src/tree/order.js";
import { payloadText } from "../src/tree/payload.js";

/** Few tokens and short leaves, so that they share prefixes, repeat, and end inside each other. */
const leaf: fc.Arbitrary<TokenSequence> = fc.record({
  name: fc.oneof(fc.constantFrom("A", "B", "\u{1f600}", "\uffed", ""), fc.string({ unit: "binary", maxLength: 3 })),
  tokens: fc.array(fc.constantFrom(0, 1, 2, 7, 2 ** 31 - 1), { maxLength: 4 }),
});
const leaves = fc.array(leaf, { maxLength: 12 });

const key = (tokens: readonly number[]) => tokens.join(" ");

/** The naive twin: no tree, only the list of leaves and string prefixes of it. */
class Naive {
  readonly names = new Map<string, string>();
  readonly prefixes = new Map<string, readonly number[]>([["", []]]);

  constructor(sequences: readonly TokenSequence[]) {
    for (const { name, tokens } of sequences) {
      if (tokens.length === 0) continue;
      const before = this.names.get(key(tokens));
      const points = (text: string) => [...text].map((point) => String(point.codePointAt(0)).padStart(8, "0")).join("");
      if (before === undefined || points(name) < points(before)) this.names.set(key(tokens), name);
      tokens.forEach((_, index) => {
        const prefix = tokens.slice(0, index + 1);
        this.prefixes.set(key(prefix), prefix);
      });
    }
  }

  children(prefix: readonly number[]): number[] {
    const longer = [...this.prefixes.values()].filter((path) => path.length === prefix.length + 1);
    return longer.filter((path) => key(path.slice(0, -1)) === key(prefix)).map((path) => path.at(-1) as number);
  }

  forced(prefix: readonly number[]): number[] {
    const next = this.children(prefix);
    if (this.names.has(key(prefix)) || next.length !== 1) return [];
    return [...next, ...this.forced([...prefix, ...next])];
  }
}

describe("buildTokenTrie", () => {
  it("does what lists and prefixes of them do", () => {
    fc.assert(
      fc.property(leaves, (sequences) => {
        const trie = buildTokenTrie(sequences);
        const naive = new Naive(sequences);
        assert.equal(countNodes(trie), naive.prefixes.size);
        assert.equal(countTerminals(trie), naive.names.size);
        assert.equal(estimateTrieBytes(trie), 80 * naive.prefixes.size + 16 * (naive.prefixes.size - 1));
        for (const prefix of naive.prefixes.values()) {
          let node = trie;
          for (const token of prefix) {
            const next = step(node, token);
            assert.ok(next);
            node = next;
          }
          assert.deepEqual(
            [...node.children.keys()],
            naive.children(prefix).sort((a, b) => a - b),
          );
          assert.equal(node.leafName, naive.names.get(key(prefix)));
          assert.equal(node.isTerminal, naive.names.has(key(prefix)));
          assert.equal(isUniqueContinuation(node), node.isTerminal && node.children.size === 0);
          assert.deepEqual(forcedRun(node), naive.forced(prefix));
          assert.equal(step(node, 5), null);
        }
      }),
      { numRuns: 300 },
    );
  });

  it("does not depend on the order of the leaves", () => {
    const shuffled = leaves.chain((list) =>
      fc.tuple(fc.constant(list), fc.shuffledSubarray(list, { minLength: list.length })),
    );
    fc.assert(
      fc.property(shuffled, ([one, other]) => {
        const [a, b] = [buildTokenTrie(one), buildTokenTrie(other)];
        assert.deepEqual(a, b);
        assert.deepEqual([...trieLeaves(a)], [...trieLeaves(b)]);
      }),
    );
  });

  it("gives back the same trie from its own leaves, which are in the order of their tokens", () => {
    fc.assert(
      fc.property(leaves, (sequences) => {
        const trie = buildTokenTrie(sequences);
        const listed = [...trieLeaves(trie)];
        assert.deepEqual(buildTokenTrie(listed), trie);
        listed.slice(1).forEach(({ tokens }, index) => {
          const before = listed[index]?.tokens ?? [];
          const differs = tokens.findIndex((token, at) => token !== before[at]);
          assert.ok(before.length <= differs || (before[differs] as number) < (tokens[differs] as number));
        });
      }),
    );
  });

  it("holds a leaf of a hundred thousand tokens and a node of as many children", () => {
    const long = Array.from({ length: 100_000 }, (_, index) => index);
    const trie = buildTokenTrie([
      { name: "long", tokens: long },
      ...long.map((id) => ({ name: "wide", tokens: [id + 5] })),
    ]);
    assert.equal(countTerminals(trie), 100_001);
    assert.equal(forcedRun(buildTokenTrie([{ name: "long", tokens: long }])).length, 100_000);
    assert.equal([...trieLeaves(trie)][0]?.tokens.length, 100_000);
  });

  for (const token of [-1, 2 ** 31, 1.5, Number.NaN, Number.POSITIVE_INFINITY, "1" as unknown as number]) {
    it(`refuses the token ${String(token)} and names it`, () => {
      const bad = { name: "STOP", tokens: [3, token] };
      assert.throws(() => buildTokenTrie([bad]), {
        name: "PayloadError",
        message: /"STOP", tokens\[1\]: invalid tokenId/,
      });
      assert.throws(() => buildDescriptor("p", ["STOP"], { STOP: bad.tokens }), PayloadError);
    });
  }
});

describe("buildDescriptor", () => {
  it("takes the first of equal names, skips what has no tokens, sorts, and is null where nothing is left", () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ maxLength: 2 })),
        fc.dictionary(fc.string({ maxLength: 2 }), fc.array(fc.nat(9))),
        (names, map) => {
          const descriptor = buildDescriptor("p", names, map);
          const wanted = [...new Set(names)].filter((name) => Object.hasOwn(map, name) && map[name]?.length !== 0);
          assert.deepEqual(descriptor?.leaves.map(({ name }) => name) ?? [], wanted.sort(compareCodePoints));
          assert.equal(descriptor === null, wanted.length === 0);
        },
      ),
    );
  });

  it("does not take what every object inherits for tokens", () => {
    assert.equal(buildDescriptor("action", ["constructor", "toString", "__proto__"], {}), null);
  });

  it("copies: who changes the map later does not change the descriptor", () => {
    const tokens = [1, 2];
    const descriptor = buildDescriptor("action", ["A"], new Map([["A", tokens]]));
    tokens.push(3);
    assert.deepEqual(descriptor?.leaves[0]?.tokens, [1, 2]);
  });
});

it("names compare as in Rust and Python, not by UTF-16 units", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), fc.string({ unit: "binary" }), (a, b) => {
      const bytes = Buffer.compare(Buffer.from(a), Buffer.from(b)); // the order of UTF-8 is that of code points
      assert.equal(Math.sign(compareCodePoints(a, b)), bytes);
    }),
  );
  assert.ok(compareCodePoints("\u{1f600}", "\uffed") > 0, "unlike `<`");
});

describe("payloads", () => {
  const good = { modelId: "m", descriptors: [{ path: "action", leaves: [{ name: "A", tokens: [1] }] }] };

  it("are read, with unknown fields ignored and the model's id empty where there is none", () => {
    const { modelId: _, ...rest } = good;
    assert.deepEqual(parsePayload(JSON.stringify({ ...good, later: [1] })), good);
    assert.deepEqual(checkPayload(rest), { ...good, modelId: "" });
    assert.equal(payloadText(good), JSON.stringify(good));
    assert.equal(
      payloadText("not looked at: the library says what is wrong"),
      "not looked at: the library says what is wrong",
    );
  });

  const leafWith = (fields: object) => ({
    descriptors: [{ path: "action", leaves: [{ name: "A", tokens: [1], ...fields }] }],
  });
  const wrong: [string, unknown, RegExp][] = [
    ["no object", [good], /^payload: an object is needed/],
    ["null", null, /^payload: an object is needed, not null/],
    ["no descriptors", {}, /^descriptors: a list is needed, not undefined/],
    [
      "an invalid path",
      { descriptors: [{ path: 1, leaves: [] }] },
      /^descriptors\[0\]\.path: a string is needed, not 1/,
    ],
    ["an invalid name", leafWith({ name: null }), /^descriptors\[0\]\.leaves\[0\]\.name: a string/],
    ["half of a character", leafWith({ name: "\ud83d" }), /leaves\[0\]\.name: .*surrogate/],
    ["an invalid id", leafWith({ tokens: [1, -5] }), /leaves\[0\]\.tokens\[1\]: invalid tokenId -5/],
    ["a fraction", leafWith({ tokens: [3.14] }), /invalid tokenId 3\.14/],
    ["infinity", leafWith({ tokens: [Number.POSITIVE_INFINITY] }), /invalid tokenId Infinity/],
    ["nothing usable", leafWith({ tokens: [] }), /no usable leaf in 1 descriptor/],
    [
      "one path twice",
      { descriptors: [...good.descriptors, ...good.descriptors] },
      /two descriptors have the path "action"/,
    ],
  ];
  for (const [what, value, message] of wrong) {
    it(`with ${what} are refused by name`, () => {
      assert.throws(() => checkPayload(value), { name: "PayloadError", message });
    });
  }

  it("that are no JSON are refused", () => {
    const refused = { name: "PayloadError", message: /^payload: invalid JSON/ };
    assert.throws(() => parsePayload('{"descriptors": [}'), refused);
  });

  it("are built of descriptors, and not of none", () => {
    const descriptor = buildDescriptor("action", ["A"], { A: [1] });
    assert.deepEqual(buildPayload("m", [null, descriptor]), good);
    assert.throws(() => buildPayload("m", [null]), { name: "PayloadError", message: /nothing to choose from/ });
    assert.throws(() => buildPayload("m", [descriptor, descriptor]), PayloadError);
  });

  it("of any kind of value are checked without any other error", () => {
    fc.assert(
      fc.property(fc.anything(), (value) => {
        try {
          checkPayload(value);
        } catch (error) {
          assert.ok(error instanceof PayloadError, String(error));
        }
      }),
    );
  });
});
