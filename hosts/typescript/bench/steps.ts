/**
 * Cost of a step through the C ABI, next to the same in TypeScript alone. Every case checks its answer first.
 *
 *     TOKENTRIE_LIB=… npm run bench --silent -- model.gguf
 */
import assert from "node:assert/strict";
import { cpus } from "node:os";
import { bench, do_not_optimize, group, run } from "mitata";
import { buildTokenTrie, loadLibrary, parsePayload, Sampler, step, type TokenSequence, Trie } from "../src/index.js";
import { NativeSession } from "../src/session/thread/native-session.js";

const VOCAB = 151_936;
const library = loadLibrary();

/** Logits as a model gives them: no two alike, none special. */
const row = Float32Array.from({ length: VOCAB }, (_, token) => Math.sin(token * 12.9898) * 8);

function values(children: number): TokenSequence[] {
  return Array.from({ length: children }, (_, index) => ({
    name: `N${index}`,
    tokens: [(index * 977) % VOCAB, index],
  }));
}

/** Everything but the children becomes -Infinity, then the greatest of all is looked for. */
function maskAndSearch(logits: Float32Array, children: ReadonlyMap<number, unknown>): number {
  for (let token = 0; token < logits.length; token++) {
    if (!children.has(token)) logits[token] = Number.NEGATIVE_INFINITY;
  }
  let best = 0;
  for (let token = 1; token < logits.length; token++) {
    if ((logits[token] as number) > (logits[best] as number)) best = token;
  }
  return best;
}

/** The same with the row filled at once and the children put back, as fast as TypeScript masks. */
function fillAndSearch(logits: Float32Array, children: ReadonlyMap<number, unknown>): number {
  const kept = Array.from(children.keys(), (token) => [token, logits[token] as number] as const);
  logits.fill(Number.NEGATIVE_INFINITY);
  for (const [token, logit] of kept) logits[token] = logit;
  let best = 0;
  for (let token = 1; token < logits.length; token++) {
    if ((logits[token] as number) > (logits[best] as number)) best = token;
  }
  return best;
}

/** Reads the logits of the children alone. */
function gather(logits: Float32Array, children: ReadonlyMap<number, unknown>): number {
  let best = -1;
  let highest = Number.NEGATIVE_INFINITY;
  for (const token of children.keys()) {
    if ((logits[token] as number) > highest) {
      highest = logits[token] as number;
      best = token;
    }
  }
  return best;
}

for (const k of [8, 32, 512]) {
  const leaves = values(k);
  const trie = buildTokenTrie(leaves);
  const sampler = Sampler.create(VOCAB, { modelId: "m", descriptors: [{ path: "action", leaves }] });
  const expected = maskAndSearch(row.slice(), trie.children);
  assert.equal(sampler.sample(row), expected);
  assert.equal(fillAndSearch(row.slice(), trie.children), expected);
  assert.equal(gather(row, trie.children), expected);
  assert.deepEqual([...sampler.allowed().ids], [...trie.children.keys()]);
  const scratch = row.slice();

  group(`one step, ${k} legal of ${VOCAB}`, () => {
    bench(`sample, ${library.backend}`, () => do_not_optimize(sampler.sample(row)));
    bench(`allowed + sample, ${library.backend}`, () => {
      do_not_optimize(sampler.allowed());
      do_not_optimize(sampler.sample(row));
    });
    bench(`advance + rollback, ${library.backend}`, () => sampler.rollback(sampler.advance(row).length));
    bench(`apply, ${library.backend}`, () => sampler.apply(scratch));
    bench("TypeScript alone: mask the row, search it", () => do_not_optimize(maskAndSearch(scratch, trie.children)));
    bench("TypeScript alone: fill the row, search it", () => do_not_optimize(fillAndSearch(scratch, trie.children)));
    bench("TypeScript alone: gather the children, step", () => do_not_optimize(step(trie, gather(row, trie.children))));
  });
}

const tools: TokenSequence[] = Array.from({ length: 30 }, (_, index) => ({
  name: `TOOL_${index}`,
  tokens: [index % 5, (index * 31) % 1000, (index * 7919) % 2000, index],
}));
const json = JSON.stringify({ modelId: "m", descriptors: [{ path: "action", leaves: tools }] });

group("around it", () => {
  const { tokentrie_abi_version } = library.functions;
  bench(`a call without arguments, ${library.backend}`, () => do_not_optimize(tokentrie_abi_version()));
  bench(`JSON text of 30 x 4 to a trie, ${library.backend}`, () => Trie.fromPayload(json).free());
  bench("JSON text of 30 x 4 to a trie, TypeScript alone", () =>
    do_not_optimize(buildTokenTrie(parsePayload(json).descriptors[0]?.leaves ?? [])),
  );
});

const model = process.argv[2];
if (model !== undefined) {
  const session = new NativeSession(library, () => {});
  session.open(model, {
    nCtx: 256,
    nBatch: 0,
    nThreads: 1,
    nGpuLayers: 0,
    after: 1,
    slots: 1,
    maxQueue: 0,
    batching: 0,
    seed: 1,
    responseTemplate: null,
    draft: null,
  });
  const prefix = json.slice(0, -1);
  let number = 0;
  group(`on a session, ${library.backend}`, () => {
    bench("set_token_trie of 30 x 4, the same text", () => session.setTokenTrie(json, 0));
    bench("set_token_trie of 30 x 4, another text each time", () =>
      session.setTokenTrie(`${prefix},"n":${number++}}`, 0),
    );
    bench("clear_token_trie", () => session.clearTokenTrie());
  });
}

const time = (ns: number) => {
  const unit = ns < 1e3 ? 1 : ns < 1e6 ? 1e3 : 1e6;
  return `${(ns / unit).toPrecision(3)} ${{ 1: "ns", 1e3: "µs", 1e6: "ms" }[unit]}`;
};
const runtime = "bun" in process.versions ? `bun ${process.versions["bun"]}` : `node ${process.version}`;

/** Fields that its types leave out. */
interface Report {
  readonly layout: readonly { readonly name: string | null }[];
  readonly benchmarks: readonly {
    readonly alias: string;
    readonly group: number;
    readonly runs: readonly { readonly stats?: { readonly min: number; readonly p50: number } }[];
  }[];
}

const { benchmarks, layout } = (await run({ format: "quiet" })) as unknown as Report;
console.log(`${runtime}, ${cpus()[0]?.model ?? "unknown processor"}, ${library.path}`);
let named = -1;
for (const { alias, group: number, runs } of benchmarks) {
  if (number !== named) console.log(`\n| ${layout[number]?.name ?? ""} | minimum | median |\n| --- | ---: | ---: |`);
  named = number;
  const stats = runs[0]?.stats;
  console.log(`| ${alias} | ${time(stats?.min ?? Number.NaN)} | ${time(stats?.p50 ?? Number.NaN)} |`);
}
