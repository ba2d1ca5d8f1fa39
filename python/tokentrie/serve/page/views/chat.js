/** Chat: tools as JSON, calls while they are written, and the probabilities of names and of values from short lists. */

import { bar } from "../bars.js";
import { copies } from "../copies.js";
import { area, count, examples, h, labelled, lead, percent, smallModel } from "../dom.js";
import { Problems, parsed } from "../problems.js";

const tool = (name, description, properties, required) => ({
  type: "function",
  function: { name, description, parameters: { type: "object", properties, required, additionalProperties: false } },
});
const TOOLS = [
  tool(
    "order_pizza",
    "Buy a pizza.",
    { size: { type: "string", enum: ["small", "medium", "large"] }, count: { type: "integer" } },
    ["size"],
  ),
  tool("erase", "Delete a file.", { path: { type: "string" }, force: { type: "boolean" } }, ["path"]),
  tool("add_meeting", "Create an event.", { title: { type: "string" }, day: { enum: ["monday", "friday"] } }, [
    "title",
  ]),
];
const EXAMPLES = {
  "A pizza": { text: "I want to buy a pizza with size large and count 2", thinks: true, tools: TOOLS },
  "Two calls": {
    text: "please buy a pizza with size small and get rid of the file with path b.txt",
    thinks: false,
    tools: TOOLS,
  },
  "No tool fits": { text: "could you paint my house?", thinks: true, tools: TOOLS },
};

/** Makes the view in which one chats with a model. */
export function chat(root, backend) {
  let messages = [];
  let running = null;
  const tools = area({ rows: "16", class: "code", oninput: changed });
  const may = h(
    "select",
    { onchange: changed },
    ["auto", "required", "none"].map((name) => h("option", { value: name }, name)),
  );
  const thinks = h("input", { type: "checkbox", checked: true, onchange: changed });
  const most = h("input", { type: "number", min: "1", value: "160", oninput: changed });
  const log = h("div", { class: "log", role: "log", "aria-label": "Conversation" });
  const text = area({ rows: "2", oninput: changed });
  const go = h("button", { type: "submit", class: "go" }, "Send");
  const stop = h("button", { type: "button", class: "stop", hidden: true, onclick: () => running?.abort() }, "Stop");
  const again = h("button", { type: "button", class: "quiet", onclick: () => begin("") }, "New conversation");
  const problems = new Problems({ tools, tool_choice: may, messages: text, max_tokens: most });
  const told = h("p", { class: "told", role: "status" });

  function changed() {
    code?.update();
  }

  function body(added = []) {
    const asked = { model: backend.model, messages: [...messages, ...added] };
    const defined = tools.value.trim() ? parsed(tools.value, "tools") : [];
    if (defined.length !== 0) {
      asked.tools = defined;
      if (may.value !== "auto") asked.tool_choice = may.value;
    }
    asked.max_tokens = Number(most.value);
    asked.temperature = 0;
    asked.stream = true;
    if (!thinks.checked) asked.chat_template_kwargs = { enable_thinking: false };
    return asked;
  }

  function typed() {
    return text.value.trim() ? [{ role: "user", content: text.value }] : [];
  }

  async function send(added) {
    problems.clear();
    told.textContent = "";
    let asked;
    try {
      asked = { ...body(added), return_details: true };
    } catch (error) {
      problems.show(error);
      return;
    }
    running?.abort();
    const own = (running = new AbortController());
    for (const one of added) log.append(said(one));
    const turn = reply();
    log.append(turn.element);
    go.hidden = true;
    stop.hidden = false;
    try {
      for await (const event of backend.stream("v1/chat/completions", asked, { signal: own.signal }))
        turn.see(event.choices[0]);
      // A truncated reply is shown, but not sent back to the model.
      messages = [...asked.messages, turn.message()];
      if (added.some((one) => one.role === "user")) text.value = "";
      turn.end((results) => send(results));
      told.textContent = turn.summary();
    } catch (error) {
      turn.breaks();
      problems.show(error);
      if (own.signal.aborted) told.textContent = "Stopped.";
    } finally {
      if (running === own) {
        go.hidden = false;
        stop.hidden = true;
        running = null;
      }
      changed();
    }
  }

  function begin(given) {
    running?.abort();
    messages = [];
    log.replaceChildren(
      h("p", { class: "empty" }, "Calls of tools appear here while they are written: always legal, never broken JSON."),
    );
    text.value = given;
    told.textContent = "";
    problems.clear();
    changed();
  }

  function run(event) {
    event.preventDefault();
    const added = typed();
    if (added.length === 0) {
      text.focus();
      return;
    }
    log.querySelector(".empty")?.remove();
    send(added);
  }

  const settings = h(
    "div",
    { class: "ask panel" },
    labelled(
      "Tools",
      tools,
      "As OpenAI's API has them. Every call is one of these, with arguments that its schema allows.",
    ),
    h(
      "div",
      { class: "settings" },
      labelled("Tool choice", may),
      labelled("Most tokens", most),
      h("label", { class: "check" }, thinks, "Thinks first"),
    ),
  );
  const composer = h(
    "form",
    { class: "composer", onsubmit: run, "data-enter": true },
    labelled("Message", text),
    h("div", { class: "line" }, go, stop, h("kbd", {}, "Ctrl ⏎"), again),
    problems.element,
    told,
  );
  const code = copies(backend.programs, () => ({ method: "POST", path: "v1/chat/completions", body: body(typed()) }));

  function take(example) {
    tools.value = JSON.stringify(example.tools, null, 2);
    thinks.checked = example.thinks;
    may.value = "auto";
    begin(example.text);
  }

  root.append(
    lead(
      "Calls that are always valid.",
      "Parser and constraint are one: a call names a tool that exists, with arguments that its schema takes.",
    ),
    examples(EXAMPLES, take, smallModel()),
    h("div", { class: "columns talk" }, h("div", { class: "panel answer" }, log, composer), settings),
    code.element,
  );
  take(EXAMPLES["A pizza"]);
  // Text typed before the server answered is kept.
  return { begin: () => text.value === EXAMPLES["A pizza"].text && send(typed()) };
}

function said(message) {
  const name = message.role === "tool" ? "result" : message.role;
  return h("div", { class: `turn ${message.role}` }, h("span", { class: "who" }, name), h("p", {}, message.content));
}

/** A reply while it comes. */
function reply() {
  const began = performance.now();
  const thought = h("p", { class: "thought", hidden: true });
  const content = h("p", { class: "content" });
  const cards = h("div", { class: "calls" });
  const events = h("ol", {});
  const counted = h("summary", {}, "Events");
  const element = h(
    "div",
    { class: "turn assistant waiting" },
    h("span", { class: "who" }, "assistant"),
    thought,
    content,
    cards,
    h("details", { class: "events" }, counted, events),
  );
  const calls = [];
  let seen = 0;
  let last = null;
  let finish = null;
  let stats = null;

  function note(kind, text) {
    seen += 1;
    counted.textContent = count(seen, "event");
    if (last?.kind !== kind || kind === "call begins") {
      const time = `${(performance.now() - began).toFixed(0)} ms`;
      last = { kind, code: h("code", {}) };
      events.append(h("li", {}, h("time", {}, time), h("b", {}, kind), last.code));
    }
    last.code.append(text);
  }

  function call(part) {
    if (part.function?.name !== undefined) {
      calls[part.index] = { id: part.id, name: part.function.name, text: "", share: null, shares: {} };
      calls[part.index].card = h("article", { class: "call" });
      cards.append(calls[part.index].card);
      note("call begins", part.function.name);
    }
    const one = calls[part.index];
    if (part.function?.arguments) {
      one.text += part.function.arguments;
      note("arguments", part.function.arguments);
    }
    if (part.x_probabilities !== undefined) {
      one.share = part.x_probability;
      one.shares = part.x_probabilities;
      note("probabilities", JSON.stringify({ name: one.share, ...one.shares }));
    }
    one.card.replaceChildren(...drawnCall(one));
  }

  return {
    element,
    see({ delta, finish_reason: reason, x_stats: told }) {
      if (delta.reasoning_content) {
        thought.hidden = false;
        thought.append(delta.reasoning_content);
        note("reasoning", delta.reasoning_content);
      }
      if (delta.content) {
        content.append(delta.content);
        note("content", delta.content);
      }
      for (const part of delta.tool_calls ?? []) call(part);
      if (reason) {
        finish = reason;
        stats = told;
        note("finish", reason);
      }
    },
    message() {
      const message = { role: "assistant", content: content.textContent };
      if (thought.textContent) message.reasoning_content = thought.textContent;
      if (calls.length) {
        message.tool_calls = calls.map(({ id, name, text }) => ({
          id,
          type: "function",
          function: { name, arguments: text },
        }));
      }
      return message;
    },
    /** The reply is complete; the user is asked for the results of its calls. */
    end(answered) {
      element.classList.remove("waiting");
      if (finish === "length") element.append(h("p", { class: "hint" }, "Cut off: it had no more tokens."));
      if (calls.length === 0 || finish !== "tool_calls") return;
      const fields = calls.map(() => area({ rows: "1", value: "done" }));
      const give = () => {
        results.remove();
        const told = calls.map(({ id }, nth) => ({ role: "tool", tool_call_id: id, content: fields[nth].value }));
        answered(told);
      };
      const noun = calls.length === 1 ? "result" : "results";
      const button = h("button", { type: "button", onclick: give }, `Give the ${noun}`);
      const results = h(
        "div",
        { class: "results" },
        fields.map((field, nth) => labelled(`Result of ${calls[nth].name}`, field)),
        button,
      );
      element.append(results);
    },
    breaks() {
      element.classList.remove("waiting");
      element.append(h("p", { class: "hint" }, "This reply was not finished, and is not part of the conversation."));
    },
    summary() {
      const told = stats ? `: ${count(stats.forward_passes, "forward pass")}, ${stats.forward_passes_saved} saved` : "";
      return `${count(calls.length, "call")} in ${(performance.now() - began).toFixed(0)} ms${told}`;
    },
  };
}

function drawnCall({ name, text, share, shares }) {
  const head = h("header", {}, h("code", {}, name), ...sure(share, "among the names"));
  let given = null;
  try {
    given = JSON.parse(text);
  } catch {
    // The reply is not finished.
  }
  if (given === null) return [head, h("pre", {}, text || " ")];
  const rows = Object.entries(given).map(([key, value]) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, key),
      h("td", {}, JSON.stringify(value)),
      h("td", {}, ...sure(shares[key], "")),
    ),
  );
  return [head, h("table", {}, h("caption", { class: "unseen" }, `Arguments of ${name}`), h("tbody", {}, rows))];
}

function sure(share, of) {
  if (share === null || share === undefined) return [];
  return [h("span", { class: "sure" }, bar(share), h("span", {}, `${percent(share)} ${of}`.trim()))];
}
