// The client of Anthropic, for JavaScript.
import Anthropic from "@anthropic-ai/sdk";
import { betaZodTool } from "@anthropic-ai/sdk/helpers/beta/zod";
import { zodOutputFormat } from "@anthropic-ai/sdk/helpers/zod";
import { expect, test } from "bun:test";
import { z } from "zod";
import { cities, city, model, person, question, server } from "./asked";

const client = new Anthropic({ baseURL: server.url, apiKey: server.key, maxRetries: 0 });
const messages = [{ role: "user" as const, content: question }];
const input_schema = z.toJSONSchema(city) as Anthropic.Tool.InputSchema;
const tools = [{ name: "get_weather", description: "The weather of a city.", input_schema }];

test("message", async () => {
  const asked = { model, messages, system: "You are a cook." };
  const done = await client.messages.create({ ...asked, max_tokens: 12 });
  expect(["end_turn", "max_tokens"]).toContain(done.stop_reason!);
  expect(done.content.every((block) => block.type === "text")).toBe(true);
  const count = await client.messages.countTokens(asked);
  expect(done.usage.input_tokens + (done.usage.cache_read_input_tokens ?? 0)).toBe(count.input_tokens);
});

test("stream", async () => {
  const asked = { model, messages, max_tokens: 12, temperature: 0 };
  let told = "";
  const stream = client.messages.stream(asked).on("text", (text) => { told += text; });
  expect(await stream.finalText()).toBe(told);
  const whole = await client.messages.create(asked);
  expect(whole.content.map((block) => (block.type === "text" ? block.text : "")).join("")).toBe(told);
});

test("stream with a tool call, and its result", async () => {
  const asked = { model, tools, max_tokens: 200 };
  const inputs: unknown[] = [];
  const stream = client.messages.stream({ ...asked, messages, tool_choice: { type: "any" } });
  const final = await stream.on("inputJson", (_, input) => { inputs.push(input); }).finalMessage();
  expect(final.stop_reason).toBe("tool_use");
  const calls = final.content.filter((block) => block.type === "tool_use");
  expect(new Set(calls.map((call) => call.id)).size).toBe(calls.length);
  for (const call of calls) expect(cities).toContain(city.parse(call.input).city);
  expect(inputs.at(-1)).toEqual(calls.at(-1)!.input);
  const results = calls.map((call) => (
    { type: "tool_result" as const, tool_use_id: call.id, content: [{ type: "text" as const, text: "21 degrees" }] }
  ));
  const turns = [...messages, { role: "assistant" as const, content: final.content }];
  const done = await client.messages.create({ ...asked, max_tokens: 8, tool_choice: { type: "none" },
    messages: [...turns, { role: "user", content: results }] });
  expect(["end_turn", "max_tokens"]).toContain(done.stop_reason!);
});

test("tool runner", async () => {
  const asked: string[] = [];
  const run = ({ city }: z.infer<typeof input>) => { asked.push(city); return "21 degrees"; };
  const input = city;
  const tool = betaZodTool({ name: "get_weather", description: "The weather of a city.", inputSchema: input, run });
  const runner = client.beta.messages.toolRunner({ model, messages, tools: [tool], max_tokens: 200, max_iterations: 2,
    tool_choice: { type: "tool", name: "get_weather" } });
  for await (const message of runner) expect(message.content.at(-1)!.type).toBe("tool_use");
  expect(asked.length).toBeGreaterThan(0);
  for (const one of asked) expect(cities).toContain(one as (typeof cities)[number]);
});

test("structured output", async () => {
  const asked = { model, messages, max_tokens: 200, output_config: { format: zodOutputFormat(person) } };
  const done = await client.messages.parse(asked);
  expect(done.parsed_output).toEqual(person.parse(done.parsed_output));
  const streamed = await client.messages.stream(asked).finalMessage();
  expect(streamed.parsed_output).toEqual(person.parse(streamed.parsed_output));
});

test("models", async () => {
  const names: string[] = [];
  for await (const one of client.models.list()) names.push(one.id);
  expect(names).toContain(model);
  expect((await client.models.retrieve(model)).type).toBe("model");
});

test("refusals have their classes", async () => {
  const wrong = { model, messages, max_tokens: 5, thinking: { type: "often" } } as never;
  const refused = client.messages.create(wrong).asResponse();
  await expect(refused).rejects.toBeInstanceOf(Anthropic.BadRequestError);
  const stranger = new Anthropic({ baseURL: server.url, apiKey: "wrong", maxRetries: 0 });
  const denied = stranger.messages.create({ model, messages, max_tokens: 5 }).asResponse();
  await expect(denied).rejects.toBeInstanceOf(Anthropic.AuthenticationError);
});
