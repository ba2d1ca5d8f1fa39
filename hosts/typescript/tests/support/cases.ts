import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The root of the checkout: the first folder above that has the vectors. */
export const ROOT = (() => {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, "tests", "vectors"))) {
    const above = dirname(folder);
    if (above === folder) throw new Error("these tests need a checkout: there is no tests/vectors above them");
    folder = above;
  }
  return folder;
})();

/** A case of the shared files; each kind has a shape of its own. */
export interface Case {
  readonly id: string;
  readonly kind: string;
  readonly input: any;
  readonly expect: any;
}

const folder = process.env["TOKENTRIE_CASES_DIR"] || join(ROOT, "..", "shared", "cases");
const file = join(folder, "host.json");

/** The cases of hosts; null, and said once, where the folder is not there. */
export const HOST_CASES: readonly Case[] | null = existsSync(file)
  ? (JSON.parse(readFileSync(file, "utf8")).cases as Case[])
  : null;

export const NO_CASES = `there is no ${file}; TOKENTRIE_CASES_DIR names the folder`;

export function hostCases(...kinds: string[]): readonly Case[] {
  return (HOST_CASES ?? []).filter(({ kind }) => kinds.includes(kind));
}
