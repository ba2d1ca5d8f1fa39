/** Decide: questions about a state, and the exact probability of every option. */

import { MASS, bars, figure } from "../bars.js";
import { copies } from "../copies.js";
import { about, area, examples, h, labelled, lead, percent, reveal, smallModel } from "../dom.js";
import { Problems } from "../problems.js";
import { questionsEditor } from "../questions.js";

const SENTIMENT = [{ value: "positive" }, { value: "negative" }, { value: "neutral" }];
const EXAMPLES = {
  "A review": {
    state: "The service is so awful, and it was a waste of money.",
    questions: [
      { type: "choice", instructions: "What is the sentiment of the review?", choices: SENTIMENT },
      { type: "predicate", instructions: "Is the review positive?" },
    ],
    permute: 6,
    both: true,
  },
  "A door": {
    state: "The door is open.",
    questions: [
      { type: "predicate", instructions: "Is the door open?" },
      { type: "predicate", instructions: "Is the door closed?" },
      { type: "predicate", instructions: "Is the door locked?" },
    ],
    permute: 2,
    both: false,
  },
  "A conversation": {
    state: JSON.stringify(
      [
        { role: "system", content: "Label the review: positive, negative or neutral." },
        { role: "user", content: "The service is so great." },
      ],
      null,
      2,
    ),
    questions: [{ type: "choice", instructions: "", choices: SENTIMENT }],
    permute: 6,
    both: false,
  },
  "A ticket": {
    state: "I was charged twice in May. Please refund one of them.",
    questions: [
      {
        type: "choice",
        instructions: "Which team?",
        choices: [
          { value: "billing", description: "Payments and refunds" },
          { value: "shipping", description: "Parcels" },
          { value: "access", description: "Logins" },
        ],
      },
      { type: "score", instructions: "How angry?", levels: ["calm", "annoyed", "furious"].map((label) => ({ label })) },
      { type: "predicate", instructions: "Is a refund wanted?" },
    ],
    permute: 6,
    both: true,
  },
};
const FLIPS =
  "Options are asked in several orders. The share of orders in which another option wins: at 0 % the order does not " +
  "matter.";
const READOUT =
  "How an answer is read: by the probability of each option's whole text, or of a label such as A or B that stands " +
  "for it. Where both agree, the answer does not depend on the wording.";
const READOUTS = { text: "text", label: "label" };

/** Makes the view in which typed questions are answered. */
export function decide(root, backend) {
  let runs = 0;
  const state = area({ rows: "4" });
  const questions = questionsEditor(() => code?.update());
  const permute = h("input", { type: "number", min: "1", max: "64", value: "6", oninput: () => code.update() });
  const both = h("input", { type: "checkbox", checked: true });
  const go = h("button", { type: "submit", class: "go" }, "Decide");
  const problems = new Problems({ input: state, questions: questions.box, permute });
  const out = h("div", { class: "answers" });
  const told = h("p", { class: "told", role: "status" });
  questions.box.addEventListener("problem", (event) => problems.show(event.detail));
  state.addEventListener("input", () => code.update());

  function request(readout = "text") {
    const body = { model: backend.model, input: stateOf(state.value), questions: questions.value() };
    if (readout !== "text") body.readout = readout;
    if (Number(permute.value) !== 1) body.permute = Number(permute.value);
    return { method: "POST", path: "v1/decisions", body };
  }

  async function run(event) {
    event?.preventDefault();
    problems.clear();
    told.textContent = "";
    out.setAttribute("aria-busy", "true");
    go.disabled = true;
    const mine = ++runs;
    try {
      const readouts = both.checked ? ["text", "label"] : ["text"];
      const began = performance.now();
      // The answer is drawn for the questions that were sent, even if the fields have changed since.
      const asked = structuredClone(questions.value());
      const answers = await Promise.all(readouts.map((one) => backend.ask("POST", "v1/decisions", request(one).body)));
      if (mine !== runs) return;
      const milliseconds = performance.now() - began;
      out.replaceChildren(
        ...asked.map((question, nth) =>
          drawVerdict(
            question,
            answers.map((one) => one.answers[nth]),
          ),
        ),
      );
      if (event) reveal(out);
      const tokens = answers[0].usage.input_tokens;
      told.textContent = `${asked.length} answered in ${milliseconds.toFixed(0)} ms, ${tokens} tokens of prompts read`;
    } catch (error) {
      if (mine === runs) problems.show(error);
    } finally {
      if (mine === runs) {
        out.removeAttribute("aria-busy");
        go.disabled = false;
      }
    }
  }

  const form = h(
    "form",
    { class: "ask panel", onsubmit: run, "data-enter": true },
    labelled("State", state, "Text, JSON, or a conversation as a list of messages."),
    questions.element,
    h(
      "div",
      { class: "settings" },
      labelled("Orders to average", permute),
      h("div", { class: "with-about" }, h("label", { class: "check" }, both, "Compare the label readout"), [
        about("readout", READOUT),
      ]),
    ),
    h("div", { class: "line act" }, go, h("kbd", {}, "Ctrl ⏎")),
    problems.element,
  );
  const code = copies(backend.programs, request);

  function take(example) {
    state.value = example.state;
    permute.value = String(example.permute);
    both.checked = example.both;
    questions.set(example.questions);
    problems.clear();
    out.replaceChildren(
      h("p", { class: "empty" }, "Every option gets its exact probability here, whatever its length."),
    );
    told.textContent = "";
    code.update();
  }

  root.append(
    lead(
      "Ask for a decision, get the odds.",
      "Typed questions about anything; no answer outside your options, and every option's exact probability.",
    ),
    examples(
      EXAMPLES,
      (example) => {
        take(example);
        return run();
      },
      smallModel(),
    ),
    h("div", { class: "columns" }, form, h("div", { class: "panel answer" }, out, told)),
    code.element,
  );
  take(EXAMPLES["A review"]);
  return { begin: run };
}

/** A conversation where the text is a list as JSON, else the text. */
function stateOf(text) {
  if (!text.trim().startsWith("[")) return text;
  try {
    const said = JSON.parse(text);
    return Array.isArray(said) ? said : text;
  } catch {
    return text;
  }
}

function drawVerdict(question, answers) {
  const shares = answers.map((one) => sharesOf(question, one));
  const winners = shares.map((each) => each.indexOf(Math.max(...each)));
  const [best] = winners;
  const options = namesOf(question).map(([label, about], nth) => ({
    label,
    about,
    shares: shares.map((each) => each[nth]),
    isBest: nth === best,
  }));
  const [answer] = answers;
  const verdict = answer.type === "score" ? `${options[best].label} · ${answer.score.toFixed(2)}` : options[best].label;
  const series = answers.length > 1 ? Object.values(READOUTS) : [""];
  const each = (name) =>
    answers.flatMap((one, nth) => [
      h("span", { class: "value" }, percent(one[name]), h("small", {}, ` ${series[nth]}`)),
      " ",
    ]);
  const figures = [
    figure("Mass", each("x_mass"), MASS),
    answer.x_flips !== undefined && figure("Flips", each("x_flips"), FLIPS),
  ];
  const disagree = winners.length > 1 && winners[0] !== winners[1];
  const weak = answers.findIndex((one) => one.x_mass < 1e-4);
  return h(
    "article",
    { class: "verdict" },
    h("p", { class: "asked" }, textOf(question.instructions) || "What comes next?"),
    h("h3", {}, verdict, h("span", { class: "share" }, percent(shares[0][best]))),
    bars(options, series),
    h("dl", { class: "figures" }, figures),
    disagree && h("p", { class: "hint" }, "Texts and labels do not agree here."),
    weak >= 0 &&
      h(
        "p",
        { class: "hint" },
        answers.length > 1 ? `Read as ${series[weak]}, the` : "The",
        " mass is next to nothing: the model would rather say something else, so these odds mean little.",
      ),
  );
}

function textOf(content) {
  return typeof content === "string" ? content : content.map((part) => part.text ?? "").join(" ");
}

function namesOf(question) {
  if (question.type === "predicate") return [["yes"], ["no"]];
  const [list, name] = question.type === "choice" ? ["choices", "value"] : ["levels", "label"];
  return question[list].map((one) => [String(one[name]), one.description]);
}

function sharesOf(question, answer) {
  if (question.type === "predicate") return [answer.probability, 1 - answer.probability];
  return answer.probabilities.map((one) => one.probability);
}
