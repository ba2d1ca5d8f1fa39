import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, it } from "node:test";
import fc from "fast-check";
import { buildTokenTrie, decodeRtkt, encodeRtkt, PayloadError, trieLeaves } from "../src/index.js";
import { hostCases } from "./support/cases.js";

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");

/** Every node lists all later ones as children: few bytes, more paths than anybody could list. */
export function dagBomb(nodes: number): Uint8Array {
  const words: number[] = [0x544b5452, 1, 1];
  const bytes = [...Buffer.from(Uint32Array.from(words).buffer), 0x78];
  const put = (value: number) => bytes.push(...new Uint8Array(Uint32Array.of(value).buffer));
  put(nodes);
  for (let node = 0; node < nodes; node++) {
    put(node === 0 ? -1 : node);
    bytes.push(1);
    put(nodes - 1 - node);
    for (let child = node + 1; child < nodes; child++) put(child);
  }
  return Uint8Array.from(bytes);
}

describe("codec_rtkt", () => {
  for (const { id, input, expect } of hostCases("codec_rtkt_optional")) {
    it(id, () => {
      if (!expect.error_contains) {
        const encoded = encodeRtkt(input);
        assert.equal(hex(encoded), expect.hex);
        assert.equal(encoded.length, expect.byte_length);
        const { path, sequences } = decodeRtkt(encoded);
        assert.deepEqual([path, sequences], [expect.decoded_path, expect.decoded_token_sequences_in_order]);
        return;
      }
      const run = () => {
        if (input.leaf_tokens)
          encodeRtkt({ path: "p", leaves: [{ name: "A", tokens: input.leaf_tokens.map(Number) }] });
        else decodeRtkt(input.hex ? Buffer.from(input.hex, "hex") : dagBomb(26));
      };
      assert.throws(
        run,
        (error: Error) => error instanceof PayloadError && error.message.includes(expect.error_contains),
      );
      if (expect.max_ms) {
        // The best of some: the machine may be busy, but a search of all paths would never end in time.
        const times = Array.from({ length: 10 }, () => {
          const started = performance.now();
          assert.throws(run);
          return performance.now() - started;
        });
        assert.ok(Math.min(...times) < expect.max_ms, times.join());
      }
      if (input.generate) {
        assert.equal(dagBomb(26).length, input.byte_length);
        assert.equal(createHash("sha256").update(dagBomb(26)).digest("hex"), input.sha256);
      }
    });
  }
});

describe("RTKT", () => {
  const token = fc.oneof(fc.nat(3), fc.constant(2 ** 31 - 1));
  const descriptor = fc.record({
    path: fc.string({ unit: "binary", maxLength: 5 }),
    leaves: fc.array(fc.record({ name: fc.constant("x"), tokens: fc.array(token, { maxLength: 4 }) }), {
      maxLength: 8,
    }),
  });

  it("gives back the path and the leaves in their order", () => {
    fc.assert(
      fc.property(descriptor, (given) => {
        const { path, sequences } = decodeRtkt(encodeRtkt(given));
        assert.equal(path, given.path);
        assert.deepEqual(
          sequences,
          [...trieLeaves(buildTokenTrie(given.leaves))].map(({ tokens }) => tokens),
        );
      }),
    );
  });

  it("is refused when it is cut short or lengthened; changed, it is refused or another sound trie", () => {
    fc.assert(
      fc.property(descriptor, fc.nat(), fc.integer({ min: 1, max: 255 }), (given, at, change) => {
        const whole = encodeRtkt(given);
        assert.throws(() => decodeRtkt(whole.subarray(0, at % whole.length)), PayloadError);
        assert.throws(() => decodeRtkt(Uint8Array.from([...whole, 0])), { message: /1 bytes follow/ });
        const changed = whole.slice();
        changed[at % whole.length] = (changed[at % whole.length] as number) ^ change;
        try {
          decodeRtkt(changed);
        } catch (error) {
          assert.ok(error instanceof PayloadError, String(error));
        }
      }),
    );
  });

  it("that claims four billion nodes is refused at once", () => {
    const claims = encodeRtkt({ path: "", leaves: [] });
    new DataView(claims.buffer).setUint32(12, 0xffffffff, true);
    assert.throws(() => decodeRtkt(claims), { message: /truncated.*4294967295 nodes/ });
  });
});
