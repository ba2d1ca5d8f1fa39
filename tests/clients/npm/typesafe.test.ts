// The SDK of System One, for JavaScript.
import { choice, noul, score, TypeSafeClient } from "@typesafe-ai/sdk";
import { expect, test } from "bun:test";
import { levels, server, state, teams } from "./asked";

const client = new TypeSafeClient({ baseURL: server.url, apiKey: server.key });

test("decision", async () => {
  const done = await client.systemOne({
    state: { text: state },
    questions: {
      team: choice("Who must answer?", Object.fromEntries(teams.map((one) => [one, null]))),
      urgent: noul("Is it urgent?"),
      mood: score("The mood?", levels),
    },
  });
  expect(teams).toContain(done.answers.team.choice);
  expect(done.answers.urgent.noul).toBeWithin(0, 1.000001);
  expect(done.answers.mood.score).toBeWithin(0, 2.000001);
});

test("models", async () => {
  expect(JSON.stringify(await client.models.list())).toContain("tiny");
});
