/**
 * Before packing: a library that is built for a CPU level goes into `lib/`, without its symbols for debuggers, and the
 * licences of the repository beside it. TOKENTRIE_LIB names another library; one for the machine at hand alone may be
 * packed, for tests, but not published.
 */
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { packagedLibrary } from "../dist/ffi/files.js";
import { loadLibrary } from "../dist/ffi/library.js";

const source = process.env.TOKENTRIE_LIB || built();
if (loadLibrary(source).isForThisCpu) {
  console.error(
    `${source} was compiled for the processor of the machine that built it: on others it may end with an illegal ` +
      "instruction. Without TOKENTRIE_LIB one is built for a CPU level",
  );
  if (process.env.npm_command === "publish") process.exit(1);
}

/** Minutes the first time: llama.cpp is compiled. */
function built() {
  const dev = fileURLToPath(new URL("../../../dev", import.meta.url));
  const said = execFileSync(dev, ["npm-library"], { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
  return said.trim().split("\n").at(-1);
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
