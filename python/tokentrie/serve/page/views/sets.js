/** Sets: constraints that are kept under a name, and the likeliest of their values after a prompt. */

import { MASS, figure, oddsOf } from "../bars.js";
import { copies } from "../copies.js";
import { about, area, count, h, labelled, lead, percent, segments, size, smallModel } from "../dom.js";
import { Problem, Problems, parsed } from "../problems.js";

const PATH = "v1/constraints";
const FORMS = {
  lines: ["Lines", "text/plain", "A value a line."],
  csv: ["CSV", "text/csv", "The values of a column; commas, a header."],
  json: ["JSON", "application/json", '{"kind": "set", "values": […]}, or a rule: {"kind": "regex", "regex": "…"}.'],
  ttrie: [".ttrie", "application/octet-stream", "A file that `tokentrie build` wrote for a model of this server."],
};
const TITLES = Object.fromEntries(Object.entries(FORMS).map(([form, [title]]) => [form, title]));
const NAMES = ["play_music", "list_files", "erase_file", "cancel_order", "send_message", "open_door", "book_table"];
const MESSAGES = [
  { role: "system", content: `Answer with one name.\nTools:\n${NAMES.join("\n")}` },
  { role: "user", content: "play some music" },
];

/** Makes the view in which sets are uploaded and inspected. */
export function sets(root, backend) {
  const { ask } = backend;
  let form = "lines";
  let known = [];
  let shown = null;
  const problems = { put: null, list: new Problems(), choose: null };

  /* ---- put ---- */
  const name = h("input", { value: "tools", spellcheck: "false", oninput: changed });
  const text = area({ rows: "8", class: "code", value: NAMES.join("\n"), "aria-label": "Values", oninput: changed });
  const file = h("input", { type: "file", onchange: took });
  const column = h("input", { value: "name", oninput: changed });
  const columnField = labelled("Column", column);
  const hint = h("p", { class: "hint" });
  const forms = segments("What is put", TITLES, form, (next) => {
    form = next;
    changed();
  });
  const told = h("p", { class: "told", role: "status" });
  problems.put = new Problems({ name, column, values: text, kind: text });

  function took() {
    const [given] = file.files;
    if (given) {
      const ending = given.name.split(".").pop().toLowerCase();
      form = { csv: "csv", json: "json", ttrie: "ttrie" }[ending] ?? "lines";
      forms.choose(form);
      name.value = given.name.replace(/\.[^.]*$/, "").replace(/[^A-Za-z0-9._-]+/g, "-");
    }
    changed();
  }

  function changed() {
    hint.textContent = FORMS[form][2];
    columnField.hidden = form !== "csv";
    text.hidden = form === "ttrie" || file.files.length > 0;
    code?.update();
  }

  function putting() {
    const query = form === "csv" ? `?column=${encodeURIComponent(column.value)}` : "";
    const path = `${PATH}/${encodeURIComponent(name.value)}${query}`;
    const [given] = file.files;
    return { method: "PUT", path, body: given ?? text.value, type: FORMS[form][1], file: given?.name };
  }

  async function put(event) {
    event.preventDefault();
    problems.put.clear();
    told.textContent = "";
    try {
      if (!name.value) throw new Problem("name: give it one", { param: "name" });
      const { method, path, body, type } = putting();
      const done = await ask(method, path, body, { headers: { "content-type": type } });
      await refresh();
      told.textContent = `${done.name} is kept: ${inWords(done)}, version ${done.version}.`;
      await open(done.name);
    } catch (error) {
      problems.put.show(error);
    }
  }

  /* ---- list ---- */
  const search = h("input", {
    type: "search",
    placeholder: "Search names",
    "aria-label": "Search names",
    oninput: list,
  });
  const rows = h("tbody", {});
  const empty = h("p", { class: "empty" });

  async function refresh() {
    problems.list.clear();
    try {
      known = (await ask("GET", PATH)).data;
    } catch (error) {
      problems.list.show(error);
      return;
    }
    list();
    if (shown && !known.some((one) => one.name === shown)) close();
  }

  function list() {
    const found = known.filter((one) => one.name.toLowerCase().includes(search.value.toLowerCase()));
    rows.replaceChildren(...found.map(row));
    rows.parentElement.hidden = found.length === 0;
    empty.textContent = found.length
      ? ""
      : known.length
        ? "No name has that in it."
        : "Nothing is kept yet: put the first one.";
  }

  function row(one) {
    const use = h(
      "button",
      { type: "button", class: "quiet", "aria-label": `Show ${one.name}`, onclick: () => open(one.name) },
      "Show",
    );
    const gone = h(
      "button",
      { type: "button", class: "quiet", "aria-label": `Delete ${one.name}`, onclick: () => remove(one.name) },
      "Delete",
    );
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, one.name),
      h("td", {}, inWords(one)),
      h("td", { class: "number" }, size(one.bytes)),
      h("td", {}, use, gone),
    );
  }

  async function remove(which) {
    problems.list.clear();
    try {
      await ask("DELETE", `${PATH}/${encodeURIComponent(which)}`);
      await refresh();
      told.textContent = `${which} is deleted. What runs with it goes on.`;
    } catch (error) {
      await refresh();
      problems.list.show(error);
    }
  }

  /* ---- show and choose ---- */
  const title = h("h2", {});
  const figures = h("dl", { class: "figures" });
  const prompt = area({ rows: "5", class: "code", value: JSON.stringify(MESSAGES, null, 2), oninput: changed });
  const top = h("input", { type: "number", min: "1", value: "5", oninput: changed });
  const out = h("div", {});
  problems.choose = new Problems({ prompt, messages: prompt, set: title, top });
  const value = h("input", { spellcheck: "false" });
  const edited = h("p", { class: "told", role: "status" });
  problems.edit = new Problems({ add: value, remove: value });
  const edits = h(
    "div",
    {},
    labelled("A value", value, "Comes or goes at once; what runs keeps the values it began with."),
    h(
      "div",
      { class: "line" },
      h("button", { type: "button", class: "quiet", onclick: () => edit("add") }, "Add"),
      h("button", { type: "button", class: "quiet", onclick: () => edit("remove") }, "Take away"),
    ),
    problems.edit.element,
    edited,
  );
  const detail = h(
    "form",
    { class: "panel answer", onsubmit: choose, "data-enter": true, hidden: true },
    title,
    figures,
    problems.choose.element,
    out,
    labelled("After", prompt, "Text, or a conversation as a list of messages."),
    h("div", { class: "settings" }, labelled("Best", top)),
    h("div", { class: "line" }, h("button", { type: "submit", class: "go" }, "Choose from it"), h("kbd", {}, "Ctrl ⏎")),
    edits,
  );
  const nothing = h(
    "div",
    { class: "panel answer" },
    h("p", { class: "empty" }, "Put a set, or show one: the odds of its values come here."),
  );

  function choosing() {
    const isList = prompt.value.trim().startsWith("[");
    const after = isList ? { messages: parsed(prompt.value, "messages") } : { prompt: prompt.value };
    return {
      method: "POST",
      path: "v1/choose",
      body: { model: backend.model, ...after, set: shown, top: Number(top.value) },
    };
  }

  async function open(which) {
    problems.list.clear();
    try {
      const one = await ask("GET", `${PATH}/${encodeURIComponent(which)}`);
      shown = which;
      title.textContent = which;
      figures.replaceChildren(
        figure("kind", inWords(one)),
        figure("version", String(one.version)),
        figure("size", size(one.bytes)),
        figure("digest", h("code", { title: one.digest }, one.digest.slice(0, 12))),
      );
      out.replaceChildren();
      edits.hidden = one.kind !== "set";
      edited.textContent = "";
      problems.choose.clear();
      problems.edit.clear();
      detail.hidden = false;
      nothing.hidden = true;
      changed();
      // Kinds with listable values show the odds at once.
      if (one.kind === "set") await choose();
    } catch (error) {
      await refresh();
      problems.list.show(error);
    }
  }

  function close() {
    shown = null;
    detail.hidden = true;
    nothing.hidden = false;
    changed();
  }

  async function choose(event) {
    event?.preventDefault();
    problems.choose.clear();
    out.replaceChildren();
    try {
      const began = performance.now();
      const { method, path, body } = choosing();
      const done = await ask(method, path, body);
      const time = `${(performance.now() - began).toFixed(0)} ms`;
      out.append(
        oddsOf(done),
        h("p", { class: "told", role: "status" }, `${done.choice}, in ${time}; mass ${percent(done.mass)} `, [
          about("mass", MASS),
        ]),
      );
    } catch (error) {
      problems.choose.show(error);
    }
  }

  /** The odds of the first example, which nothing is kept for. */
  async function begin() {
    const values = text.value.split("\n");
    try {
      const done = await ask("POST", "v1/choose", { model: backend.model, messages: MESSAGES, values, top: 5 });
      nothing.prepend(h("h2", { class: "before" }, "After “play some music”, the likeliest of these"), oddsOf(done));
    } catch (error) {
      problems.list.show(error);
    }
  }

  async function edit(how) {
    problems.edit.clear();
    edited.textContent = "";
    const text = value.value;
    try {
      const done = await ask("PATCH", `${PATH}/${encodeURIComponent(shown)}`, { [how]: [text] });
      await refresh();
      await open(done.name);
      const said = { add: ["came", "was there already"], remove: ["went", "was not there"] }[how];
      const isNew = done.added + done.removed > 0;
      edited.textContent = `${text} ${said[isNew ? 0 : 1]}: ${inWords(done)}, version ${done.version}.`;
    } catch (error) {
      problems.edit.show(error);
    }
  }

  const putForm = h(
    "form",
    { class: "ask panel", onsubmit: put, "data-enter": true },
    labelled("Name", name),
    h("div", { class: "field" }, h("h2", {}, "What is put"), forms, text, columnField, hint),
    labelled("Or a file", file),
    h("div", { class: "line act" }, h("button", { type: "submit", class: "go" }, "Put"), h("kbd", {}, "Ctrl ⏎")),
    problems.put.element,
    told,
  );
  const code = copies(backend.programs, () => (shown ? choosing() : putting()));
  const kept = h(
    "section",
    { class: "panel kept", "aria-label": "What is kept" },
    h("div", { class: "line" }, h("h2", {}, "What is kept"), search),
    problems.list.element,
    h("div", { class: "scrolls" }, h("table", {}, h("caption", { class: "unseen" }, "Constraints by name"), rows)),
    empty,
  );
  root.append(
    lead(
      "Keep a set, choose from it.",
      "Names, products, cities: put them once, and ask which is likeliest, each as a whole and exactly.",
    ),
    h("div", { class: "begin" }, smallModel()),
    h("div", { class: "columns" }, h("div", { class: "stack" }, putForm, kept), h("div", {}, detail, nothing)),
    code.element,
  );
  changed();
  return { refresh, begin };
}

function inWords(one) {
  const kind = one.kind.replace("_", " ");
  return one.size === undefined ? kind : `${kind} of ${count(one.size, "value")}`;
}
