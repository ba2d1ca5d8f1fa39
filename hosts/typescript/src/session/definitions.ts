/** Definitions of tools, and the choice among them. */
import { SpecError } from "../errors.js";
import { isList, describeValue } from "../tree/payload.js";

/** A tool that may be called: a definition as chat APIs have it, or what stands in its `function`. */
export interface Tool {
  readonly name: string;
  readonly description?: string;
  /** A JSON Schema of its arguments, or an object that converts to one, such as a schema of zod. */
  readonly parameters?: object | { toJSONSchema(): object };
}

/** A tool whose input is text. */
export interface CustomTool {
  readonly name: string;
  readonly description?: string;
  /** What the input must be; any text unless given. */
  readonly format?:
    | { readonly type: "text" }
    | {
        readonly type: "grammar";
        readonly grammar: { readonly syntax: "lark" | "regex"; readonly definition: string };
      };
}

/** A tool by its name, as chat APIs write it. */
export type NamedTool =
  | { readonly type: "function"; readonly function: { readonly name: string } }
  | { readonly type: "custom"; readonly custom: { readonly name: string } };

/** Permission or requirement to call tools: `"auto"`, `"none"`, `"required"`, the name of a tool, or an object. */
export type ToolChoice =
  | string
  | NamedTool
  | {
      readonly type: "allowed_tools";
      readonly allowed_tools: { readonly mode: "auto" | "required"; readonly tools: readonly NamedTool[] };
    };

/** A tool as chats take it: the definition of chat APIs, or of a function what stands in it. */
export type GivenTool =
  | Tool
  | { readonly type: "function"; readonly function: Tool }
  | { readonly type: "custom"; readonly custom: CustomTool };

/**
 * Tools as the library reads them.
 *
 * @internal
 * @throws SpecError for anything but a list of objects, with the place.
 */
export function toolsOf(tools: readonly GivenTool[] | undefined): unknown {
  if (tools === undefined) return undefined;
  if (!isList(tools)) throw new SpecError(`$.tools: a list is needed, not ${describeValue(tools)}`);
  return tools.map((tool, index) => {
    if (typeof tool !== "object" || tool === null) {
      throw new SpecError(`$.tools[${index}]: an object is needed, not ${describeValue(tool)}`);
    }
    if ("custom" in tool) return tool;
    const inner = "function" in tool ? tool.function : tool;
    return { type: "function", function: { ...inner, parameters: schemaOf(inner.parameters) } };
  });
}

function schemaOf(parameters: Tool["parameters"]): object | undefined {
  const makes = parameters as { toJSONSchema?: () => object } | undefined;
  return typeof makes?.toJSONSchema === "function" ? makes.toJSONSchema() : parameters;
}
