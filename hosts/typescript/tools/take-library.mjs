/**
 * Before packing: the library that TOKENTRIE_LIB names goes into `lib/`, without its symbols for debuggers, and the
 * licences of the repository beside it.
 */
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { packagedLibrary } from "../dist/ffi/library.js";

const source = process.env.TOKENTRIE_LIB;
if (!source) {
  console.error("TOKENTRIE_LIB names no library: without one this package would be of no use on any machine");
  process.exit(1);
}
const target = packagedLibrary();
mkdirSync(dirname(target), { recursive: true });
copyFileSync(source, target);
for (const license of ["LICENSE-MIT", "LICENSE-APACHE"]) {
  copyFileSync(new URL(`../../../${license}`, import.meta.url), new URL(`../${license}`, import.meta.url));
}
try {
  execFileSync("strip", process.platform === "darwin" ? ["-x", target] : ["--strip-unneeded", target]);
} catch (error) {
  if (error.code !== "ENOENT") throw error;
  console.error("there is no strip: the library keeps its symbols");
}
console.error(`${target}: ${(statSync(target).size / 1e6).toFixed(1)} MB`);
