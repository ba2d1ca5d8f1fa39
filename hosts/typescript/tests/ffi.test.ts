/** Calls into C, the same for both runtimes: this file runs in each. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { CType, ForeignLibrary, Signature } from "../src/ffi/backend.js";
import { bunBackend } from "../src/ffi/bun.js";
import { koffiBackend } from "../src/ffi/koffi.js";
import { Struct } from "../src/ffi/struct.js";
import { fakeLibrary, NO_COMPILER } from "./support/fake.js";

const backend = "bun" in process.versions ? bunBackend() : koffiBackend();
const path = fakeLibrary(7);

function signature<const Result extends CType, const Given extends CType[]>(
  result: Result,
  ...given: Given
): Signature<Given, Result> {
  return { arguments: given, result };
}

describe(`calls by ${backend.name}`, { skip: path ? false : NO_COMPILER }, () => {
  const library: ForeignLibrary = path ? backend.load(path) : (null as never);

  function find<S extends Signature>(name: string, of: S) {
    const found = library.find(name, of);
    assert.ok(found, name);
    return found;
  }

  it("numbers of every type arrive and come back", () => {
    const sum = find("fake_sum", signature("f64", "i32", "u32", "f32", "f64", "usize", "handle"));
    assert.equal(
      sum(-1, 4_000_000_000, 0.5, 0.25, 2 ** 40, 2 ** 50),
      -1 + 8e9 + 1.5 + 1.25 + 7 * 2 ** 40 + 11 * 2 ** 50,
    );
    assert.equal(find("tokentrie_abi_version", signature("u32"))(), 7);
    assert.equal(find("fake_negative", signature("i32"))(), -17);
  });

  it("handles, addresses and sizes are numbers both ways, up to 2^53", () => {
    for (const [name, type] of [
      ["fake_handle", "handle"],
      ["fake_address", "address"],
      ["fake_size", "usize"],
    ] as const) {
      const same = find(name, signature(type, type));
      for (const value of [0, 1, 2 ** 32 + 5, Number.MAX_SAFE_INTEGER]) assert.equal(Number(same(value)), value, name);
      assert.equal(typeof same(3), "number", name);
    }
  });

  it("strings are read as UTF-8; NULL is empty", () => {
    assert.equal(find("tokentrie_last_error", signature("string"))(), "déjà 😀");
    assert.equal(find("fake_null_string", signature("string"))() || "", "");
  });

  it("memory is lent, not copied; a part of it too; none, and no bytes", () => {
    const double = find("fake_double", signature("i32", "buffer", "usize", "buffer", "buffer"));
    const count = new Uint32Array(2);
    const all = Float32Array.of(0, 1, 2, 3, 4);
    const out = new Float32Array(5);
    assert.equal(double(all.subarray(1, 4), 3, out.subarray(2), count), 1);
    assert.deepEqual([...out, count[0]], [0, 0, 2, 4, 6, 3]);
    assert.equal(double(null, 0, out, count), 0);
    assert.equal(double(null, 1, out, count), -1);
    assert.ok(double(new Float32Array(0), 0, new Float32Array(0), count) >= 0);
    assert.equal(count[0], 0);
  });

  it("callbacks are called in order, with their text; what they throw comes out after the call", () => {
    const tokens = find("fake_tokens", signature("i32", "i32", "callback", "address"));
    const seen: unknown[] = [];
    assert.equal(
      tokens(4, (...given) => seen.push(given), 0),
      4,
    );
    assert.deepEqual(seen, [
      [0, "a", false],
      [1, "é", false],
      [2, "", false],
      [3, "a", false],
      [-1, "", true],
    ]);
    let calls = 0;
    const throws = () => {
      calls += 1;
      throw new RangeError("from the callback");
    };
    assert.throws(() => tokens(3, throws, 0), { name: "RangeError", message: "from the callback" });
    assert.equal(calls, 1);
    for (let round = 0; round < 200; round++) tokens(1, () => {}, 0);
  });

  it("a function that is not there is null, a file that is not there an error", () => {
    assert.equal(library.find("fake_missing", signature("i32")), null);
    assert.throws(() => backend.load("/there/is/no/libtokentrie.so"), /cannot open shared object/);
  });
});

describe("structures", () => {
  const struct = new Struct({ a: "u32", b: "f64", c: "i32", d: "f32", e: "u64", f: "u32" });

  it("are laid out as C compilers do", () => {
    assert.equal(struct.size, 40);
    const view = new DataView(struct.write({ a: 1, b: 2, c: -3, d: 0.5, e: 2 ** 40, f: 6 }).buffer);
    assert.deepEqual([view.getUint32(0, true), view.getUint32(4, true), view.getFloat64(8, true)], [40, 1, 2]);
    assert.deepEqual([view.getInt32(16, true), view.getFloat32(20, true)], [-3, 0.5]);
    assert.deepEqual([view.getBigUint64(24, true), view.getUint32(32, true)], [2n ** 40n, 6]);
  });

  it("are read as they were written, 0 where nothing was", () => {
    const values = { a: 4_000_000_000, b: -1.5, c: -7, d: 0.25, e: 2 ** 52, f: 1 };
    assert.deepEqual(struct.read(struct.write(values)), values);
    assert.deepEqual(Object.values(struct.read(struct.write())), [0, 0, 0, 0, 0, 0]);
  });
});
