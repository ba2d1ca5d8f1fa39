import { ArgumentError } from "../errors.js";
import { makeHandle, Resource, readText, utf8 } from "../ffi/call.js";
import type { Library } from "../ffi/library.js";
import { describeValue } from "../tree/payload.js";
import { warn } from "../warning.js";
import { type Spec, specText } from "./spec.js";
import { Trie } from "./trie.js";
import { Vocab } from "./vocab.js";

/** Constraint over a vocabulary. It never changes, and any number of samplers and generations share it. */
export class Constraint extends Resource {
  /** @internal */
  constructor(library: Library, handle: number) {
    super(library, handle, library.functions.tokentrie_constraint_free);
  }

  /**
   * All values of a constraint that has few, as a trie, named by their texts: for `session.choose`, or to look at.
   *
   * @throws SpecError where the values have no end or are too many to list.
   * @example
   * using grades = constraint({ integer: { min: 1, max: 6 } }, vocab);
   * using trie = grades.trie(); // trie.size === 6
   */
  trie(): Trie {
    return new Trie(this.library, trieHandle(this.library, this.handle));
  }

  /**
   * The texts of a list or of a rule with few, in the order of a list; null for every other kind.
   *
   * @throws SpecError where they have no end or are too many to list.
   */
  texts(): string[] | null {
    const { tokentrie_constraint_texts } = this.library.functions;
    const json = readText(this.library, (buffer, capacity, count) =>
      tokentrie_constraint_texts(this.handle, buffer, capacity, count),
    );
    return json === null ? null : (JSON.parse(json) as string[]);
  }

  /** The spec in its canonical form: one text for one content. */
  toJSON(): Spec {
    return JSON.parse(this.toString()) as Spec;
  }

  /** The text of `toJSON`; integers of any size keep their digits. */
  override toString(): string {
    const { tokentrie_constraint_json } = this.library.functions;
    const json = readText(this.library, (buffer, capacity, count) =>
      tokentrie_constraint_json(this.handle, buffer, capacity, count),
    );
    return json ?? "";
  }
}

/**
 * A constraint of any kind, from a spec as object or JSON text. Rules need a vocabulary with the bytes of its tokens,
 * texts one of a model: `session.vocab()`. `session.constraint` makes one without holding up the event loop.
 *
 * @throws SpecError that says which part is wrong, as `$.then[1].integer.min`.
 * @example
 * const amount = constraint({ then: [{ integer: { min: 1, max: 99 } }, " kg"] }, vocab);
 */
export function constraint(spec: Spec | string, vocab: Vocab): Constraint {
  if (!(vocab instanceof Vocab)) throw new ArgumentError(`vocab is ${describeValue(vocab)}: a Vocab is needed`);
  return constraintOf(vocab.library, constraintHandle(vocab.library, specText(spec), vocab.handle));
}

/** @internal A constraint that was just made; passes its warnings on to the user. */
export function constraintOf(library: Library, handle: number): Constraint {
  const made = new Constraint(library, handle);
  const { tokentrie_constraint_warnings } = library.functions;
  const json = readText(library, (buffer, capacity, count) =>
    tokentrie_constraint_warnings(handle, buffer, capacity, count),
  );
  for (const warning of JSON.parse(json ?? "[]") as string[]) warn(warning);
  return made;
}

/** @internal The values of a constraint that has few. */
export function trieHandle(library: Library, constraint: number): number {
  const { tokentrie_constraint_trie } = library.functions;
  return makeHandle(library, (out) => tokentrie_constraint_trie(constraint, out));
}

/** @internal */
export function constraintHandle(library: Library, spec: string, vocab: number): number {
  const json = utf8(spec, "spec");
  const { tokentrie_constraint_from_json } = library.functions;
  return makeHandle(library, (out) => tokentrie_constraint_from_json(json, json.length, vocab, out));
}
