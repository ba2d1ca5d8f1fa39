/** The frame of a page: tabs whose names stand in the address, and dark or light. */

export const at = (identity) => document.getElementById(identity);

const tabs = [...document.querySelectorAll("[role=tab]")];
// Names of views stand in the address; panels are called otherwise, so that the browser does not jump to them.
const nameOf = (tab) => tab.id.replace("tab-", "");

/** Selects a tab and shows its panel. Gives the tab. */
export function select(name, focus = false) {
  for (const tab of tabs) {
    const is = nameOf(tab) === name;
    tab.setAttribute("aria-selected", String(is));
    tab.tabIndex = is ? 0 : -1;
    at(tab.getAttribute("aria-controls")).hidden = !is;
    if (is && focus) tab.focus();
  }
  if (location.hash !== `#${name}`) history.replaceState(null, "", `#${name}`);
  return tabs.find((tab) => nameOf(tab) === name);
}

/** Has `show(name, focus)` called for each tab that a mouse or the arrows ask for. */
export function onTab(show) {
  for (const [number, tab] of tabs.entries()) {
    tab.addEventListener("click", () => show(nameOf(tab)));
    tab.addEventListener("keydown", (event) => {
      const steps = { ArrowRight: number + 1, ArrowLeft: number - 1 + tabs.length, Home: 0, End: tabs.length - 1 };
      if (!(event.key in steps)) return;
      event.preventDefault();
      show(nameOf(tabs[steps[event.key] % tabs.length]), true);
    });
  }
}

at("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const chosen = root.style.colorScheme;
  const isDark = chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.style.colorScheme = isDark ? "light" : "dark";
});
