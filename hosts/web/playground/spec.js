/** The spec of a rule, to take along. */

import { copyText, h } from "./page/dom.js";

const PROGRAMS = {
  JSON: (spec) => spec,
  JavaScript: (spec) => `import { constraint, load, Sampler, vocabFromTokenizerJson } from "tokentrie-web";

await load({ schema: true });
const vocab = vocabFromTokenizerJson(await (await fetch("model/tokenizer.json")).text());
const sampler = Sampler.create(vocab, constraint(${spec}, vocab));
`,
};

/** A panel; `show` gives it a spec, or nothing where there is none. */
export function specPanel() {
  let language = "JSON";
  let spec;
  const code = h("pre", { tabindex: "0", role: "region", "aria-label": "The spec" });
  const told = h("span", { class: "told", role: "status" });
  const buttons = Object.keys(PROGRAMS).map((name) =>
    h("button", { type: "button", "data-name": name, onclick: () => copy(name) }, name),
  );

  function update() {
    code.textContent = spec === undefined ? "" : PROGRAMS[language](JSON.stringify(spec, null, 2));
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.name === language));
  }

  function copy(name) {
    language = name;
    update();
    return copyText(code, told, "Copied");
  }

  const group = h("div", { role: "group", "aria-label": "Copy as" }, buttons);
  const head = h("header", {}, h("h2", {}, "Copy as"), group, told);
  const element = h("section", { class: "copies spec", "aria-label": "The spec, the same in every host" }, head, code);
  const show = (made) => {
    spec = made;
    update();
  };
  return { element, show };
}
