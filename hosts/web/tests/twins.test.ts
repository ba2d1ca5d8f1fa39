/** The module beside the library of this machine: the same masks bit for bit, the same draws. */
import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import "../../typescript/src/ffi/files.js";
import type { Library } from "../../typescript/src/ffi/library.js";
import { constraint, load, loadLibrary, Sampler, type Spec, Vocab } from "../src/index.js";
import { NATIVE, NO_MODEL, NO_NATIVE, tinyTokenizer } from "./support.js";

const SPECS: Spec[] = [
  { regex: "[a-z]{1,4}( [a-z]{1,4}){0,3}" },
  { integer: { min: -20, max: 1234567 } },
  { number: { min: -1.5, max: 20 } },
  { date: {} },
  { then: ["id-", { regex: "[0-9a-f]{4}" }, "; ", { one_of: ["yes", "no", { integer: { min: 0, max: 9 } }] }] },
  { grammar: 'e : e "+" t | t ; t : "x" | "(" e ")" ;' },
  { gbnf: 'root ::= "a" root "b" | "c"' },
  { string: { max_chars: 12, quotes: true } },
];

describe("twins", { skip: NO_NATIVE || NO_MODEL }, () => {
  const libraries: Library[] = [];
  before(async () => {
    // The library of files first: the module is the one that counts afterwards.
    const native = loadLibrary(NATIVE);
    libraries.push(native, await load());
  });

  /** The same tokens in both. */
  const vocabs = () => {
    const { model, added_tokens } = JSON.parse(tinyTokenizer());
    const names = Object.keys(model.vocab as object).map((name) => name.replaceAll("Ġ", " ").replaceAll("Ċ", "\n"));
    const control = (added_tokens as { id: number }[]).map(({ id }) => id).filter((id) => id !== 2);
    const options = { control, endOfGeneration: [2] };
    return libraries.map((library) => Vocab.fromPieces(names, { ...options, library }));
  };

  let seed = 1;
  const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;

  for (const spec of SPECS) {
    it(JSON.stringify(spec), () => {
      const words = vocabs();
      const size = words[0]?.size ?? 0;
      for (const mode of ["greedy", "sampled"] as const) {
        const options = { mode, seed: 7, temperature: 1.3, topK: 20, repeatPenalty: 1.1, after: "stop" } as const;
        const samplers = words.map((vocab) => Sampler.create(vocab, constraint(spec, vocab), options));
        for (let step = 0; step < 24; step++) {
          const row = Float32Array.from({ length: size + 3 }, () => 8 * random() - 4);
          const seen = samplers.map((sampler) => {
            const bits = new Uint32Array(Math.ceil(size / 32));
            sampler.fillBitmask(bits);
            const masked = row.slice();
            sampler.apply(masked);
            const { kind, ids } = sampler.allowed();
            const forced = [...sampler.forced()];
            const token = sampler.sample(row);
            return {
              bits: bits.join(),
              masked: new Int32Array(masked.buffer).join(),
              kind,
              ids: ids.join(),
              forced,
              token,
            };
          });
          assert.deepEqual(seen[1], seen[0], `step ${step}`);
          const token = seen[0]?.token ?? 0;
          if (token === 2) break;
          for (const sampler of samplers) sampler.accept(token);
          assert.deepEqual(samplers[1]?.state, samplers[0]?.state);
        }
      }
    });
  }
});
