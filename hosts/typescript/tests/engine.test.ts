/** Sessions that share an engine, on the real library and the tiny model. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { ArgumentError, CancelledError, FileError, Session, type SessionOptions } from "../src/index.js";
import { ROOT } from "./support/cases.js";
import { MODEL, NO_MODEL } from "./support/library.js";

interface Pick {
  readonly prompt: string;
  readonly choices: readonly string[];
}

const PICKS: readonly Pick[] = readFileSync(join(ROOT, "tools", "tiny_model", "heldout.jsonl"), "utf8")
  .split("\n")
  .filter((line) => line.startsWith('{"task": "tool'))
  .slice(0, 8)
  .map((line) => JSON.parse(line));
const OPTIONS: SessionOptions = { nThreads: 1, nCtx: 512, seed: 5 };
const SHARED: SessionOptions = { ...OPTIONS, slots: 3 };

/** What a session says to each question, one way and another. */
async function answers(session: Session, { prompt, choices }: Pick) {
  const choice = await session.choose(prompt, choices);
  const picked = await session.generate(prompt, { constraint: { choice: [...choices] } }).result;
  const chat = await session.chat([{ role: "user", content: "Ring twice." }], { maxTokens: 8 });
  return { name: choice.name, probabilities: choice.probabilities, text: picked.text, chat: chat.message.content };
}

describe("Sessions with slots", { skip: NO_MODEL }, () => {
  it("answer together as each would alone", async () => {
    await using alone = await Session.open(MODEL, OPTIONS);
    assert.equal(alone.engine, null);
    const wanted = [];
    for (const pick of PICKS) wanted.push(await answers(alone, pick));

    const sessions = await Promise.all(PICKS.map(() => Session.open(MODEL, SHARED)));
    const got = await Promise.all(PICKS.map((pick, at) => answers(sessions[at] as Session, pick)));
    for (const [at, answer] of got.entries()) {
      const { probabilities, ...said } = answer;
      const { probabilities: expected, ...meant } = wanted[at] as typeof answer;
      assert.deepEqual(said, meant);
      for (const [option, value] of Object.entries(probabilities)) {
        assert.ok(Math.abs((value ?? Number.NaN) - (expected[option] ?? Number.NaN)) < 0.02);
      }
    }
    const engines = sessions.map((session) => session.engine);
    const one = engines[0];
    assert.ok(one && one.slots === 3 && one.running === 0 && one.queued === 0 && one.failedPasses === 0);
    // All of them speak of one engine.
    for (const engine of engines) assert.equal(engine?.calls, one.calls);
    // A generation takes its prompt in a call of its own.
    assert.equal(one.calls, 4 * PICKS.length);
    await Promise.all(sessions.map((session) => session.close()));
  });

  it("get the same bits beside any load when batching is fixed", async () => {
    const options: SessionOptions = { ...SHARED, batching: "fixed" };
    const sessions = await Promise.all(PICKS.map(() => Session.open(MODEL, options)));
    const { prompt, choices } = PICKS[0] as Pick;
    const alone = await (sessions[0] as Session).choose(prompt, choices);
    const load = sessions.slice(1).map((session, at) => session.generate((PICKS[at] as Pick).prompt).result);
    for (let time = 0; time < 4; time++) {
      const beside = await (sessions[0] as Session).choose(prompt, choices);
      assert.deepEqual(beside.probabilities, alone.probabilities);
    }
    await Promise.all(load);
    await Promise.all(sessions.map((session) => session.close()));
  });

  it("are cancelled one by one", async () => {
    await using one = await Session.open(MODEL, SHARED);
    await using two = await Session.open(MODEL, SHARED);
    const { prompt } = PICKS[0] as Pick;
    const free = await two.generate(prompt, { maxTokens: 60 }).result;
    const stop = new AbortController();
    const ended = one.generate(prompt, { maxTokens: 400, signal: stop.signal }).result;
    const other = two.generate(prompt, { maxTokens: 60 }).result;
    stop.abort();
    await assert.rejects(ended, CancelledError);
    assert.deepEqual((await other).tokens, free.tokens);
  });

  it("go on from a file", async () => {
    const folder = mkdtempSync(join(tmpdir(), "tokentrie-"));
    const path = join(folder, "beginning.prefix");
    const { prompt, choices } = PICKS[0] as Pick;
    const beginning = prompt.slice(0, prompt.length / 2);
    try {
      for (const options of [OPTIONS, SHARED]) {
        await using one = await Session.open(MODEL, options);
        await one.savePrefix(path, beginning);
        await using two = await Session.open(MODEL, { ...options, slots: 1 });
        const tokens = await two.loadPrefix(path);
        const out = await two.generate(prompt, { constraint: { choice: [...choices] } }).result;
        const whole = await one.generate(prompt, { constraint: { choice: [...choices] } }).result;
        assert.equal(out.text, whole.text);
        // Where the text goes on, the last token may be another.
        assert.ok(tokens > 3 && out.stats.promptTokensReused >= tokens - 1);
      }
      writeFileSync(path, "no prefix");
      await using three = await Session.open(MODEL, OPTIONS);
      await assert.rejects(three.loadPrefix(path), FileError);
      await assert.rejects(three.loadPrefix(join(folder, "missing")), FileError);
      await assert.rejects(three.savePrefix(join(folder, "missing", "x"), "a"), FileError);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it("refuse what an engine does not have", async () => {
    await using session = await Session.open(MODEL, SHARED);
    await assert.rejects(session.generate("a", { slotId: 2 }).result, ArgumentError);
    await assert.rejects(Session.open(MODEL, { ...OPTIONS, slots: 1000 }), ArgumentError);
    await assert.rejects(Session.open(MODEL, { ...OPTIONS, slots: -1 }), ArgumentError);
    await assert.rejects(Session.open(MODEL, { ...OPTIONS, maxQueue: 4 }), ArgumentError);
    // @ts-expect-error: it is no word for it.
    await assert.rejects(Session.open(MODEL, { ...SHARED, batching: "some" }), ArgumentError);
  });
});
