/** `src/ffi/abi.ts` is what `npm run abi` makes of the headers. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { abiOf, headersIn } from "../tools/abi.js";
import { ROOT } from "./support/cases.js";

const folder = process.env["TOKENTRIE_INCLUDE"] || join(ROOT, "include");
const made = join(ROOT, "hosts", "typescript", "src", "ffi", "abi.ts");

describe("the headers", { skip: existsSync(folder) ? false : `there is no ${folder}` }, () => {
  const header = existsSync(folder) ? headersIn(folder) : "";

  it("are what the calls are made from", async () => {
    assert.equal(readFileSync(made, "utf8"), await abiOf(header), "run npm run abi");
  });

  it("have functions, structures and numbers that are found", async () => {
    const abi = await abiOf(header);
    for (const line of [
      'tokentrie_sampler_sample: signature("i32", "handle", "input", "usize", "buffer"),',
      'tokentrie_session_generate: signature("i32", "handle", "input", "usize", "callback", "address"),',
      'tokentrie_last_error: signature("string"),',
      'eliza_inference_free_string: signature("void", "address"),',
      'export const STATES = ["active", "complete", "idle", "off"] as const;',
      '  forcedTokens: "u64",',
      "  readonly typicalP: number;",
    ]) {
      assert.ok(abi.includes(line), line);
    }
    assert.ok(!abi.includes("llama_sampler_init") && !abi.includes("tokentrie_batch_"));
  });

  it("with a type that is not known makes nothing", async () => {
    for (const [from, to] of [
      ["uint32_t n_ctx;", "uint16_t n_ctx;"],
      ["const float *logits", "size_t logits, wchar_t other"],
      ["#define TOKENTRIE_STATE_OFF", "#define TOKENTRIE_OTHER_OFF"],
    ] as const) {
      assert.ok(from === "#define TOKENTRIE_STATE_OFF" || header.includes(from), from);
      const changed = header.replace(from, to);
      if (changed.includes("OTHER_OFF")) assert.notEqual(await abiOf(changed), await abiOf(header));
      else await assert.rejects(abiOf(changed), /does not know it/);
    }
  });
});
