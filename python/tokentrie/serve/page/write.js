/** Write: a prompt, what holds its text, and every token with why it is there. */

import { Problem, Problems, parsed, stream } from "./api.js";
import { copies, model } from "./copies.js";
import { area, count, examples, h, labelled, lead, reveal, segments } from "./dom.js";
import { legend, rivalsOf, strip } from "./tokens.js";

const RIVALS = 6;
const KINDS = { form: "Form", choices: "Choices", regex: "Regex", grammar: "Grammar", schema: "JSON Schema" };
const HINTS = {
  form: "Literals, slots with a constraint of their own, free text: parts of a spec, or any spec.",
  choices: "One a line.",
  regex: "Of the whole text.",
  grammar: "GBNF, as llama.cpp reads it, or Lark.",
  schema: "The text is JSON that the schema allows, without white space.",
};
const CITY = {
  type: "object",
  properties: {
    name: { enum: ["Berlin", "Lisbon", "Osaka"] },
    continent: { enum: ["Africa", "Asia", "Europe"] },
    capital: { type: "boolean" },
    people: { type: "integer", minimum: 1000, maximum: 9000000 },
  },
  required: ["name", "continent", "capital", "people"],
  additionalProperties: false,
};
const EXAMPLES = {
  "A coffee order": {
    prompt: "A coffee order as JSON: ",
    kind: "form",
    held: `[
  "{\\"drink\\": \\"",
  {"slot": "drink", "value": {"choice": ["espresso", "flat white", "filter coffee"]}},
  "\\", \\"cups\\": ",
  {"slot": "cups", "value": {"integer": {"min": 1, "max": 12}}},
  ", \\"to_go\\": ",
  {"slot": "to_go", "value": {"choice": ["true", "false"]}},
  "}"
]`,
  },
  "The sky": { prompt: "The sky is ", kind: "choices", held: "blue\nred and white\nred and black" },
  "A meeting": {
    prompt: "The meeting is on ",
    kind: "regex",
    held: "(Mon|Tues|Wednes|Thurs|Fri)day at (0[89]|1[0-7]):[03]0",
  },
  "Chess moves": {
    prompt: "1. e4 e5 2. ",
    kind: "grammar",
    held: 'root ::= move " " move\nmove ::= [KQRBN]? [a-h] [1-8] | "O-O" "-O"?',
  },
  "A city": { prompt: "A city as JSON: ", kind: "schema", held: JSON.stringify(CITY, null, 2) },
};

/** Makes the view. */
export function write(root) {
  let kind = "form";
  let running = null;
  const prompt = area({ rows: "3", oninput: changed });
  const held = area({ rows: "9", class: "code", "aria-label": "The constraint", oninput: changed });
  const hint = h("p", { class: "hint" });
  const kinds = segments("Kind of constraint", KINDS, kind, (name) => {
    kind = name;
    const known = Object.values(EXAMPLES).find((one) => one.kind === name);
    held.value = known.held;
    changed();
  });
  const most = h("input", { type: "number", min: "1", value: "64", oninput: changed });
  const heat = h("input", { type: "number", min: "0", step: "0.1", value: "0", oninput: changed });
  const beside = h("input", { type: "checkbox", checked: true });
  const go = h("button", { type: "submit", class: "go" }, "Write");
  const stop = h("button", { type: "button", class: "stop", hidden: true, onclick: () => running?.abort() }, "Stop");
  const problems = new Problems({ prompt, max_tokens: most, temperature: heat, constraint: held });
  const told = h("p", { class: "told", role: "status" });
  const sides = {
    held: side("Held by the constraint", "held"),
    free: side("The same prompt, not held", "unheld"),
  };

  function changed() {
    hint.textContent = HINTS[kind];
    code?.update();
  }

  /** What the text is held to, as a spec. Throws Problem. */
  function spec() {
    const text = held.value;
    if (kind === "choices") {
      const choices = text.split("\n").filter((line) => line !== "");
      if (choices.length === 0) throw new Problem("there is no choice: give one a line", { param: "constraint" });
      return { choice: choices };
    }
    if (kind === "regex") return { regex: text };
    if (kind === "grammar") return text.includes("::=") ? { gbnf: text } : { lark: text };
    const said = parsed(text, "constraint");
    if (kind === "schema") return { json_schema: said, whitespace: false };
    return Array.isArray(said) ? { form: said } : said;
  }

  function body() {
    return {
      model: model(),
      prompt: prompt.value,
      max_tokens: Number(most.value),
      temperature: Number(heat.value),
      stream: true,
    };
  }

  async function run(event) {
    event?.preventDefault();
    problems.clear();
    told.textContent = "";
    let constraint;
    try {
      constraint = spec();
    } catch (error) {
      problems.show(error);
      return;
    }
    running?.abort();
    const own = (running = new AbortController());
    go.hidden = true;
    stop.hidden = false;
    sides.free.element.hidden = !beside.checked;
    reveal(sides.held.element);
    const calls = [sides.held.write({ ...body(), constraint }, own.signal)];
    if (beside.checked) calls.push(sides.free.write(body(), own.signal));
    const done = await Promise.allSettled(calls);
    const failed = done.find((one) => one.status === "rejected");
    if (failed) problems.show(failed.reason);
    if (own.signal.aborted) told.textContent = "Stopped.";
    else if (!failed) told.textContent = done[0].value;
    if (running === own) {
      go.hidden = false;
      stop.hidden = true;
      running = null;
    }
  }

  const form = h(
    "form",
    { class: "ask panel", onsubmit: run, "data-enter": true },
    labelled("Prompt", prompt),
    h("div", { class: "field" }, h("h2", {}, "What holds the text"), kinds, held, hint),
    h(
      "div",
      { class: "settings" },
      labelled("Most tokens", most),
      labelled("Temperature", heat),
      h("label", { class: "check" }, beside, "Compare without it"),
    ),
    h("div", { class: "line act" }, go, stop, h("kbd", {}, "Ctrl ⏎")),
    problems.element,
  );
  const code = copies(() => ({ method: "POST", path: "v1/completions", body: { ...body(), constraint: spec() } }));

  function take(example) {
    running?.abort();
    prompt.value = example.prompt;
    kind = example.kind;
    held.value = example.held;
    kinds.choose(kind);
    problems.clear();
    for (const one of Object.values(sides)) one.clear();
    sides.free.element.hidden = false;
    told.textContent = "";
    changed();
  }

  root.append(
    lead(
      "Write only what is allowed.",
      "Where only one token is legal the model is not asked; where there is a choice, you see it.",
    ),
    examples(EXAMPLES, take),
    h(
      "div",
      { class: "columns" },
      form,
      h("div", { class: "panel answer" }, sides.held.element, sides.free.element, legend(), told),
    ),
    code.element,
  );
  take(EXAMPLES["A coffee order"]);
}

/** One of the two texts, with what it took. */
function side(title, name) {
  const tokens = strip(title);
  const meter = h("div", { class: "meter" });
  const element = h(
    "section",
    { class: `side ${name}`, "aria-label": title },
    h("h2", {}, title),
    tokens.element,
    meter,
  );

  function clear() {
    tokens.clear();
    meter.replaceChildren(h("p", { class: "hint" }, "Tokens come here as they are written."));
  }

  /** Streams a completion; its end in words. Throws Problem. */
  async function write(body, signal) {
    tokens.clear();
    meter.replaceChildren();
    tokens.wait(true);
    const roles = { chosen: 0, forced: 0, free: 0 };
    let ended = "";
    try {
      const asked = { ...body, logprobs: RIVALS, return_details: true };
      for await (const event of stream("v1/completions", asked, { signal })) {
        const [choice] = event.choices;
        for (const step of choice.x_steps ?? []) {
          roles[step.role] += 1;
          tokens.add(known(choice, step));
        }
        if (choice.x_stats) ended = summary(choice, roles);
      }
      return ended;
    } finally {
      tokens.wait(false);
    }
  }

  function summary(choice, roles) {
    const { forward_passes: passes, forward_passes_saved: saved } = choice.x_stats;
    const all = passes + saved;
    const lane = h("div", { class: "lane", "aria-hidden": "true" });
    for (const [kind, share] of [
      ["asked", passes / all],
      ["saved", saved / all],
    ]) {
      const part = h("i", { class: kind });
      part.style.setProperty("--share", String(share));
      lane.append(part);
    }
    const cut = choice.finish_reason === "length" ? ", cut off there" : "";
    const told = `${count(passes, "forward pass")}, ${saved} saved`;
    meter.replaceChildren(
      lane,
      h("p", {}, h("b", {}, told), ` · ${count(roles.chosen + roles.free + roles.forced, "token")}${cut}`),
    );
    return `Written: ${told}.`;
  }

  clear();
  return { element, clear, write };
}

/** A token of the strip, from what the server tells of it. What only ends the text has none. */
function known(choice, step) {
  const piece = choice.logprobs?.tokens[0] ?? (choice.text || "∎");
  const [best] = choice.logprobs?.top_logprobs ?? [{}];
  return {
    text: choice.text || piece,
    role: step.role,
    legal: step.legal,
    share: choice.logprobs ? Math.exp(choice.logprobs.token_logprobs[0]) : undefined,
    rivals: rivalsOf(Object.entries(best), piece),
  };
}
