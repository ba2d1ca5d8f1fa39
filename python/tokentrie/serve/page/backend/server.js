/** The back end of `tokentrie serve`: its routes, by HTTP. */

import { Problem, tell } from "../problems.js";
import { address, key } from "./address.js";
import { programs } from "./programs.js";

/* Availability of the server: after a failure it is polled until it answers. */

let isGone = false;

function wantsKey() {
  tell(key.get() ? "The server does not take this API key." : "This server wants an API key.", "wants");
}

function gone() {
  if (isGone) return;
  isGone = true;
  tell("The server is gone. The page waits for it, and goes on when it is back.", "gone");
  setTimeout(look, 500);
}

function back() {
  isGone = false;
  tell("The server is back.", "back");
  setTimeout(() => !isGone && tell(""), 5000);
}

async function look() {
  if (!isGone) return;
  try {
    await ask("GET", "health");
  } catch {
    setTimeout(look, 1000);
  }
}

function headersOf(body, more) {
  const headers = { ...more };
  if (key.get()) headers.authorization = `Bearer ${key.get()}`;
  if (body !== undefined && !headers["content-type"]) headers["content-type"] = "application/json";
  return headers;
}

async function sent(method, path, body, { signal, headers } = {}) {
  const isRaw = typeof body === "string" || body instanceof Blob;
  let response;
  try {
    response = await fetch(address(path), {
      method,
      headers: headersOf(body, headers),
      body: body === undefined || isRaw ? body : JSON.stringify(body),
      signal,
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    gone();
    throw new Problem("The server does not answer. What you typed is still here.");
  }
  if (isGone) back();
  return response;
}

async function answer(method, path, body, options) {
  const response = await sent(method, path, body, options);
  if (!response.ok) throw await refusal(response);
  return response;
}

/** Returns the answer as it is, whatever the status: `{status, text}`. Throws Problem where no answer came. */
async function exchanged(method, path, body, options) {
  const response = await sent(method, path, body, options);
  if (response.status === 401) wantsKey();
  return { status: `${response.status} ${response.statusText}`.trim(), text: await response.text() };
}

async function refusal(response) {
  let told = {};
  try {
    told = (await response.json()).error ?? {};
  } catch {
    // It is not JSON: something between the page and the server answered.
  }
  if (response.status === 401) wantsKey();
  const message = told.message ?? `The server answered ${response.status} ${response.statusText}.`;
  return new Problem(message, { status: response.status, param: told.param ?? null });
}

/** The answer to a request, as JSON; null where it has no body. Throws Problem. */
async function ask(method, path, body, options) {
  const response = await answer(method, path, body, options);
  return response.status === 204 ? null : await response.json();
}

/** The events of a stream, one by one. Throws Problem: also where the stream ends before the server said so. */
async function* stream(path, body, options) {
  const response = await answer("POST", path, body, options);
  try {
    for await (const data of events(response.body)) {
      if (data === "[DONE]") return;
      const event = JSON.parse(data);
      if (event.error) throw new Problem(event.error.message, { status: 500, param: event.error.param });
      yield event;
    }
  } catch (error) {
    if (error instanceof Problem || options?.signal?.aborted) throw error;
    // The events so far stay visible: only the rest is missing.
  }
  if (options?.signal?.aborted) return;
  gone();
  throw new Problem("The stream broke off: the server or the way to it is gone. What came is kept above.");
}

/** The data of server-sent events. */
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    const blocks = text.split("\n\n");
    text = blocks.pop();
    for (const block of blocks) {
      const lines = block.split("\n").filter((line) => line.startsWith("data:"));
      if (lines.length) yield lines.map((line) => line.slice(5).trimStart()).join("\n");
    }
  }
}

/**
 * Back end that answers the views. `ask` and `stream` take the requests of the server's routes, `programs` writes one
 * down to be taken along; the other members of a back end are for the views that it names.
 */
export const backend = {
  views: ["decide", "write", "chat", "sets", "routes"],
  model: "tiny",
  key,
  address,
  ask,
  stream,
  exchanged,
  programs,
};
