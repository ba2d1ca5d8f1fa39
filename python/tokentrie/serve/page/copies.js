/** The request of a view as a program, to take along. */

import { copyText, h } from "./dom.js";

/**
 * The panel of a view. `request` returns the request of the view, or throws if the fields are invalid; `programs` of
 * the back end turns it into code. `update` is to be called when it changes.
 */
export function copies(programs, request) {
  let [language] = Object.keys(programs);
  const code = h("pre", { tabindex: "0", role: "region", "aria-label": "The request as a program" });
  const told = h("span", { class: "told", role: "status" });
  const buttons = Object.keys(programs).map((name) =>
    h("button", { type: "button", class: "copy", onclick: () => copy(name) }, name),
  );

  function update() {
    let text;
    try {
      text = programs[language](request());
    } catch (error) {
      text = `# ${error.message}`;
    }
    code.replaceChildren(...colour(text));
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.textContent === language));
  }

  function copy(name) {
    language = name;
    update();
    return copyText(code, told, `Copied as ${name}`);
  }

  const element = h(
    "section",
    { class: "copies", "aria-label": "Copy the request" },
    h("header", {}, h("h2", {}, "Copy as"), h("div", { role: "group", "aria-label": "Copy as" }, buttons), told),
    code,
  );
  window.addEventListener("model-changed", update);
  update();
  return { element, update };
}

/** Texts in a colour of their own. */
function colour(text) {
  return text
    .split(/("(?:[^"\\\n]|\\.)*")/)
    .map((part, nth) => (nth % 2 ? h("span", { class: "string" }, part) : part));
}
