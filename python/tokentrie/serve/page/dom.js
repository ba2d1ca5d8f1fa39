/** Elements, and how numbers are written. Text is always text: nothing here reads markup. */

/**
 * An element. Of its properties `on…` are listeners, true and false say whether an attribute is there, and `value` and
 * `checked` are set as they are.
 */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

let fields = 0;

/** A label over a field; `hint` is read with the field. */
export function labelled(text, field, hint) {
  field.id ||= `field-${++fields}`;
  const parts = [h("label", { for: field.id }, text), field];
  if (hint) {
    field.setAttribute("aria-describedby", `${field.id}-hint`);
    parts.push(h("p", { class: "hint", id: `${field.id}-hint` }, hint));
  }
  return h("div", { class: "field" }, parts);
}

/** Buttons of which one is pressed. `change` gets the name of the pressed one. */
export function segments(label, names, chosen, change) {
  const group = h("div", { class: "segments", role: "radiogroup", "aria-label": label });
  const identity = `segments-${++fields}`;
  for (const [name, text] of Object.entries(names)) {
    const radio = h("input", { type: "radio", name: identity, value: name, checked: name === chosen });
    radio.addEventListener("change", () => change(name));
    group.append(h("label", {}, radio, h("span", {}, text)));
  }
  group.choose = (name) => {
    for (const radio of group.querySelectorAll("input")) radio.checked = radio.value === name;
  };
  return group;
}

/** A text area that grows with its text. */
export function area(properties) {
  return h("textarea", { spellcheck: "false", autocomplete: "off", ...properties });
}

/** The head of a view: its purpose in one line. */
export function lead(title, text) {
  return h("div", { class: "lead" }, h("h1", {}, title), h("p", {}, text));
}

/** Returns a note on the abilities of the packaged model, shown wherever that model answers. */
export function smallModel() {
  return h(
    "p",
    { class: "small-model" },
    "The tiny model answers: it knows reviews, doors and tools, and little else. Yours: ",
    h("code", {}, "tokentrie serve --model model.gguf"),
  );
}

/** Buttons that fill a view in, and a note beside them. */
export function examples(all, take, note) {
  const buttons = Object.entries(all).map(([name, one]) =>
    h("button", { type: "button", class: "chip", onclick: () => take(one) }, name),
  );
  const group = { class: "examples", role: "group", "aria-label": "Examples" };
  return h("div", { class: "begin" }, h("div", group, h("span", {}, "Examples"), buttons), note);
}

/** A probability in percent: 93.1 %. A small one has one significant digit: 0.003 %. A tiny one shows a bound. */
export function percent(share) {
  if (share === 0) return "0 %";
  if (share > 0.9995 && share < 1) return "> 99.9 %";
  if (share >= 0.0005) return `${(share * 100).toFixed(1)} %`;
  if (share < 1e-5) return "< 0.001 %";
  const digits = -Math.floor(Math.log10(share * 100));
  return `${(share * 100).toFixed(digits)} %`;
}

/** A question mark beside a name: hover, focus or a tap shows what the name means, and Escape hides it. */
export function about(name, text) {
  const identity = `about-${++fields}`;
  const button = h("button", { type: "button", "aria-label": `What ${name} means`, "aria-describedby": identity }, "?");
  const tip = h("span", { role: "tooltip", id: identity }, text);
  const box = h("span", { class: "about" }, button, tip);
  box.addEventListener("keydown", (event) => event.key === "Escape" && box.classList.add("hides"));
  for (const kind of ["mouseenter", "focusin"]) {
    box.addEventListener(kind, () => {
      box.classList.remove("hides");
      // Kept within the visible area, on a phone too.
      const { left } = box.getBoundingClientRect();
      const right = document.documentElement.clientWidth - 12 - tip.offsetWidth;
      tip.style.setProperty("left", `${Math.max(12, Math.min(left - 16, right)) - left}px`);
    });
  }
  button.addEventListener("click", () => button.focus());
  return box;
}

/** Scrolls to a new element if it is below the visible area: on a phone answers are below questions. */
export function reveal(element) {
  if (element.getBoundingClientRect().top < innerHeight * 0.8) return;
  const behavior = matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth";
  element.scrollIntoView({ block: "start", behavior });
}

/** Copies the text of an element, and confirms that for a moment. */
export async function copyText(element, told, text) {
  try {
    await navigator.clipboard.writeText(element.textContent);
    told.textContent = text;
  } catch {
    // Pages over plain http may not write to the clipboard: the user copies the selected text.
    getSelection().selectAllChildren(element);
    told.textContent = "Selected: press Ctrl+C to copy";
  }
  setTimeout(() => (told.textContent = ""), 3000);
}

/** A count with its noun. */
export function count(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : noun.endsWith("s") ? "es" : "s"}`;
}

/** A size of bytes. */
export function size(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

/** A text with invisible white space made visible. */
export function visible(text) {
  return text.replaceAll("\n", "⏎").replaceAll("\t", "⇥").replaceAll(" ", "␣");
}

/** Waits until typing stops for a moment. */
export function later(work) {
  let waiting;
  return () => {
    clearTimeout(waiting);
    waiting = setTimeout(work, 120);
  };
}
