// The AI SDK, by its adapters for servers like OpenAI's, for OpenAI and for System One.
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import * as typesafe from "@ai-sdk/typesafe-ai";
import * as ai from "ai";
import { describe, expect, test } from "bun:test";
import { cities, city, levels, model, person, question, server, state, teams } from "./asked";

const compatible = createOpenAICompatible({
  name: "tokentrie",
  baseURL: `${server.url}/v1`,
  apiKey: server.key,
  supportsStructuredOutputs: true,
});
const openai = createOpenAI({ baseURL: `${server.url}/v1`, apiKey: server.key });
const models = [
  ["compatible", compatible(model)],
  ["openai, chats", openai.chat(model)],
  ["openai, responses", openai.responses(model)],
] as const;

describe.each(models)("%s", (_, of) => {
  const common = { model: of, prompt: question, maxRetries: 0 };

  test("chat", async () => {
    const done = await ai.generateText({ ...common, maxOutputTokens: 8 });
    expect(typeof done.text).toBe("string");
    expect(done.usage.outputTokens).toBeGreaterThan(0);
  });

  test("stream with a tool call", async () => {
    const tools = { get_weather: ai.tool({ description: "The weather.", inputSchema: city }) };
    const stream = ai.streamText({ ...common, tools, toolChoice: "required" });
    const [call] = await stream.toolCalls;
    expect(call!.toolName).toBe("get_weather");
    expect(cities).toContain(city.parse(call!.input).city);
  });

  test("structured output", async () => {
    const done = await ai.generateText({ ...common, output: ai.Output.object({ schema: person }) });
    expect(done.output).toEqual(person.parse(done.output));
  });
});

const system = typesafe.createTypeSafeAi({ baseURL: `${server.url}/v1`, apiKey: server.key });
const deciders = [
  ["openai", openai.decisionModel(model)],
  ["typesafe", system.decisionModel?.(model) ?? system.evaluationModel(model)],
] as const;

test.each(deciders)("decision, %s", async (_, of) => {
  const done = await ai.experimental_decide({
    model: of,
    state: { text: state },
    maxRetries: 0,
    questions: {
      team: { type: "choice", instructions: "Who?", criteria: Object.fromEntries(teams.map((one) => [one, "a team"])) },
      urgent: { type: "boolean", instructions: "Is it urgent?" },
      mood: { type: "score", instructions: "The mood?", criteria: levels },
    },
  });
  expect(Object.keys(done.answers).sort()).toEqual(["mood", "team", "urgent"]);
  expect(teams).toContain(done.answers.team.choice);
});
