/** The tables of `src/ffi/abi.ts` are what the header says, function for function and field for field. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import * as abi from "../src/ffi/abi.js";
import type { CType } from "../src/ffi/backend.js";
import type { Struct } from "../src/ffi/struct.js";
import { ROOT } from "./support/cases.js";

const file = process.env["TOKENTRIE_HEADER"] || join(ROOT, "include", "tokentrie.h");
const exists = existsSync(file);

/** Not called from here: other programs' chains, and rows in batches. */
const NOT_BOUND = /^tokentrie_(batch_\w+|chain_\w+|bind_llama|token_callback)$|^llama_sampler_init_token_trie$/;

/** The type of a parameter or result; `char *` is text only as a result. */
function typeOf(c: string, isResult: boolean): CType {
  const type = c
    .replace(/\bconst\b|\bstruct\b/g, "")
    .replace(/\s*\b\w+$/, (name) => (isResult ? name : ""))
    .trim();
  if (/\*\s*\*/.test(c)) return "buffer";
  if (type === "void" && !c.includes("*")) return "void";
  if (c.includes("tokentrie_token_callback")) return "callback";
  if (/^void\s*\*/.test(type)) return "address";
  if (c.includes("*")) return isResult ? "string" : "buffer";
  const plain: Record<string, CType> = {
    int32_t: "i32",
    int: "i32",
    tokentrie_status: "i32",
    uint32_t: "u32",
    float: "f32",
    double: "f64",
    size_t: "usize",
  };
  return plain[type] ?? (/^tokentrie_(vocab|trie|sampler|batch|cache|session)$/.test(type) ? "handle" : ("?" as CType));
}

describe("the header", { skip: exists ? false : `there is no ${file}` }, () => {
  const text = exists ? readFileSync(file, "utf8").replace(/\/\*[\s\S]*?\*\//g, "") : "";
  const functions = [...text.matchAll(/^((?:const )?(?:struct )?\w+[\s*]+)(\w+)\(([^;{)]*)\);/gm)].filter(
    ([, , name]) => !NOT_BOUND.test(name ?? ""),
  );

  it("has the functions that are bound, and no others", () => {
    assert.deepEqual(functions.map(([, , name]) => name).sort(), Object.keys(abi.FUNCTIONS).sort());
    assert.ok(functions.length > 60);
  });

  for (const [, result = "", name = "", parameters = ""] of functions) {
    it(`${name} has these types`, () => {
      const given = parameters.trim() === "void" ? [] : parameters.split(",").map((parameter) => parameter.trim());
      // Memory of C's own, and not lent to it.
      if (name === "eliza_inference_free_string") given[0] = "void *text";
      const bound = abi.FUNCTIONS[name as abi.FunctionName];
      assert.deepEqual(
        [typeOf(result.trim(), true), ...given.map((parameter) => typeOf(parameter, false))],
        [bound.result, ...bound.arguments],
      );
    });
  }

  const structs: Record<string, Struct<never>> = {
    tokentrie_sampler_options: abi.SAMPLER_OPTIONS,
    tokentrie_trie_info: abi.TRIE_INFO,
    tokentrie_cache_stats: abi.CACHE_STATS,
    tokentrie_session_options: abi.SESSION_OPTIONS,
    tokentrie_session_info: abi.SESSION_INFO,
    tokentrie_choice: abi.CHOICE,
  } as unknown as Record<string, Struct<never>>;
  for (const [name, struct] of Object.entries(structs)) {
    it(`${name} has these fields`, () => {
      const body = new RegExp(`typedef struct ${name} \\{([^}]*)\\}`).exec(text)?.[1] ?? "";
      const short: Record<string, string> = {
        uint32_t: "u32",
        int32_t: "i32",
        uint64_t: "u64",
        float: "f32",
        double: "f64",
      };
      const fields = [...body.matchAll(/(\w+)\s+(\w+);/g)].map(([, type = "", field]) => [field, short[type]]);
      assert.deepEqual(fields, [["size", "u32"], ...Object.entries(struct.fields)]);
    });
  }

  it("has these numbers", () => {
    const values = new Map<string, number>();
    for (const [, name = "", value] of text.matchAll(/#define TOKENTRIE_(\w+)\s+\(?(-?\d\w*)/g)) {
      values.set(name, Number(value));
    }
    assert.equal(values.get("ABI_VERSION"), abi.ABI_VERSION);
    assert.equal(values.get("FEATURE_LLAMA"), abi.FEATURE_LLAMA);
    const statuses = [...values].filter(([name]) => /^(OK|NONE|ERROR_)/.test(name));
    assert.deepEqual(Object.fromEntries(statuses), abi.Status);
    const lists: [string, readonly string[]][] = [
      ["STATE_", abi.STATES],
      ["ALLOWED_", abi.ALLOWED],
      ["AFTER_", abi.AFTER],
      ["TOKEN_", abi.TOKEN_KINDS],
      ["FINISH_", abi.FINISHES],
      ["MODE_", ["greedy", "sampled"]],
    ];
    for (const [prefix, names] of lists) {
      const found = [...values].filter(([name]) => name.startsWith(prefix)).sort(([, a], [, b]) => a - b);
      assert.deepEqual(
        found.map(([name, value]) => [name.slice(prefix.length).toLowerCase().replaceAll("_", "-"), value]),
        names.map((name, index) => [name, index]),
      );
    }
  });
});
