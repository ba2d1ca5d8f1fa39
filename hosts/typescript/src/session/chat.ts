/** Chats: requests, and the replies of a model in its own format. */
import type { FINISHES } from "../ffi/abi.js";
import type { DrawOptions } from "../native/sampler.js";
import { jsonText, type Spec } from "../native/spec.js";
import { type GivenTool, type ToolChoice, toolsOf } from "./definitions.js";
import { forLibrary, ofLibrary } from "./names.js";
import type { Receipt, TokenLogprob } from "./thread/protocol.js";

/** A call of a tool, as chat APIs write it. */
export type ToolCall = FunctionCall | CustomCall;

/** A call of a function. */
export interface FunctionCall extends CallOf {
  readonly type: "function";
  /** `arguments` is JSON text, valid under the tool's schema; cut off where the reply was. */
  readonly function: { readonly name: string; readonly arguments: string };
}

/** A call of a custom tool. */
export interface CustomCall extends CallOf {
  readonly type: "custom";
  /** `input` is text that the tool's format allows; cut off where the reply was. */
  readonly custom: { readonly name: string; readonly input: string };
}

interface CallOf {
  /** One of its own in the conversation; the same each time with a seed, or without sampling. */
  readonly id: string;
  /** Probability of the name, where `probabilities` were requested; null if it began inside a token of free text. */
  readonly probability?: number | null;
  /** Probabilities of arguments with an enum or a boolean. */
  readonly probabilities?: Readonly<Record<string, number>>;
}

/** A message of a conversation. */
export interface ChatMessage {
  readonly role: string;
  readonly content?: string | readonly { readonly type: string; readonly text?: string }[] | null;
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly ToolCall[];
  readonly [more: string]: unknown;
}

/** A part of a reply, as soon as it is certain. All events together are the message; none is ever taken back. */
export type ChatEvent =
  | { readonly kind: "reasoning" | "content" | "warning"; readonly text: string }
  | {
      readonly kind: "call_begins";
      readonly index: number;
      readonly id: string;
      readonly name: string;
      readonly tool: "function" | "custom";
    }
  | { readonly kind: "arguments"; readonly index: number; readonly text: string }
  | { readonly kind: "call_ends"; readonly index: number; readonly id: string }
  | { readonly kind: "message_ends" };

export interface ChatOptions {
  readonly tools?: readonly GivenTool[];
  /** Calls that may come: `"auto"` unless given. */
  readonly toolChoice?: ToolChoice;
  /**
   * Place where the prompt describes tools: `"auto"` unless given, which is `"template"`, or `"system"` with a warning
   * for a template that shows none or writes no calls. `"system"`: the system message describes them. `"messages"`: the
   * messages describe them already.
   */
  readonly toolsIn?: "auto" | "template" | "system" | "messages";
  /** Allows several calls: yes, unless given. */
  readonly parallelToolCalls?: boolean;
  /** White space in calls, and in content that `responseFormat` constrains: `"compact"` unless given. */
  readonly whitespace?: "compact" | "flexible";
  /** Allows the model to think: yes, unless given. If false, a thought that still begins is closed at once. */
  readonly enableThinking?: boolean;
  /** The most tokens of reasoning; then its end marker is forced. */
  readonly thinkingBudget?: number;
  /** Limit on the tokens of the reply; the rest of the context unless given. */
  readonly maxTokens?: number;
  /** Stop texts: each ends the content, and is not part of it. */
  readonly stop?: string | readonly string[];
  /** Constraint on the content, while reasoning stays free: a spec. No tool may be called then. */
  readonly constraint?: Spec;
  /** The same as chat APIs say it: `{ type: "json_schema", json_schema: { schema } }`, `{ type: "json_object" }`. */
  readonly responseFormat?: object;
  /** Shows the model the JSON Schema of its content in the system message: yes, unless given. */
  readonly showSchema?: boolean;
  /**
   * Completes constrained content and a required call with a few legal tokens that the model did not choose, where no
   * more tokens fit; a thought before them ends just in time: yes, unless given. `completed` says so.
   */
  readonly complete?: boolean;
  /** Reports the probabilities of each call's name, and of its enum and boolean arguments. */
  readonly probabilities?: boolean;
  /** Number of alternatives to report beside the log probability of each token of the content. */
  readonly logprobs?: number;
  /** Reports the allowed tokens at each choice: docs/receipts.md. */
  readonly receipt?: boolean;
  /** Added to the logits of tokens, by their ids, before anything else. */
  readonly logitBias?: Readonly<Record<number, number>>;
  /** With any of these options tokens are sampled; without them the most probable is taken. */
  readonly sampling?: DrawOptions;
  /** Go on with the last message, which is the assistant's. */
  readonly continueFinalMessage?: "auto" | "reasoning" | "content";
  /** Further variables of the template. */
  readonly templateVariables?: Readonly<Record<string, unknown>>;
  /** With slots, calls of higher priority go first; 0 unless given. */
  readonly priority?: number;
  readonly signal?: AbortSignal;
  /** Called with each event as soon as it is certain; an exception that it throws ends the chat. */
  readonly onEvent?: (event: ChatEvent) => void;
}

/** Reply of the model. */
export interface ChatReply {
  /** Append it to the messages to go on. */
  readonly message: ChatMessage & { readonly role: "assistant"; readonly content: string };
  /** Reason for its end, in the words of a generation. */
  readonly finish: Exclude<(typeof FINISHES)[number], "none" | "error">;
  /** Log probabilities of each token of the content, if requested. */
  readonly logprobs: readonly TokenLogprob[];
  /** Irregularities of tools, template or reply. */
  readonly warnings: readonly string[];
  /** Alternatives to each token, if requested. */
  readonly receipt: Receipt | null;
  readonly stats: ChatStats;
}

/** Cost of a reply; seconds, and tokens a second without the prompt. */
export interface ChatStats {
  readonly promptTokens: number;
  readonly promptTokensReused: number;
  readonly tokens: number;
  readonly reasoningTokens: number;
  readonly forcedTokens: number;
  readonly forwardPasses: number;
  readonly forwardPassesSaved: number;
  readonly draftedTokens: number;
  readonly acceptedTokens: number;
  readonly seconds: number;
  readonly promptSeconds: number;
  readonly tokensPerSecond: number;
}

/**
 * A request as the library reads it.
 *
 * @throws SpecError for anything that is not JSON, with the place.
 */
export function chatText(messages: readonly ChatMessage[], options: ChatOptions): string {
  const { signal: _signal, onEvent: _onEvent, tools, sampling, ...others } = options;
  return jsonText({
    messages,
    tools: toolsOf(tools),
    sampling: sampling && forLibrary(sampling),
    ...forLibrary(others),
  });
}

/** A reply as the library writes it. */
export function replyOf(json: string): ChatReply {
  const reply = JSON.parse(json) as ChatReply;
  return { ...reply, stats: ofLibrary(reply.stats) as unknown as ChatStats };
}
