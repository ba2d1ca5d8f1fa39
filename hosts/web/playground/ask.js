/** A view in which the tiny model answers, and says nothing but what it may. */

import { QUESTIONS } from "./questions.js";
import { model } from "./model.js";
import { bars } from "./page/bars.js";
import { area, count, examples, h, labelled, lead, segments } from "./page/dom.js";
import { legend, strip } from "./page/tokens.js";
import { choose, generate } from "./tokentrie/dist/web/src/index.js";

/** Tokens that are shown of those that could come. */
const RIVALS = 5;
const MAX_TOKENS = 160;

/** Kinds of answers: their types, and how the model is asked. */
const KINDS = {
  texts: { name: "One text", hint: "One on each line. Each gets its exact probability.", ask: askTexts },
  spec: { name: "A spec", hint: "JSON, the same in every host.", ask: askSpec },
  tools: { name: "A tool", hint: "JSON schemas; the call comes in the model's own format.", ask: askTools },
};

export function ask(panel) {
  let kind = "texts";
  let asked = 0;
  let running = Promise.resolve();
  const system = area({ rows: "4" });
  const user = area({ rows: "2" });
  const may = area({ class: "code", rows: "6" });
  const hint = h("p", { class: "hint" });
  const fault = h("p", { role: "alert" });
  const loading = h("p", { class: "hint", role: "status" }, "Loading the model…");
  const button = h("button", { type: "submit", class: "primary", disabled: true }, "Ask");
  const answer = h("div", { class: "found", "aria-live": "polite" });
  const names = Object.fromEntries(Object.entries(KINDS).map(([key, { name }]) => [key, name]));
  const kinds = segments("What the answer may be", names, kind, take);

  function take(name) {
    kind = name;
    hint.textContent = KINDS[kind].hint;
  }

  /** Asks, after what is asked already; of several that wait the last one. */
  function go(event) {
    event?.preventDefault();
    const number = ++asked;
    running = running.then(() => (number === asked ? showAnswer() : undefined));
    return running;
  }

  async function showAnswer() {
    button.disabled = true;
    fault.textContent = fault.className = "";
    try {
      const shared = await model();
      const messages = [
        { role: "system", content: system.value },
        { role: "user", content: user.value },
      ];
      answer.replaceChildren(...(await KINDS[kind].ask(shared, messages, may.value)));
    } catch (error) {
      fault.textContent = error.message;
      fault.className = "problem";
      answer.replaceChildren();
    }
    button.disabled = false;
  }

  const form = h(
    "form",
    { class: "panel ask", onsubmit: go },
    labelled("The model is told", system),
    labelled("The user says", user),
    h("div", { class: "field" }, h("span", { class: "hint" }, "The answer is"), kinds),
    labelled("It may be", may),
    hint,
    fault,
    button,
  );
  panel.append(
    lead("A model that says only what is allowed", "It runs in this page, and answers as you let it."),
    examples(QUESTIONS, (one) => {
      [system.value, user.value, may.value] = [one.system, one.user, one.may];
      kinds.choose(one.kind);
      take(one.kind);
      return go();
    }),
    h(
      "div",
      { class: "columns" },
      form,
      h("div", { class: "panel answer" }, h("h2", {}, "It answers"), answer, loading),
    ),
  );
  const first = Object.values(QUESTIONS)[0];
  [system.value, user.value, may.value] = [first.system, first.user, first.may];
  take(first.kind);
  model().then(
    ({ seconds }) => {
      const told = "The tiny model of the package: it knows reviews, doors and tools, and little else.";
      loading.textContent = `${told} Loaded in ${seconds.toFixed(1)} s.`;
      return go();
    },
    (error) => loading.replaceChildren(h("span", { class: "problem" }, `The model cannot be loaded: ${error.message}`)),
  );
}

async function askTexts({ net, tokenizer, format, Tensor }, messages, typed) {
  const values = typed.split("\n").filter((line) => line !== "");
  const choice = await choose(net, tokenizer, format.prompt(messages), values, { Tensor });
  const options = choice.items().map(([label, share], nth) => ({ label, shares: [share], isBest: nth === 0 }));
  const told = `${count(values.length, "text")}, ${count(choice.stats.forwardPasses, "forward pass")}`;
  return [bars(options), h("p", { class: "hint" }, told)];
}

async function askSpec(shared, messages, typed) {
  return writeAnswer(shared, shared.format.prompt(messages), JSON.parse(typed));
}

async function askTools(shared, messages, typed) {
  const { format } = shared;
  const tools = JSON.parse(typed);
  const prompt = format.prompt(messages, { tools });
  const reply = format.constraint(tools, { toolChoice: "required", generationPrompt: prompt.turn ?? "" });
  try {
    return await writeAnswer(shared, prompt, reply);
  } finally {
    reply.free();
  }
}

/** The tokens of an answer, each with what else could come. */
async function writeAnswer({ net, tokenizer, vocab, Tensor }, prompt, constraint) {
  const tokens = strip("The answer in tokens");
  const onStep = (step) => tokens.add(stepView(step, vocab));
  const found = await generate(net, tokenizer, prompt, constraint, { Tensor, maxTokens: MAX_TOKENS, onStep });
  const cut = found.finish === "max_tokens" ? ", cut off there" : "";
  const told = `${count(found.forwardPasses, "forward pass")}, ${found.forcedTokens} saved`;
  const all = ` · ${count(found.tokens.length, "token")}${cut}`;
  return [tokens.element, h("div", { class: "meter" }, h("p", {}, h("b", {}, told), all)), legend()];
}

/** A step as the strip takes it: shares are those among what could come. */
function stepView({ tokens, text, choice }, vocab) {
  if (choice === undefined) return { text, role: "forced" };
  const { kind, ids } = choice.allowed;
  const may = kind === "only" ? Array.from(ids) : Array.from(choice.logits.keys());
  const high = may.reduce((best, id) => Math.max(best, choice.logits[id]), -Infinity);
  const weights = may.map((id) => [id, Math.exp(choice.logits[id] - high)]);
  const sum = weights.reduce((all, [, weight]) => all + weight, 0);
  const shares = weights.map(([id, weight]) => ({ id, share: weight / sum })).sort((a, b) => b.share - a.share);
  const rivals = shares.slice(0, RIVALS).map(({ id, share }) => ({
    text: vocab.text([id]),
    share,
    isTaken: id === tokens[0],
  }));
  const share = shares.find(({ id }) => id === tokens[0])?.share;
  return { text, role: kind === "all" ? "free" : "chosen", legal: may.length, share, rivals };
}
