/**
 * Writes `src/ffi/abi.ts` from the headers in `include`; a test holds the one to the other.
 *
 *     npm run abi
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { format, resolveConfig } from "prettier";

const HEADERS = ["tokentrie.h", "tokentrie_eliza.h"];

/** Not called from here: other programs' chains, and rows in batches. */
const NOT_BOUND = /^(tokentrie_(batch_\w+|chain_\w+|bind_llama|llama_api|token_callback)|llama_sampler_\w+)$/;

/** Numbers that are names here, by what they begin with in C. */
const LISTS: [prefix: string, name: string][] = [
  ["MODE_", "MODES"],
  ["STATE_", "STATES"],
  ["ALLOWED_", "ALLOWED"],
  ["AFTER_", "AFTER"],
  ["BATCHING_", "BATCHING"],
  ["TOKEN_", "TOKEN_KINDS"],
  ["FINISH_", "FINISHES"],
];

const PLAIN: Record<string, string> = {
  int32_t: "i32",
  int: "i32",
  tokentrie_status: "i32",
  uint32_t: "u32",
  uint64_t: "u64",
  float: "f32",
  double: "f64",
  size_t: "usize",
};

const unreadable = (what: string): never => {
  throw new Error(`the headers: ${what}: this tool does not know it`);
};

const ofPattern = (text: string, pattern: RegExp): string[][] =>
  [...text.matchAll(pattern)].map((match) => match.slice(1).map((part: string | undefined) => part ?? ""));

/** The type of a parameter or a result; `char *` is text only as a result. */
function typeOf(c: string, isResult: boolean, handles: ReadonlySet<string>): string {
  const declared = isResult ? c : c.replace(/\s*\b\w+$/, "");
  const type = declared.replace(/\bconst\b|\bstruct\b/g, "").trim();
  if (/\*\s*\*/.test(c)) return "buffer";
  if (!isResult && /^const (?!void)[\w ]+\*/.test(c)) return "input";
  if (type === "void") return "void";
  if (type.includes("tokentrie_token_callback")) return "callback";
  if (/^void\s*\*$/.test(type)) return "address";
  if (type.includes("*")) return isResult ? "string" : "buffer";
  return PLAIN[type] ?? (handles.has(type) ? "handle" : unreadable(`the type ${type}`));
}

const camel = (name: string) => name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());

/** The interface of a structure's fields and its layout. */
function struct([name = "", body = ""]: string[]): string {
  const fields = ofPattern(body, /\/\*\*([\s\S]*?)\*\/\s*(\w+)\s+(\w+);/g).filter(([, , field]) => field !== "size");
  if (fields.length === 0) unreadable(`the structure ${name}`);
  const short = name.replace("tokentrie_", "");
  const type = camel(`_${short}`);
  const documented = fields.map(([about = "", , field = ""]) => {
    const text = about.replaceAll(/\s*\n\s*\*?\s*/g, " ").trim();
    return `/** ${text} */\nreadonly ${camel(field)}: number;`;
  });
  const laid = fields.map(([, c = "", field = ""]) => {
    return `${camel(field)}: "${PLAIN[c] ?? unreadable(`${name}.${field}`)}"`;
  });
  return `/** Fields of the structure \`${name}\`. */\nexport interface ${type} {\n${documented.join("\n")}\n}\n
export const ${short.toUpperCase()} = new Struct<${type}>({ ${laid.join(", ")} });`;
}

/** The headers of a folder, one after the other. */
export const headersIn = (folder: string): string =>
  HEADERS.map((name) => readFileSync(join(folder, name), "utf8")).join("\n");

/** Generates `src/ffi/abi.ts` from these headers. */
export async function abiOf(header: string): Promise<string> {
  const values = new Map(
    ofPattern(header, /#define TOKENTRIE_(\w+)\s+\(?(-?\d\w*)/g).map(([name = "", value]) => [name, Number(value)]),
  );
  const number = (name: string) => values.get(name) ?? unreadable(`TOKENTRIE_${name} is missing, or no number`);
  const statuses = [...values].filter(([name]) => /^(OK|NONE|ERROR_)/.test(name)).sort(([, a], [, b]) => b - a);
  const lists = LISTS.map(([prefix, name]) => {
    const all = [...values].filter(([value]) => value.startsWith(prefix)).sort(([, a], [, b]) => a - b);
    if (all.length === 0 || all.some(([, value], at) => value !== at)) unreadable(`TOKENTRIE_${prefix}…`);
    const names = all.map(([value]) => `"${value.slice(prefix.length).toLowerCase()}"`);
    return `export const ${name} = [${names.join(", ")}] as const;`;
  });

  const structs = ofPattern(header, /typedef struct (\w+) \{([^}]*)\} \w+;/g);
  const bare = header.replaceAll(/\/\*[\s\S]*?\*\//g, "");
  const handles = new Set(ofPattern(bare, /typedef uint64_t (\w+);/g).map(([name = ""]) => name));
  const functions = ofPattern(bare, /^((?:const )?(?:struct )?\w+[\s*]+)(\w+)\(([^;{)]*)\);/gm);
  const bound = functions.filter(([, name = ""]) => !NOT_BOUND.test(name));
  const signatures = bound.map(([result = "", name = "", parameters = ""]) => {
    const given = parameters.trim() === "void" ? [] : parameters.split(",").map((parameter) => parameter.trim());
    // Memory of C's own, and not lent to it.
    if (name === "eliza_inference_free_string") given[0] = "void *text";
    const types = given.map((parameter) => typeOf(parameter, false, handles));
    const quoted = [typeOf(result.trim(), true, handles), ...types].map((type) => `"${type}"`);
    return `${name}: signature(${quoted.join(", ")}),`;
  });

  const source = `/** Declarations of the headers in \`include\`. Made by \`npm run abi\`: do not edit. */
import { type Callable, signature } from "./backend.js";
import { Struct } from "./struct.js";

/** A library fits if its upper 16 bits are these and its lower ones are no smaller. */
export const ABI_VERSION = ${number("ABI_VERSION")};

export const FEATURE_LLAMA = ${number("FEATURE_LLAMA")};
export const FEATURE_THIS_CPU = ${number("FEATURE_THIS_CPU")};

export const Status = { ${statuses.map(([name, value]) => `${name}: ${value}`).join(", ")} } as const;

/** Names of the constants, by number. */
${lists.join("\n")}

${structs
  .filter(([name = ""]) => !NOT_BOUND.test(name))
  .map(struct)
  .join("\n\n")}

export const FUNCTIONS = {
${signatures.join("\n")}
} as const;

export type FunctionName = keyof typeof FUNCTIONS;
/** Every function, as TypeScript calls it. */
export type Functions = { readonly [Name in FunctionName]: Callable<(typeof FUNCTIONS)[Name]> };
`;
  return format(source, { ...(await resolveConfig("src/ffi/abi.ts")), parser: "typescript" });
}

if (process.argv[1]?.match(/abi\.[jt]s$/)) {
  writeFileSync(join("src", "ffi", "abi.ts"), await abiOf(headersIn(join("..", "..", "include"))));
}
