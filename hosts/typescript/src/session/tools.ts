/** Functions as tools: a conversation in which the calls of the model are run. */
import { ArgumentError } from "../errors.js";
import type { ChatMessage, ChatOptions, ChatReply, ToolCall } from "./chat.js";
import type { Tool } from "./definitions.js";

/** A tool with the function that does it. */
export interface RunnableTool<Arguments = never> extends Tool {
  /**
   * Gets the arguments: an object that is valid under `parameters`, passed through `parameters.parse` if that exists,
   * as in a schema of zod. Its result goes to the model: a text unchanged, anything else as JSON.
   */
  readonly run: (given: Arguments, call: ToolCall) => unknown;
}

/**
 * A tool whose function takes arguments of the type that its schema gives, for example a schema of zod.
 *
 * @example
 * const ring = tool({ name: "ring", parameters: z.object({ times: z.int() }), run: ({ times }) => bell(times) });
 */
export function tool<Schema extends { parse(given: unknown): unknown; toJSONSchema(): object }>(definition: {
  readonly name: string;
  readonly description?: string;
  readonly parameters: Schema;
  readonly run: (given: ReturnType<Schema["parse"]>, call: ToolCall) => unknown;
}): RunnableTool {
  return definition;
}

export interface RunToolsOptions extends Omit<ChatOptions, "tools"> {
  readonly tools: readonly RunnableTool[];
  /** The most replies; the calls of the last one are not run. 8 unless given. */
  readonly maxRounds?: number;
  /** `"tell"` (unless given) gives the model what a function throws, as text; `"throw"` throws it. */
  readonly onError?: "tell" | "throw";
}

/** A conversation that was run. */
export interface ToolRun {
  /** Last reply of the model. */
  readonly reply: ChatReply;
  /** The whole conversation, including the given messages. */
  readonly messages: readonly ChatMessage[];
  /** Number of replies in all. */
  readonly rounds: number;
}

type Chat = (messages: readonly ChatMessage[], options: ChatOptions) => Promise<ChatReply>;

/** @internal */
export async function runTools(
  chat: Chat,
  messages: readonly ChatMessage[],
  { tools, maxRounds = 8, onError = "tell", toolChoice, ...options }: RunToolsOptions,
): Promise<ToolRun> {
  if (!Number.isSafeInteger(maxRounds) || maxRounds < 1) {
    throw new ArgumentError(`maxRounds is ${String(maxRounds)}: it must be at least 1`);
  }
  if (onError !== "tell" && onError !== "throw") {
    throw new ArgumentError(`onError is ${String(onError)}: it must be "tell" or "throw"`);
  }
  const missing = tools.find((tool) => typeof tool.run !== "function");
  if (missing !== undefined) {
    throw new ArgumentError(`the tool ${JSON.stringify(missing.name)} has no function run: give one, or use chat`);
  }
  const definitions = tools.map(({ name, description, parameters }) => ({
    name,
    ...(description === undefined ? {} : { description }),
    ...(parameters === undefined ? {} : { parameters }),
  }));
  const said = [...messages];
  // A required call is required only for the first reply.
  let choice = toolChoice;
  for (let rounds = 1; ; rounds++) {
    const reply = await chat(said, {
      ...options,
      tools: definitions,
      ...(choice === undefined ? {} : { toolChoice: choice }),
    });
    said.push(reply.message);
    if (reply.finish !== "tool_calls" || rounds === maxRounds) return { reply, messages: said, rounds };
    for (const call of reply.message.tool_calls ?? []) said.push(await answerCall(tools, call, onError));
    if (choice !== "none") choice = "auto";
  }
}

/** The message with the result of a call. */
async function answerCall(
  tools: readonly RunnableTool[],
  call: ToolCall,
  onError: "tell" | "throw",
): Promise<ChatMessage> {
  const [name, text] =
    call.type === "function" ? [call.function.name, call.function.arguments] : [call.custom.name, call.custom.input];
  const tool = tools.find((tool) => tool.name === name);
  let content: string;
  try {
    if (tool === undefined) throw new ArgumentError(`unknown tool ${JSON.stringify(name)}`);
    const schema = tool.parameters as { parse?: (given: unknown) => unknown } | undefined;
    const given: unknown = JSON.parse(text);
    const result = await tool.run((schema?.parse === undefined ? given : schema.parse(given)) as never, call);
    content = typeof result === "string" ? result : (JSON.stringify(result) ?? "null");
  } catch (error) {
    if (onError === "throw") throw error;
    content = `error: ${error instanceof Error ? `${error.name}: ${error.message}` : String(error)}`;
  }
  return { role: "tool", tool_call_id: call.id, name, content };
}
