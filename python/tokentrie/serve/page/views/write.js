/** Write: a prompt, the constraint on its text, and every token with its origin. */

import { oddsOf } from "../bars.js";
import { constraintEditor } from "../constraint.js";
import { copies } from "../copies.js";
import { area, count, examples, h, labelled, lead, reveal, smallModel } from "../dom.js";
import { Problems } from "../problems.js";
import { legend, rivalsOf, strip } from "../tokens.js";

const RIVALS = 6;
const VERDICT = {
  type: "object",
  properties: {
    verdict: { enum: ["good", "bad", "mixed"] },
    stars: { type: "integer", minimum: 1, maximum: 5 },
  },
  required: ["verdict", "stars"],
  additionalProperties: false,
};
const LABEL = "Label the review: positive, negative or neutral.";
const PIZZA = `Answer with a tool call.
Tools:
Buy a pizza.<|tool|>order_pizza(size:small|medium|large, count?:integer)`;
const MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec";
/** Examples: without a constraint the model writes similar text that no program accepts. */
const EXAMPLES = {
  "A pizza order": {
    system: PIZZA,
    user: "I want to buy a pizza with size larger and count 2",
    kind: "form",
    held: `[
  "{\\"name\\": \\"order_pizza\\", \\"arguments\\": {\\"size\\": \\"",
  {"slot": "size", "value": {"choice": ["small", "medium", "large"]}},
  "\\", \\"count\\": ",
  {"slot": "count", "value": {"integer": {"min": 1, "max": 12}}},
  "}}"
]`,
  },
  "A verdict": { system: LABEL, user: "The service is so awful.", kind: "choices", held: "good\nbad\nmixed" },
  "A date": {
    system: "Repeat the text.",
    user: "5 April 2026",
    kind: "regex",
    held: `[1-9][0-9]? (${MONTHS}) 20[0-9]{2}`,
  },
  "An answer": {
    system: "Answer yes or no.",
    user: "The door is open. Is the door open?",
    kind: "grammar",
    held: 'root ::= answer ", the door is " state "."\nanswer ::= "yes" | "no"\nstate ::= "open" | "closed"',
  },
  "A review as JSON": {
    system: LABEL,
    user: "The service is so awful.",
    kind: "schema",
    held: JSON.stringify(VERDICT, null, 2),
  },
};

/** Makes the view in which a completion is written. */
export function write(root, backend) {
  let running = null;
  const prompt = area({ rows: "3", class: "code", oninput: changed });
  const constraint = constraintEditor(EXAMPLES, changed);
  const most = h("input", { type: "number", min: "1", value: "64", oninput: changed });
  const heat = h("input", { type: "number", min: "0", step: "0.1", value: "0", oninput: changed });
  const beside = h("input", { type: "checkbox", checked: true });
  const go = h("button", { type: "submit", class: "go" }, "Write");
  const stop = h("button", { type: "button", class: "stop", hidden: true, onclick: () => running?.abort() }, "Stop");
  const problems = new Problems({ prompt, max_tokens: most, temperature: heat, constraint: constraint.field });
  const told = h("p", { class: "told", role: "status" });
  const sides = {
    held: side(backend, "Held by the constraint", "held"),
    free: side(backend, "The same prompt, not held", "unheld"),
  };

  function changed() {
    code?.update();
  }

  function body() {
    return {
      model: backend.model,
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
    for (const one of Object.values(sides)) one.clear();
    let spec;
    try {
      spec = constraint.spec();
    } catch (error) {
      problems.show(error);
      return;
    }
    running?.abort();
    const own = (running = new AbortController());
    go.hidden = true;
    stop.hidden = false;
    sides.free.element.hidden = !beside.checked;
    if (event) reveal(sides.held.element);
    // A refused request shows no second text: the second starts after the first token of the first.
    let twin = null;
    const asked = body();
    const accepted = () => {
      if (beside.checked) twin ??= Promise.allSettled([sides.free.write(asked, own.signal)]);
    };
    const done = await Promise.allSettled([sides.held.write({ ...asked, constraint: spec }, own.signal, accepted)]);
    done.push(...((await twin) ?? []));
    if (spec.choice && done[0].status === "fulfilled" && !own.signal.aborted) {
      const choice = { model: backend.model, prompt: asked.prompt, values: spec.choice };
      const odds = backend.ask("POST", "v1/choose", choice, { signal: own.signal }).then(sides.held.weigh);
      done.push(...(await Promise.allSettled([odds])));
    }
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
    labelled("Prompt", prompt, "Read as the model's chat template writes it; plain text goes on as it stands."),
    constraint.element,
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
  const code = copies(backend.programs, () => ({
    method: "POST",
    path: "v1/completions",
    body: { ...body(), constraint: constraint.spec() },
  }));

  function take(example) {
    running?.abort();
    prompt.value = example.user;
    constraint.set(example);
    problems.clear();
    for (const one of Object.values(sides)) one.clear();
    sides.free.element.hidden = false;
    told.textContent = "";
    changed();
  }

  /** Writes an example, once it is asked as the chat template of the model has it. */
  async function play(example) {
    take(example);
    const messages = ["system", "user"].map((role) => ({ role, content: example[role] }));
    const asked = { model: backend.model, messages, chat_template_kwargs: { enable_thinking: false } };
    try {
      const { prompt: text } = await backend.ask("POST", "apply-template", asked);
      // A newer example or newly typed text is not overwritten.
      if (prompt.value !== example.user || !constraint.isTaken(example)) return;
      prompt.value = text;
      changed();
    } catch (error) {
      // A template without a system message: the request alone is a prompt, too.
      if (error.status !== 400) throw error;
    }
    await run();
  }

  const played = (example) => play(example).catch((error) => problems.show(error));

  root.append(
    lead(
      "Write only what is allowed.",
      "Where only one token is legal the model is not asked; where there is a choice, you see it.",
    ),
    examples(EXAMPLES, played, smallModel()),
    h(
      "div",
      { class: "columns" },
      form,
      h("div", { class: "panel answer" }, sides.held.element, sides.free.element, legend(), told),
    ),
    code.element,
  );
  const [first] = Object.values(EXAMPLES);
  take(first);
  return { begin: () => played(first) };
}

/** One of the two texts, with its cost. */
function side({ stream }, title, name) {
  const tokens = strip(title);
  const meter = h("div", { class: "meter" });
  const odds = h("div", { class: "odds" });
  const element = h(
    "section",
    { class: `side ${name}`, "aria-label": title },
    h("h2", {}, title),
    tokens.element,
    meter,
    odds,
  );

  /** Shows the probability of each possible text as a whole. */
  function weigh(choice) {
    odds.replaceChildren(h("p", { class: "hint" }, "Each as a whole, exactly:"), oddsOf(choice));
  }

  function clear() {
    tokens.clear();
    odds.replaceChildren();
    meter.replaceChildren(h("p", { class: "hint" }, "Tokens come here as they are written."));
  }

  /** Streams a completion; its end in words. `accepted` is called when it has begun. Throws Problem. */
  async function write(body, signal, accepted = () => {}) {
    clear();
    meter.replaceChildren();
    tokens.wait(true);
    const roles = { chosen: 0, forced: 0, free: 0 };
    let ended = "";
    try {
      const asked = { ...body, logprobs: RIVALS, return_details: true };
      for await (const event of stream("v1/completions", asked, { signal })) {
        accepted();
        const [choice] = event.choices;
        for (const step of choice.x_steps ?? []) {
          roles[step.role] += 1;
          // Tokens of the end of the prompt are repeated where a token may span prompt and text: they are not output.
          const isOfPrompt = choice.text === "" && step.role === "forced" && tokens.text() === "";
          if (!isOfPrompt || choice.finish_reason) tokens.add(known(choice, step));
        }
        if (choice.x_stats) ended = summary(choice, roles);
      }
      if (ended === "") accepted();
      return ended;
    } catch (error) {
      if (tokens.text() === "") clear();
      throw error;
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
  return { element, clear, weigh, write };
}

/** A token of the strip, from the server's data. A token that only ends the text has none. */
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
