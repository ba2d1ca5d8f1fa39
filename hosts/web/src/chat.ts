/** Formats of chats: a template rendered and understood, replies read while they come and held to the tools. */
import { SpecError } from "../../typescript/src/errors.js";
import { makeHandle, Resource, utf8 } from "../../typescript/src/ffi/call.js";
import { type Library, loadLibrary } from "../../typescript/src/ffi/library.js";
import { type Constraint, constraint } from "../../typescript/src/native/constraint.js";
import type { Spec } from "../../typescript/src/native/spec.js";
import type { Vocab } from "../../typescript/src/native/vocab.js";
import type { ChatEvent, ChatMessage } from "../../typescript/src/session/chat.js";
import { type GivenTool, type ToolChoice, toolsOf } from "../../typescript/src/session/definitions.js";
import { made, own } from "./own.js";
import type { TextPart } from "./vocab.js";

export interface ChatFormatOptions {
  /** Values of `bos_token` and `eos_token` in the template. */
  readonly bos?: string;
  readonly eos?: string;
  /**
   * The response template of the model's author, as `tokenizer_config.json` has it for transformers: an object, or JSON
   * of one. Replies are read and constrained by it where the chat template does not show how.
   */
  readonly responseTemplate?: object | string;
  /** Vocabulary of constraints, whose control tokens may begin a call if the template shows none. */
  readonly vocab?: Vocab;
  readonly library?: Library;
}

type Tools = readonly GivenTool[];

export interface RenderOptions {
  readonly tools?: Tools;
  /** Ends the prompt at the beginning of the reply: yes, unless given. */
  readonly addGenerationPrompt?: boolean;
  /** Allows the model to think: yes, unless given. */
  readonly enableThinking?: boolean;
  /** Go on with the last message, which is the assistant's. */
  readonly continueFinalMessage?: "content" | "reasoning_content";
  /** Further variables of the template. */
  readonly variables?: Readonly<Record<string, unknown>>;
  /** The time that the template sees, in milliseconds since 1970 of local time; the system's unless given. */
  readonly now?: number;
}

/** The prompt of a conversation. */
export interface ChatPrompt {
  /** Text of the prompt as a whole. */
  readonly text: string;
  /** The end of it with which the reply's turn begins; null without a generation prompt. */
  readonly turn: string | null;
  /**
   * The text in parts, each with whether the template wrote it. `tokenizeParts` makes tokens of them: what messages say
   * names no control token then, however it is written.
   */
  readonly parts: readonly TextPart[];
}

export interface ParseOptions {
  readonly tools?: Tools;
  /** Calls that may come: `"auto"` unless given. */
  readonly toolChoice?: ToolChoice;
  /** The end of the prompt, from the start of the reply's turn: `turn` of `prompt()`. */
  readonly generationPrompt?: string;
  /** Reads the content as JSON: a code fence around it is left out. */
  readonly jsonContent?: boolean;
  /** `"none"` leaves reasoning in the content. */
  readonly reasoningFormat?: "auto" | "none";
}

export interface ReplyOptions {
  readonly toolChoice?: ToolChoice;
  readonly parallelToolCalls?: boolean;
  readonly generationPrompt?: string;
  readonly thinkingBudget?: number;
}

/** Reply of a model, parsed. */
export interface ParsedReply {
  readonly message: ChatMessage & { readonly role: "assistant"; readonly content: string };
  /** Deviations from the format. */
  readonly warnings: readonly string[];
}

/**
 * Renders messages with any template, as Jinja2 would, without analysing it.
 *
 * @throws SpecError: what the template says or does wrong, with the line.
 */
export function renderTemplate(
  template: string,
  messages: readonly ChatMessage[],
  options: Omit<RenderOptions, "continueFinalMessage" | "enableThinking"> & {
    readonly bos?: string;
    readonly eos?: string;
    readonly library?: Library;
  } = {},
): string {
  const { library = loadLibrary(), addGenerationPrompt, ...others } = options;
  const json = requestOf({ template, messages, add_generation_prompt: addGenerationPrompt, ...others });
  return made(library, own(library, "tokentrie_template_render")(json, json.length)) as string;
}

function requestOf(fields: object): Uint8Array {
  let text: string;
  try {
    text = JSON.stringify(fields);
  } catch (error) {
    throw new SpecError(`$: it is not JSON: ${(error as Error).message}`, { cause: error });
  }
  return utf8(text);
}

/**
 * Chat format of a model, derived from its template.
 *
 * @example
 * const format = new ChatFormat(tokenizer.chat_template, { vocab });
 * const { message } = format.parse(text, { tools });
 */
export class ChatFormat extends Resource {
  readonly template: string | null;
  readonly #options: ChatFormatOptions;

  /**
   * Null beside a response template: the format then parses and constrains replies, and renders nothing.
   *
   * @throws SpecError for a faulty template, with the line; for one that takes too much.
   */
  constructor(template: string | null, options: ChatFormatOptions = {}) {
    const library = options.library ?? options.vocab?.library ?? loadLibrary();
    const { bos, eos, responseTemplate } = options;
    const json = requestOf({ template, bos, eos, response_template: responseTemplate });
    const begin = own(library, "tokentrie_format_new");
    const vocab = options.vocab?.handleIn(library) ?? 0;
    const handle = makeHandle(library, (out) => begin(json, json.length, vocab, out));
    super(library, handle, own(library, "tokentrie_format_free"));
    this.template = template;
    this.#options = options;
  }

  /** Returns the analysis: markers, the syntax of calls, the abilities of the template. */
  analysis(): Record<string, unknown> {
    return made(this.library, own(this.library, "tokentrie_format_analysis")(this.handle)) as Record<string, unknown>;
  }

  /** The text of a conversation, for display. For a model use `prompt`, which has it in parts. */
  render(messages: readonly ChatMessage[], options: RenderOptions = {}): string {
    return this.prompt(messages, options).text;
  }

  /**
   * The text of a conversation, in parts, and its end that begins the reply's turn. `generate` and `choose` take it
   * as it is.
   *
   * @throws SpecError: what the template says of the messages, with the line.
   */
  prompt(messages: readonly ChatMessage[], options: RenderOptions = {}): ChatPrompt {
    const json = requestOf({
      messages,
      tools: toolsOf(options.tools),
      add_generation_prompt: options.addGenerationPrompt,
      enable_thinking: options.enableThinking,
      continue_final_message: options.continueFinalMessage,
      variables: options.variables,
      now: options.now,
    });
    const render = own(this.library, "tokentrie_format_render");
    return made(this.library, render(this.handle, json, json.length)) as ChatPrompt;
  }

  /**
   * A reply as a message: its text, or its token ids as for `push`. With `partial` it was cut off: what may have become
   * a marker is left out.
   */
  parse(
    reply: string | Int32Array | readonly number[],
    options: ParseOptions & { partial?: boolean } = {},
  ): ParsedReply {
    const parser = this.parser(options);
    try {
      parser.push(reply);
      return parser.finish(options.partial);
    } finally {
      parser.free();
    }
  }

  /** Reads a reply while it comes. */
  parser(options: ParseOptions = {}): ChatParser {
    const json = requestOf({
      tools: toolsOf(options.tools),
      tool_choice: options.toolChoice,
      generation_prompt: options.generationPrompt,
      json_content: options.jsonContent,
      reasoning_format: options.reasoningFormat,
    });
    const begin = own(this.library, "tokentrie_parser_new");
    return new ChatParser(
      this.library,
      makeHandle(this.library, (out) => begin(this.handle, json, json.length, out)),
    );
  }

  /**
   * Returns the constraint on a reply: free text, in which a call that begins becomes a valid one.
   *
   * @throws SpecError for tools that cannot be called in this format.
   */
  constraint(tools: Tools = [], options: ReplyOptions = {}): Constraint {
    const { vocab, bos, eos, responseTemplate } = this.#options;
    if (vocab === undefined) throw new SpecError("a constraint is over a vocabulary: give the format one");
    const reply = {
      tools: toolsOf(tools),
      ...(this.template === null ? {} : { template: this.template }),
      ...(responseTemplate === undefined
        ? {}
        : {
            response_template:
              typeof responseTemplate === "string" ? (JSON.parse(responseTemplate) as unknown) : responseTemplate,
          }),
      ...(bos === undefined ? {} : { bos }),
      ...(eos === undefined ? {} : { eos }),
      ...(options.toolChoice === undefined ? {} : { tool_choice: options.toolChoice }),
      ...(options.parallelToolCalls === undefined ? {} : { parallel_tool_calls: options.parallelToolCalls }),
      ...(options.generationPrompt === undefined ? {} : { generation_prompt: options.generationPrompt }),
      ...(options.thinkingBudget === undefined ? {} : { thinking_budget: options.thinkingBudget }),
    };
    return constraint({ reply } as unknown as Spec, vocab);
  }
}

/** A reply that is read while it comes. */
export class ChatParser extends Resource {
  /** @internal */
  constructor(library: Library, handle: number) {
    super(library, handle, own(library, "tokentrie_parser_free"));
  }

  /**
   * Reads more of the reply, as text, as bytes of tokens, or as token ids, where the format has a vocabulary: what
   * became certain with it. One reply is all text or all token ids. Where a marker of reasoning is a control token,
   * text that spells it is text then, as it is for `constraint`.
   *
   * @throws SpecError: token ids after text or text after token ids; an id that the vocabulary does not have, or there
   * is none.
   */
  push(part: string | Uint8Array | Int32Array | readonly number[]): ChatEvent[] {
    if (part instanceof Int32Array || Array.isArray(part)) {
      const tokens = Int32Array.from(part as readonly number[]);
      const push = own(this.library, "tokentrie_parser_push_tokens");
      return made(this.library, push(this.handle, tokens, tokens.length)) as ChatEvent[];
    }
    const bytes = part instanceof Uint8Array ? part : utf8(part as string);
    const push = own(this.library, "tokentrie_parser_push");
    return made(this.library, push(this.handle, bytes, bytes.length)) as ChatEvent[];
  }

  /** The reply is over: the whole message, and the last events. */
  finish(partial = false): ParsedReply & { readonly events: readonly ChatEvent[] } {
    const finish = own(this.library, "tokentrie_parser_finish");
    return made(this.library, finish(this.handle, Number(partial))) as ParsedReply & { events: ChatEvent[] };
  }
}
