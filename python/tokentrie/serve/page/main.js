/** What the page begins with: its views, the key, the model, and whether the server is there. */

import { ask, chosen, key } from "./api.js";
import { chat } from "./chat.js";
import { decide } from "./decide.js";
import { h } from "./dom.js";
import { at, onTab, select } from "./frame.js";
import { routes } from "./routes.js";
import { sets } from "./sets.js";
import { write } from "./write.js";

const views = { decide, write, chat, sets, routes };
const shown = {};
let isReady = false;

/** Shows a tab; a view is made when it is first shown, and begins when the server is known to answer. */
function show(name, focus = false) {
  select(name, focus);
  shown[name] ??= views[name](at(`panel-${name}`)) ?? {};
  shown[name].refresh?.();
  if (isReady) begun(shown[name]);
  document.title = `tokentrie: ${name}`;
}

/** Lets a view do by itself, once, what its first example is for. */
function begun(view) {
  view.begin?.();
  delete view.begin;
}

function fromAddress() {
  const name = location.hash.slice(1);
  if (name in views || name === "") show(name || "decide");
}

onTab(show);
window.addEventListener("hashchange", fromAddress);

// Ctrl+Enter does what the view's first button does, from any of its fields.
document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  const view = document.querySelector("[role=tabpanel]:not([hidden])");
  const scope = document.activeElement?.closest("[data-enter]") ?? view;
  scope?.querySelector("button.go:not([hidden])")?.click();
});

/* ---- the key ---- */

function showKey(isShown) {
  at("key").hidden = !isShown;
  at("show-key").setAttribute("aria-expanded", String(isShown));
}

at("show-key").addEventListener("click", () => {
  showKey(at("key").hidden);
  if (!at("key").hidden) at("key-field").focus();
});
at("key").addEventListener("submit", (event) => {
  event.preventDefault();
  key.set(at("key-field").value.trim());
  showKey(false);
  say("");
  begin();
});
window.addEventListener("server-wants-key", () => {
  const isOther = key.get() !== "";
  say(isOther ? "The server does not take this API key." : "This server wants an API key.", "wants");
  showKey(true);
});

/* ---- whether the server is there ---- */

let isGone = false;

function say(text, kind = "") {
  at("connection").className = `connection ${kind}`;
  at("connection").replaceChildren(text);
}

window.addEventListener("server-gone", () => {
  if (isGone) return;
  isGone = true;
  say("The server is gone. The page waits for it, and goes on when it is back.", "gone");
  setTimeout(look, 500);
});
window.addEventListener("server-there", () => {
  if (!isGone) return;
  isGone = false;
  say("The server is back.", "back");
  setTimeout(() => !isGone && say(""), 5000);
  begin();
});

async function look() {
  if (!isGone) return;
  try {
    await ask("GET", "health");
  } catch {
    setTimeout(look, 1000);
  }
}

/** Which models there are. What a restarted server has lost is asked for again. */
async function begin() {
  let found;
  try {
    found = (await ask("GET", "v1/models")).data;
  } catch {
    return; // said above
  }
  const names = found.map((one) => one.id);
  if (!names.includes(chosen.model)) chosen.model = names[0];
  const select = h(
    "select",
    { "aria-label": "Model", onchange: () => take(select.value) },
    names.map((name) => h("option", { value: name }, name)),
  );
  select.value = chosen.model;
  // Links carry no key.
  at("links").hidden = key.get() !== "";
  at("models").replaceChildren(names.length > 1 ? select : h("span", { class: "model" }, names[0]));
  take(chosen.model);
  isReady = true;
  for (const view of Object.values(shown)) {
    view.refresh?.();
    begun(view);
  }
}

function take(model) {
  chosen.model = model;
  document.body.classList.toggle("tiny", model === "tiny");
  window.dispatchEvent(new Event("model-changed"));
}

fromAddress();
begin();
