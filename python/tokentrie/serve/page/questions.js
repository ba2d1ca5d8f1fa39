/** Questions about a state, edited as a form or as JSON. Both say what `POST /v1/decisions` takes. */

import { area, h, labelled, segments } from "./dom.js";
import { parsed } from "./problems.js";

const KINDS = { predicate: "Yes or no", choice: "One of some", score: "A level" };
const PARTS = { choice: ["choices", "value", "option"], score: ["levels", "label", "level"] };

function blank(type) {
  if (type === "predicate") return { type, instructions: "" };
  const [list, name] = PARTS[type];
  return { type, instructions: "", [list]: [{ [name]: "" }, { [name]: "" }] };
}

/** The same question as another kind: its instructions and the texts of its options are kept. */
function withType(question, type) {
  const next = { ...blank(type), instructions: question.instructions };
  if (question.name) next.name = question.name;
  if (!(type in PARTS) || !(question.type in PARTS)) return next;
  const [list, name] = PARTS[type];
  const [oldList, oldName] = PARTS[question.type];
  next[list] = question[oldList].map((one) => {
    const option = { [name]: String(one[oldName]) };
    return one.description ? { ...option, description: one.description } : option;
  });
  return next;
}

/** An editor of questions. `change` is called after every change. */
export function questionsEditor(change) {
  let questions = [];
  let isJson = false;
  const box = h("div", { class: "questions" });
  const text = area({ rows: "14", class: "code", "aria-label": "Questions as JSON", oninput: change });
  const cards = h("div", { class: "cards" });
  const add = h("button", { type: "button", class: "quiet", onclick: () => put(questions.length) }, "+ Question");
  const toggle = segments("Edit questions as", { form: "Form", json: "JSON" }, "form", (name) => {
    try {
      show(name === "json");
    } catch (error) {
      toggle.choose("json");
      box.dispatchEvent(new CustomEvent("problem", { detail: error }));
    }
  });

  function show(asJson) {
    if (asJson) text.value = JSON.stringify(questions, null, 2);
    else if (isJson) questions = read();
    isJson = asJson;
    if (!isJson) draw();
    box.replaceChildren(...(isJson ? [text] : [cards, add]));
    change();
  }

  /** The questions of the text. Throws Problem. */
  function read() {
    const said = parsed(text.value, "questions");
    return Array.isArray(said) ? said : [said];
  }

  function put(at) {
    questions.push(blank("predicate"));
    draw();
    cards.children[at]?.querySelector("input, select")?.focus();
    change();
  }

  function draw() {
    cards.replaceChildren(...questions.map(card));
  }

  function card(question, number) {
    const kind = h(
      "select",
      { "aria-label": `Kind of question ${number + 1}` },
      Object.entries(KINDS).map(([name, told]) => h("option", { value: name }, told)),
    );
    kind.value = question.type;
    kind.addEventListener("change", () => {
      questions[number] = withType(question, kind.value);
      draw();
      cards.children[number].querySelector("select").focus();
      change();
    });
    const asked = h("input", {
      value: typeof question.instructions === "string" ? question.instructions : JSON.stringify(question.instructions),
      oninput: () => {
        question.instructions = asked.value;
        change();
      },
    });
    const gone = h(
      "button",
      {
        type: "button",
        class: "quiet icon",
        "aria-label": `Remove question ${number + 1}`,
        onclick: () => {
          questions.splice(number, 1);
          draw();
          change();
        },
      },
      "×",
    );
    return h(
      "fieldset",
      { class: "question" },
      h("legend", {}, `Question ${number + 1}`),
      h("div", { class: "line" }, kind, gone),
      labelled("What is asked", asked),
      question.type in PARTS && optionsOf(question),
    );
  }

  function optionsOf(question) {
    const [list, name, noun] = PARTS[question.type];
    const rows = question[list].map((option, nth) => {
      const value = h("input", {
        "aria-label": `${noun} ${nth + 1}`,
        placeholder: noun,
        value: String(option[name]),
        oninput: () => {
          option[name] = value.value;
          change();
        },
      });
      const about = h("input", {
        "aria-label": `What ${noun} ${nth + 1} means`,
        placeholder: "what it means",
        value: option.description ?? "",
        oninput: () => {
          if (about.value) option.description = about.value;
          else delete option.description;
          change();
        },
      });
      const remove = () => {
        question[list].splice(nth, 1);
        draw();
        change();
      };
      const label = `Remove ${noun} ${nth + 1}`;
      const gone = h("button", { type: "button", class: "quiet icon", "aria-label": label, onclick: remove }, "×");
      return h("li", {}, value, about, question[list].length > 2 && gone);
    });
    const more = () => {
      question[list].push({ [name]: "" });
      draw();
      change();
    };
    const add = h("button", { type: "button", class: "quiet", onclick: more }, `+ ${noun}`);
    return h("div", {}, h("ul", { class: "options" }, rows), add);
  }

  return {
    element: h("div", {}, h("div", { class: "line" }, h("h2", {}, "Questions"), toggle), box),
    box,
    /** Returns the current questions. Throws Problem where the text is not valid JSON. */
    value: () => (isJson ? read() : questions),
    set: (given) => {
      questions = structuredClone(given);
      isJson = false;
      toggle.choose("form");
      show(false);
    },
  };
}
