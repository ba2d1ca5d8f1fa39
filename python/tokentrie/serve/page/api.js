/** Asks the server, and says plainly what went wrong. */

const KEY = "tokentrie-key";

export const key = {
  get: () => sessionStorage.getItem(KEY) ?? "",
  set: (value) => (value ? sessionStorage.setItem(KEY, value) : sessionStorage.removeItem(KEY)),
};

/** The model that answers; the first of the server until another is taken. */
export const chosen = { model: "tiny" };

/** What went wrong: `status` is 0 where no answer came, `param` the field that it is about. */
export class Problem extends Error {
  constructor(message, { status = 0, param = null } = {}) {
    super(message);
    this.status = status;
    this.param = param;
  }
}

/** An address of this server, wherever it is mounted. */
export function address(path) {
  return new URL(path.replace(/^\//, ""), document.baseURI.split("#")[0]).href;
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
    window.dispatchEvent(new Event("server-gone"));
    throw new Problem("The server does not answer. What you typed is still here.");
  }
  window.dispatchEvent(new Event("server-there"));
  return response;
}

async function answer(method, path, body, options) {
  const response = await sent(method, path, body, options);
  if (!response.ok) throw await refusal(response);
  return response;
}

/** What came back as it is, whatever the status: `{status, text}`. Throws Problem where no answer came. */
export async function exchanged(method, path, body, options) {
  const response = await sent(method, path, body, options);
  if (response.status === 401) window.dispatchEvent(new Event("server-wants-key"));
  return { status: `${response.status} ${response.statusText}`.trim(), text: await response.text() };
}

async function refusal(response) {
  let told = {};
  try {
    told = (await response.json()).error ?? {};
  } catch {
    // It is no JSON: something between the page and the server answered.
  }
  if (response.status === 401) window.dispatchEvent(new Event("server-wants-key"));
  const message = told.message ?? `The server answered ${response.status} ${response.statusText}.`;
  return new Problem(message, { status: response.status, param: told.param ?? null });
}

/** The answer to a request, as JSON; null where it has no body. Throws Problem. */
export async function ask(method, path, body, options) {
  const response = await answer(method, path, body, options);
  return response.status === 204 ? null : await response.json();
}

/** The events of a stream, one by one. Throws Problem: also where the stream ends before the server said so. */
export async function* stream(path, body, options) {
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
    // What came is still shown: only the rest is missing.
  }
  if (options?.signal?.aborted) return;
  window.dispatchEvent(new Event("server-gone"));
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

/** Where a view says what went wrong, with marks on the fields that it is about. */
export class Problems {
  /** `fields` are the elements of what a server may name in `param`, by the beginning of that. */
  constructor(fields = {}) {
    this.fields = fields;
    this.element = document.createElement("div");
    this.element.setAttribute("role", "alert");
  }

  clear() {
    this.element.replaceChildren();
    for (const field of Object.values(this.fields)) field.removeAttribute("aria-invalid");
  }

  /** Shows a Problem; a call that was stopped is none. */
  show(error) {
    if (error.name === "AbortError") return;
    if (!(error instanceof Problem)) console.error(error);
    const box = document.createElement("p");
    box.className = "problem";
    // Messages mostly begin with the field, or with a place in it.
    const named = /^([\w.[\]]+): ([^]*)$/.exec(error.message);
    const isNamed = error.param && named?.[1].startsWith(error.param);
    if (error.param) {
      const place = document.createElement("code");
      place.textContent = isNamed ? named[1] : error.param;
      box.append(place, " ");
    }
    box.append(isNamed ? named[2] : error.message);
    this.element.replaceChildren(box);
    const [field] = Object.entries(this.fields)
      .filter(([name]) => (error.param ?? "").startsWith(name))
      .map(([, element]) => element);
    field?.setAttribute("aria-invalid", "true");
  }
}

/** JSON that a user typed. Throws Problem with the place. */
export function parsed(text, param) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Problem(`${param}: it is no JSON: ${error.message}`, { status: 400, param });
  }
}
