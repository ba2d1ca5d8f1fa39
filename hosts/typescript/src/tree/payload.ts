import { PayloadError } from "../errors.js";

/** One legal value: its name and its tokens. */
export interface TokenSequence {
  readonly name: string;
  readonly tokens: readonly number[];
}

/** The legal values of one span. `path` is a label such as `action`, `parameters.color` or `contexts[]`. */
export interface TokenTreeDescriptor {
  readonly path: string;
  readonly leaves: readonly TokenSequence[];
}

/** The wire form of one or several tries; they are never merged. */
export interface TokenTreePayload {
  readonly modelId: string;
  readonly descriptors: readonly TokenTreeDescriptor[];
}

/** 0 or `"greedy"`: the highest legal logit. 1 or `"sampled"`: a seeded draw over the legal ones. */
export type TokenTreeMode = 0 | 1 | "greedy" | "sampled";

/** The highest token id there can be: 2^31 - 1. */
export const MAX_TOKEN_ID = 0x7fffffff;

/**
 * `where` is asked only for an error: it is written for every token of every leaf.
 *
 * @throws PayloadError if the id is not an integer from 0 to 2^31 - 1.
 */
export function checkTokenId(token: unknown, where: () => string): number {
  if (!Number.isInteger(token) || (token as number) < 0 || (token as number) > MAX_TOKEN_ID) {
    throw new PayloadError(
      `${where()}: invalid tokenId ${describeValue(token)}: an integer from 0 to 2147483647 is needed`,
    );
  }
  return token as number;
}

/**
 * The numbers that the C functions take.
 *
 * @throws PayloadError for any other mode.
 */
export function modeNumber(mode: TokenTreeMode): 0 | 1 {
  if (mode === 0 || mode === "greedy") return 0;
  if (mode === 1 || mode === "sampled") return 1;
  throw new PayloadError(`mode ${describeValue(mode)}: 0 or "greedy", 1 or "sampled" is needed`);
}

/**
 * Makes a payload of descriptors. Some may be null, as `buildDescriptor` gives them.
 *
 * @throws PayloadError if two descriptors have one path, or if none is left: without one, anything could be written.
 * @example
 * const payload = buildPayload("my-model", [buildDescriptor("action", names, tokens)]);
 */
export function buildPayload(modelId: string, descriptors: Iterable<TokenTreeDescriptor | null>): TokenTreePayload {
  const used = iterableAt(descriptors, "descriptors").flatMap((descriptor, index) =>
    descriptor === null ? [] : [checkDescriptor(descriptor, `descriptors[${index}]`)],
  );
  checkPaths(used);
  if (used.length === 0) throw new PayloadError("payload: no descriptor is left, so there is nothing to choose from");
  return { modelId: textAt(modelId, "modelId"), descriptors: used };
}

function checkPaths(descriptors: readonly TokenTreeDescriptor[]): void {
  const paths = new Set<string>();
  for (const { path } of descriptors) {
    if (paths.has(path)) throw new PayloadError(`payload: two descriptors have the path ${describeValue(path)}`);
    paths.add(path);
  }
}

/**
 * Checks a value of unknown origin. Unknown fields are ignored; a missing `modelId` is empty; leaves without tokens
 * stay and are skipped later, as everywhere.
 *
 * @throws PayloadError that names the field, such as `descriptors[0].leaves[3].tokens[1]`.
 */
export function checkPayload(value: unknown): TokenTreePayload {
  const payload = objectAt(value, "payload");
  const modelId = "modelId" in payload ? payload["modelId"] : "";
  const descriptors = Array.from(listAt(payload["descriptors"], "descriptors"), (descriptor, index) =>
    checkDescriptor(descriptor, `descriptors[${index}]`),
  );
  const checked = { modelId: textAt(modelId, "modelId"), descriptors };
  checkPaths(descriptors);
  if (!descriptors.some(({ leaves }) => leaves.some(({ tokens }) => tokens.length > 0))) {
    throw new PayloadError(
      `payload: no usable leaf in ${descriptors.length} descriptor(s): give at least one leaf that has tokens`,
    );
  }
  return checked;
}

/**
 * Reads the JSON text of a payload.
 *
 * @throws PayloadError if it is not JSON, or not of this form.
 */
export function parsePayload(text: string): TokenTreePayload {
  let value: unknown;
  if (typeof text !== "string") throw new PayloadError(`payload: a text is needed, not ${describeValue(text)}`);
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new PayloadError(`payload: invalid JSON: ${(error as Error).message}`, { cause: error });
  }
  return checkPayload(value);
}

/** Returns the JSON text of a payload for the C functions; an object is checked first. */
export function payloadText(payload: TokenTreePayload | string): string {
  if (typeof payload !== "string") return JSON.stringify(checkPayload(payload));
  return textAt(payload, "payload");
}

function checkDescriptor(value: unknown, where: string): TokenTreeDescriptor {
  const descriptor = objectAt(value, where);
  const leaves = Array.from(listAt(descriptor["leaves"], `${where}.leaves`), (leaf, index) =>
    checkLeaf(leaf, `${where}.leaves[${index}]`),
  );
  return { path: textAt(descriptor["path"], `${where}.path`), leaves };
}

function checkLeaf(value: unknown, where: string): TokenSequence {
  const leaf = objectAt(value, where);
  const tokens = tokensAt(leaf["tokens"], () => `${where}.tokens`);
  return { name: textAt(leaf["name"], `${where}.name`), tokens };
}

/**
 * `where` is asked only for an error: it is written for every leaf.
 *
 * @throws PayloadError for anything that is not a list of ids.
 */
export function tokensAt(value: unknown, where: () => string): number[] {
  const isList = Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView));
  if (!isList) throw new PayloadError(`${where()}: a list is needed, not ${describeValue(value)}`);
  return Array.from(value as ArrayLike<unknown>, (token, index) => checkTokenId(token, () => `${where()}[${index}]`));
}

/** Like `Array.isArray`, which would narrow the type of its argument to `any[]`. */
export const isList = (value: unknown): boolean => Array.isArray(value);

/** @throws PayloadError for a value that is not iterable, and for a string, although it is iterable. */
export function iterableAt(value: unknown, where: string): unknown[] {
  const isIterable = typeof value === "object" && value !== null && Symbol.iterator in value;
  if (!isIterable) throw new PayloadError(`${where}: a list is needed, not ${describeValue(value)}`);
  return [...(value as Iterable<unknown>)];
}

export function objectAt(value: unknown, where: string): Record<string, unknown> {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new PayloadError(`${where}: an object is needed, not ${describeValue(value)}`);
}

function listAt(value: unknown, where: string): unknown[] {
  if (Array.isArray(value)) return value;
  throw new PayloadError(`${where}: a list is needed, not ${describeValue(value)}`);
}

export function textAt(value: unknown, where: string): string {
  if (typeof value !== "string") throw new PayloadError(`${where}: a string is needed, not ${describeValue(value)}`);
  if (!value.isWellFormed()) throw new PayloadError(`${where}: ${describeValue(value)} has half of a surrogate pair`);
  return value;
}

/** A value in an error: short, and never an error of its own. */
export function describeValue(value: unknown): string {
  let text: string | undefined;
  try {
    if (typeof value === "number" || typeof value === "symbol") text = String(value);
    else text = typeof value === "bigint" ? `${value}n` : JSON.stringify(value);
  } catch {
    text = undefined;
  }
  text ??= String(value);
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}
