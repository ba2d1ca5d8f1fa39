/** Removes folders of this package: what was compiled of files that are gone must not be tested or published. */
import { rmSync } from "node:fs";
import { fileURLToPath } from "node:url";

for (const folder of process.argv.slice(2)) {
  rmSync(fileURLToPath(new URL(`../${folder}`, import.meta.url)), { recursive: true, force: true });
}
