/** Which library is loaded, and which is refused. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ABI_VERSION } from "../src/ffi/abi.js";
import { packagedLibrary } from "../src/ffi/files.js";
import { LibraryError, loadLibrary, Session } from "../src/index.js";
import { fakeLibrary, NO_COMPILER } from "./support/fake.js";
import { LIBRARY, NO_LIBRARY } from "./support/library.js";
import { warningsOf } from "./support/streams.js";

const MAJOR = 0x10000;
const compiled = fakeLibrary(ABI_VERSION);

describe("a library", { skip: compiled ? false : NO_COMPILER }, () => {
  it("of this version, or a later minor one, is taken", () => {
    for (const version of [ABI_VERSION, ABI_VERSION + 3]) {
      const library = loadLibrary(fakeLibrary(version) ?? "");
      assert.deepEqual([library.version, library.hasLlama], [version, false]);
    }
  });

  it("of another major version is refused, with both versions", () => {
    for (const version of [ABI_VERSION + MAJOR, ABI_VERSION - MAJOR]) {
      assert.throws(
        () => loadLibrary(fakeLibrary(version) ?? ""),
        (error: Error) => {
          assert.ok(error instanceof LibraryError);
          assert.match(error.message, new RegExp(`version ${version >>> 16}\\.0 .* needs 1\\.0`));
          return true;
        },
      );
    }
  });

  it("says which function it lacks when that is called, and not before", () => {
    const library = loadLibrary(compiled ?? "");
    assert.equal(library.has("tokentrie_trie_from_json"), false);
    assert.throws(() => library.functions.tokentrie_trie_from_json, {
      name: "LibraryError",
      message: /no function tokentrie_trie_from_json/,
    });
    assert.throws(() => library.needLlama(), { name: "LibraryError", message: /without llama\.cpp/ });
  });

  it("with sessions and no tries warns once, and goes on without", async () => {
    const library = loadLibrary(fakeLibrary(ABI_VERSION, "-DFAKE_SESSIONS") ?? "");
    const payload = { modelId: "m", descriptors: [{ path: "p", leaves: [{ name: "A", tokens: [1] }] }] };
    const warnings = await warningsOf(async () => {
      await using session = await Session.open("model.gguf", { library });
      for (let round = 0; round < 2; round++) {
        const { text, tokens, leaf } = await session.generate("hi", { tokenTreePayload: payload }).result;
        assert.deepEqual([text, tokens, leaf], [`a${"b".repeat(1000)}c`, [0, 1, 2], null]);
      }
    });
    assert.deepEqual(warnings, [
      "this library has no set_token_trie and clear_token_trie: the output is not constrained",
    ]);
  });

  it("is loaded once for each path", () => {
    assert.equal(loadLibrary(compiled ?? ""), loadLibrary(compiled ?? ""));
  });
});

it("a missing file, or no library, is refused by its name", () => {
  for (const path of ["/there/is/no/libtokentrie.so", "/etc/passwd"]) {
    assert.throws(
      () => loadLibrary(path),
      (error: Error) => {
        assert.ok(error instanceof LibraryError);
        assert.ok(error.message.includes(path), error.message);
        return true;
      },
    );
  }
});

it("TOKENTRIE_LIB names the library; without it the one inside the package is meant", () => {
  const before = process.env["TOKENTRIE_LIB"];
  try {
    process.env["TOKENTRIE_LIB"] = "/there/is/no.so";
    assert.throws(() => loadLibrary(), { name: "LibraryError", message: /TOKENTRIE_LIB names \/there\/is\/no\.so/ });
    assert.match(packagedLibrary(), new RegExp(`lib.${process.platform}-${process.arch}.`));
  } finally {
    if (before === undefined) delete process.env["TOKENTRIE_LIB"];
    else process.env["TOKENTRIE_LIB"] = before;
  }
});

it("the real library fits", { skip: NO_LIBRARY }, () => {
  assert.ok(LIBRARY);
  assert.equal(LIBRARY.version >>> 16, ABI_VERSION >>> 16);
  const native = "bun" in process.versions ? "bun:ffi" : "koffi";
  assert.equal(LIBRARY.backend, LIBRARY.path.endsWith(".wasm") ? "wasm" : native);
});
