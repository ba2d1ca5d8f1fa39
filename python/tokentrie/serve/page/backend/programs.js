/** A request as a program: curl, Python and TypeScript. What is shown runs as it stands. */

import { address, key } from "./address.js";

const WIDEST = 88;
/**
 * Fields of a route that OpenAI's clients know, and the method that calls it; further fields go beside. `each` is the
 * code that handles a chunk of a stream.
 */
const CLIENTS = {
  "v1/decisions": { call: "decisions.create", known: "model input questions" },
  "v1/completions": {
    call: "completions.create",
    known: "model prompt max_tokens temperature stream",
    each: {
      python: ['print(chunk.choices[0].text, end="", flush=True)'],
      typescript: ["process.stdout.write(chunk.choices[0].text);"],
    },
  },
  "v1/chat/completions": {
    call: "chat.completions.create",
    known: "model messages tools tool_choice max_tokens temperature stream",
    each: {
      python: [
        "delta = chunk.choices[0].delta",
        'print(delta.content or "", end="", flush=True)',
        "for call in delta.tool_calls or []:",
        '    print(call.function.name or "", call.function.arguments, end="", flush=True)',
      ],
      typescript: [
        "const { content, tool_calls } = chunk.choices[0].delta;",
        'process.stdout.write(content ?? "");',
        "for (const { function: call } of tool_calls ?? []) {",
        '  process.stdout.write((call?.name ?? "") + (call?.arguments ?? ""));',
        "}",
      ],
    },
  },
};

/** JSON, Python or TypeScript of a value, in lines that are no longer than they must be. */
function literal(value, language, indent = "") {
  if (value === null || value === undefined) return language === "python" ? "None" : "null";
  if (typeof value === "boolean" && language === "python") return value ? "True" : "False";
  if (typeof value !== "object") return JSON.stringify(value);
  const inner = `${indent}${language === "python" ? "    " : "  "}`;
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  const write = (place) =>
    Array.isArray(value)
      ? value.map((one) => literal(one, language, place))
      : Object.entries(value).map(([name, one]) => `${named(name, language)}: ${literal(one, language, place)}`);
  const space = open === "{" && language === "typescript" ? " " : "";
  const line = `${open}${space}${write(indent).join(", ")}${space}${close}`;
  if (!line.includes("\n") && line.length + indent.length <= WIDEST) return line.replace("{  }", "{}");
  const end = language === "json" ? "" : ",";
  return `${open}\n${write(inner)
    .map((one) => inner + one)
    .join(",\n")}${end}\n${indent}${close}`;
}

function named(name, language) {
  return language === "typescript" && /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name);
}

/** Text between single quotes of a shell. */
function shell(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function curl({ method, path, body, type, file }) {
  const lines = [`curl ${body?.stream ? "-N " : ""}${method === "POST" ? "" : `-X ${method} `}${shell(address(path))}`];
  if (key.get()) lines.push('-H "authorization: Bearer $TOKENTRIE_API_KEY"');
  if (body === undefined) return lines.join(" \\\n  ");
  lines.push(`-H 'content-type: ${type ?? "application/json"}'`);
  if (file) lines.push(`--data-binary ${shell(`@${file}`)}`);
  else if (typeof body === "string") lines.push(`--data-binary ${shell(body)}`);
  else lines.push(`-d ${shell(literal(body, "json", ""))}`);
  return lines.join(" \\\n  ");
}

/** The fields that a client knows as arguments, and the others. */
function split({ path, body }) {
  const known = CLIENTS[path].known.split(" ").filter((name) => body[name] !== undefined);
  const others = Object.fromEntries(Object.entries(body).filter(([name]) => !known.includes(name)));
  return { known, others };
}

function python(request) {
  const { method, path, body, type, file } = request;
  const client = CLIENTS[path];
  const secret = key.get() ? 'os.environ["TOKENTRIE_API_KEY"]' : null;
  const head = secret ? "import os\n\n" : "";
  if (!client) {
    const given = [JSON.stringify(address(path))];
    const headers = Object.entries(type ? { "content-type": type } : {}).map(([name, one]) => `"${name}": "${one}"`);
    if (secret) headers.push(`"authorization": f"Bearer {${secret.replaceAll('"', "'")}}"`);
    if (headers.length) given.push(`headers={${headers.join(", ")}}`);
    if (file) given.push(`data=open(${JSON.stringify(file)}, "rb")`);
    else if (typeof body === "string") given.push(`data=${JSON.stringify(body)}.encode()`);
    else if (body !== undefined) given.push(`json=${literal(body, "python", "    ")}`);
    const call = `requests.${method.toLowerCase()}(\n    ${given.join(",\n    ")},\n)`;
    return `${head}import requests\n\nanswer = ${call}\nanswer.raise_for_status()\nprint(answer.text)`;
  }
  const { known, others } = split(request);
  const given = known.map((name) => `${name}=${literal(body[name], "python", "    ")}`);
  if (Object.keys(others).length) given.push(`extra_body=${literal(others, "python", "    ")}`);
  const name = body.stream ? "stream" : "answer";
  const end = body.stream
    ? `for chunk in stream:\n    ${client.each.python.join("\n    ")}`
    : "print(answer.to_json())";
  const base = JSON.stringify(address("v1"));
  return `${head}from openai import OpenAI

client = OpenAI(base_url=${base}, api_key=${secret ?? '"none"'})
${name} = client.${client.call}(
${given.map((one) => `    ${one},\n`).join("")})
${end}`;
}

function typescript(request) {
  const { method, path, body, type, file } = request;
  const client = CLIENTS[path];
  const secret = key.get() ? "process.env.TOKENTRIE_API_KEY" : null;
  if (!client) {
    const headers = body === undefined ? {} : { "content-type": type ?? "application/json" };
    const told = Object.entries(headers).map(([name, one]) => `"${name}": "${one}"`);
    if (secret) told.push(`authorization: \`Bearer \${${secret}}\``);
    const given = [`method: "${method}"`];
    if (told.length) given.push(`headers: { ${told.join(", ")} }`);
    if (file) given.push(`body: await readFile(${JSON.stringify(file)})`);
    else if (typeof body === "string") given.push(`body: ${JSON.stringify(body)}`);
    else if (body !== undefined) given.push(`body: JSON.stringify(${literal(body, "typescript", "  ")})`);
    const head = file ? 'import { readFile } from "node:fs/promises";\n\n' : "";
    return `${head}const answer = await fetch(${JSON.stringify(address(path))}, {
${given.map((one) => `  ${one},\n`).join("")}});
console.log(answer.status, await answer.text());`;
  }
  const { known, others } = split(request);
  const given = known.map((name) => `${name}: ${literal(body[name], "typescript", "  ")}`);
  if (Object.keys(others).length) given.push(`...(${literal(others, "typescript", "  ")} as object)`);
  const name = body.stream ? "stream" : "answer";
  const end = body.stream
    ? `for await (const chunk of stream) {
  ${client.each.typescript.join("\n  ")}\n}`
    : "console.log(JSON.stringify(answer, null, 2));";
  return `import OpenAI from "openai";

const client = new OpenAI({ baseURL: ${JSON.stringify(address("v1"))}, apiKey: ${secret ?? '"none"'} });
const ${name} = await client.${client.call}({
${given.map((one) => `  ${one},\n`).join("")}});
${end}`;
}

export const programs = { curl, Python: python, TypeScript: typescript };
