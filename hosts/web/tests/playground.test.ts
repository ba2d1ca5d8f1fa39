/** The page of the server without one, in Chromium, as the folder that a plain server gives out. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import type { Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { Browser, Page } from "playwright-core";
import { CHROMIUM, launched, MODELS, NO_BUILD, NO_CHROMIUM, NO_MODEL, served, WEB } from "./support.js";

const SKIP = NO_CHROMIUM || NO_BUILD || NO_MODEL;

describe("the playground", { skip: SKIP }, () => {
  const folder = mkdtempSync(join(tmpdir(), "playground-"));
  const faults: string[] = [];
  let server: Server;
  let browser: Browser;
  let page: Page;

  before(async () => {
    execFileSync(join(WEB, "tools", "playground.sh"), [join(folder, "page"), join(MODELS, "tiny")]);
    const found = await served((path) => ({ file: join(folder, "page", path === "/" ? "index.html" : path) }));
    server = found.server;
    const address = `${found.address}/`;
    browser = await launched(CHROMIUM as string);
    page = await browser.newPage();
    page.setDefaultTimeout(120_000); // of a machine that does much else
    page.on("pageerror", (error) => faults.push(String(error)));
    page.on("console", (message) => faults.push(message.text()));
    page.on("request", (request) => {
      if (!request.url().startsWith(address)) faults.push(request.url());
    });
    await page.goto(address);
    await page.waitForSelector("#panel-rules .verdict-line");
  });
  after(async () => {
    await browser?.close();
    server?.close();
    rmSync(folder, { recursive: true });
    assert.deepEqual(faults, []);
  });

  const field = (name: string, label: string) => page.locator(`#panel-${name}`).getByLabel(label, { exact: true });
  const chips = () => page.locator("#panel-rules .chips .next").allTextContents();
  const open = (tab: string) => page.getByRole("tab", { name: tab, exact: true }).click();
  const kind = (name: string, of: string) =>
    page.locator(`#panel-${name}`).getByRole("radio", { name: of, exact: true }).check();
  const example = (name: string, of: string) =>
    page.locator(`#panel-${name}`).getByRole("button", { name: of, exact: true }).click();
  /** Waits until what is typed has been read, or is answered. */
  const until = (selector: string, text: string | RegExp) =>
    page.locator(selector, { hasText: text }).first().waitFor();
  const problems = (name: string) => page.locator(`#panel-${name} .problem`).count();

  it("has the views that the module can serve, and no key", async () => {
    assert.deepEqual(await page.getByRole("tab").allTextContents(), ["Rules", "Write", "Chat", "Template"]);
    assert.equal(await page.getByRole("button", { name: "Key" }).count(), 0);
    assert.equal(await page.locator("#links a").count(), 0);
  });

  it("a regular expression: typed, pressed, stepped back, refused, faulty", async () => {
    await field("rules", "The constraint").fill("(yes|yellow) ?[0-9]!");
    await field("rules", "Text so far").fill("yes ");
    await until("#panel-rules .verdict-line b", "10");
    assert.deepEqual((await chips()).sort(), [..."0123456789"]);
    await page.locator("#panel-rules .next", { hasText: "7" }).click();
    assert.equal(await field("rules", "Text so far").inputValue(), "yes 7");
    await page.locator("#panel-rules .run button").click();
    assert.equal(await field("rules", "Text so far").inputValue(), "yes 7!");
    assert.equal(await page.locator("#panel-rules .badge").textContent(), "May end here");
    await page.locator("#panel-rules button", { hasText: "Step back" }).click();
    assert.equal(await field("rules", "Text so far").inputValue(), "yes 7");
    await field("rules", "Text so far").fill("yes x");
    await until("#panel-rules .problem", "“x” may not come");
    assert.equal(await field("rules", "Text so far").getAttribute("aria-invalid"), "true");
    await field("rules", "The constraint").fill("[a-");
    await until("#panel-rules .problem", "$.regex");
    assert.equal(await field("rules", "The constraint").getAttribute("aria-invalid"), "true");
  });

  it("grammars of three kinds, told apart by their text", async () => {
    for (const [name, spec, may] of [
      ["Arithmetic", "grammar", ")"],
      ["Lists of lists", "gbnf", "]"],
      ["A query", "lark", "␣WHERE"],
    ] as const) {
      await example("rules", name);
      await until("#panel-rules .copies pre", `"${spec}": `);
      assert.equal(await problems("rules"), 0);
      const said = [...(await chips()), ...(await page.locator("#panel-rules .strip").allTextContents())];
      assert.ok(
        said.some((one) => may.startsWith(one) || one.includes(may)),
        `${name}: ${said.join(" ")}`,
      );
    }
  });

  it("a schema forces the names of its fields", async () => {
    await kind("rules", "JSON Schema");
    await until("#panel-rules .run", "must come");
    assert.match((await page.locator("#panel-rules .run code").textContent()) ?? "", /"role":"/);
    const spec = async () => JSON.parse((await page.locator("#panel-rules .copies pre").textContent()) ?? "") as object;
    assert.deepEqual(Object.keys(await spec()), ["json_schema", "whitespace"]);
    await field("rules", "White space may stand between").check();
    await until("#panel-rules .copies pre", '"whitespace": "flexible"');
    await page.locator("#panel-rules .copies").getByRole("button", { name: "JavaScript" }).click();
    await until("#panel-rules .copies pre", "Sampler.create(vocab, constraint({");
  });

  it("a set parts where its texts do, a form at its slots", async () => {
    await kind("rules", "Choices");
    await page.locator("#panel-rules .copies").getByRole("button", { name: "JSON" }).click();
    await field("rules", "The constraint").fill("open_door\nopen_window\nclose");
    await field("rules", "Text so far").fill("open_");
    await until("#panel-rules .copies pre", '"close"');
    await until("#panel-rules .verdict-line b", "2");
    assert.deepEqual((await chips()).map((one) => one[0]).sort(), ["d", "w"]);
    await kind("rules", "Form");
    await until("#panel-rules .copies pre", '"slot": "mood"');
    assert.ok((await chips()).every((one) => ["positive", "negative", "neutral"].some((text) => text.startsWith(one))));
  });

  it("chat templates: analysis, prompt, reply", async () => {
    await open("Template");
    const examples = page.locator("#panel-template .chip");
    assert.equal(await examples.count(), 3);
    for (let nth = 0; nth < 3; nth++) {
      await examples.nth(nth).click();
      assert.match((await page.locator("#panel-template .prompt").textContent()) ?? "", /Is it warm in Oslo\?/);
      assert.match((await page.locator("#panel-template .call").textContent()) ?? "", /^weather.*"city": "Oslo"/s);
    }
    await examples.nth(0).click();
    assert.match((await page.locator("#panel-template .facts").textContent()) ?? "", /Thinks.*<think>.*<tool_call>/s);
    assert.equal(await page.locator("#panel-template .thought").textContent(), "I should look at the weather.");
    await field("template", "A reply of the model").fill("It is warm.");
    await until("#panel-template .parsed .content", "It is warm.");
    await field("template", "Chat template").fill("{% for m in messages %}[{{ m.role }}] {{ m.content }}{% endfor %}");
    await until("#panel-template .prompt", "[user] Is it warm in Oslo?");
    assert.equal(await page.locator("#panel-template .problem").count(), 0);
    await field("template", "Chat template").fill("{% for m in");
    await until("#panel-template .problem", "line 1");
  });

  it("a model writes only what it may, beside what it says alone", async () => {
    await open("Write");
    const held = page.locator("#panel-write .side.held");
    const text = async (side: string) =>
      (await page.locator(`#panel-write .side.${side} .token`).allTextContents()).join("");
    const written = async (name: string) => {
      await example("write", name);
      await until("#panel-write .told", "Written");
      return text("held");
    };
    await until("#panel-write .told", "Written");
    assert.equal(await text("held"), '{"name": "order_pizza", "arguments": {"size": "large", "count": 2}}');
    assert.match(await text("unheld"), /"size": "larger"/);
    assert.equal(await page.locator("#panel-write .unheld .token:not(.free)").count(), 0);
    const [passes, saved] = ((await held.locator(".meter b").textContent()) ?? "").match(/\d+/g) ?? [];
    assert.equal(Number(passes), await held.locator(".token.chosen").count());
    assert.equal(Number(saved), await held.locator(".token.forced").count());
    await held.locator(".token.chosen").first().hover();
    assert.match((await held.locator(".card").textContent()) ?? "", /^lar.*chosen among 3/s);
    const shares = await held.locator(".card li > span:last-child").allTextContents();
    assert.ok(Math.abs(shares.reduce((sum, one) => sum + parseFloat(one.replace(/[<>]/, "")), 0) - 100) < 1);
    assert.match(await written("A date"), /^5 Apr 20\d\d$/);
    assert.match(await written("A review as JSON"), /^\{"verdict":"(good|bad|mixed)","stars":[1-5]\}$/);
    assert.match(await written("An answer"), /^(yes|no), the door is (open|closed)\.$/);
    // Of choices each has its odds, and they are those of a whole text.
    const chosen = await written("A verdict");
    assert.deepEqual((await held.locator(".bars .name").allTextContents()).sort(), ["bad", "good", "mixed"]);
    assert.equal(await held.locator(".bars .best .name").textContent(), chosen);
    // Of several that are pressed before an answer has come, the last one is answered.
    for (const one of await page.locator("#panel-write .chip").all()) await one.click();
    await until("#panel-write .held .strip", /^\{"verdict":.*\}$/);
    await until("#panel-write .told", "Written");
    assert.equal(await problems("write"), 0);
    await field("write", "The constraint").fill("{");
    await page.locator("#panel-write button.go").click();
    await until("#panel-write .problem", "it is not JSON");
    await kind("write", "Regex");
    await field("write", "The constraint").fill("[a-");
    await page.locator("#panel-write button.go").click();
    await until("#panel-write .problem", "$.regex");
    assert.equal(await field("write", "The constraint").getAttribute("aria-invalid"), "true");
    assert.equal(await held.locator(".token").count(), 0);
  });

  it("a call that was stopped ends, and another begins", async () => {
    await kind("write", "Regex");
    await field("write", "The constraint").fill("[a-z ]{300}");
    await field("write", "Most tokens").fill("200");
    await page.locator("#panel-write button.go").click();
    await page.locator("#panel-write .held .token").nth(3).waitFor();
    await page.locator("#panel-write button.stop").click();
    await until("#panel-write .told", "Stopped.");
    await example("write", "A verdict");
    await until("#panel-write .told", "Written");
    assert.equal(await problems("write"), 0);
  });

  it("a chat calls tools, and takes their results", async () => {
    await open("Chat");
    await until("#panel-chat .told", "1 call in");
    assert.equal(await page.locator("#panel-chat .call header code").textContent(), "order_pizza");
    assert.deepEqual(await page.locator("#panel-chat .call td:nth-child(2)").allTextContents(), ['"large"', "2"]);
    assert.notEqual(await page.locator("#panel-chat .turn.assistant .thought").textContent(), "");
    await field("chat", "Result of order_pizza").fill("two pizzas come");
    await page.locator("#panel-chat button", { hasText: "Give the result" }).click();
    await until("#panel-chat .told", "0 calls in");
    assert.match((await page.locator("#panel-chat .turn.assistant").nth(1).textContent()) ?? "", /two pizzas come/);
    await example("chat", "No tool fits");
    await page.locator("#panel-chat button.go").click();
    await until("#panel-chat .told", "0 calls in");
    assert.equal(await page.locator("#panel-chat .content").textContent(), "Sorry, no tool can do that.");
    await field("chat", "Tools").fill(
      '[{"type": "function", "function": {"name": "a", "parameters": {"type": "no"}}}]',
    );
    await field("chat", "Message").fill("hello");
    await page.locator("#panel-chat button.go").click();
    await until("#panel-chat .problem", "tools");
    assert.equal(await field("chat", "Tools").getAttribute("aria-invalid"), "true");
  });
});
