import { ArgumentError } from "../errors.js";
import { describeValue } from "../tree/payload.js";

/** Option names: camel case in JavaScript; the library reads the names that all hosts share. */

const snake = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
const camel = (name: string) => name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());

const renamed = (object: object, name: (name: string) => string): Record<string, unknown> =>
  Object.fromEntries(Object.entries(object).map(([key, value]) => [name(key), value as unknown]));

/** Options as the library reads them; without those that were not given. */
export function forLibrary(options: object): Record<string, unknown> {
  if (options === null || typeof options !== "object") {
    throw new ArgumentError(`options are ${describeValue(options)}: an object is needed`);
  }
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  return renamed(Object.fromEntries(given), snake);
}

/** Converts an object that the library wrote. */
export function ofLibrary(object: object): Record<string, unknown> {
  return renamed(object, camel);
}
