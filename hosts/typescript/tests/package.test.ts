/** What is published: packed, installed into an empty folder; the code of its pages runs there, in both runtimes. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import ts from "typescript";
import { ROOT } from "./support/cases.js";
import { MODEL, NO_MODEL } from "./support/library.js";

const PACKAGE = join(ROOT, "hosts", "typescript");
const BUN = join(PACKAGE, "node_modules", ".bin", "bun");
// npm is Node's, and one installation is enough for both.
const skip = "bun" in process.versions ? "Node runs it" : NO_MODEL;

const blocksOf = (page: string) =>
  [...readFileSync(join(ROOT, page), "utf8").matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code = ""]) => code);

const DATE = /^(19|20)\d\d-[01]\d-[0-3]\d (true|false)/;
/** What the examples of the README print; those of the other page assert by themselves. */
const PRINTED = [
  /^ (blue|green|made of cheese) (0\.\d+|1)/,
  /(REPLY|STOP).*: \d tokens, \d forced/,
  DATE,
  /5, 6.*THINK/s,
];
/** Blocks that say that they run as they are, in Node 20 too. */
const PLAIN = [...readFileSync(join(ROOT, "docs", "typescript.md"), "utf8").matchAll(/```js\n([\s\S]*?)```/g)].map(
  ([, code = ""]) => code,
);
const PAGES = {
  "hosts/typescript/README.md": blocksOf("hosts/typescript/README.md"),
  "docs/typescript.md": blocksOf("docs/typescript.md"),
  "docs/typescript-loops.md": blocksOf("docs/typescript-loops.md"),
};

it("the first example of the README has five lines", () => {
  assert.equal(PAGES["hosts/typescript/README.md"][0]?.trim().split("\n").length, 5);
});

describe("the package", { skip }, () => {
  let folder: string;
  let listed: string[];

  before(() => {
    folder = mkdtempSync(join(tmpdir(), "tokentrie-package-"));
    const run = (command: string, given: string[], cwd: string) =>
      execFileSync(command, given, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
    const packed = JSON.parse(run("npm", ["pack", "--json", "--silent", "--pack-destination", folder], PACKAGE));
    listed = (Array.isArray(packed) ? packed : Object.values(packed))[0].files.map(
      ({ path }: { path: string }) => path,
    );
    const archive = readdirSync(folder).find((name) => name.endsWith(".tgz"));
    assert.ok(archive);
    mkdirSync(join(folder, "user"));
    writeFileSync(join(folder, "user", "package.json"), '{"type": "module"}');
    // What `npm ci` fetched is in npm's cache.
    run(
      "npm",
      ["install", "--prefer-offline", "--ignore-scripts", "--no-audit", join("..", archive)],
      join(folder, "user"),
    );
    copyFileSync(MODEL, join(folder, "user", "model.gguf"));
    // The pages use it.
    cpSync(join(PACKAGE, "node_modules", "zod"), join(folder, "user", "node_modules", "zod"), { recursive: true });
  });
  after(() => rmSync(folder, { recursive: true }));

  it("holds what users need and nothing else", () => {
    for (const wanted of [
      "LICENSE-MIT",
      "README.md",
      "dist/index.js",
      "dist/index.d.ts",
      "dist/session/thread/worker.js",
      "docs/choose-tool.svg",
    ]) {
      assert.ok(listed.includes(wanted), wanted);
    }
    assert.ok(listed.some((path) => path.startsWith(`lib/${process.platform}-${process.arch}/`)));
    assert.deepEqual(
      listed.filter((path) => !/^(dist|lib|docs)\/|^(README|LICENSE|package)/.test(path)),
      [],
    );
    assert.equal(existsSync(join(folder, "user", "node_modules", "tokentrie", "src")), false);
  });

  it("has types that a strict program, which checks those of its libraries too, is content with", () => {
    const user = join(folder, "user");
    const names = Object.values(PAGES).flatMap((blocks, page) =>
      blocks.map((code, number) => {
        const name = `typed-${page}-${number}.ts`;
        writeFileSync(join(user, name), code);
        return name;
      }),
    );
    const given = ["--noEmit", "--strict", "--skipLibCheck", "false", "--target", "ES2022", "--module", "NodeNext"];
    const lib = ["--lib", "ES2022,ESNext.Disposable", "--types", "node"];
    const roots = ["--typeRoots", join(PACKAGE, "node_modules", "@types")];
    const tsc = join(PACKAGE, "node_modules", "typescript", "bin", "tsc");
    try {
      execFileSync(process.execPath, [tsc, ...given, ...lib, ...roots, ...names], { cwd: user, encoding: "utf8" });
    } catch (error) {
      assert.fail((error as { stdout: string }).stdout);
    }
  });

  it("runs plain JavaScript as it is, in both runtimes", () => {
    assert.ok(PLAIN.length > 0);
    for (const code of PLAIN) {
      const file = join(folder, "user", "plain.mjs");
      writeFileSync(file, code);
      for (const command of [process.execPath, BUN]) {
        execFileSync(command, [file], {
          cwd: join(folder, "user"),
          env: { ...process.env, TOKENTRIE_LIB: "" },
          timeout: 60_000,
        });
      }
    }
  });

  for (const [page, blocks] of Object.entries(PAGES)) {
    for (const [runtime, command] of [
      ["node", process.execPath],
      ["bun", BUN],
    ] as const) {
      blocks.forEach((code, number) => {
        it(`block ${number + 1} of ${page} runs in ${runtime}`, () => {
          const user = join(folder, "user");
          const file = join(user, `block-${number}.mjs`);
          // Node 20 has no `using`, and nobody runs TypeScript there as it is.
          const compilerOptions = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext };
          writeFileSync(file, ts.transpileModule(code, { compilerOptions }).outputText);
          // The library of the package itself: the one of TOKENTRIE_LIB is not looked at.
          const env = { ...process.env, TOKENTRIE_LIB: "" };
          const printed = execFileSync(command, [file], { cwd: user, encoding: "utf8", env, timeout: 60_000 });
          if (page.endsWith("README.md")) assert.match(printed, PRINTED[number] as RegExp);
        });
      });
    }
  }
});
