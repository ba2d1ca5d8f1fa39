// The client of OpenAI, for JavaScript.
import { expect, test } from "bun:test";
import OpenAI from "openai";
import { zodResponseFormat } from "openai/helpers/zod";
import { z } from "zod";
import { cities, city, levels, model, person, question, server, state, teams } from "./asked";

const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: server.key, maxRetries: 0 });
const messages = [{ role: "user" as const, content: question }];
const parameters = z.toJSONSchema(city) as Record<string, unknown>;
const tool = { type: "function" as const, function: { name: "get_weather", parameters } };

test("chat", async () => {
  const done = await client.chat.completions.create({ model, messages, max_tokens: 8 });
  expect(["stop", "length"]).toContain(done.choices[0]!.finish_reason);
  expect(typeof done.choices[0]!.message.content).toBe("string");
});

test("stream with a tool call", async () => {
  const stream = client.chat.completions.stream({ model, messages, tools: [tool], tool_choice: "required" });
  const call = (await stream.finalChatCompletion()).choices[0]!.message.tool_calls![0]!;
  expect(call.function.name).toBe("get_weather");
  expect(cities).toContain(city.parse(JSON.parse(call.function.arguments)).city);
});

test("structured output", async () => {
  const response_format = zodResponseFormat(person, "person");
  const done = await client.chat.completions.parse({ model, messages, response_format });
  expect(done.choices[0]!.message.parsed).toEqual(person.parse(done.choices[0]!.message.parsed));
});

test("responses", async () => {
  const stream = client.responses.stream({ model, input: question, max_output_tokens: 200,
    tools: [{ type: "function", name: "get_weather", strict: true, parameters }], tool_choice: "required" });
  const call = (await stream.finalResponse()).output.find((item) => item.type === "function_call");
  expect(cities).toContain(city.parse(JSON.parse(call!.arguments)).city);
});

test("decision", async () => {
  const done = await client.decisions.create({ model, input: state, questions: [
    { type: "choice", name: "team", instructions: "Who?", choices: teams.map((value) => ({ value })) },
    { type: "predicate", name: "urgent", instructions: "Is it urgent?" },
    { type: "score", name: "mood", instructions: "The mood?", levels: levels.map((label) => ({ label })) },
  ] });
  expect(done.answers.map((one) => one.name)).toEqual(["team", "urgent", "mood"]);
});

test("wrong requests are refused by their class", async () => {
  const wrong = { model, messages, tools: [{ type: "retrieval" }] } as never;
  await expect(client.chat.completions.create(wrong).asResponse()).rejects.toBeInstanceOf(OpenAI.BadRequestError);
});
