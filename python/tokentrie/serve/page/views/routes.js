/** The routes of this server and the fields of their requests, from its own `openapi.json`. */

import { area, h, labelled, lead } from "../dom.js";
import { Problem, Problems, parsed } from "../problems.js";

const MOST_SHOWN = 20_000;
const USER = [{ role: "user", content: "The service is so great." }];
const SENTIMENT = { type: "choice", instructions: "Which?", choices: [{ value: "positive" }, { value: "negative" }] };
/** Initial body of some routes; the others begin with the required fields. */
const BODIES = {
  "/v1/decisions": { input: "The service is so great.", questions: [SENTIMENT] },
  "/v1/systemone": {
    state: "The service is so great.",
    questions: { great: { type: "noul", instructions: "Is the review positive?" } },
  },
  "/v1/chat/completions": { messages: USER, max_tokens: 40 },
  "/v1/completions": { prompt: "The sky is ", max_tokens: 8, constraint: { choice: ["blue", "grey"] } },
  "/v1/responses": { input: "The service is so great.", max_output_tokens: 40 },
  "/v1/choose": { messages: USER, values: ["positive", "negative", "neutral"] },
  "/v1/probability": { prompt: "The sky is ", constraint: { regex: "[a-z]{3,5}" }, text: "blue" },
  "/v1/rerank": { query: "Who has a door?", documents: ["The door is open.", "Play some music."] },
  "/v1/embeddings": { input: "a text" },
  "/tokenize": { content: "The sky is blue." },
  "/detokenize": { tokens: [72, 73] },
  "/apply-template": { messages: USER },
  "/slots/{slot}": { filename: "rules.prefix", prompt: "You sort letters." },
  "/v1/constraints/{name}": { kind: "set", values: ["red", "blue"] },
};
const PATCH = { add: ["green"] };
/** Initial values of the parameters of a route. */
const PARAMETERS = { name: "colours", slot: "0", action: "save" };

/** Returns a short description of the values of a field. */
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

/** The last part of a name that is qualified by its module. */
function plain(name) {
  return name.split("__").pop();
}

/** A schema and the schemas that it references, itself first. */
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

/** The needed fields of a schema, empty. */
function blank(schema) {
  const empty = { string: "", array: [], object: {}, integer: 0, number: 0, boolean: false };
  const needed = schema?.required ?? [];
  return Object.fromEntries(needed.map((name) => [name, empty[schema.properties?.[name]?.type] ?? null]));
}

/** A form that sends a request of this route and shows what comes back, as it is. */
function trial(backend, path, method, said, all) {
  const body = said.requestBody?.content?.["application/json"]?.schema;
  const name = body?.$ref?.split("/").pop();
  const takes = said.requestBody !== undefined || path in BODIES ? method !== "get" && method !== "delete" : false;
  const known = method === "patch" ? PATCH : (BODIES[path] ?? blank(all[name]));
  const names = all[name]?.properties ?? {};
  const first = "model" in names ? { model: backend.model, ...known } : known;
  const text = area({ class: "code", rows: "6", value: JSON.stringify(first, null, 2) });
  const parameters = (said.parameters ?? [])
    .filter((one) => one.in === "path" || one.in === "query")
    .map((one) => ({ ...one, field: h("input", { spellcheck: "false", value: valueOf(one, path, backend.model) }) }));
  const go = h("button", { type: "submit", class: "go" }, "Try it");
  const problems = new Problems({ body: text });
  const status = h("p", { class: "told", role: "status" });
  const out = h("pre", {
    class: "reply",
    tabindex: "0",
    role: "region",
    "aria-label": `Answer of ${path}`,
    hidden: true,
  });

  async function send(event) {
    event.preventDefault();
    problems.clear();
    status.textContent = "";
    go.disabled = true;
    try {
      const query = [];
      let filled = path;
      for (const { name, in: place, field } of parameters) {
        if (place === "query") {
          if (field.value !== "") query.push(`${name}=${encodeURIComponent(field.value)}`);
          continue;
        }
        if (field.value === "") throw new Problem(`${name}: give it a value`, { param: name });
        filled = filled.replace(`{${name}}`, encodeURIComponent(field.value));
      }
      const address = query.length ? `${filled}?${query.join("&")}` : filled;
      const began = performance.now();
      const found = await backend.exchanged(
        method.toUpperCase(),
        address,
        takes ? parsed(text.value, "body") : undefined,
      );
      status.textContent = `${found.status}, in ${(performance.now() - began).toFixed(0)} ms`;
      out.textContent = readable(found.text);
      out.hidden = found.text === "";
    } catch (error) {
      problems.show(error);
    } finally {
      go.disabled = false;
    }
  }

  return h(
    "form",
    { class: "trial", onsubmit: send, "data-enter": true },
    parameters.map(({ name, field }) => labelled(name, field)),
    takes && labelled("Body", text),
    h("div", { class: "line" }, go, status),
    problems.element,
    out,
  );
}

function valueOf({ name, in: place, required }, path, model) {
  if (path.startsWith("/v1/models/")) return model;
  if (place === "query" && !required && name !== "action") return "";
  return PARAMETERS[name] ?? "";
}

/** JSON in lines, anything else unchanged; only the beginning of a long text. */
function readable(text) {
  let shown = text;
  try {
    shown = JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    // It is not JSON: metrics, or the events of a stream.
  }
  const rest = shown.length - MOST_SHOWN;
  return rest > 0 ? `${shown.slice(0, MOST_SHOWN)}\n… and ${rest.toLocaleString("en")} characters more` : shown;
}

function route(backend, path, method, said, all) {
  const body = said.requestBody?.content;
  const schemas = [...named(body, all)].map(([name, schema]) => fields(name, schema));
  const trying = h("div", {});
  const details = h(
    "details",
    { class: "route" },
    h("summary", {}, h("span", { class: "method" }, method.toUpperCase()), " ", h("code", {}, path), " ", said.summary),
    said.description && h("p", {}, said.description),
    trying,
    schemas,
  );
  // Built when it is opened, so that it names the currently chosen model.
  details.addEventListener("toggle", () => {
    if (details.open && !trying.firstChild) trying.append(trial(backend, path, method, said, all));
  });
  return details;
}

/** Makes the view that lists the routes and tries them. */
export function routes(root, backend) {
  const problems = new Problems();
  const list = h("div", { class: "routes" });
  root.append(
    lead("API", "Every route of this server. Clients of OpenAI's API need its address and nothing else."),
    h("p", {}, "The address: ", h("code", {}, backend.address("v1"))),
    problems.element,
    list,
  );

  async function refresh() {
    problems.clear();
    try {
      const { paths, components } = await backend.ask("GET", "openapi.json");
      const made = Object.entries(paths).flatMap(([path, methods]) =>
        Object.entries(methods).map(([method, said]) => route(backend, path, method, said, components.schemas)),
      );
      // Open panels stay open when the server comes back.
      if (list.childElementCount !== made.length) list.replaceChildren(...made);
    } catch (error) {
      problems.show(error);
    }
  }
  return { refresh };
}
