/**
 * tokentrie, from TypeScript: run by bun, on the library that TOKENTRIE_LIB names. TOKENTRIE_PACKAGE names the folder of
 * the package's sources; else it is the one that is installed.
 */
import { createInterface } from "node:readline";
import type { Sampler as OneSampler, Spec, Vocab as OneVocab } from "tokentrie";

const sources = process.env.TOKENTRIE_PACKAGE;
const { constraint, Sampler, Vocab } = await import(sources ? `${sources}/src/index.js` : "tokentrie");
const { version } = await import(sources ? `${sources}/package.json` : "tokentrie/package.json");

// biome-ignore lint/suspicious/noExplicitAny: what comes over the protocol
function spec(kind: string, given: any): Spec {
  if (kind === "set") return { one_of: given.values };
  if (kind === "regex") return { regex: given.pattern };
  if (kind === "schema") return { json_schema: given.schema, whitespace: "none" };
  if (kind === "grammar") return { gbnf: given.gbnf };
  if (kind === "gate") {
    const values = given.body.or.map((part: { text: string }) => part.text);
    return { form: [{ text: "before", stop: given.trigger }, { slot: "body", value: { one_of: values } }, given.end] };
  }
  throw new RefusedError(`no constraints of kind ${kind}`);
}

class RefusedError extends Error {}

let vocab: OneVocab;
let eog: number[] = [];
let followed: ReturnType<typeof constraint>;
let sampler: OneSampler | undefined;

function begin(): void {
  sampler?.free();
  sampler = Sampler.create(vocab, followed, { endTokens: eog });
}

// biome-ignore lint/suspicious/noExplicitAny: what comes over the protocol
function answer(asked: any): object {
  switch (asked.do) {
    case "hello":
      return { engine: "tokentrie, TypeScript", version, settings: "JSON without white space" };
    case "vocabulary": {
      eog = asked.eog;
      const pieces: Uint8Array[] = asked.tokens.map((token: string) => Uint8Array.from(Buffer.from(token, "hex")));
      const control = [...pieces.keys()].filter((token) => pieces[token]?.length === 0 && !eog.includes(token));
      vocab = Vocab.fromPieces(pieces, { endOfGeneration: eog, control });
      return {};
    }
    case "compile": {
      const began = performance.now();
      try {
        followed = constraint(spec(asked.kind, asked.constraint), vocab);
        begin();
      } catch (error) {
        throw new RefusedError(String(error));
      }
      return { us: (performance.now() - began) * 1000 };
    }
    case "begin":
      begin();
      return {};
    case "mask": {
      const words = new Uint32Array(Math.ceil(vocab.size / 32));
      const began = performance.now();
      const isActive = sampler?.state === "active";
      if (isActive) sampler?.fillBitmask(words);
      const us = (performance.now() - began) * 1000;
      const told = { bits: Buffer.from(words.buffer).toString("base64"), us };
      return sampler?.state === "complete" ? { ...told, end: true } : told;
    }
    case "advance":
      for (const [at, token] of asked.tokens.entries()) {
        try {
          sampler?.accept(token);
        } catch {
          return { refused_at: at };
        }
      }
      return {};
    case "rollback":
      sampler?.rollback(asked.tokens);
      return {};
    default:
      throw new RefusedError(`no answers to ${asked.do}`);
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  let said: object;
  try {
    said = answer(JSON.parse(line));
  } catch (error) {
    said = error instanceof RefusedError ? { refused: error.message } : { error: String(error) };
  }
  process.stdout.write(`${JSON.stringify(said)}\n`);
}
