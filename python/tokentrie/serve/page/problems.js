/** Errors, their display in a view, and status messages of a back end. */

/** Shows the state of the back end; `kind` is `gone`, `back`, or `wants` for a required key. */
export function tell(text, kind = "") {
  window.dispatchEvent(new CustomEvent("backend-told", { detail: { text, kind } }));
}

/** Error of a request: `status` is 0 where no answer came, `param` the field that it is about. */
export class Problem extends Error {
  constructor(message, { status = 0, param = null } = {}) {
    super(message);
    this.status = status;
    this.param = param;
  }
}

/** Box in which a view shows an error, with marks on the fields that it is about. */
export class Problems {
  /** `fields` are the elements of what a back end may name in `param`, by the beginning of that. */
  constructor(fields = {}) {
    this.fields = fields;
    this.element = document.createElement("div");
    this.element.setAttribute("role", "alert");
  }

  clear() {
    this.element.replaceChildren();
    for (const field of Object.values(this.fields)) field.removeAttribute("aria-invalid");
  }

  /** Shows a Problem; a cancelled call is not an error. */
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
    throw new Problem(`${param}: it is not JSON: ${error.message}`, { status: 400, param });
  }
}
