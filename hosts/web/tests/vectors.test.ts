/** The vectors that all hosts share, in the module. */
import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import {
  ChatFormat,
  constraint,
  load,
  loadLibrary,
  renderTemplate,
  Sampler,
  type Spec,
  SpecError,
  TokenTrieError,
  type Vocab,
  vocabFromTokenizerJson,
} from "../src/index.js";
import { utf8 } from "../../typescript/src/ffi/call.js";
import { made, own } from "../src/own.js";
import { vectors, vectorsText } from "./support.js";

/** One token a byte, and one that ends the output; with a tokenizer. */
function byteVocab(): Vocab {
  // The alphabet of GPT-2: a character for each byte.
  const printed = (byte: number) => (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
  let next = 256;
  const vocab: Record<string, number> = {};
  for (let byte = 0; byte < 256; byte++) vocab[String.fromCodePoint(printed(byte) ? byte : next++)] = byte;
  const added_tokens = [{ id: 256, content: "</s>", special: true }];
  const json = { added_tokens, model: { type: "BPE", vocab: { ...vocab, "</s>": 256 }, merges: [] } };
  const tokenize = (text: string) => new TextEncoder().encode(text);
  return vocabFromTokenizerJson({ ...json, decoder: { type: "ByteLevel" } }, { tokenize });
}

/** What ends the output. */
const END = 256;
const NEEDS_WASM = /"wasm"/;

describe("specs.json", () => {
  let vocab: Vocab;
  before(async () => {
    await load();
    vocab = byteVocab();
  });
  const isBuilt = (text: string) => !NEEDS_WASM.test(text);

  it("what is read is written the same, and takes and refuses the same texts", () => {
    let walked = 0;
    for (const { spec, canonical, legal, illegal } of vectors("specs").valid) {
      const text = JSON.stringify(spec);
      if (!legal || !isBuilt(text)) continue;
      using made = constraint(spec as Spec, vocab);
      assert.deepEqual(JSON.parse(made.toString()), canonical ?? spec);
      const takes = (value: string) => {
        using sampler = Sampler.create(vocab, made, { after: "stop", endTokens: [END] });
        for (const byte of new TextEncoder().encode(value)) {
          if (!mayCome(sampler, byte)) return false;
          sampler.accept(byte);
        }
        return mayCome(sampler, END);
      };
      for (const value of legal) assert.ok(takes(value), `${text} should take ${value}`);
      for (const value of illegal) assert.ok(!takes(value), `${text} should refuse ${value}`);
      walked += 1;
    }
    assert.ok(walked > 20, `${walked} were walked`);
  });

  function mayCome(sampler: Sampler, token: number): boolean {
    const words = new Uint32Array(9);
    sampler.fillBitmask(words);
    return (((words[token >> 5] as number) >>> (token & 31)) & 1) === 1;
  }

  for (const kind of ["invalid", "unusable"]) {
    it(`what is ${kind} is named with its place`, () => {
      for (const { text, spec, place, says } of vectors("specs")[kind]) {
        const given = text ?? JSON.stringify(spec);
        if (kind === "unusable" && !isBuilt(given)) continue;
        assert.throws(
          () => constraint(given, vocab),
          (error: Error) => {
            assert.ok(error instanceof TokenTrieError, given);
            assert.ok(error.message.startsWith(`${place}: `) || error.message.startsWith(place), `${given}: ${error}`);
            assert.ok(error.message.includes(says), `${given}: ${error}`);
            return true;
          },
        );
      }
    });
  }
});

describe("templates", () => {
  before(() => load());

  it("are rendered as Jinja2 does", () => {
    // As it is written: numbers of JavaScript have no 1.0.
    const given = vectorsText("chat_templates");
    const head = given.slice(0, given.indexOf('"bos"'));
    const now = Date.UTC(2024, 6, 26, 12, 5, 9);
    const library = loadLibrary();
    const wrong: string[] = [];
    for (const { template, text } of vectors("chat_templates").cases) {
      const fields = { bos: "<s>", eos: "</s>", now, add_generation_prompt: false, template: template as string };
      const json = utf8(head + JSON.stringify(fields).slice(1));
      let found: unknown;
      try {
        found = made(library, own(library, "tokentrie_template_render")(json, json.length));
      } catch (error) {
        assert.ok(error instanceof SpecError, String(error));
      }
      if (found !== (text ?? undefined)) wrong.push(`${template}\n  ${text}\n  ${String(found)}`);
    }
    assert.deepEqual(wrong, []);
  });

  it("that want to end the process end in a typed error, and the module goes on", () => {
    const messages = [{ role: "user", content: "x" }];
    for (const { name, parts, may_render } of vectors("hostile_templates")) {
      const template = parts.map(([text, times]: [string, number]) => text.repeat(times)).join("");
      try {
        renderTemplate(template, messages, { bos: "<s>", eos: "</s>" });
        assert.ok(may_render, name);
      } catch (error) {
        assert.ok(error instanceof SpecError, `${name}: ${String(error)}`);
      }
    }
    assert.equal(renderTemplate("{{ 1 + 1 }}", messages), "2");
  });

  it("are understood: rendered, read back while they come, and held to the tools", () => {
    const template =
      "{% for m in messages %}<|{{ m.role }}|>{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>" +
      "{% endif %}{{ m.content }}{% for c in m.tool_calls %}<call>{{ c.function | tojson }}</call>{% endfor %}<|end|>" +
      "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}";
    using format = new ChatFormat(template, { vocab: byteVocab() });
    const { text, turn, parts } = format.prompt([{ role: "user", content: "Hi<|end|>" }]);
    assert.deepEqual([text, turn], ["<|user|>Hi<|end|><|end|><|assistant|>", "<|assistant|>"]);
    assert.deepEqual(parts, [
      ["<|user|>", true],
      ["Hi<|end|>", false],
      ["<|end|><|assistant|>", true],
    ]);
    const over = format.prompt([{ role: "user", content: "Hi" }], { addGenerationPrompt: false });
    assert.deepEqual(over, {
      text: "<|user|>Hi<|end|>",
      turn: null,
      parts: [
        ["<|user|>", true],
        ["Hi", false],
        ["<|end|>", true],
      ],
    });
    const tool = { name: "ring", parameters: { type: "object" } };
    const named = { type: "function", function: { name: "ring" } } as const;
    const allowed = { type: "allowed_tools", allowed_tools: { mode: "auto", tools: [named] } } as const;
    for (const toolChoice of [named, allowed]) {
      using chosen = format.parser({ tools: [tool], toolChoice });
      chosen.push('<call>{"name": "ring", "arguments": {}}</call>');
      assert.equal(chosen.finish().message.tool_calls?.length, 1);
    }
    const other = { type: "function", function: { name: "sing" } } as const;
    assert.throws(() => format.parser({ tools: [tool], toolChoice: other }), { name: "SpecError", message: /"sing"/ });
    using parser = format.parser();
    const events = [
      ...parser.push('<think>A bell.</think>Ding.<call>{"name": "ring", "argu'),
      ...parser.push(new TextEncoder().encode('ments": {"times": 2}}</call>')),
    ];
    const { message, events: last } = parser.finish();
    assert.equal(message.reasoning_content, "A bell.");
    assert.equal(message.content, "Ding.");
    const call = message.tool_calls?.[0];
    assert.ok(call?.type === "function" && call.function.arguments === '{"times": 2}');
    assert.ok([...events, ...last].some((event) => event.kind === "call_begins" && event.name === "ring"));
    assert.throws(() => parser.push("x"), { name: "TokenNotAllowedError" });
    using mixed = format.parser();
    mixed.push("x");
    assert.throws(() => mixed.push([1]), { name: "SpecError", message: /a reply in text is not continued in tokens/ });
    const ring = { name: "ring", parameters: { type: "object", properties: { times: { enum: [1, 2] } } } };
    using only = format.constraint([ring], { toolChoice: "ring" });
    using sampler = Sampler.create(byteVocab(), only, { after: "stop" });
    const said = '<call>{"name": "ring", "arguments": {"times": 3';
    assert.throws(() => sampler.accept([...new TextEncoder().encode(said)]), { name: "TokenNotAllowedError" });
    sampler.accept([...new TextEncoder().encode(`${said.slice(0, -1)}2}}</call>`)]);
  });
});
