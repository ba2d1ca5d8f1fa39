/** Entry point of the page: its views, and the engine that all views share. */

import { engine } from "./engine.js";
import { h } from "./page/dom.js";
import { at, onTab, select } from "./page/frame.js";
import { ask } from "./ask.js";
import { grammar, regex, schema, set } from "./rules.js";
import { chat } from "./template.js";

const views = { regex, grammar, schema, set, chat, ask };
const shown = new Set();
let isReady = false;

/** Shows a tab; a view is made when it is first shown. */
function show(name, focus = false) {
  const tab = select(name, focus);
  // On a phone the tabs are wider than the page.
  tab.scrollIntoView({ block: "nearest", inline: "nearest" });
  document.title = `tokentrie: ${tab.textContent.trim()}`;
  if (!isReady || shown.has(name)) return;
  shown.add(name);
  views[name](at(`panel-${name}`));
}

const fromAddress = () => (location.hash.slice(1) in views ? location.hash.slice(1) : "regex");

onTab(show);
window.addEventListener("hashchange", () => show(fromAddress()));

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
