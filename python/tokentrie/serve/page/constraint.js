/** A constraint as a visitor types it: its kind, its text, and the spec that they become. */

import { area, h, segments } from "./dom.js";
import { Problem, parsed } from "./problems.js";

const KINDS = { form: "Form", choices: "Choices", regex: "Regex", grammar: "Grammar", schema: "JSON Schema" };
const HINTS = {
  form: "Literals, slots with a constraint of their own, free text: parts of a spec, or any spec.",
  choices: "One a line.",
  regex: "Of the whole text.",
  grammar: "GBNF, as llama.cpp reads it, Lark, or rules in the style of yacc, each ended by a semicolon.",
  schema: "The text is JSON that the schema allows.",
};

/** The syntax of a grammar text, guessed from its punctuation. */
function grammarKind(text) {
  if (text.includes("::=")) return "gbnf";
  return /;[ \t]*$/m.test(text) ? "grammar" : "lark";
}

/**
 * An editor. `examples` fill it in: `{kind, held}`, of each kind the first where that kind is taken. `change` is called
 * when another spec is typed, `turn` with the example of another kind that is taken.
 */
export function constraintEditor(examples, change, turn = change) {
  let kind = "form";
  const held = area({ rows: "9", class: "code", "aria-label": "The constraint", oninput: change });
  const blanks = h("input", { type: "checkbox", onchange: change });
  const blanksField = h("label", { class: "check" }, blanks, "White space may stand between");
  const hint = h("p", { class: "hint" });
  const kinds = segments("Kind of constraint", KINDS, kind, (name) => {
    const first = Object.values(examples).find((one) => one.kind === name);
    set(first);
    turn(first);
  });

  function set(example) {
    kind = example.kind;
    kinds.choose(kind);
    held.value = example.held;
    hint.textContent = HINTS[kind];
    blanksField.hidden = kind !== "schema";
  }

  /** The texts of a list of choices. */
  const choices = () => held.value.split("\n").filter((line) => line !== "");

  /** Returns the constraint on the text, as a spec. Throws Problem. */
  function spec() {
    const text = held.value;
    if (kind === "choices") {
      if (choices().length === 0) throw new Problem("there is no choice: give one a line", { param: "constraint" });
      return { choice: choices() };
    }
    if (kind === "regex") return { regex: text };
    if (kind === "grammar") return { [grammarKind(text)]: text };
    const said = parsed(text, "constraint");
    if (kind === "schema") return { json_schema: said, whitespace: blanks.checked ? "flexible" : "none" };
    return Array.isArray(said) ? { form: said } : said;
  }

  return {
    element: h("div", { class: "field" }, h("h2", {}, "What holds the text"), kinds, held, blanksField, hint),
    field: held,
    set,
    spec,
    isTaken: (example) => held.value === example.held,
  };
}
