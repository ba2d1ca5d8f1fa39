import { compareCodePoints } from "./order.js";
import { iterableAt, objectAt, textAt, tokensAt, type TokenSequence, type TokenTreeDescriptor } from "./payload.js";

/** Tokens by name: a map, or a plain object. */
export type TokenMap = ReadonlyMap<string, readonly number[]> | Readonly<Record<string, readonly number[]>>;

/**
 * The descriptor of some names, sorted by name so that equal sets are equal bytes. The first of equal names wins; names
 * without tokens are skipped.
 *
 * @returns null where nothing is left: an empty set would forbid everything.
 * @throws PayloadError for an id that is not an integer from 0 to 2^31 - 1.
 * @example
 * buildDescriptor("action", ["REPLY", "STOP"], new Map([["REPLY", [1, 2]], ["STOP", [9]]]));
 */
export function buildDescriptor(path: string, names: Iterable<string>, tokenMap: TokenMap): TokenTreeDescriptor | null {
  const leaves = new Map<string, TokenSequence>();
  textAt(path, "path");
  iterableAt(names, "names").forEach((given, index) => {
    const name = textAt(given, `names[${index}]`);
    const found = leaves.has(name) ? undefined : tokensOf(objectAt(tokenMap, "tokenMap") as TokenMap, name);
    const tokens = found === undefined ? [] : tokensAt(found, () => `${path}, ${JSON.stringify(name)}`);
    if (tokens.length > 0) leaves.set(name, { name, tokens });
  });
  if (leaves.size === 0) return null;
  return { path, leaves: [...leaves.values()].sort((a, b) => compareCodePoints(a.name, b.name)) };
}

function tokensOf(tokenMap: TokenMap, name: string): readonly number[] | undefined {
  if (tokenMap instanceof Map) return (tokenMap as ReadonlyMap<string, readonly number[]>).get(name);
  // Only an object's own fields: a tool may have the name "constructor".
  return Object.hasOwn(tokenMap, name) ? (tokenMap as Record<string, readonly number[]>)[name] : undefined;
}
