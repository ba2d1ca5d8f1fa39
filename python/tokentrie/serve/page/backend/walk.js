/** A walk through a constraint, token by token. */

import { visible } from "../dom.js";
import { Sampler } from "../../tokentrie/dist/web/src/index.js";

/** A vocabulary, and its tokens by their bytes; the tokens with the ids `added` have no text. */
export function wordsOf(vocab, added) {
  const pieces = Array.from({ length: vocab.size }, (_, id) => latin(vocab.bytes([id])));
  const ids = new Map();
  for (const [id, piece] of pieces.entries()) if (piece !== "" && !added.has(id) && !ids.has(piece)) ids.set(piece, id);
  const longest = Math.max(...[...ids.keys()].map((piece) => piece.length));
  return { vocab, pieces, ids, longest, ends: new Set(vocab.endOfGeneration) };
}

/** Bytes as a text of one character each. */
function latin(bytes) {
  return Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
}

/** Maximum number of search steps before a text counts as unreachable. */
const MOST_STEPS = 3000;

/** A constraint, and the current position in it. */
export class Walk {
  #shared;
  #sampler;
  tokens = [];
  /** Text after the last token, which the next token must begin with. */
  rest = "";

  constructor(shared, constraint) {
    this.#shared = shared;
    this.#sampler = Sampler.create(shared.vocab, constraint, { after: "stop" });
  }

  free() {
    this.#sampler.free();
  }

  /** Number of tokens in the vocabulary. */
  get size() {
    return this.#shared.vocab.size;
  }

  /** Tokens as displayed: partial characters and invisible characters are shown as their bytes. */
  shown(id) {
    const said = visible(this.#shared.vocab.text([id]));
    if (!/[\p{Cc}\ufffd]/u.test(said)) return said;
    return Array.from(this.#shared.pieces[id], (one) => `‹${one.charCodeAt(0).toString(16).padStart(2, "0")}›`).join(
      "",
    );
  }

  /** Returns the text of a sequence of tokens. */
  textOf(tokens) {
    return this.#shared.vocab.text(tokens);
  }

  /** Text that has been written, with the rest. */
  get text() {
    return this.#shared.vocab.text(this.tokens) + decodeBytes(this.rest);
  }

  /** Allowed tokens, without those that end the output; and a flag that the output may end here. */
  next() {
    const { kind, ids } = this.#sampler.allowed();
    const { ends, pieces } = this.#shared;
    const here = [...ids].filter((id) => !ends.has(id) && pieces[id].startsWith(this.rest));
    const forced = this.rest === "" ? [...this.#sampler.forced()].filter((id) => !ends.has(id)) : [];
    // "open": any other token would end the value, which it may do here.
    const mayEnd = this.rest === "" && (kind === "open" || ids.some((id) => ends.has(id)));
    return { ids: here, forced, mayEnd };
  }

  take(tokens) {
    this.#sampler.accept(tokens);
    this.tokens.push(...tokens);
    this.rest = "";
  }

  back() {
    if (this.rest === "") {
      if (this.tokens.pop() !== undefined) this.#sampler.rollback(1);
    }
    this.rest = "";
  }

  /**
   * Goes to the end of a text, by the longest tokens that lead there. Returns the rest that is not allowed, "" if
   * all is; the position is then before that rest.
   */
  goTo(text) {
    this.#sampler.reset();
    const bytes = latin(new TextEncoder().encode(text));
    const { ids, longest, pieces } = this.#shared;
    const path = [];
    let best = { at: -1, path: [], isPart: false };
    let steps = 0;
    const walk = (at) => {
      if (at === bytes.length) {
        best = { at, path: [...path], isPart: true };
        return true;
      }
      const listed = this.#sampler.allowed().ids;
      const may = new Set(listed);
      const left = bytes.slice(at);
      const isPart = left.length < longest && listed.some((id) => pieces[id].startsWith(left));
      const isBetter = isPart === best.isPart ? at > best.at : isPart;
      if (isBetter) best = { at, path: [...path], isPart };
      for (let length = Math.min(longest, left.length); length > 0; length--) {
        const id = ids.get(left.slice(0, length));
        if (!may.has(id)) continue;
        if (++steps > MOST_STEPS) return false;
        this.#sampler.accept(id);
        path.push(id);
        if (walk(at + length)) return true;
        path.pop();
        this.#sampler.rollback(1);
      }
      return false;
    };
    walk(0);
    this.#sampler.reset();
    this.tokens = best.path;
    if (best.path.length > 0) this.#sampler.accept(best.path);
    this.rest = best.isPart ? bytes.slice(best.at) : "";
    return best.isPart ? "" : decodeBytes(bytes.slice(best.at));
  }
}

function decodeBytes(bytes) {
  return new TextDecoder().decode(Uint8Array.from(bytes, (one) => one.charCodeAt(0)));
}
