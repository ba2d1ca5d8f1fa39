/** Rules: a constraint on a text, the position in it, and the allowed next tokens. */

import { constraintEditor } from "../constraint.js";
import { copies } from "../copies.js";
import { count, examples, h, labelled, later, lead, visible } from "../dom.js";
import { Problem, Problems } from "../problems.js";

/** Chips that are shown at once. */
const SHOWN = 120;

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

const NAMES = "open_door\nopen_window\nclose_door\nclose_window\nlight_on\nlight_off";
const MOOD = { slot: "mood", value: { choice: ["positive", "negative", "neutral"] } };
const STARS = { slot: "stars", value: { integer: { min: 1, max: 5 } } };

const json = (value) => JSON.stringify(value, null, 2);
const EXAMPLES = {
  "A date": { kind: "regex", held: "(19|20)[0-9]{2}-(0[1-9]|1[0-2])-[0-3][0-9]", prefix: "20" },
  "A mail address": { kind: "regex", held: "[a-z][a-z0-9.]{0,20}@(example|test)\\.(com|org)", prefix: "ann@" },
  Arithmetic: { kind: "grammar", held: ARITHMETIC, prefix: "(1 + 23" },
  "Lists of lists": { kind: "grammar", held: LISTS, prefix: '[1, ["a"' },
  "A query": { kind: "grammar", held: QUERY, prefix: "SELECT name FROM users" },
  "A person": { kind: "schema", held: json(PERSON), prefix: '{"name":"Ada","age":36,' },
  "An order": { kind: "schema", held: json(ORDER), prefix: '[{"item":"t' },
  "Names of tools": { kind: "choices", held: NAMES, prefix: "open_" },
  "A form": { kind: "form", held: json(['{"mood": "', MOOD, '", "stars": ', STARS, "}"]), prefix: '{"mood": "' },
};

/** Makes the view in which a rule is written and walked. */
export function rules(root, backend) {
  let walk;
  let isReady = false;
  let shown = SHOWN;
  const rule = constraintEditor(EXAMPLES, later(remake), takeExample);
  const prefix = h("input", { class: "code", spellcheck: "false", autocomplete: "off", oninput: later(go) });
  const problems = new Problems({ constraint: rule.field, text: prefix });
  const strip = h("p", { class: "strip", "aria-label": "The text in tokens" });
  const found = h("div", { class: "found" });
  const back = h("button", { type: "button", onclick: stepBack }, "Step back");
  const again = h("button", { type: "button", onclick: () => restart("") }, "Start over");

  function remake() {
    if (!isReady) return;
    walk?.free();
    walk = undefined;
    problems.clear();
    code.update();
    try {
      walk = backend.walk(rule.spec());
    } catch (error) {
      found.replaceChildren();
      strip.replaceChildren();
      problems.show(error instanceof Problem ? error : new Problem(error.message, { param: "constraint" }));
      return;
    }
    go();
  }

  function go() {
    if (walk === undefined) return;
    problems.clear();
    const wrong = walk.goTo(prefix.value);
    if (wrong !== "") {
      problems.show(new Problem(`${stands(walk.text)} “${visible(wrong)}” may not come. Shown is what may.`));
      prefix.setAttribute("aria-invalid", "true");
    }
    draw();
  }

  function restart(text) {
    prefix.value = text;
    go();
  }

  function stepBack() {
    if (walk === undefined) return;
    walk.back();
    showWalk();
  }

  function take(tokens) {
    walk.take(tokens);
    showWalk();
  }

  function showWalk() {
    prefix.value = walk.text;
    problems.clear();
    draw();
  }

  function draw() {
    shown = SHOWN;
    const next = walk.next();
    const said = walk.tokens.map((id) => h("span", { class: "token chosen", title: `token ${id}` }, walk.shown(id)));
    if (walk.rest !== "")
      said.push(h("span", { class: "token part" }, walk.text.slice(walk.textOf(walk.tokens).length)));
    const forced = next.forced.map((id) => h("span", { class: "token forced" }, walk.shown(id)));
    strip.replaceChildren(...said, ...forced);
    if (said.length + forced.length === 0) strip.append(h("span", { class: "empty" }, "Nothing yet"));
    back.disabled = walk.tokens.length === 0 && walk.rest === "";
    found.replaceChildren(
      h(
        "p",
        { class: "verdict-line" },
        h("b", {}, next.ids.length.toLocaleString("en")),
        ` of ${count(walk.size, "token")} may come`,
        h("span", { class: next.mayEnd ? "badge may" : "badge" }, next.mayEnd ? "May end here" : "May not end yet"),
      ),
      h("div", { class: "lane", "aria-hidden": "true" }, share(next.ids.length / walk.size)),
      ...forcedLine(next.forced),
      chips(next.ids),
    );
  }

  function forcedLine(forced) {
    if (forced.length === 0) return [];
    const told = `${count(forced.length, "token")} must come, and ${forced.length === 1 ? "costs" : "cost"} no pass: `;
    const run = h("code", { class: "token forced" }, visible(walk.textOf(forced)));
    return [h("p", { class: "run" }, told, run, h("button", { type: "button", onclick: () => take(forced) }, "Take"))];
  }

  function chips(ids) {
    const list = h("ul", { class: "chips", "aria-label": "Tokens that may come next" });
    for (const id of ids.slice(0, shown)) {
      const button = { type: "button", class: "next", title: `token ${id}`, onclick: () => take([id]) };
      list.append(h("li", {}, h("button", button, walk.shown(id))));
    }
    if (ids.length > shown) {
      const more = () => {
        shown += 4 * SHOWN;
        list.replaceWith(chips(ids));
      };
      const left = `${(ids.length - shown).toLocaleString("en")} more`;
      list.append(h("li", {}, h("button", { type: "button", class: "quiet more", onclick: more }, left)));
    }
    if (ids.length === 0) list.append(h("li", { class: "empty" }, "Nothing but the end."));
    return list;
  }

  function takeExample(one) {
    prefix.value = one.prefix;
    remake();
  }

  const asked = h(
    "div",
    { class: "panel ask" },
    rule.element,
    labelled("Text so far", prefix, "Type, or press a token that may come."),
    problems.element,
  );
  const code = copies(backend.programs, () => ({ body: { constraint: rule.spec() } }));
  const head = h("div", { class: "line" }, h("h2", {}, "What may come next"), back, again);
  const answer = h("div", { class: "panel answer" }, head, h("div", { class: "strip-box" }, strip), found);
  root.append(
    lead("A rule, token by token.", "See which tokens a model could say next. Whatever may come can be completed."),
    examples(EXAMPLES, (one) => {
      rule.set(one);
      takeExample(one);
    }),
    h("div", { class: "columns" }, asked, answer),
    code.element,
  );
  const [first] = Object.values(EXAMPLES);
  rule.set(first);
  takeExample(first);
  const begin = () => {
    isReady = true;
    remake();
  };
  return { begin };
}

function stands(text) {
  return text === "" ? "At the beginning" : `After “${visible(text)}”`;
}

/** The allowed share of the vocabulary as a bar; a few tokens still show as a sliver. */
function share(part) {
  const bar = h("i", { class: "asked" });
  bar.style.setProperty("--share", String(part === 0 ? 0 : Math.max(part, 0.006)));
  return bar;
}
