import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "./cases.js";

/** Compiles the library of `fake.c` with this version; null where there is no C compiler. */
export function fakeLibrary(version: number, ...flags: string[]): string | null {
  const folder = mkdtempSync(join(tmpdir(), "tokentrie-fake-"));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  const library = join(folder, "libfake.so");
  const source = join(ROOT, "hosts", "typescript", "tests", "support", "fake.c");
  try {
    execFileSync("cc", ["-shared", "-fPIC", "-O1", ...flags, `-DFAKE_VERSION=${version}u`, "-o", library, source]);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
  return library;
}

export const NO_COMPILER = "there is no C compiler (cc)";
