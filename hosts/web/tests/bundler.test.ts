/** The package in a page that Vite builds, and in Deno where that is here. */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { build } from "vite";
import { CHROMIUM, launched, NO_BUILD, NO_CHROMIUM, served, WEB } from "./support.js";

const MAIN = `
import { constraint, load, Vocab } from "tokentrie-web";
await load();
const vocab = Vocab.fromPieces(["a", "b", "</s>"], { endOfGeneration: [2] });
const said = constraint({ regex: "a|ab" }, vocab).texts().join(" ");
if (globalThis.document) document.title = said; else console.log(said);
`;
const DENO = process.env["TOKENTRIE_DENO"] || "deno";
const NO_DENO = spawnSync(DENO, ["--version"]).status === 0 ? false : "there is no deno on PATH";

describe("an installed package", { skip: NO_BUILD }, () => {
  const folder = mkdtempSync(join(tmpdir(), "installed-"));

  before(() => {
    const installed = join(folder, "node_modules", "tokentrie-web");
    mkdirSync(installed, { recursive: true });
    for (const part of ["dist", "wasm", "package.json"])
      cpSync(join(WEB, part), join(installed, part), { recursive: true });
    writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
    writeFileSync(join(folder, "main.js"), MAIN);
    writeFileSync(join(folder, "index.html"), '<!doctype html><script type="module" src="/main.js"></script>');
  });
  after(() => rmSync(folder, { recursive: true }));

  it("runs in Node", () => {
    assert.equal(execFileSync(process.execPath, ["main.js"], { cwd: folder, encoding: "utf8" }), "a ab\n");
  });

  it("runs in Deno", { skip: NO_DENO }, () => {
    const options = ["run", "--allow-read", "--node-modules-dir=manual", "main.js"];
    assert.equal(execFileSync(DENO, options, { cwd: folder, encoding: "utf8" }), "a ab\n");
  });

  it("runs in Chromium, as Vite builds it", { skip: NO_CHROMIUM }, async () => {
    // Under a path, so that no file may be looked for at the root.
    await build({ root: folder, base: "/under/", logLevel: "error" });
    const { server, address } = await served((path) => {
      const [, name] = /^\/under\/(.*)$/.exec(path) ?? [];
      return name === undefined ? undefined : { file: join(folder, "dist", name || "index.html") };
    });
    const browser = await launched(CHROMIUM as string);
    try {
      const page = await browser.newPage();
      await page.goto(`${address}/under/`);
      await page.waitForFunction(() => document.title !== "");
      assert.equal(await page.title(), "a ab");
    } finally {
      await browser.close();
      server.close();
    }
  });
});
