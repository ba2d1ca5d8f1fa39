/** Probabilities as bars, each with its number beside it. */

import { about, h, percent } from "./dom.js";

const FIRST = 12;
/** Explanation of the probability mass. */
export const MASS =
  "What the model gives to all options together, before they are scaled to 100 %. Near 0 % it would rather say " +
  "something else, and the odds mean little.";

/** A bar of one share. */
export function bar(share, kind = "") {
  const fill = h("i", {});
  fill.style.setProperty("--share", String(share));
  return h("span", { class: `bar ${kind}`, "aria-hidden": "true" }, fill);
}

/**
 * A list of options: `{label, about, shares, isBest}`. Each share is drawn in a row of its own, under the name of its
 * series where there are several. Of long lists the first are shown.
 */
export function bars(options, series = [""]) {
  const list = h("ol", { class: `bars ${series.length > 1 ? "several" : ""}` });
  const draw = (option) => {
    const rows = option.shares.map((share, nth) =>
      h(
        "div",
        { class: "row" },
        series.length > 1 && h("span", { class: "series" }, series[nth]),
        bar(share, `series-${nth}`),
        h("span", { class: "share" }, percent(share)),
      ),
    );
    const name = h("span", { class: "name" }, option.label, option.about && h("small", {}, option.about));
    return h("li", { class: option.isBest ? "best" : "" }, name, h("div", { class: "rows" }, rows));
  };
  list.append(...options.slice(0, FIRST).map(draw));
  if (options.length <= FIRST) return list;
  const more = h("button", { type: "button", class: "quiet more" }, `Show all ${options.length.toLocaleString("en")}`);
  more.addEventListener("click", () => {
    list.append(...options.slice(FIRST).map(draw));
    more.remove();
  });
  return h("div", {}, list, more);
}

/** Bars of the answer of a choice. */
export function oddsOf({ values, index }) {
  return bars(values.map((one) => ({ label: one.value, shares: [one.probability], isBest: one.index === index })));
}

/** A figure with its name, and an explanation on request. */
export function figure(name, value, meaning) {
  return h(
    "div",
    { class: "figure" },
    h("dt", {}, name, meaning && about(name.toLowerCase(), meaning)),
    h("dd", {}, value),
  );
}
