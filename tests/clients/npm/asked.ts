// What every client is asked to do: a chat, a stream with a tool call, a structured output, a decision.
import { z } from "zod";

const url = process.env["TOKENTRIE_CLIENTS_URL"];
const key = process.env["TOKENTRIE_CLIENTS_KEY"];
if (url === undefined || key === undefined) throw new Error("TOKENTRIE_CLIENTS_URL and TOKENTRIE_CLIENTS_KEY are not set");

/** Where the server is, without /v1, and what requests bring. */
export const server = { url, key };
export const model = "tiny";
export const question = "How warm is it in Rome?";
export const cities = ["Rome", "Oslo", "Lima"] as const;
export const city = z.object({ city: z.enum(cities) });
export const person = z.object({ role: z.enum(["cook", "pilot"]), is_here: z.boolean() });
export const state = "My card was stolen in Rome, and somebody pays with it.";
export const teams = ["fraud", "cards", "travel"];
export const levels = ["calm", "worried", "angry"];
