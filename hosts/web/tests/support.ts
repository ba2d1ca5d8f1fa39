/** Where things are, and why tests are skipped that lack them. */
import { existsSync, readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { delimiter, dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Browser } from "playwright-core";

/** The root of the checkout: the first folder above that has the vectors. */
export const ROOT = (() => {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, "tests", "vectors"))) {
    if (dirname(folder) === folder) throw new Error("these tests need a checkout: there is no tests/vectors above");
    folder = dirname(folder);
  }
  return folder;
})();

export const WEB = join(ROOT, "hosts", "web");
/** The folder of models of transformers.js; `tools/tiny_onnx.py` writes it. */
export const MODELS = process.env["TOKENTRIE_WEB_MODELS"] || join(ROOT, "target", "web", "models");
export const CORE_MODULE = join(WEB, "wasm", "tokentrie-core.wasm");

const skip = (...files: string[]): string | false => {
  const missing = files.find((file) => !existsSync(file));
  return missing === undefined ? false : `there is no ${missing}`;
};

export const NO_MODEL = skip(join(MODELS, "tiny", "onnx", "model.onnx"));
export const NO_CORE = skip(CORE_MODULE);
export const NO_BUILD = existsSync(join(WEB, "dist", "web", "src", "index.js")) ? false : "npm run build makes dist";

const NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
const FOLDERS = (process.env["PATH"] ?? "").split(delimiter);
export const CHROMIUM = FOLDERS.flatMap((folder) => NAMES.map((name) => join(folder, name))).find((file) =>
  existsSync(file),
);
export const NO_CHROMIUM = CHROMIUM === undefined ? "there is no Chromium on PATH" : false;

function leb(value: number): number[] {
  return value < 128 ? [value] : [(value & 127) | 128, ...leb(value >>> 7)];
}

/** A module whose memory cannot grow beyond so many MiB: what it is on a machine that has no more. */
export function withMemory(module: Uint8Array, megabytes: number): Uint8Array<ArrayBuffer> {
  let at = 8;
  const next = (): number => {
    const byte = module[at++] ?? 0;
    return byte < 128 ? byte : (byte & 127) + 128 * next();
  };
  for (;;) {
    const [begin, kind, size] = [at, module[at++], next()];
    const [content, end] = [at, at + size];
    if (kind === 5) {
      at = content + 2;
      const limits = [1, 1, ...leb(next()), ...leb(megabytes * 16)];
      const section = Uint8Array.from([5, ...leb(limits.length), ...limits]);
      return Uint8Array.from(Buffer.concat([module.subarray(0, begin), section, module.subarray(end)]));
    }
    if (kind === undefined) throw new Error("the module has no memory of its own");
    at = end;
  }
}

export async function launched(executablePath: string): Promise<Browser> {
  const { chromium } = await import("playwright-core");
  const args = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"];
  return chromium.launch({ executablePath, args });
}

/** What a server says that files are; what has no ending is a page. */
const TYPES: Record<string, string> = {
  "": "text/html",
  ".html": "text/html",
  ".js": "text/javascript",
  ".mjs": "text/javascript",
  ".css": "text/css",
  ".json": "application/json",
  ".svg": "image/svg+xml",
  ".wasm": "application/wasm",
};

/** A server of this machine, and where it is: it gives what is found for a path, or the file of that name. */
export async function served(
  find: (path: string) => { text: string } | { file: string } | undefined,
): Promise<{ server: Server; address: string }> {
  const server = createServer((request, response) => {
    const path = decodeURIComponent(new URL(request.url ?? "/", "http://page").pathname);
    const found = find(path);
    if (found === undefined || ("file" in found && !existsSync(found.file))) return void response.writeHead(404).end();
    response.setHeader("content-type", TYPES[extname(path)] ?? "application/octet-stream");
    response.end("text" in found ? found.text : readFileSync(found.file));
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return { server, address: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

/** A library for this machine, beside which the module is held. */
export const NATIVE = process.env["TOKENTRIE_LIB"] || join(ROOT, "target", "checked", "deps", "libtokentrie_c.so");
export const NO_NATIVE = skip(NATIVE);

/** Each file of vectors has a shape of its own. */
export const vectors = (name: string): any => JSON.parse(vectorsText(name));

/** The crate of templates keeps its own. */
const OF_TEMPLATES = ["chat_templates", "hostile_templates"];

export const vectorsText = (name: string): string => {
  const folder = OF_TEMPLATES.includes(name) ? ["crates", "chat-template", "tests"] : ["tests"];
  return readFileSync(join(ROOT, ...folder, "vectors", `${name}.json`), "utf8");
};

export const tinyTokenizer = (): string => readFileSync(join(MODELS, "tiny", "tokenizer.json"), "utf8");
