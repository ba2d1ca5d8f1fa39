/** Constraints as data: the JSON form that all hosts share, written down in `docs/specs.md` of the repository. */
import { SpecError } from "../errors.js";
import { Form } from "./form.js";
import { describeValue, type TokenTreePayload } from "../tree/payload.js";

/** A literal text, or a spec that is a finite automaton. */
export type SpecPart = string | Spec;

/** Part of a form: a text, a slot with a value, or free text up to the first `stop`, or as `pattern` says. */
export type FormPart =
  | string
  | { readonly slot: string; readonly value: Spec }
  | {
      readonly text: string;
      readonly stop?: string | readonly string[];
      readonly max_tokens?: number;
      readonly exclude?: string;
      readonly pattern?: Spec;
    };

/** An integer of any size: a string of digits where a number would round it. */
export type SpecInteger = number | string;

/**
 * Limits on the work of building a rule: bytes (268435456 unless given), steps (100000000) and seconds (10), from 0 up.
 */
export interface SpecLimits {
  readonly bytes?: number;
  readonly steps?: number;
  readonly seconds?: number;
}

/** A number, or the string of one with more digits than a number of JSON holds: `"0.1234567890123456789"`. */
export type SpecNumber = number | string;

/** A rule at least `min` and at most `max` times, with a separator between two of its texts. */
export type SpecRepeat = {
  readonly rule: SpecPart;
  readonly min?: number;
  readonly max?: number;
  readonly separator?: string;
};

/**
 * From one time to another, in UTC with a `Z`: `"09:30"`, `"2024-02-29T09:30:00Z"`. They are written as exactly as
 * `timespec` says, or in a `format` of strftime: `"%d.%m.%Y %H:%M"`.
 */
export type SpecTimes = {
  readonly min?: string;
  readonly max?: string;
  readonly format?: string;
  readonly timespec?: "minutes" | "seconds" | "milliseconds" | "microseconds";
  readonly utc?: boolean;
};

/** A text of the marker's own spelling, or ids of tokens. */
export type SpecMarker = string | readonly number[];

/**
 * Constraint as data, without a vocabulary: an object of exactly one kind, with the fields that may stand beside it.
 *
 * @example
 * const amount: Spec = { then: [{ integer: { min: 1, max: 99 } }, " kg"] };
 */
export type Spec = { readonly version?: 1 } & (
  | { readonly any: Readonly<Record<string, never>> }
  | {
      readonly choice: readonly string[];
      readonly prefix?: string;
      readonly suffix?: string;
      readonly tokenization?: "canonical" | "open_end" | "all";
    }
  | { readonly payload: TokenTreePayload; readonly path?: string }
  | { readonly regex: string; readonly max_bytes?: number; readonly limits?: SpecLimits }
  | { readonly grammar: string; readonly lenient?: boolean; readonly limits?: SpecLimits }
  | { readonly lark: string; readonly limits?: SpecLimits }
  | { readonly gbnf: string; readonly limits?: SpecLimits }
  | {
      /** A module, in base64: `Buffer.from(bytes).toString("base64")`. */
      readonly wasm: string;
      readonly limits?: SpecLimits;
    }
  | {
      /** A schema, or its text, which keeps numbers of more than 64 bits. */
      readonly json_schema: object | boolean | string;
      readonly whitespace?: "compact" | "flexible" | "none" | (string & {});
      readonly unicode_escapes?: boolean;
      readonly lenient?: boolean;
      /** Treatment of `format`. */
      readonly formats?: "assert" | "annotate";
      /** Order of the members of an object. */
      readonly order?: "schema" | "any";
      /** True if a whole number may be written as `1.0` or `1e2`. */
      readonly any_numerals?: boolean;
      /** Treatment of members whose names the schema does not mention. */
      readonly names?: "open" | "closed";
      /** True if a keyword that applies to one type requires that type where no `type` is given. */
      readonly implied_types?: boolean;
      readonly limits?: SpecLimits;
    }
  | { readonly integer: { readonly min?: SpecInteger; readonly max?: SpecInteger } }
  | {
      readonly number: {
        readonly min?: SpecNumber;
        readonly max?: SpecNumber;
        readonly integer_digits?: number;
        readonly fraction_digits?: number;
        readonly exponent_digits?: number;
      };
    }
  | { readonly date: { readonly min?: string; readonly max?: string; readonly format?: string } }
  | { readonly time: SpecTimes }
  | { readonly date_time: SpecTimes }
  | { readonly string: { readonly min_chars?: number; readonly max_chars?: number; readonly quotes?: boolean } }
  | { readonly one_of: readonly SpecPart[] }
  | { readonly then: readonly SpecPart[] }
  | { readonly repeat: SpecRepeat }
  | { readonly sequence: readonly Spec[] }
  | { readonly form: readonly FormPart[] }
  | {
      readonly think: {
        readonly end: SpecMarker;
        readonly begin?: SpecMarker;
        readonly message?: SpecMarker;
        readonly budget?: number;
        readonly budget_from?: "start" | "begin";
        readonly started?: boolean;
        readonly optional?: boolean;
        readonly at_once?: boolean;
        readonly masked?: readonly number[];
        readonly then?: Spec;
      };
    }
  | {
      readonly reply: {
        readonly tools?: readonly object[];
        readonly tool_choice?: string | { readonly function: { readonly name: string } };
        readonly parallel_tool_calls?: boolean;
        readonly generation_prompt?: string;
        readonly thinking_budget?: number;
        readonly spelling?: "canonical" | "any";
        readonly template?: string;
        readonly bos?: string;
        readonly eos?: string;
        readonly response_template?: object;
      };
    }
);

/**
 * The text that the library reads; a text is given on as it is. A value that JSON would silently change is refused: it
 * would read as a missing field, and the constraint would allow too much.
 *
 * @throws SpecError with the place.
 */
export function specText(spec: Spec | string): string {
  if (typeof spec !== "string") return jsonText(spec);
  if (!spec.isWellFormed()) throw new SpecError(`$: ${describeValue(spec)} has half of a surrogate pair`);
  return spec;
}

/** @throws SpecError with the place, for what JSON would leave out or change. */
export function jsonText(value: object): string {
  check(value, "$");
  return JSON.stringify(value);
}

function check(value: unknown, place: string): void {
  if (Array.isArray(value)) {
    // JSON cannot leave an array item out: it would write null.
    const at = value.findIndex((item) => item === undefined);
    if (at >= 0) throw new SpecError(`${place}[${at}]: undefined is not JSON`);
    value.forEach((item, index) => check(item, `${place}[${index}]`));
  } else if (isPlain(value)) {
    for (const [name, item] of Object.entries(value)) check(item, `${place}.${name}`);
  } else if (typeof value === "string" && !value.isWellFormed()) {
    // JSON would write a lone surrogate as an escape, which no library reads.
    throw new SpecError(`${place} is ${describeValue(value)}: it has half of a surrogate pair`);
  } else if (!isScalar(value)) {
    throw new SpecError(
      `${place}: ${describeNonJson(value)} is not JSON: plain objects, arrays, texts and numbers are`,
    );
  }
}

/** Undefined is a field that was left out. */
const isScalar = (value: unknown) =>
  value === null || ["string", "boolean", "undefined"].includes(typeof value) || Number.isFinite(value);

function isPlain(value: unknown): value is object {
  if (typeof value !== "object" || value === null) return false;
  if (value instanceof Form) return true;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function describeNonJson(value: unknown): string {
  if (typeof value === "object") return `an object of ${(value as object).constructor?.name ?? "its own class"}`;
  return typeof value === "bigint" ? `${value}n` : typeof value === "function" ? "a function" : describeValue(value);
}
