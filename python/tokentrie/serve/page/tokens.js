/** Tokens as they come, coloured by their origin; hover, focus or a tap shows the other allowed tokens. */

import { bar } from "./bars.js";
import { h, percent, visible } from "./dom.js";

export const ROLES = {
  chosen: ["chosen", "the model had a choice, among legal tokens only"],
  forced: ["forced", "only one could come: the model was not asked"],
  free: ["free", "any token could come"],
};

/** Returns a legend of the colours, with a hint that each token has details. */
export function legend() {
  const colours = Object.entries(ROLES).map(([role, [name, meaning]]) =>
    h("li", {}, h("span", { class: `token ${role}`, "aria-hidden": "true" }, "token"), h("b", {}, name), ` ${meaning}`),
  );
  return h(
    "div",
    { class: "legend" },
    h(
      "p",
      {},
      "Hover over a token, tap it or walk there with the arrows: it shows what else could come, with the odds.",
    ),
    h("ul", { "aria-label": "Colours of tokens" }, colours),
  );
}

function described({ text, role, legal, share, rivals }) {
  const why = { forced: "forced", free: "free: any token could come", chosen: `chosen among ${legal ?? "some"}` }[role];
  const head = h("p", {}, h("code", {}, visible(text) || "…"), h("span", {}, why));
  if (role === "forced")
    return [head, h("p", { class: "hint" }, "No other token is legal here, so no pass is spent on it.")];
  const list = rivals.map((rival) =>
    h(
      "li",
      { class: rival.isTaken ? "taken" : "" },
      h("code", {}, visible(rival.text)),
      bar(rival.share),
      h("span", {}, percent(rival.share)),
    ),
  );
  const rest = 1 - rivals.reduce((sum, one) => sum + one.share, 0);
  const others = legal === null || legal === undefined ? "all others" : `${Math.max(legal - rivals.length, 0)} others`;
  const tail = rest > 0.0005 && h("p", { class: "hint" }, `${others}: ${percent(rest)}`);
  return [head, h("ol", {}, list), share !== undefined && tail];
}

/**
 * A strip of tokens. `add` takes `{text, role, legal, share, rivals}`; the arrows move between tokens, of which one is
 * a stop of the keyboard.
 */
export function strip(label) {
  const text = h("div", { class: "strip", role: "group", "aria-label": label });
  const card = h("div", { class: "card", role: "status", hidden: true });
  const element = h("div", { class: "strip-box" }, text, card);
  const tokens = [];

  function show(token) {
    card.replaceChildren(...described(token.known).filter(Boolean));
    card.hidden = false;
    for (const other of text.querySelectorAll(".on")) other.classList.remove("on");
    token.classList.add("on");
    const box = element.getBoundingClientRect();
    const place = token.getClientRects()[0];
    const left = Math.min(place.left - box.left, box.width - card.offsetWidth);
    card.style.setProperty("left", `${Math.max(left, 0)}px`);
    card.style.setProperty("top", `${place.bottom - box.top + 6}px`);
  }

  function hide() {
    card.hidden = true;
    for (const other of text.querySelectorAll(".on")) other.classList.remove("on");
  }

  function add(known) {
    const { role, share } = known;
    const said = share === undefined || role === "forced" ? role : `${role}, ${percent(share)}`;
    const token = h(
      "span",
      {
        class: `token ${role}`,
        role: "button",
        tabindex: tokens.length ? "-1" : "0",
        "aria-label": `${known.text}: ${said}`,
      },
      known.text,
    );
    if (share !== undefined) token.style.setProperty("--share", String(share));
    token.known = known;
    tokens.push(token);
    text.append(token);
  }

  function move(to) {
    const next = tokens[Math.min(Math.max(to, 0), tokens.length - 1)];
    for (const token of tokens) token.tabIndex = token === next ? 0 : -1;
    next.focus();
  }

  const of = (event) => event.target.closest?.(".token");
  text.addEventListener("mouseover", (event) => of(event) && show(of(event)));
  text.addEventListener("mouseleave", () => {
    const held = text.contains(document.activeElement) && document.activeElement;
    if (held?.known) show(held);
    else hide();
  });
  text.addEventListener("focusin", (event) => of(event) && show(of(event)));
  text.addEventListener("focusout", hide);
  text.addEventListener("click", (event) => of(event) && move(tokens.indexOf(of(event))));
  text.addEventListener("keydown", (event) => {
    const now = tokens.indexOf(of(event));
    const steps = { ArrowRight: now + 1, ArrowLeft: now - 1, Home: 0, End: tokens.length - 1 };
    if (event.key === "Escape") hide();
    if (!(event.key in steps) || now < 0) return;
    event.preventDefault();
    move(steps[event.key]);
  });

  return {
    element,
    add,
    clear: () => {
      tokens.length = 0;
      text.replaceChildren();
      hide();
    },
    /** Shows that more may come. */
    wait: (is) => element.classList.toggle("waiting", is),
    text: () => tokens.map((token) => token.known.text).join(""),
  };
}

/** The likeliest tokens of a place, from logarithms; the one that was taken among them. */
export function rivalsOf(pairs, taken) {
  const rivals = pairs.map(([text, logprob]) => ({ text, share: Math.exp(logprob), isTaken: text === taken }));
  // Objects list integer-like keys first.
  return rivals.sort((one, other) => other.share - one.share);
}
