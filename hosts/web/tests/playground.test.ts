/** The playground in Chromium, as the folder that a plain server gives out. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import type { Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { Browser, Page } from "playwright-core";
import { CHROMIUM, launched, MODELS, NO_BUILD, NO_CHROMIUM, NO_MODEL, NO_SCHEMA, served, WEB } from "./support.js";

const SKIP = NO_CHROMIUM || NO_BUILD || NO_MODEL || NO_SCHEMA;

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
    page.on("pageerror", (error) => faults.push(String(error)));
    page.on("console", (message) => faults.push(message.text()));
    page.on("request", (request) => {
      if (!request.url().startsWith(address)) faults.push(request.url());
    });
    await page.goto(address);
    await page.waitForSelector("#panel-regex .verdict-line");
  });
  after(async () => {
    await browser?.close();
    server?.close();
    rmSync(folder, { recursive: true });
    assert.deepEqual(faults, []);
  });

  const field = (name: string, label: string) => page.locator(`#panel-${name}`).getByLabel(label, { exact: true });
  const chips = (name: string) => page.locator(`#panel-${name} .chips .next`).allTextContents();
  const open = (tab: string) => page.getByRole("tab", { name: tab, exact: true }).click();
  /** Waits until what is typed has been read. */
  const until = (selector: string, text: string) => page.locator(selector, { hasText: text }).first().waitFor();

  it("a regular expression: typed, pressed, stepped back, refused, faulty", async () => {
    await field("regex", "Regular expression").fill("(yes|yellow) ?[0-9]!");
    await field("regex", "Text so far").fill("yes ");
    await until("#panel-regex .verdict-line b", "10");
    assert.deepEqual((await chips("regex")).sort(), [..."0123456789"]);
    await page.locator("#panel-regex .next", { hasText: "7" }).click();
    assert.equal(await field("regex", "Text so far").inputValue(), "yes 7");
    await page.locator("#panel-regex .run button").click();
    assert.equal(await field("regex", "Text so far").inputValue(), "yes 7!");
    assert.equal(await page.locator("#panel-regex .badge").textContent(), "May end here");
    await page.locator("#panel-regex button", { hasText: "Step back" }).click();
    assert.equal(await field("regex", "Text so far").inputValue(), "yes 7");
    await field("regex", "Text so far").fill("yes x");
    await until("#panel-regex .problem", "“x” may not come");
    await field("regex", "Regular expression").fill("[a-");
    await until("#panel-regex .problem", "$.regex");
  });

  it("grammars of three kinds", async () => {
    await open("Grammar");
    await until("#panel-grammar .verdict-line", "may come");
    assert.ok((await chips("grammar")).includes(")"));
    for (const [example, may] of [
      ["Lists of lists", "]"],
      ["A query", "␣WHERE"],
    ] as const) {
      await page.locator("#panel-grammar .chip", { hasText: example }).click();
      assert.equal(await page.locator("#panel-grammar .problem").count(), 0);
      const said = [...(await chips("grammar")), ...(await page.locator("#panel-grammar .strip").allTextContents())];
      assert.ok(
        said.some((one) => may.startsWith(one) || one.includes(may)),
        `${example}: ${said.join(" ")}`,
      );
    }
  });

  it("a schema forces the names of its fields", async () => {
    await open("JSON Schema");
    await until("#panel-schema .run", "must come");
    assert.match((await page.locator("#panel-schema .run code").textContent()) ?? "", /"role":"/);
    const spec: unknown = JSON.parse((await page.locator("#panel-schema .copies pre").textContent()) ?? "");
    assert.deepEqual(Object.keys(spec as object), ["json_schema", "whitespace"]);
  });

  it("a set parts where its texts do", async () => {
    await open("Set");
    await until("#panel-set .verdict-line", "may come");
    await field("set", "Texts").fill("open_door\nopen_window\nclose");
    await field("set", "Text so far").fill("open_");
    await until("#panel-set .copies pre", '"close"');
    await until("#panel-set .verdict-line b", "2");
    assert.deepEqual((await chips("set")).map((one) => one[0]).sort(), ["d", "w"]);
  });

  it("chat templates: analysis, prompt, reply", async () => {
    await open("Chat template");
    const examples = page.locator("#panel-chat .chip");
    assert.equal(await examples.count(), 3);
    for (let nth = 0; nth < 3; nth++) {
      await examples.nth(nth).click();
      assert.match((await page.locator("#panel-chat .prompt").textContent()) ?? "", /Is it warm in Oslo\?/);
      assert.match((await page.locator("#panel-chat .call").textContent()) ?? "", /^weather.*"city": "Oslo"/s);
    }
    await examples.nth(0).click();
    assert.match((await page.locator("#panel-chat .facts").textContent()) ?? "", /Thinks.*<think>.*<tool_call>/s);
    assert.equal(await page.locator("#panel-chat .thought").textContent(), "I should look at the weather.");
    await field("chat", "A reply of the model").fill("It is warm.");
    await until("#panel-chat .parsed .content", "It is warm.");
    await field("chat", "Chat template").fill("{% for m in messages %}[{{ m.role }}] {{ m.content }}{% endfor %}");
    await until("#panel-chat .prompt", "[user] Is it warm in Oslo?");
    assert.equal(await page.locator("#panel-chat .problem").count(), 0);
    await field("chat", "Chat template").fill("{% for m in");
    await until("#panel-chat .problem", "line 1");
  });

  it("a model says only what it may", async () => {
    await open("With a model");
    const found = page.locator("#panel-ask .found");
    const answers = async (example: string, selector: string, text: string) => {
      await page.locator("#panel-ask .chip", { hasText: example }).click();
      await until(`#panel-ask .found ${selector}`, text);
    };
    await until("#panel-ask .found .best .name", "positive");
    await answers("Yes or no", ".best .name", "no");
    assert.equal(await found.locator(".bars li").count(), 2);
    await answers("One of five tools", ".best .name", "close_window");
    await answers("A form", ".meter", "saved");
    const filled = JSON.parse((await found.locator(".strip").textContent()) ?? "") as { mood: string; stars: number };
    assert.ok(filled.mood === "negative" && filled.stars >= 1 && filled.stars <= 5, JSON.stringify(filled));
    await answers("A call", ".strip", "</tool_call>");
    assert.match((await found.locator(".strip").textContent()) ?? "", /"print_document", "arguments": \{"file": /);
    await found.locator(".strip .chosen").nth(1).hover();
    assert.match((await found.locator(".card").textContent()) ?? "", /print.*chosen among \d+/s);
    // Of several that are pressed before an answer has come, the last one is answered.
    for (const one of await page.locator("#panel-ask .chip").all()) await one.click();
    await answers("A review", ".best .name", "positive");
    assert.equal(await page.locator("#panel-ask .problem").count(), 0);
    await answers("A form", ".meter", "saved");
    await field("ask", "It may be").fill("{");
    await page.locator("#panel-ask button", { hasText: "Ask" }).click();
    await until("#panel-ask .problem", "JSON");
    assert.equal(await found.locator(".strip").count(), 0);
  });
});
