/**
 * Chooses the tool that a request needs: the probability of each, and the one that is written.
 *
 *     node examples/choose-tool.js model.gguf "Please call off my trip at 10:30."
 */
import { Session } from "../src/index.js";

const TOOLS: Record<string, string> = {
  create_event: "Create an event.",
  cancel_meeting: "Cancel a meeting.",
  cancel_flight: "Cancel a flight.",
  book_hotel: "Book a hotel.",
  send_message: "Send a message.",
  pay_invoice: "Pay an invoice.",
};

const [file = "model.gguf", request = "Please call off my trip at 10:30."] = process.argv.slice(2);
const names = Object.keys(TOOLS);

const dim = (text: string) => `\x1b[2m${text}\x1b[0m`;
const bold = (text: string) => `\x1b[1m${text}\x1b[0m`;
const green = (text: string) => `\x1b[32m${text}\x1b[0m`;

/** The format that the model was trained on; the tiny model of tokentrie writes its lists of tools so. */
function prompt(): string {
  const lines = names.map((name) => `${TOOLS[name]}<|tool|>${name}\n`).join("");
  const system = `<|im_start|>system\nAnswer with one name.\nTools:\n${lines}<|im_end|>\n`;
  return `${system}<|im_start|>user\n${request}<|im_end|>\n<|im_start|>assistant\n`;
}

await using session = await Session.open(file);
console.log(`${dim("request ")} ${bold(request)}\n`);

const choice = await session.choose(prompt(), names);
for (const [name, probability] of choice.items()) {
  const bar = "█".repeat(Math.round(probability * 32)) || "▏";
  const line = `${name.padEnd(15)} ${(probability * 100).toFixed(1).padStart(5)} %  ${bar}`;
  console.log(name === choice.name ? green(line) : line);
}
const passesOf = (count: number) => `${count} forward pass${count === 1 ? "" : "es"}`;
console.log(dim(`exact, in ${passesOf(choice.stats.forwardPasses)}\n`));

using tools = await session.texts(names);
const generation = session.generate(prompt(), { tokenTreePayload: tools });
process.stdout.write(`${dim("written ")} `);
for await (const { text } of generation) process.stdout.write(bold(green(text)));
const { leaf, stats } = await generation.result;
const counts = `${stats.tokens} tokens, ${stats.forcedTokens} of them forced`;
console.log(`\n${dim(`leaf     ${leaf?.name}: ${counts}, ${passesOf(stats.forwardPasses)}`)}`);
