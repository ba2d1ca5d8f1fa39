/** Start of the page: its back end, the views that this one can serve, the model, and the key. */

import { h } from "./dom.js";
import { chat } from "./views/chat.js";
import { decide } from "./views/decide.js";
import { routes } from "./views/routes.js";
import { rules } from "./views/rules.js";
import { sets } from "./views/sets.js";
import { template } from "./views/template.js";
import { write } from "./views/write.js";

const BACKENDS = { server: () => import("./backend/server.js"), module: () => import("./backend/module.js") };
const VIEWS = {
  decide: ["Decide", decide],
  rules: ["Rules", rules],
  write: ["Write", write],
  chat: ["Chat", chat],
  sets: ["Sets", sets],
  template: ["Template", template],
  routes: ["API", routes],
};

const at = (identity) => document.getElementById(identity);
const { backend } = await BACKENDS[document.documentElement.dataset.backend]();
const tabs = backend.views.map((name, number) => {
  const tab = { role: "tab", id: `tab-${name}`, "aria-controls": `panel-${name}`, onclick: () => show(name) };
  const steps = { ArrowRight: number + 1, ArrowLeft: number - 1, Home: 0, End: -1 };
  tab.onkeydown = (event) => {
    if (!(event.key in steps)) return;
    event.preventDefault();
    show(backend.views.at(steps[event.key] % backend.views.length), true);
  };
  return h("button", tab, VIEWS[name][0]);
});
// Names of views stand in the address; panels are called otherwise, so that the browser does not jump to them.
const panels = backend.views.map((name) =>
  h("section", { role: "tabpanel", id: `panel-${name}`, "aria-labelledby": `tab-${name}` }),
);
at("tabs").append(...tabs);
at("main").append(...panels);

const shown = {};
let isReady = false;

/** Shows a tab; a view is made when it is first shown, and begins when the back end is known to answer. */
function show(name, focus = false) {
  for (const [number, tab] of tabs.entries()) {
    const is = backend.views[number] === name;
    tab.setAttribute("aria-selected", String(is));
    tab.tabIndex = is ? 0 : -1;
    panels[number].hidden = !is;
    if (is && focus) tab.focus();
  }
  if (location.hash !== `#${name}`) history.replaceState(null, "", `#${name}`);
  shown[name] ??= VIEWS[name][1](at(`panel-${name}`), backend) ?? {};
  shown[name].refresh?.();
  if (isReady) beginView(shown[name]);
  document.title = `tokentrie: ${name}`;
}

/** Runs the first example of a view once, without a click. */
function beginView(view) {
  view.begin?.();
  delete view.begin;
}

function fromAddress() {
  const name = location.hash.slice(1);
  if (backend.views.includes(name) || name === "") show(name || backend.views[0]);
}

window.addEventListener("hashchange", fromAddress);

// Ctrl+Enter does what the view's first button does, from any of its fields.
document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  const view = document.querySelector("[role=tabpanel]:not([hidden])");
  const scope = document.activeElement?.closest("[data-enter]") ?? view;
  scope?.querySelector("button.go:not([hidden])")?.click();
});

at("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const chosen = root.style.colorScheme;
  const isDark = chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.style.colorScheme = isDark ? "light" : "dark";
});

/* ---- the key ---- */

function showKey(isShown) {
  at("key").hidden = !isShown;
  at("show-key").setAttribute("aria-expanded", String(isShown));
}

at("show-key").hidden = !backend.key;
at("show-key").addEventListener("click", () => {
  showKey(at("key").hidden);
  if (!at("key").hidden) at("key-field").focus();
});
at("key").addEventListener("submit", (event) => {
  event.preventDefault();
  backend.key.set(at("key-field").value.trim());
  showKey(false);
  say("");
  begin();
});

/* ---- description of the back end ---- */

function say(text, kind = "") {
  at("connection").className = `connection ${kind}`;
  at("connection").replaceChildren(text);
}

window.addEventListener("backend-told", ({ detail: { text, kind } }) => {
  say(text, kind);
  if (kind === "wants") showKey(true);
  if (kind === "back") begin();
});

/** Loads the models and refreshes the views: state that a restarted server lost is requested again. */
async function begin() {
  let found;
  try {
    found = (await backend.ask("GET", "v1/models")).data;
  } catch {
    return; // said above
  }
  const names = found.map((one) => one.id);
  if (!names.includes(backend.model)) backend.model = names[0];
  const select = h(
    "select",
    { "aria-label": "Model", onchange: () => take(select.value) },
    names.map((name) => h("option", { value: name }, name)),
  );
  select.value = backend.model;
  // Links carry no key.
  at("links").hidden = Boolean(backend.key?.get());
  at("models").replaceChildren(names.length > 1 ? select : h("span", { class: "model" }, names[0]));
  take(backend.model);
  isReady = true;
  for (const view of Object.values(shown)) {
    view.refresh?.();
    beginView(view);
  }
}

function take(model) {
  backend.model = model;
  document.body.classList.toggle("tiny", model === "tiny");
  window.dispatchEvent(new Event("model-changed"));
}

fromAddress();
begin();
