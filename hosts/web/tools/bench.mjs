/**
 * Figures of docs/web.md: in Node and in Chromium. Every case checks its answer first.
 *
 *     npm run bench
 */
/* global performance */
import { createServer } from "node:http";
import { existsSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const WEB = fileURLToPath(new URL("..", import.meta.url));
const TYPES = { ".js": "text/javascript", ".wasm": "application/wasm", ".json": "application/json" };

/** What is measured, by the package as it is imported. Runs in a page too. */
async function measured(name) {
  const began = performance.now();
  const t = await import(name);
  const imported = performance.now();
  const library = await t.load();
  const loaded = performance.now();
  const size = 151_936;
  const sequences = Array.from({ length: 64 }, (_, n) => [1000 * (n >> 3) + 7, 2000 * (n & 7) + 11, 5]);
  const trie = t.Trie.fromSequences(sequences);
  const sampler = t.Sampler.create(t.Vocab.ofSize(size), trie);
  const row = Float32Array.from({ length: size }, (_, id) => (id * 7919) % 1009);
  const best = [...sampler.allowed().ids].reduce((a, b) => (row[b] > row[a] ? b : a));
  if (sampler.allowed().ids.length !== 8 || sampler.sample(row) !== best) throw new Error("the answer is wrong");
  const least = (times, rounds, work) => {
    let found = Infinity;
    for (let round = 0; round < rounds; round++) {
      const from = performance.now();
      for (let n = 0; n < times; n++) work();
      found = Math.min(found, (performance.now() - from) / times);
    }
    return found;
  };
  const figures = {
    "import, ms": imported - began,
    "load, ms": loaded - imported,
    "sample, 8 of 151,936, ns": 1e6 * least(20_000, 20, () => sampler.sample(row)),
    "allowed and sample, ns": 1e6 * least(20_000, 20, () => (sampler.allowed(), sampler.sample(row))),
    "apply (mask the row), µs": 1e3 * least(200, 20, () => sampler.apply(row)),
  };
  const naive = t.Trie.fromSequences(Array.from({ length: 1_000_000 }, (_, n) => [n % 997, (n / 997) | 0, n % 31]));
  figures["a set of 10^6, MB"] = naive.byteLength / 1e6;
  figures["memory of the module with it, MB"] = t.memoryBytes(library) / 1e6;
  naive.free();
  return figures;
}

/** The same eight of a row in TypeScript alone. */
function plain() {
  const row = Float32Array.from({ length: 151_936 }, (_, id) => (id * 7919) % 1009);
  const ids = Int32Array.from({ length: 8 }, (_, n) => 1000 * n + 7);
  let [least, sum] = [Infinity, 0];
  for (let round = 0; round < 20; round++) {
    const from = performance.now();
    for (let n = 0; n < 100_000; n++) {
      let best = ids[0];
      for (const id of ids) if (row[id] > row[best]) best = id;
      sum += best;
    }
    least = Math.min(least, (performance.now() - from) / 100_000);
  }
  return { "gathering 8 logits in TypeScript, ns": 1e6 * least + 0 * sum };
}

async function inChromium() {
  const { chromium } = await import("playwright-core");
  const server = createServer((request, response) => {
    const file = join(WEB, decodeURIComponent(new URL(request.url, "http://page").pathname));
    if (request.url === "/") response.setHeader("content-type", "text/html").end("<!doctype html>");
    else if (!existsSync(file)) response.writeHead(404).end();
    else response.setHeader("content-type", TYPES[extname(file)] ?? "text/plain").end(readFileSync(file));
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const args = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"];
  const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args });
  const page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  const figures = await page.evaluate(`(${measured})("/dist/web/src/index.js")`);
  const version = browser.version();
  await browser.close();
  server.close();
  return { version, figures };
}

for (const name of ["tokentrie-core.wasm", "tokentrie.wasm"]) {
  const file = join(WEB, "wasm", name);
  if (!existsSync(file)) continue;
  const bytes = readFileSync(file);
  const brotli = brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_LGWIN]: 24 } });
  console.log(name, bytes.length, "bytes,", gzipSync(bytes, { level: 9 }).length, "gzip,", brotli.length, "brotli");
}
console.log("Node", process.version, await measured(join(WEB, "dist/web/src/index.js")), plain());
const { version, figures } = await inChromium();
console.log("Chromium", version, figures);
