/** The frame of the page: tabs, dark or light, and the engine that all views share. */

import { engine } from "./engine.js";
import { h } from "./page/dom.js";
import { grammar, regex, schema, set } from "./rules.js";
import { chat } from "./template.js";

const at = (identity) => document.getElementById(identity);
const tabs = [...document.querySelectorAll("[role=tab]")];
// Names of views stand in the address; panels are called otherwise, so that the browser does not jump to them.
const nameOf = (tab) => tab.id.replace("tab-", "");
const views = { regex, grammar, schema, set, chat };
const shown = new Set();
let isReady = false;

/** Shows a tab; a view is made when it is first shown. */
function show(name, focus = false) {
  for (const tab of tabs) {
    const is = nameOf(tab) === name;
    tab.setAttribute("aria-selected", String(is));
    tab.tabIndex = is ? 0 : -1;
    at(tab.getAttribute("aria-controls")).hidden = !is;
    if (is && focus) tab.focus();
    // On a phone the tabs are wider than the page.
    if (is) tab.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
  document.title = `tokentrie: ${tabs.find((tab) => nameOf(tab) === name).textContent.trim()}`;
  if (location.hash !== `#${name}`) history.replaceState(null, "", `#${name}`);
  if (!isReady || shown.has(name)) return;
  shown.add(name);
  views[name](at(`panel-${name}`));
}

const fromAddress = () => (location.hash.slice(1) in views ? location.hash.slice(1) : "regex");

for (const [number, tab] of tabs.entries()) {
  tab.addEventListener("click", () => show(nameOf(tab)));
  tab.addEventListener("keydown", (event) => {
    const steps = { ArrowRight: number + 1, ArrowLeft: number - 1 + tabs.length, Home: 0, End: tabs.length - 1 };
    if (!(event.key in steps)) return;
    event.preventDefault();
    show(nameOf(tabs[steps[event.key] % tabs.length]), true);
  });
}
window.addEventListener("hashchange", () => show(fromAddress()));

at("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const chosen = root.style.colorScheme;
  const isDark = chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.style.colorScheme = isDark ? "light" : "dark";
});

show(fromAddress());
const waiting = setTimeout(() => at("connection").replaceChildren("Loading the engine…"), 300);
try {
  const { vocab } = await engine();
  isReady = true;
  at("words").textContent = `${vocab.size.toLocaleString("en")} tokens`;
  at("words").hidden = false;
  clearTimeout(waiting);
  at("connection").replaceChildren();
  show(fromAddress());
} catch (error) {
  clearTimeout(waiting);
  at("connection").replaceChildren(h("p", { class: "problem" }, `The engine cannot be loaded: ${error.message}`));
}
