/** Chat templates: the analysis of one, the prompt that it writes, and a reply parsed in its format. */

import { area, examples, h, labelled, later, lead, visible } from "../dom.js";
import { QUESTION, REPLY, TEMPLATES, TOOLS } from "../templates.js";

const TOKENS = { bos: "<s>", eos: "</s>" };
/** Probe content: a text that no template writes itself. */
const PROBE = "quartz sphinx";

export function template(root, backend) {
  let format;
  const template = area({ class: "code template", rows: "12", oninput: later(() => remake()) });
  const reply = area({ class: "code", rows: "4", oninput: later(read) });
  const tools = h("input", { type: "checkbox", checked: true, onchange: () => remake() });
  const thinking = h("input", { type: "checkbox", checked: true, onchange: () => remake() });
  const fault = h("p", { role: "alert" });
  const facts = h("dl", { class: "facts" });
  const prompt = h("pre", { class: "prompt", tabindex: "0", role: "region", "aria-label": "The example prompt" });
  const parsed = h("div", { class: "parsed turn", "aria-live": "polite" });

  const options = () => ({ tools: tools.checked ? TOOLS : undefined, enableThinking: thinking.checked });

  function remake(fresh = true) {
    format?.free();
    format = undefined;
    const empty = [facts, prompt, parsed];
    try {
      format = backend.chatFormat(template.value, TOKENS);
      const analysis = format.analysis();
      facts.replaceChildren(...listFindings(analysis));
      const { text } = format.prompt([QUESTION], options());
      prompt.replaceChildren(...markText(text, analysis));
      if (fresh) reply.value = firstReply(format, analysis, options());
      fault.textContent = fault.className = "";
      template.removeAttribute("aria-invalid");
      read();
    } catch (error) {
      fault.textContent = error.message;
      fault.className = "problem";
      template.setAttribute("aria-invalid", "true");
      for (const part of empty) part.replaceChildren();
    }
  }

  function read() {
    if (format === undefined) return;
    try {
      const { turn } = format.prompt([QUESTION], options());
      const { tools: given } = options();
      const { message, warnings } = format.parse(reply.value, { tools: given, generationPrompt: turn ?? undefined });
      parsed.replaceChildren(...messageView(message, warnings));
    } catch (error) {
      parsed.replaceChildren(h("p", { class: "problem" }, error.message));
    }
  }

  const left = h(
    "div",
    { class: "panel ask" },
    labelled("Chat template", template, "The field chat_template of a model's tokenizer_config.json."),
    fault,
  );
  const found = h("div", { class: "panel" }, h("h2", {}, "What it says of its model"), facts);
  const checks = [
    h("label", { class: "check" }, tools, "With a tool"),
    h("label", { class: "check" }, thinking, "May think"),
  ];
  const example = h("div", { class: "panel" }, h("div", { class: "line" }, h("h2", {}, "A prompt"), checks), prompt);
  const answer = h("div", { class: "panel" }, labelled("A reply of the model", reply), parsed);
  root.append(
    lead("A chat template, understood", "Paste one: how its model thinks and calls tools is found out from it alone."),
    examples(TEMPLATES, (one) => {
      template.value = one.template;
      remake();
    }),
    h(
      "div",
      { class: "columns" },
      h("div", { class: "stack" }, left, example),
      h("div", { class: "stack" }, found, answer),
    ),
  );
  template.value = Object.values(TEMPLATES)[0].template;
  remake();
}

const code = (text) => h("code", {}, text.replaceAll("\n", "⏎"));

/** Names and findings of the analysis, in plain words. */
function listFindings({ reasoning, tool_calls: calls, turns, generation_prompt: begins, capabilities, ...others }) {
  const rows = [
    ["Turns", ["user ", code(turns.user || "—"), " assistant ", code(turns.assistant || "—")]],
    ["A reply begins", [begins.thinking === "" ? "right after the prompt" : code(begins.thinking)]],
    ["Thinks", thinks(reasoning)],
    ["Calls tools", describeCalls(calls)],
    ["Reads", [abilities(capabilities)]],
  ];
  if (others.degraded) rows.push(["Less than found", [String(others.degraded)]]);
  for (const warning of others.warnings ?? []) rows.push(["Note", [warning]]);
  return rows.flatMap(([name, parts]) => [h("dt", {}, name), h("dd", {}, parts)]);
}

function thinks({ mode, start, end }) {
  if (mode === "none") return ["no"];
  return [`${mode.replaceAll("_", " ")}, from `, code(start || "the beginning"), " to ", code(end)];
}

function describeCalls(calls) {
  if (!calls?.patterns?.length) return ["no"];
  const { function: kind, arguments: written, section, patterns, parallel, list } = calls;
  const call = patterns[0].parts.map(shape).join("");
  const whole = section.start + (list ? `[${call}, …]` : call) + section.end;
  const several = parallel ? "several in a reply" : "one in a reply";
  return [code(whole), h("p", { class: "hint" }, `${kind}, arguments as ${written}; ${several}`.replaceAll("-", " "))];
}

/** A part of a call; the parts that differ between calls are named. */
function shape(part) {
  if (typeof part === "string") return `‹${part}›`;
  if ("text" in part) return part.text;
  if (!("object" in part)) return `‹${Object.keys(part)[0].replaceAll("_", " ")}›`;
  const { fields, inside } = part.object;
  const written = (kinds) => kinds.map(([kind, what]) => `"${kind === "constant" ? Object.keys(what)[0] : what}": …`);
  const all = fields.map((field) => Object.entries(field)[0]);
  if (inside === "") return `{${written(all).join(", ")}}`;
  const isInside = ([kind]) => kind === "name" || kind === "arguments";
  const outer = written(all.filter((one) => !isInside(one)));
  return `{${[...outer, `"${inside}": {${written(all.filter(isInside)).join(", ")}}`].join(", ")}}`;
}

function abilities(capabilities) {
  const all = Object.entries(capabilities).map(([name, can]) =>
    h("span", { class: can ? "can" : "cannot" }, `${can ? "✓" : "–"} ${name.replaceAll("_", " ")}`),
  );
  return h("div", { class: "abilities" }, all);
}

/** A text in which markers stand out. */
function markText(text, { preserved_tokens: tokens = [], turns }) {
  const all = [...tokens, turns.user.trim(), turns.assistant.trim()].filter((one) => one !== "");
  const escaped = [...new Set(all)]
    .sort((a, b) => b.length - a.length)
    .map((one) => RegExp.escape?.(one) ?? plain(one));
  if (escaped.length === 0) return [text];
  return text.split(new RegExp(`(${escaped.join("|")})`)).map((part, nth) => (nth % 2 ? h("mark", {}, part) : part));
}

const plain = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** An example reply; only its content if the template rejects that conversation. */
function firstReply(format, analysis, options) {
  try {
    const text = exampleReply(format, analysis, options, REPLY.content);
    // Some templates write either the content or the calls, not both.
    if (options.tools === undefined || analysis.tool_calls === null) return text;
    if (format.parse(text, { tools: options.tools }).message.tool_calls?.length) return text;
    return exampleReply(format, analysis, options, "");
  } catch {
    return REPLY.content;
  }
}

/** Renders the example reply as the model of this template would write it, without the text around it. */
function exampleReply(format, { reasoning, tool_calls: calls }, { tools, enableThinking }, content) {
  const request = { tools, enableThinking };
  const begin = format.prompt([QUESTION], request).text;
  const whole = (message) => format.prompt([QUESTION, message], { ...request, addGenerationPrompt: false }).text;
  const probed = whole({ role: "assistant", content: PROBE });
  const end = probed.slice(probed.lastIndexOf(PROBE) + PROBE.length);
  const { reasoning_content: thought, tool_calls: called } = REPLY;
  const message = { role: "assistant", content };
  if (reasoning.mode !== "none" && enableThinking) message.reasoning_content = thought;
  if (tools !== undefined && calls?.patterns?.length) message.tool_calls = called;
  const text = whole(message);
  if (!text.startsWith(begin)) return REPLY.content;
  const written = text.slice(begin.length);
  const shown = written.endsWith(end) ? written.slice(0, written.length - end.length) : written;
  const isThought = message.reasoning_content !== undefined && !shown.includes(thought);
  return isThought ? reasoning.start + thought + reasoning.end + shown : shown;
}

/** A message: thoughts, content, calls. */
function messageView({ content, reasoning_content: thought, tool_calls: calls = [] }, warnings) {
  return [
    thought && h("p", { class: "thought" }, thought),
    content && h("p", { class: "content" }, content),
    ...calls.map(({ function: { name, arguments: given } }) =>
      h("div", { class: "call" }, h("header", {}, h("code", {}, name)), h("pre", {}, pretty(given))),
    ),
    ...warnings.map((warning) => h("p", { class: "hint" }, visible(warning))),
  ].filter(Boolean);
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
