/** Runs the benchmark in both runtimes, one after the other, on what was compiled. */
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const inPackage = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));
for (const runtime of [inPackage("node_modules/.bin/bun"), process.execPath]) {
  execFileSync(runtime, [inPackage("build/bench/steps.js"), ...process.argv.slice(2)], { stdio: "inherit" });
}
