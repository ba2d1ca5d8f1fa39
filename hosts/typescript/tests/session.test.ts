/** Sessions on the real library and the tiny model. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import {
  ArgumentError,
  BusyError,
  buildDescriptor,
  buildPayload,
  CancelledError,
  type ChatEvent,
  type ChatMessage,
  type ChatReply,
  type Answer,
  type Choice,
  Form,
  type GenerationResult,
  HandleError,
  LibraryError,
  ModelError,
  PayloadError,
  Sampler,
  Session,
  SetError,
  type Spec,
  SpecError,
  TokenizerCache,
  tool,
  type TokenTreePayload,
} from "../src/index.js";
import { z } from "zod";
import { ROOT } from "./support/cases.js";
import { LIBRARY, MODEL, NO_LIBRARY, NO_MODEL } from "./support/library.js";

interface Question {
  readonly prompt: string;
  readonly choices: readonly string[];
  readonly answer: string;
}

/** Questions that the tiny model was not trained on. */
const QUESTIONS: readonly Question[] = readFileSync(join(ROOT, "tools", "tiny_model", "heldout.jsonl"), "utf8")
  .split("\n")
  .filter((line) => line.startsWith('{"task": "tool'))
  .slice(0, 12)
  .map((line) => JSON.parse(line));

const FREE = "<|im_start|>user\nTell me something.<|im_end|>\n<|im_start|>assistant\n";
const first = QUESTIONS[0] as Question;

/** The probabilities of the values, in their order. */
const sharesOf = (choice: Choice): number[] =>
  choice.values.map((name) => choice.probabilities[name] ?? assert.fail(`no probability of ${name}`));

type Shares = Readonly<Record<string, number | null>> | readonly (number | null)[];

function assertNear(found: Shares, expected: Shares, near: number): void {
  const [shares, wanted] = [found, expected].map((of) => new Map(Object.entries<number | null>({ ...of })));
  assert.deepEqual([...(shares?.keys() ?? [])].sort(), [...(wanted?.keys() ?? [])].sort());
  for (const [option, share] of shares ?? [])
    assert.ok(Math.abs((share ?? Number.NaN) - (wanted?.get(option) ?? Number.NaN)) < near, option);
}

async function payloadOf(session: Session, names: readonly string[]): Promise<TokenTreePayload> {
  const cache = new TokenizerCache(async (text) => Array.from(await session.tokenize(text)));
  return buildPayload("tiny", [buildDescriptor("action", names, await cache.tokenizeMany("tiny", names))]);
}

describe("Session", { skip: NO_MODEL }, () => {
  let session: Session;
  before(async () => {
    session = await Session.open(MODEL, { nThreads: 1, seed: 5 });
  });
  after(() => session.close());

  it("streams a value of the payload, and says which leaf and what it cost", async () => {
    for (const { prompt, choices } of QUESTIONS) {
      const payload = await payloadOf(session, choices);
      const generation = session.generate(prompt, { tokenTreePayload: payload });
      const ids: number[] = [];
      let text = "";
      for await (const token of generation) {
        ids.push(token.id);
        text += token.text;
      }
      const result = await generation.result;
      assert.ok(choices.includes(result.leaf?.name ?? ""), String(result.leaf?.name));
      assert.equal(text, result.leaf?.name);
      assert.deepEqual([result.text, [...result.tokens], result.finish], [text, ids, "span"]);
      const leaves = payload.descriptors[0]?.leaves ?? [];
      assert.deepEqual(ids, leaves.find(({ name }) => name === text)?.tokens);
      const { tokens, forcedTokens, sampledTokens, promptTokens, forwardPasses } = result.stats;
      assert.deepEqual([tokens, forcedTokens + sampledTokens], [ids.length, ids.length]);
      assert.ok(promptTokens > 10 && forwardPasses <= sampledTokens, JSON.stringify(result.stats));
    }
  });

  it("forced tokens need no forward pass", async () => {
    const prompt = first.prompt;
    const result = await session.generate(prompt, {
      tokenTreePayload: await payloadOf(session, ["cancel_the_meeting"]),
    }).result;
    assert.equal(result.text, "cancel_the_meeting");
    assert.deepEqual([result.stats.forcedTokens, result.stats.sampledTokens], [result.tokens.length, 0]);
  });

  it("chooses exactly, and finds most answers", async () => {
    let right = 0;
    for (const { prompt, choices, answer } of QUESTIONS) {
      const choice = await session.choose(prompt, choices);
      right += Number(choice.name === answer);
      assert.deepEqual(Object.keys(choice.probabilities).sort(), [...choices].sort());
      const shares = sharesOf(choice);
      assert.ok(Math.abs(shares.reduce((sum, one) => sum + one) - 1) < 1e-9);
      assert.equal(choice.probability, Math.max(...shares));
      assert.equal(choice.value, choice.name);
      assert.equal(choice.name, choices[choice.index]);
      assert.ok(choice.mass > 0 && choice.mass <= 1 + 1e-6);
      assert.ok(Math.abs((choice.logprobs[choice.index] ?? 0) - Math.log(choice.probability * choice.mass)) < 1e-9);
      assert.deepEqual(choice.items()[0], [choice.name, choice.probability]);
    }
    assert.ok(right >= 8, `${right} of ${QUESTIONS.length}`);
  });

  it("scores what the best values need, and takes specs and constraints", async () => {
    const all = await session.choose(FREE, ["cat", "dog", "a dog"]);
    const best = await session.choose(FREE, ["cat", "dog", "a dog"], { top: 1 });
    assert.equal(best.name, all.name);
    assert.ok(best.certain && best.ranking.length === 1 && best.massBounds[0] <= best.massBounds[1]);
    assert.deepEqual(
      [...all.ranking],
      [...all.ranking].sort((a, b) => sharesOf(all)[b]! - sharesOf(all)[a]!),
    );
    const grade = { integer: { min: 1, max: 6 } } as const;
    const byName = (choice: Choice) => Object.fromEntries(choice.items());
    using made = await session.constraint(grade);
    using trie = made.trie();
    const names = ["1", "2", "3", "4", "5", "6"];
    const spec = await session.choose(FREE, grade);
    assert.deepEqual([...spec.values].sort(), names);
    assert.deepEqual(byName(await session.choose(FREE, made, { maxRows: 4096 })), byName(spec));
    const ofTrie = await session.choose(FREE, trie, { maxRows: 4096 });
    assert.deepEqual([...ofTrie.values].sort(), names);
    await assert.rejects(session.choose(FREE, ["a"], { top: 0 }), (error: Error) => {
      return error instanceof SpecError && error.message.startsWith("$.top: it is 0");
    });
    await assert.rejects(session.choose(FREE, { regex: "a+" }), SpecError);
    // What was set for the choice is gone.
    assert.equal(session.info.hasTrie, false);
  });

  it("takes the options of all hosts by name", async () => {
    const constraint = { choice: ["cat", "dog", "a dog"] } as const;
    const drawn = (seed: number) =>
      session.generate(FREE, { constraint, sampling: { temperature: 9, seed, minP: 0 } }).result;
    const seen = new Set<string>();
    for (let seed = 0; seed < 12; seed++) {
      const { text, value } = await drawn(seed);
      assert.equal((await drawn(seed)).text, text);
      assert.equal(value, text);
      seen.add(text);
    }
    assert.ok(seen.size > 1);
    const slot = { slot: "pet", value: constraint } as const;
    const form = { form: ["My ", slot, "."] } as const;
    const filled = await session.generate(FREE, { constraint: form, exact: true, probabilities: true }).result;
    const shares = filled.probabilities["pet"] ?? assert.fail("probabilities");
    assert.equal(shares[filled.values?.["pet"] ?? ""], Math.max(...Object.values(shares)));
    assert.ok(Math.abs(Object.values(shares).reduce((sum, share) => sum + share) - 1) < 1e-9);
    const free = await session.generate(FREE, { constraint, after: "free", maxTokens: 12 }).result;
    assert.equal(free.tokens.length <= 12 && constraint.choice.some((pet) => free.text.startsWith(pet)), true);
    const plain = await session.generate(FREE, { maxTokens: 6 }).result;
    const slowly = await session.generate(FREE, { maxTokens: 6, skipAhead: false }).result;
    assert.deepEqual(slowly.tokens, plain.tokens);
    for (const [options, says] of [
      [{ constraint, exact: true }, "for forms"],
      [{ constraint: form, endTokens: [1] }, "not for forms"],
      [{ constraint, sampling: { topP: 2 } }, "$.sampling.top_p: top_p is 2"],
      [{ constraint, sampling: { seed: 1 }, temperature: 1 }, "give one of them"],
      [{ constraint, freeSampling: { seed: 1 }, after: "stop" }, "free_sampling is for the text after a value"],
    ] as const) {
      await assert.rejects(session.generate(FREE, options).result, (error: Error) => error.message.includes(says));
    }
  });

  it("decides, and every answer is the choice that it stands for", async () => {
    const questions = {
      on: { type: "predicate", instructions: "Is the lamp on?" },
      colour: { type: "choice", options: ["red", true, { value: "blue", description: "As the sky" }] },
      level: { type: "score", levels: ["low", { label: "high", description: "very" }] },
    } as const;
    const { answers, endTokens, stats } = await session.decide("The lamp is <|im_end|> on.", questions, {
      permute: 2,
      end: "required",
      spellings: false,
    });
    assert.deepEqual(Object.keys(answers), ["on", "colour", "level"]);
    const colours = answers.colour.probabilities.map(({ value }) => value);
    assert.deepEqual(colours, ["red", true, "blue"]);
    assert.equal(answers.colour.prompts.length, 2);
    assert.ok(stats.forwardPasses > 0);
    for (const answer of [answers.on, answers.level]) {
      const first = answer.prompts[0] ?? assert.fail("a prompt");
      const choice = await session.choose(first.tokens, first.values, { endTokens });
      if (answer.prompts.length > 1) continue;
      for (const [index, probability] of sharesOf(choice).entries()) {
        assert.ok(Math.abs(probability - (answer.probabilities[index]?.probability ?? 0)) < 0.02);
      }
    }
    const below = await session.decide("s", questions, { threshold: 1 });
    assert.equal(below.answers.colour.value, null);
    assert.match(below.answers.colour.reason ?? "", /below the threshold 1/);
    await assert.rejects(session.decide("s", {}), (error: Error) => {
      assert.ok(error instanceof SpecError);
      return error.message.startsWith("$.questions: there is no question");
    });
    await assert.rejects(session.decide("s", { q: { type: "choice", options: ["a", "a"] } }), SpecError);
    await assert.rejects(session.decide("s", questions, { signal: AbortSignal.abort() }), CancelledError);
  });

  it("chooses among the leaves of a trie and a payload alike", async () => {
    const { prompt, choices } = first;
    const byText = await session.choose(prompt, choices);
    const ids = await session.tokenize(prompt, { addSpecial: true, parseSpecial: true });
    using trie = await session.texts(choices);
    for (const other of [
      await session.choose(ids, trie),
      await session.choose(prompt, await payloadOf(session, choices)),
      await session.choose(ids, choices),
    ]) {
      assert.equal(other.name, byText.name);
      for (const [name, probability] of byText.items()) {
        const found = other.probabilities[name] ?? Number.NaN;
        assert.ok(Math.abs(found - probability) < 0.02, `${name}: ${found} and ${probability}`);
      }
    }
  });

  it("writes what a spec allows, of every kind", async () => {
    const specs: [Spec, RegExp][] = [
      [{ regex: "[0-9]{3}-[a-f]" }, /^[0-9]{3}-[a-f]$/],
      [{ choice: ["yes", "no"] }, /^(yes|no)$/],
      [{ then: [{ integer: { min: 100, max: 999 } }, " ", { choice: ["kg", "lb"] }] }, /^[1-9][0-9]{2} (kg|lb)$/],
      [{ date: {} }, /^\d{4}-\d\d-\d\d$/],
      [
        {
          json_schema: {
            type: "object",
            properties: { ok: { type: "boolean" } },
            required: ["ok"],
            additionalProperties: false,
          },
          whitespace: "none",
        },
        /^\{"ok": ?(true|false)\}$/,
      ],
    ];
    for (const [spec, text] of specs) {
      const result = await session.generate(first.prompt, { constraint: spec }).result;
      assert.match(result.text, text);
      using made = await session.constraint(spec);
      const again = await session.generate(first.prompt, { constraint: made }).result;
      assert.deepEqual([...again.tokens], [...result.tokens]);
      assert.deepEqual(JSON.parse(JSON.stringify(made)), spec);
    }
  });

  it("writes what every host writes", async () => {
    const vectors = JSON.parse(readFileSync(join(ROOT, "tests", "vectors", "examples.json"), "utf8"));
    for (const { name, prompt, constraint, text, tokens, values } of vectors.generations) {
      const result = await session.generate(prompt, { constraint }).result;
      assert.deepEqual([result.text, [...result.tokens]], [text, tokens], name);
      assert.deepEqual(result.values, values ?? null, name);
    }
    const { messages, tools, max_tokens: maxTokens } = vectors.chat.request;
    const options = { tools, toolChoice: "required", parallelToolCalls: false, maxTokens };
    const calls = (await session.chat(messages, options)).message.tool_calls?.map(
      (call) =>
        call.type === "function" && {
          name: call.function.name,
          arguments: JSON.parse(call.function.arguments),
        },
    );
    assert.deepEqual(calls, vectors.chat.tool_calls);
    for (const { name, request, chosen, value, probabilities } of vectors.choices) {
      const choice = await session.choose(request.prompt, request.choices);
      assert.deepEqual([choice.name, choice.value], [chosen, value], name);
      assertNear(choice.probabilities, probabilities, vectors.near);
    }
    for (const { name, request, found, exact, share } of vectors.probabilities) {
      const { prompt, constraint, ...given } = request;
      const { max_tokens: maxTokens, max_rows: maxRows, end_tokens: endTokens, ...rest } = given;
      const odds = await session.probability(prompt, constraint, { maxTokens, maxRows, endTokens, ...rest });
      assert.equal(odds.exact, exact, name);
      const { lower, upper } = odds;
      assertNear({ lower, upper }, found, vectors.near);
      if (share !== undefined) assertNear([odds.text?.share ?? -1], [share], vectors.near);
    }
    for (const { request, probabilities } of vectors.forms) {
      const { prompt, ...options } = request;
      const filled = await session.generate(prompt, options).result;
      assert.deepEqual(Object.keys(filled.probabilities), Object.keys(probabilities));
      for (const [slot, shares] of Object.entries(filled.probabilities))
        assertNear(shares, probabilities[slot], vectors.near);
    }
    for (const { request, answers } of vectors.decisions) {
      const found = (await session.decide(request.state, request.questions)).answers;
      for (const [question, { probabilities }] of Object.entries<Answer>(answers)) {
        const told = found[question]?.probabilities ?? [];
        assert.deepEqual(
          told.map(({ value }) => value),
          probabilities.map(({ value }) => value),
        );
        assertNear(
          told.map(({ probability }) => probability),
          probabilities.map(({ probability }) => probability),
          vectors.near,
        );
      }
    }
  });

  it("finds how probable a constraint is, however it is given", async () => {
    const regex = { regex: "[0-9]{1,2}" } as const;
    const odds = await session.probability(FREE, regex, { text: "1", seed: 1, maxRows: 50 });
    assert.ok(odds.lower <= odds.estimate && odds.estimate <= odds.upper && odds.upper <= 1);
    assert.ok((odds.text?.bounds[0] ?? 1) <= odds.upper && (odds.text?.shareBounds[1] ?? 2) <= 1);
    assert.ok(odds.stats.rows > 0 && odds.stats.forwardPasses > 0 && !odds.timedOut);
    using made = await session.constraint(regex);
    const again = await session.probability(FREE, made, { seed: 1, maxRows: 50 });
    assertNear([again.lower, again.upper], [odds.lower, odds.upper], 1e-6);
    assert.equal(again.text, null);
    const texts = await session.texts(["1", "22"]);
    const some = await session.probability(FREE, texts, { endTokens: [] });
    const { mass } = await session.choose(FREE, texts);
    assertNear([some.estimate], [mass], 1e-6);
    await assert.rejects(session.probability(FREE, regex, { tolerance: 2 }), SpecError);
    await assert.rejects(session.probability(FREE, "x" as never), ArgumentError);
    await assert.rejects(session.probability(FREE, regex, { signal: AbortSignal.abort() }), CancelledError);
    assert.equal((await session.probability(FREE, { regex: "a*" }, { timeout: 60 })).timedOut, false);
  });

  it("fills a form with types", async () => {
    const city = { slot: "city", value: { choice: ["Bonn", "Oslo"] } } as const;
    const guests = { slot: "guests", value: { integer: { min: 1, max: 12 } } } as const;
    const form = new Form('{"city": "', city, '", "guests": ', guests, "}");
    const result = await session.generate(FREE, { constraint: form }).result;
    const values: { readonly city: "Bonn" | "Oslo"; readonly guests: number } = form.values(result);
    assert.deepEqual(JSON.parse(result.text), values);
    // After thinking, too; a sampler says what is filled so far.
    const think = { begin: "<t>", end: "</t>", budget: 2, then: form } as const;
    const thought = await session.generate(FREE, { constraint: { think } }).result;
    assert.deepEqual(form.values(thought), JSON.parse(thought.text.slice(thought.text.indexOf("{"))));
    using filling = await session.constraint(form);
    using sampler = Sampler.create(await session.vocab(), filling);
    assert.equal(sampler.values, null);
    for (const token of result.tokens) sampler.accept(token);
    assert.deepEqual(form.values(sampler), values);
    // It is the spec that it says it is, wherever one stands.
    using made = await session.constraint({ think: { end: "</t>", at_once: true, then: form } });
    assert.match(JSON.stringify(made), /"form"/);
    assert.deepEqual(JSON.parse(JSON.stringify(form)), { form: form.form });
    assert.throws(() => new Form(guests).values({ values: { guests: "9".repeat(30) } }), ArgumentError);
    assert.throws(() => form.values({ values: null }), ArgumentError);
    // @ts-expect-error there is no such value
    void values.nobody;
  });

  it("runs functions that the model calls, with schemas of zod", async () => {
    const asked: { city: "Bonn" | "Oslo"; nights: number }[] = [];
    const book = tool({
      name: "book",
      description: "Books a room.",
      parameters: z.object({ city: z.enum(["Bonn", "Oslo"]), nights: z.literal([1, 2]).default(2) }),
      run: (given) => {
        asked.push(given);
        return { booked: given.city };
      },
    });
    const messages = [{ role: "user", content: "A room in Oslo, please." }];
    const options = { toolChoice: "book", parallelToolCalls: false, maxTokens: 200, maxRounds: 2 };
    const run = await session.runTools(messages, { ...options, tools: [book] });
    assert.equal(run.rounds, 2);
    assert.equal(messages.length, 1);
    assert.equal(asked.length, 1);
    assert.ok(["Bonn", "Oslo"].includes(asked[0]?.city ?? "") && [1, 2].includes(asked[0]?.nights ?? 0));
    const told = run.messages[2] as ChatMessage;
    assert.deepEqual([told.role, told.content], ["tool", JSON.stringify({ booked: asked[0]?.city })]);

    const fails = { ...book, run: () => Promise.reject(new RangeError("no room")) };
    const failed = await session.runTools(messages, { ...options, tools: [fails] });
    assert.equal(failed.messages[2]?.content, "error: RangeError: no room");
    await assert.rejects(session.runTools(messages, { ...options, tools: [fails], onError: "throw" }), RangeError);
    await assert.rejects(session.runTools(messages, { tools: [{ name: "x" } as never] }), ArgumentError);
    await assert.rejects(session.runTools(messages, { tools: [book], maxRounds: 0 }), ArgumentError);
  });

  it("gives the probability of every value of a constraint", async () => {
    using grade = await session.constraint({ integer: { min: 1, max: 12 } });
    using trie = grade.trie();
    const names = Array.from({ length: trie.size }, (_, index) => trie.leafName(index) ?? "");
    assert.deepEqual(
      names.map(Number).sort((a, b) => a - b),
      [...Array(12).keys()].map((at) => at + 1),
    );
    const choice = await session.choose(FREE, grade);
    const listed = await session.choose(FREE, trie);
    const byName = (choice: Choice) => Object.fromEntries(choice.items());
    assert.deepEqual(byName(choice), byName(listed));
    // Their texts are tokenised together with the end of the prompt, as those of a list.
    const healed = "<|im_start|>user\nPet?<|im_end|>\n<|im_start|>assistant\nI have a ";
    using pet = await session.constraint({ regex: "cat|dog|a dog" });
    using pets = pet.trie();
    const chosen = byName(await session.choose(healed, pet));
    assert.deepEqual(chosen, byName(await session.choose(healed, ["cat", "dog", "a dog"])));
    assert.notDeepEqual(chosen, byName(await session.choose(healed, pets)));
    assert.ok(Math.abs(sharesOf(choice).reduce((sum, share) => sum + share) - 1) < 1e-9);
    assert.equal(choice.value, Number(choice.name));
    using form = await session.constraint({ form: ["<", { slot: "a", value: { choice: ["x", "y"] } }, ">"] });
    assert.ok(["<x>", "<y>"].includes((await session.choose(FREE, form)).name));
    using endless = await session.constraint({ regex: "a+" });
    await assert.rejects(session.choose(FREE, endless), SpecError);
  });

  it("refuses two constraints, none, and a spec that is wrong, and generates nothing", async () => {
    const payload = await payloadOf(session, ["a"]);
    const refused: [object, RegExp, new (...given: never[]) => Error][] = [
      [{ constraint: { regex: "a" }, tokenTreePayload: payload }, /give one of them/, ArgumentError],
      [{ constraint: null }, /null/, SpecError],
      [{ constraint: { regex: "(" } }, /^\$/, SpecError],
      [{ constraint: { integer: { mni: 1 } } }, /\$\.integer\.mni/, SpecError],
      [{ constraint: {} }, /got one with none/, SpecError],
    ];
    for (const [options, says, kind] of refused) {
      const generation = session.generate(first.prompt, options);
      await assert.rejects(generation.result, (error: Error) => error instanceof kind && says.test(error.message));
    }
    assert.equal(session.info.hasTrie, false);
  });

  const erase = {
    name: "erase",
    description: "Delete a file.",
    parameters: {
      type: "object",
      properties: { path: { type: "string", maxLength: 12 }, really: { type: "boolean" } },
      required: ["path", "really"],
      additionalProperties: false,
    },
  };
  const ask: ChatMessage[] = [
    { role: "system", content: "Answer with a tool call." },
    { role: "user", content: "please delete the file a.txt <|im_end|>" },
  ];

  it("reads replies as a response template says", async () => {
    const reasoning_content = { open: "<thoughts>", close: "</thoughts>" };
    const fields = { content: { close: "<|im_end|>" }, reasoning_content };
    const said = { start_anchor: "<|im_start|>assistant\n", fields };
    for (const responseTemplate of [said, JSON.stringify(said)]) {
      const given = await Session.open(MODEL, { nCtx: 1024, nThreads: 1, responseTemplate });
      const { message, finish } = await given.chat(ask, { tools: [erase], toolChoice: "required", maxTokens: 120 });
      await given.close();
      assert.deepEqual([finish, message.tool_calls?.[0]?.type], ["tool_calls", "function"]);
    }
    const faulty = Session.open(MODEL, { nThreads: 1, responseTemplate: { fields: 5 } });
    await assert.rejects(faulty, (error: Error) => error instanceof SpecError && /fields/.test(error.message));
  });

  it("drafts tokens: what was written before comes in fewer passes", async () => {
    const text = "apples, pears, plums, apples, pears, plums, apples,";
    const plain = await session.generate(text, { maxTokens: 40 }).result;
    for (const options of [{}, { slots: 2 }]) {
      const drafting = await Session.open(MODEL, { nCtx: 512, nThreads: 1, draft: "ngram", ...options });
      const first = await drafting.generate(text, { maxTokens: 40 }).result;
      const second = await drafting.generate(text, { maxTokens: 40 }).result;
      await drafting.close();
      assert.deepEqual([first.text, second.text], [plain.text, plain.text]);
      const [before, after] = [first.stats.forwardPasses, second.stats.forwardPasses];
      assert.ok(after < before, `${after} passes with ${JSON.stringify(options)}, ${before} before`);
    }
    const faulty = Session.open(MODEL, { nThreads: 1, draft: "promt" });
    await assert.rejects(faulty, (error) => error instanceof ArgumentError && /unknown draft/.test(error.message));
  });

  it("chats: calls are right, events are the message, a conversation goes on", async () => {
    const events: ChatEvent[] = [];
    const { message, finish, stats, warnings } = await session.chat(ask, {
      tools: [erase],
      toolChoice: "required",
      parallelToolCalls: false,
      maxTokens: 120,
      probabilities: true,
      onEvent: (event) => events.push(event),
    });
    const call = message.tool_calls?.[0];
    assert.ok(call?.type === "function" && message.tool_calls?.length === 1, JSON.stringify(message));
    assert.equal(call.function.name, "erase");
    assert.match(call.id, /^[0-9A-Za-z]{9}$/);
    const given = JSON.parse(call.function.arguments) as Record<string, unknown>;
    assert.deepEqual([typeof given["path"], typeof given["really"]], ["string", "boolean"]);
    assert.deepEqual([finish, message.role], ["tool_calls", "assistant"]);
    assert.ok((call.probability ?? 0) > 0 && (call.probabilities?.["really"] ?? 0) > 0, JSON.stringify(call));
    assert.ok(stats.forcedTokens > 3 && stats.tokens <= 120 && stats.promptTokens > 30 && Array.isArray(warnings));
    const told = events.map((event) => ("text" in event && event.kind === "arguments" ? event.text : "")).join("");
    assert.equal(told, call.function.arguments);
    assert.deepEqual(events.at(-1), { kind: "message_ends" });
    assert.ok(events.some((event) => event.kind === "call_begins" && event.name === "erase"));
    const next = await session.chat([...ask, message, { role: "tool", content: "it is gone" }], {
      tools: [erase],
      toolChoice: "none",
      maxTokens: 8,
    });
    assert.equal(next.message.tool_calls, undefined);
    assert.ok(next.stats.promptTokensReused > stats.promptTokens / 2, JSON.stringify(next.stats));
  });

  it("holds the input of custom tools, and calls to the tools that are allowed", async () => {
    const grammar = { syntax: "regex", definition: "[ab]{1,3}" } as const;
    const patch = { name: "patch", description: "Patches it.", format: { type: "grammar", grammar } } as const;
    const tools = [{ type: "custom", custom: patch }, erase] as const;
    const draw = { maxTokens: 120, parallelToolCalls: false, sampling: { temperature: 2, seed: 3 } };
    const named = { type: "custom", custom: { name: "patch" } } as const;
    const events: ChatEvent[] = [];
    const first = await session.chat(ask, {
      ...draw,
      tools,
      toolChoice: named,
      onEvent: (event) => events.push(event),
    });
    const call = first.message.tool_calls?.[0];
    assert.ok(call?.type === "custom" && call.custom.name === "patch", JSON.stringify(first.message));
    assert.match(call.custom.input, /^[ab]{1,3}$/);
    assert.ok(events.some((event) => event.kind === "call_begins" && event.tool === "custom" && event.id === call.id));
    const erasing = { type: "function", function: { name: "erase" } } as const;
    const toolChoice = { type: "allowed_tools", allowed_tools: { mode: "required", tools: [erasing] } } as const;
    const said = [...ask, first.message, { role: "tool", tool_call_id: call.id, content: "done" }];
    const next = (await session.chat(said, { ...draw, tools, toolChoice })).message.tool_calls?.[0];
    assert.ok(next?.type === "function" && next.function.name === "erase" && next.id !== call.id, JSON.stringify(next));
  });

  it("takes a schema from what makes one, and draws with settings", async () => {
    const made = { toJSONSchema: () => erase.parameters };
    const draw = (seed: number) =>
      session.chat(ask, {
        tools: [{ type: "function", function: { ...erase, parameters: made } }],
        toolChoice: "erase",
        maxTokens: 80,
        sampling: { temperature: 3, topK: 50, typicalP: 0.99, seed },
      });
    const [one, same] = [await draw(1), await draw(1)];
    assert.deepEqual(one.message, same.message);
    const all = await Promise.all([2, 3, 4, 5].map(draw));
    assert.ok(new Set(all.map(({ message }) => JSON.stringify(message))).size > 1);
  });

  it("refuses requests that are wrong, with the place", async () => {
    const wrong: [unknown, object, RegExp][] = [
      [[{ role: "usr", content: "x" }], {}, /\$\.messages\[0\]: the role "usr" is unknown/],
      [[{ content: "x" }], {}, /\$\.messages\[0\]: it has no "role"/],
      [[7], {}, /\$\.messages\[0\]/],
      [ask, { tools: [{ description: "no name" }] }, /\$\.tools/],
      [ask, { tools: [erase], toolChoice: "earse" }, /\$\.tool_choice.*unknown tool/],
      [ask, { tools: [erase], toolsIn: "prompt" }, /\$\.tools_in.*"system"/],
      [ask, { maxTokens: -1 }, /\$\.max_tokens/],
      [ask, { maxtokens: 1 }, /\$\.maxtokens: unknown field/],
      [ask, { sampling: { temperature: -1 } }, /\$\.sampling\.temperature/],
      [ask, { sampling: { tempreature: 1 } }, /\$\.sampling\.tempreature/],
      [ask, { templateVariables: { x: Number.NaN } }, /\$\.template_variables\.x/],
    ];
    for (const [messages, options, says] of wrong) {
      await assert.rejects(
        session.chat(messages as ChatMessage[], options),
        (error: Error) => error instanceof SpecError && says.test(error.message),
        String(says),
      );
    }
    const reply = await session.chat(ask, { maxTokens: 3 });
    assert.deepEqual([reply.stats.tokens, reply.finish], [3, "max_tokens"]);
  });

  it("a chat is cancelled by a signal, and by a listener that throws; then the session goes on", async () => {
    const abort = new AbortController();
    const options = { maxTokens: 2000, sampling: { temperature: 1000, seed: 1 } };
    const chat = session.chat(ask, { ...options, signal: abort.signal, onEvent: () => abort.abort() });
    await assert.rejects(
      chat,
      (error: Error) => error instanceof CancelledError && (error.partial as ChatReply | null)?.finish === "cancelled",
    );
    const thrown = new RangeError("enough");
    await assert.rejects(
      session.chat(ask, {
        ...options,
        onEvent: () => {
          throw thrown;
        },
      }),
      (error) => error === thrown,
    );
    await assert.rejects(session.chat(ask, { signal: AbortSignal.abort() }), CancelledError);
    assert.equal((await session.chat(ask, { maxTokens: 2 })).stats.tokens, 2);
  });

  it("follows a trie of texts, and draws by the session's seed", async () => {
    using trie = await session.texts(["one", "two", "three"]);
    const draw = async () => {
      await using other = await Session.open(MODEL, { nThreads: 1, seed: 11 });
      const options = { tokenTreePayload: trie, tokenTreeMode: "sampled", temperature: 3 } as const;
      const names: unknown[] = [];
      for (let round = 0; round < 6; round++) names.push((await other.generate(FREE, options).result).leaf?.name);
      return names;
    };
    const names = await draw();
    assert.deepEqual(names, await draw());
    assert.ok(names.every((name) => ["one", "two", "three"].includes(String(name))));
  });

  it("writes freely where nothing is asked for, until the limit", async () => {
    const { text, tokens, leaf, finish } = await session.generate(FREE, { maxTokens: 5 }).result;
    assert.equal(leaf, null);
    assert.ok(tokens.length <= 5 && ["max_tokens", "end_of_generation"].includes(finish), finish);
    assert.equal((await session.vocab()).text(tokens).startsWith(text), true);
  });

  it("reuses what it has computed of a prompt", async () => {
    await session.generate(first.prompt, { maxTokens: 1 }).result;
    const { stats } = await session.generate(first.prompt, { maxTokens: 1 }).result;
    assert.ok(stats.promptTokensReused >= stats.promptTokens - 1, JSON.stringify(stats));
  });

  it("leaves the event loop free while it generates", async () => {
    let ticks = 0;
    const timer = setInterval(() => {
      ticks += 1;
    }, 1);
    await session.generate(first.prompt.repeat(8), { maxTokens: 40 }).result;
    clearInterval(timer);
    assert.ok(ticks >= 3, `${ticks} ticks`);
  });

  const long = { maxTokens: 3000, temperature: 5 };

  it("is cancelled by a signal: what had come is kept, and the session goes on", async () => {
    const abort = new AbortController();
    const generation = session.generate(FREE, { ...long, signal: abort.signal });
    const seen: number[] = [];
    const loop = (async () => {
      for await (const { id } of generation) {
        seen.push(id);
        if (seen.length === 3) abort.abort(new Error("enough"));
      }
    })();
    await assert.rejects(loop, (error: CancelledError<GenerationResult>) => {
      assert.ok(error instanceof CancelledError);
      assert.deepEqual([error.name, (error.cause as Error).message], ["AbortError", "enough"]);
      assert.deepEqual([...error.partial.tokens].slice(0, 3), seen.slice(0, 3));
      assert.ok(error.partial.tokens.length < 3000);
      return true;
    });
    await assert.rejects(generation.result, CancelledError);
    assert.ok((await session.generate(FREE, { maxTokens: 2 }).result).tokens.length <= 2);
  });

  it("is cancelled when the loop is left, and before it begins", async () => {
    const generation = session.generate(FREE, long);
    for await (const _ of generation) break;
    await assert.rejects(generation.result, CancelledError);
    const never = session.generate(FREE, { ...long, signal: AbortSignal.abort() });
    await assert.rejects(never.result, (error: CancelledError<GenerationResult>) => error.partial.tokens.length === 0);
    const slow = first.prompt.repeat(20); // its forward passes take much longer
    const timed = session.generate(slow, { ...long, signal: AbortSignal.timeout(10) });
    await assert.rejects(timed.result, (error: Error) => (error.cause as Error).name === "TimeoutError");
    assert.ok((await session.generate(FREE, { maxTokens: 1 }).result).tokens.length <= 1);
  });

  it("a choice is cancelled by a signal too", async () => {
    const slow = first.prompt.repeat(20);
    await assert.rejects(session.choose(slow, ["a", "b"], { signal: AbortSignal.timeout(10) }), (error: Error) => {
      assert.ok(error instanceof CancelledError);
      assert.equal((error.cause as Error).name, "TimeoutError");
      return true;
    });
    await assert.rejects(session.choose(FREE, ["a"], { signal: AbortSignal.abort() }), CancelledError);
    assert.equal((await session.choose(FREE, ["a", "b"])).values.length, 2);
  });

  it("a generation and choices take turns, and a cancel hits its own", async () => {
    const { prompt, choices } = first;
    const alone = await session.choose(prompt, choices);
    const free = (await session.generate(FREE, { maxTokens: 8 }).result).text;
    for (let round = 0; round < 10; round++) {
      const abort = new AbortController();
      const running = session.generate(FREE, long);
      const waiting = session.choose(prompt, choices, { signal: abort.signal });
      abort.abort();
      await assert.rejects(waiting, CancelledError);
      const after = session.choose(prompt, choices);
      running.cancel();
      await assert.rejects(running.result, CancelledError);
      const next = session.generate(FREE, { maxTokens: 8 });
      assert.equal((await after).name, alone.name);
      assert.equal((await next.result).text, free);
    }
  });

  it("tells what it is doing", async () => {
    const { nCtx, nVocab } = session.info;
    assert.ok(nCtx >= 1024 && nVocab === (await session.vocab()).size);
    using trie = await session.texts(["one", "two"]);
    const generation = session.generate(FREE, { tokenTreePayload: trie });
    for await (const _ of generation) assert.equal(session.info.promptTokens > 5, true);
    await generation.result;
    const { isGenerating, hasTrie } = session.info;
    assert.deepEqual([isGenerating, hasTrie], [false, false]);
  });

  it("does one generation at a time", async () => {
    const running = session.generate(FREE, long);
    await assert.rejects(session.generate(FREE).result, BusyError);
    running.cancel();
    await assert.rejects(running.result, CancelledError);
  });

  it("refuses a bad payload and keeps nothing of it", async () => {
    const text = '{"descriptors": [{"path": "a", "leaves": [{"name": "A", "tokens": [-1]}]}]}';
    await assert.rejects(session.generate(FREE, { tokenTreePayload: text }).result, (error: PayloadError) => {
      assert.ok(error instanceof PayloadError);
      assert.match(error.message, /line 1.*tokens\[0\]/);
      assert.equal(error.status, "TOKENTRIE_ERROR_PAYLOAD");
      return true;
    });
    const outside = { modelId: "m", descriptors: [{ path: "a", leaves: [{ name: "A", tokens: [10 ** 9] }] }] };
    await assert.rejects(session.generate(FREE, { tokenTreePayload: outside }).result, PayloadError);
    assert.ok((await session.generate(FREE, { maxTokens: 1 }).result).tokens.length <= 1);
  });

  it("refuses what cannot be asked", async () => {
    await assert.rejects(session.choose(FREE, []), SpecError);
    await assert.rejects(session.choose(FREE, ["a", "a"]), SetError);
    await assert.rejects(session.generate(FREE, { maxTokens: -1 }).result, ArgumentError);
    await assert.rejects(session.generate([0.5]).result, ArgumentError);
    await assert.rejects(session.generate(FREE, { tokenTreePayload: null as never }).result, PayloadError);
    await assert.rejects(session.generate(FREE, { tokenTreeMode: 7 as never }).result);
  });

  it("can be closed while it generates; then it is closed", async () => {
    const other = await Session.open(MODEL, { nThreads: 1 });
    const running = other.generate(FREE, long);
    await other.close();
    await other.close();
    await assert.rejects(running.result, CancelledError);
    await assert.rejects(other.generate(FREE).result, HandleError);
    await assert.rejects(other.tokenize("a"), HandleError);
  });

  it("can be closed while it chooses", async () => {
    const other = await Session.open(MODEL, { nThreads: 1 });
    const choosing = other.choose(first.prompt.repeat(20), ["a", "b"]);
    const settled = assert.rejects(choosing, CancelledError);
    await other.close();
    await settled;
  });

  it("several run side by side", async () => {
    const others = await Promise.all([1, 2].map(() => Session.open(MODEL, { nThreads: 1 })));
    const { prompt, choices } = first;
    const payload = await payloadOf(session, choices);
    const names = await Promise.all(
      [session, ...others].map(
        async (one) => (await one.generate(prompt, { tokenTreePayload: payload }).result).leaf?.name,
      ),
    );
    assert.equal(new Set(names).size, 1);
    await Promise.all(others.map((one) => one.close()));
  });
});

it("a process ends with sessions that nobody closed", { skip: NO_MODEL }, () => {
  const index = new URL("../src/index.js", import.meta.url).href;
  const code = `import { Session } from ${JSON.stringify(index)};
    const session = await Session.open(${JSON.stringify(MODEL)}, { nThreads: 1 });
    console.log((await session.choose("A", ["a", "b"])).values.length);`;
  // `--input-type` is Node's; bun takes modules in any case.
  const given = "bun" in process.versions ? ["-e", code] : ["--input-type=module", "-e", code];
  assert.equal(execFileSync(process.execPath, given, { encoding: "utf8", timeout: 20_000 }).trim(), "2");
});

describe("a session that cannot be opened", () => {
  it("says that the file is none, or no model", { skip: NO_MODEL }, async () => {
    const folder = mkdtempSync(join(tmpdir(), "tokentrie-"));
    try {
      writeFileSync(join(folder, "text.gguf"), "no model");
      for (const name of ["text.gguf", "none.gguf"]) {
        await assert.rejects(Session.open(join(folder, name)), (error: Error) => {
          assert.ok(error instanceof ModelError, String(error));
          assert.ok(error.message.includes(name), error.message);
          return true;
        });
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
    await assert.rejects(Session.open(MODEL, { after: "later" as never }), ArgumentError);
    await assert.rejects(Session.open(MODEL, { nCtx: -1 }), ArgumentError);
  });

  it("says that the library has no llama.cpp", { skip: NO_LIBRARY || LIBRARY?.hasLlama }, async () => {
    await assert.rejects(Session.open("model.gguf"), (error: Error) => {
      assert.ok(error instanceof LibraryError);
      assert.match(error.message, /without llama\.cpp.*TOKENTRIE_LIB/);
      return true;
    });
  });
});
