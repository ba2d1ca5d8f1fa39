/** The routes of this server and the fields of their requests, from its own `openapi.json`. */

import { Problems, ask } from "./api.js";
import { h, lead } from "./dom.js";

/** What a field takes, in a few words. */
function kind(schema) {
  if (schema.$ref) return plain(schema.$ref.split("/").pop());
  const all = schema.anyOf ?? schema.oneOf;
  if (all) return [...new Set(all.filter((one) => one.type !== "null").map((one) => kind(one)))].join(" or ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" or ");
  if (schema.type === "array") return `array of ${schema.items ? kind(schema.items) : "anything"}`;
  const { minimum: least, maximum: most } = schema;
  const isBounded = least !== undefined && most !== undefined && most < 2 ** 31 - 1;
  const range = isBounded ? `, ${least} to ${most}` : least > -(2 ** 31) + 1 ? `, at least ${least}` : "";
  return (schema.type ?? "anything") + range;
}

/** The last part of a name that says in which module it is. */
function plain(name) {
  return name.split("__").pop();
}

/** The schemas that one names, itself first. */
function named(schema, all, found = new Map()) {
  const text = JSON.stringify(schema ?? {});
  for (const [, name] of text.matchAll(/"#\/components\/schemas\/([^"]+)"/g)) {
    if (found.has(name)) continue;
    found.set(name, all[name]);
    named(all[name], all, found);
  }
  return found;
}

function fields(name, schema) {
  const needed = new Set(schema.required ?? []);
  const rows = Object.entries(schema.properties ?? {}).map(([field, said]) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, h("code", {}, field), needed.has(field) && h("span", { class: "needed" }, " needed")),
      h("td", {}, kind(said)),
      h(
        "td",
        {},
        said.default === undefined || said.default === null ? "" : h("code", {}, JSON.stringify(said.default)),
      ),
    ),
  );
  if (!rows.length) return null;
  const head = ["Field", "What it takes", "If left out"].map((text) => h("th", { scope: "col" }, text));
  const table = h("table", {}, h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows));
  return h("div", { class: "scrolls", tabindex: "0", role: "region", "aria-label": `Fields of ${plain(name)}` }, [
    h("h2", {}, plain(name)),
    schema.description && h("p", { class: "hint" }, schema.description.split("\n\n")[0]),
    table,
  ]);
}

function route(path, method, said, all) {
  const body = said.requestBody?.content;
  const schemas = [...named(body, all)].map(([name, schema]) => fields(name, schema));
  return h(
    "details",
    { class: "route" },
    h("summary", {}, h("span", { class: "method" }, method.toUpperCase()), " ", h("code", {}, path), " ", said.summary),
    said.description && h("p", {}, said.description),
    schemas,
  );
}

/** Makes the view. */
export function routes(root) {
  const problems = new Problems();
  const list = h("div", { class: "routes" });
  root.append(
    lead("API", "Every route of this server. Clients of OpenAI's API need its address and nothing else."),
    h("p", {}, "The address: ", h("code", {}, new URL("v1", document.baseURI.split("#")[0]).href)),
    problems.element,
    list,
  );

  async function refresh() {
    problems.clear();
    try {
      const { paths, components } = await ask("GET", "openapi.json");
      const made = Object.entries(paths).flatMap(([path, methods]) =>
        Object.entries(methods).map(([method, said]) => route(path, method, said, components.schemas)),
      );
      // What is open stays open where the server comes back.
      if (list.childElementCount !== made.length) list.replaceChildren(...made);
    } catch (error) {
      problems.show(error);
    }
  }
  return { refresh };
}
