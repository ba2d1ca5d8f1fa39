/** A view of a rule: what is typed, where one stands in it, and which tokens may come next. */

import { engine, Walk } from "./engine.js";
import { area, count, examples, h, labelled, lead, visible } from "./page/dom.js";
import { specPanel } from "./spec.js";
import { constraint } from "./tokentrie/dist/web/src/index.js";

/** Chips that are shown at once. */
const SHOWN = 120;

/**
 * Fills a panel. `kind.spec` makes a spec of what is typed, `kind.take` hears of an example that is taken; `update` of
 * what comes back is to be called where the spec changes otherwise.
 */
export function explorer(panel, kind) {
  let walk;
  let shared;
  let shown = SHOWN;
  const rule = area({ class: "code", rows: "3", oninput: later(remake) });
  const prefix = h("input", { class: "code", spellcheck: "false", autocomplete: "off", oninput: later(go) });
  const fault = h("p", { role: "alert" });
  const strip = h("p", { class: "strip", "aria-label": "The text in tokens" });
  const found = h("div", { class: "found" });
  const back = h("button", { type: "button", onclick: stepBack }, "Step back");
  const again = h("button", { type: "button", onclick: () => restart("") }, "Start over");
  const spec = specPanel();

  function remake() {
    walk?.free();
    walk = undefined;
    let made;
    try {
      made = kind.spec(rule.value);
      walk = new Walk(shared, constraint(made, shared.vocab));
    } catch (error) {
      fail(error.message);
      rule.setAttribute("aria-invalid", "true");
      found.replaceChildren();
      strip.replaceChildren();
      spec.show(made);
      return;
    }
    rule.removeAttribute("aria-invalid");
    spec.show(made);
    go();
  }

  function go() {
    if (walk === undefined) return;
    const wrong = walk.goTo(prefix.value);
    prefix.setAttribute("aria-invalid", String(wrong !== ""));
    fail(wrong === "" ? "" : `${stands(walk.text)} “${visible(wrong)}” may not come. Shown is what may.`);
    draw();
  }

  function fail(message) {
    fault.textContent = message;
    fault.className = message === "" ? "" : "problem";
  }

  function restart(text) {
    prefix.value = text;
    go();
  }

  function stepBack() {
    if (walk === undefined) return;
    walk.back();
    onMove();
  }

  function take(tokens) {
    walk.take(tokens);
    onMove();
  }

  function onMove() {
    prefix.value = walk.text;
    prefix.removeAttribute("aria-invalid");
    fail("");
    draw();
  }

  function draw() {
    shown = SHOWN;
    const next = walk.next();
    const { vocab } = shared;
    const said = walk.tokens.map((id) => h("span", { class: "token chosen", title: `token ${id}` }, text(id)));
    if (walk.rest !== "")
      said.push(h("span", { class: "token part" }, walk.text.slice(vocab.text(walk.tokens).length)));
    const forced = next.forced.map((id) => h("span", { class: "token forced" }, text(id)));
    strip.replaceChildren(...said, ...forced);
    if (said.length + forced.length === 0) strip.append(h("span", { class: "empty" }, "Nothing yet"));
    back.disabled = walk.tokens.length === 0 && walk.rest === "";
    found.replaceChildren(
      h(
        "p",
        { class: "verdict-line" },
        h("b", {}, next.ids.length.toLocaleString("en")),
        ` of ${count(vocab.size, "token")} may come`,
        h("span", { class: next.mayEnd ? "badge may" : "badge" }, next.mayEnd ? "May end here" : "May not end yet"),
      ),
      h("div", { class: "lane", "aria-hidden": "true" }, share(next.ids.length / vocab.size)),
      ...forcedLine(next.forced),
      chips(next.ids),
    );
  }

  function forcedLine(forced) {
    if (forced.length === 0) return [];
    const told = `${count(forced.length, "token")} must come, and ${forced.length === 1 ? "costs" : "cost"} no pass: `;
    const run = h("code", { class: "token forced" }, visible(shared.vocab.text(forced)));
    return [h("p", { class: "run" }, told, run, h("button", { type: "button", onclick: () => take(forced) }, "Take"))];
  }

  function chips(ids) {
    const list = h("ul", { class: "chips", "aria-label": "Tokens that may come next" });
    for (const id of ids.slice(0, shown)) {
      const button = { type: "button", class: "next", title: `token ${id}`, onclick: () => take([id]) };
      list.append(h("li", {}, h("button", button, text(id))));
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

  /** Halves of characters and what would not be seen are named by their bytes. */
  function text(id) {
    const said = visible(shared.vocab.text([id]));
    if (!/[\p{Cc}\ufffd]/u.test(said)) return said;
    return Array.from(shared.pieces[id], (one) => `‹${one.charCodeAt(0).toString(16).padStart(2, "0")}›`).join("");
  }

  const takeExample = (one) => {
    rule.value = one.rule;
    prefix.value = one.prefix;
    kind.take?.(one);
    remake();
  };
  const asked = h(
    "div",
    { class: "panel ask" },
    kind.above,
    labelled(kind.label, rule),
    labelled("Text so far", prefix, "Type, or press a token that may come."),
    fault,
  );
  const head = h("div", { class: "line" }, h("h2", {}, "What may come next"), back, again);
  const answer = h("div", { class: "panel answer" }, head, h("div", { class: "strip-box" }, strip), found);
  panel.append(
    lead(kind.title, kind.text),
    examples(kind.examples, takeExample),
    h("div", { class: "columns" }, h("div", { class: "stack" }, asked, spec.element), answer),
  );
  engine().then((made) => {
    shared = made;
    takeExample(Object.values(kind.examples)[0]);
  });
  return { update: remake };
}

function stands(text) {
  return text === "" ? "At the beginning" : `After “${visible(text)}”`;
}

/** The part of the vocabulary that may come; of a few tokens a sliver is seen. */
function share(part) {
  const bar = h("i", { class: "asked" });
  bar.style.setProperty("--share", String(part === 0 ? 0 : Math.max(part, 0.006)));
  return bar;
}

/** Waits until typing stops for a moment. */
export function later(work) {
  let waiting;
  return () => {
    clearTimeout(waiting);
    waiting = setTimeout(work, 120);
  };
}
