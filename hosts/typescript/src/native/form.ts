/** Forms with types: text with parts to fill in, and the values that were filled in, by name. */
import { ArgumentError } from "../errors.js";
import type { FormPart, Spec } from "./spec.js";

/** Type of a value of this spec in TypeScript: one of the texts of a list, a number, or else a string. */
export type ValueOf<S> = S extends { readonly choice: readonly (infer Text extends string)[] }
  ? Text
  : S extends { readonly integer: unknown } | { readonly number: unknown }
    ? number
    : string;

type Field<P> = P extends { readonly slot: infer Name extends string; readonly value: infer S }
  ? { readonly [K in Name]: ValueOf<S> }
  : P extends { readonly text: infer Name extends string; readonly pattern: infer S }
    ? { readonly [K in Name]: ValueOf<S> }
    : P extends { readonly text: infer Name extends string }
      ? { readonly [K in Name]: string }
      : unknown;

/** The values of a form with these parts, by name. */
export type FormValues<Parts extends readonly FormPart[]> = Parts extends readonly [
  infer First,
  ...infer Rest extends readonly FormPart[],
]
  ? Field<First> & FormValues<Rest>
  : unknown;

/**
 * Text with parts to fill in, as a constraint: `session.generate(prompt, { constraint: form })`. It is the spec
 * `{ form: [...] }`, and stands wherever a spec does.
 *
 * @example
 * const form = new Form('{"city": "', { slot: "city", value: { choice: ["Bonn", "Oslo"] } }, '"}');
 * const { city } = form.values(await session.generate(prompt, { constraint: form }).result); // "Bonn" | "Oslo"
 */
export class Form<const Parts extends readonly FormPart[] = readonly FormPart[]> {
  readonly form: Parts;

  constructor(...parts: Parts) {
    this.form = parts;
  }

  /**
   * Returns the filled values of a generation, by name: numbers where the values are integers or numbers.
   *
   * @throws ArgumentError if it followed no form or another one, or if an integer is too large for a number: then
   *   `result.values` has its digits.
   */
  values(result: { readonly values: Readonly<Record<string, string>> | null }): FormValues<Parts> {
    const filled = (result as { readonly values?: Readonly<Record<string, string>> | null } | null)?.values;
    const values: Record<string, string | number> = {};
    for (const part of this.form) {
      if (typeof part === "string") continue;
      const [name, spec] = "slot" in part ? [part.slot, part.value] : [part.text, part.pattern];
      const text: unknown = filled?.[name];
      if (typeof text !== "string")
        throw new ArgumentError(`the generation did not fill ${JSON.stringify(name)} of this form`);
      values[name] = valueOf(name, text, spec);
    }
    return values as FormValues<Parts>;
  }

  /** Returns the spec of the form. */
  toJSON(): Spec {
    return { form: this.form };
  }
}

function valueOf(name: string, text: string, spec: Spec | undefined): string | number {
  if (spec === undefined || !("integer" in spec || "number" in spec)) return text;
  const value = Number(text);
  if ("integer" in spec && !Number.isSafeInteger(value)) {
    throw new ArgumentError(`${JSON.stringify(name)} is ${text}, which no number holds: take it from result.values`);
  }
  return value;
}
