/**
 * The time from the text of a rule to its first mask, here and in web-xgrammar, over a `tokenizer.json` of byte pairs.
 * Both masks must be the same.
 *
 *     npm run bench:peers -- tokenizer.json
 */
/* global performance */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { constraint, load, Sampler, vocabFromTokenizerJson } from "../dist/web/src/index.js";

// Written for bundlers: in Node it looks for what modules do not have.
globalThis.require = createRequire(import.meta.url);
globalThis.__filename = globalThis.require.resolve("@mlc-ai/web-xgrammar");
await import("@mlc-ai/web-xgrammar");
const { xgrammar } = globalThis;

/** Rules in both notations; of each the first of its kind, and one like it. */
const RULES = [
  ["a date", "(19|20)[0-9]{2}-(0[1-9]|1[0-2])", 'root ::= ("19" | "20") [0-9]{2} "-" ("0" [1-9] | "1" [0-2])'],
  ["another", "(18|21)[0-9]{2}-(0[1-9]|1[0-2])", 'root ::= ("18" | "21") [0-9]{2} "-" ("0" [1-9] | "1" [0-2])'],
  ["words", "([a-z]+ ){3,9}end[.!?]", 'root ::= ([a-z]+ " "){3,9} "end" [.!?]'],
  ["others", "([a-z]+ ){2,8}fin[.!?]", 'root ::= ([a-z]+ " "){2,8} "fin" [.!?]'],
];
/** Masks that are asked for again and again. */
const ROUNDS = 200;

const ms = async (work) => {
  const from = performance.now();
  const made = await work();
  return [performance.now() - from, made];
};

const json = readFileSync(process.argv[2] ?? "../../target/web/models/tiny/tokenizer.json", "utf8");
const { model, added_tokens: added } = JSON.parse(json);
const names = [];
for (const [name, id] of Object.entries(model.vocab)) names[id] = name;
for (const { content, id } of added) names[id] = content;
const special = new Set(added.map(({ id }) => id));

await load();
const [ours, vocab] = await ms(() => vocabFromTokenizerJson(json));
const stops = [...vocab.endOfGeneration];
const [theirs, info] = await ms(() =>
  xgrammar.TokenizerInfo.createTokenizerInfo(Array.from(names, String), "byte_level", false, names.length, stops),
);
const compiler = await xgrammar.GrammarCompiler.createGrammarCompiler(info);
console.log(`${names.length} tokens, read: ${ours.toFixed(0)} ms here, ${theirs.toFixed(0)} ms in web-xgrammar`);

const bits = (words) => Array.from(names.keys()).filter((id) => (words[id >> 5] >>> (id & 31)) & 1 && !special.has(id));

for (const [name, regex, ebnf] of RULES) {
  const words = new Int32Array(Math.ceil(names.length / 32));
  const [first, sampler] = await ms(() => {
    const made = Sampler.create(vocab, constraint({ regex }, vocab), { after: "stop" });
    made.fillBitmask(words);
    return made;
  });
  const [peer, matcher] = await ms(async () => {
    const made = await xgrammar.GrammarMatcher.createGrammarMatcher(await compiler.compileGrammar(ebnf));
    await made.getNextTokenBitmask();
    return made;
  });
  const [one, other] = [bits(words), bits(await matcher.getNextTokenBitmask())];
  if (one.length === 0 || one.join() !== other.join())
    throw new Error(`${name}: ${one.length} and ${other.length} tokens`);
  const [again] = await ms(() => {
    for (let round = 0; round < ROUNDS; round++) sampler.fillBitmask(words);
  });
  const [peerAgain] = await ms(async () => {
    for (let round = 0; round < ROUNDS; round++) await matcher.getNextTokenBitmask();
  });
  const told = (text, again) => `${text.toFixed(1)} ms, then ${((1e3 * again) / ROUNDS).toFixed(1)} µs a mask`;
  console.log(`${name}: ${one.length} may come; here ${told(first, again)}; web-xgrammar ${told(peer, peerAgain)}`);
}
