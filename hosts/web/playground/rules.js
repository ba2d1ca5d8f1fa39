/** The four tabs of rules: what is typed in each, and the spec that it becomes. */

import { h, segments } from "./page/dom.js";
import { explorer } from "./explorer.js";

const lines = (text) => text.split("\n").filter((line) => line !== "");

export function regex(panel) {
  explorer(panel, {
    title: "A regular expression, token by token",
    text: "Write one, and see which tokens a model could say next. Whatever may come can be completed.",
    label: "Regular expression",
    examples: {
      "A date": { rule: "(19|20)[0-9]{2}-(0[1-9]|1[0-2])-[0-3][0-9]", prefix: "20" },
      "A mail address": { rule: "[a-z][a-z0-9.]{0,20}@(example|test)\\.(com|org)", prefix: "ann@" },
      "Words, then an end": { rule: "([a-z]+ ){2,6}end[.!?]", prefix: "this is the " },
      "A version": { rule: "v[0-9]+\\.[0-9]+(\\.[0-9]+)?(-(alpha|beta|rc[0-9]))?", prefix: "v1.4-" },
    },
    spec: (rule) => ({ regex: rule }),
  });
}

const ARITHMETIC = `%start sum
SKIP   : "/[ \\t]+/" ;
NUMBER : "/[0-9]+/" ;

sum     : product | sum "+" product | sum "-" product ;
product : factor | product "*" factor ;
factor  : NUMBER | "(" sum ")" ;
`;

const LISTS = `root   ::= "[" (item ("," " " item)*)? "]"
item   ::= number | string | root
number ::= "-"? [0-9]{1,9}
string ::= "\\"" [a-z ]* "\\""
`;

const QUERY = `start: "SELECT " columns " FROM " NAME (" WHERE " test)?
columns: "*" | NAME (", " NAME)*
test: NAME OPERATOR NUMBER
OPERATOR: " = " | " < " | " > "
NAME: /[a-z_]+/
NUMBER: /[0-9]+/
`;

export function grammar(panel) {
  let kind = "grammar";
  const names = { grammar: "yacc", gbnf: "GBNF", lark: "Lark" };
  const kinds = segments("How the grammar is written", names, kind, (name) => {
    kind = name;
    view.update();
  });
  const view = explorer(panel, {
    title: "A grammar, token by token",
    text: "In the style of yacc, as llama.cpp has them, or in Lark. Brackets nest as deep as they like.",
    label: "Grammar",
    above: h("div", { class: "field" }, h("span", { class: "hint" }, "Written as"), kinds),
    examples: {
      Arithmetic: { rule: ARITHMETIC, prefix: "(1 + 23", kind: "grammar" },
      "Lists of lists": { rule: LISTS, prefix: '[1, ["a"', kind: "gbnf" },
      "A query": { rule: QUERY, prefix: "SELECT name FROM users", kind: "lark" },
    },
    take: (one) => {
      kind = one.kind;
      kinds.choose(kind);
    },
    spec: (rule) => ({ [kind]: rule }),
  });
}

const PERSON = {
  type: "object",
  properties: {
    name: { type: "string", minLength: 1 },
    age: { type: "integer", minimum: 0, maximum: 130 },
    role: { enum: ["reader", "writer", "owner"] },
  },
  required: ["name", "age", "role"],
  additionalProperties: false,
};

const ORDER = {
  type: "array",
  minItems: 1,
  maxItems: 3,
  items: {
    type: "object",
    properties: { item: { enum: ["tea", "toast", "soup"] }, count: { type: "integer", minimum: 1, maximum: 9 } },
    required: ["item", "count"],
    additionalProperties: false,
  },
};

export function schema(panel) {
  const blanks = h("input", { type: "checkbox", onchange: () => view.update() });
  const view = explorer(panel, {
    title: "A JSON Schema, token by token",
    text: "Names of fields are forced and cost no pass of a model; where a value is free, see what may come.",
    label: "JSON Schema",
    above: h("label", { class: "check" }, blanks, "Blanks may stand between"),
    examples: {
      "A person": { rule: JSON.stringify(PERSON, null, 2), prefix: '{"name":"Ada","age":36,' },
      "An order": { rule: JSON.stringify(ORDER, null, 2), prefix: '[{"item":"t' },
      "Yes or no": { rule: '{ "type": "boolean" }', prefix: "" },
    },
    spec: (rule) => ({ json_schema: JSON.parse(rule), whitespace: blanks.checked }),
  });
}

export function set(panel) {
  explorer(panel, {
    title: "A set of texts, token by token",
    text: "One on each line. They share their beginnings, so that a model is asked only where they part.",
    label: "Texts",
    examples: {
      "Names of tools": {
        rule: "open_door\nopen_window\nclose_door\nclose_window\nlight_on\nlight_off",
        prefix: "open_",
      },
      Moods: { rule: "very good\ngood\nso so\nbad\nvery bad", prefix: "" },
      Numbers: { rule: Array.from({ length: 30 }, (_, n) => `ticket ${n * 37}`).join("\n"), prefix: "ticket 1" },
    },
    spec: (rule) => ({ choice: lines(rule) }),
  });
}
