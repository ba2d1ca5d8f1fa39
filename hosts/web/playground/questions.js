/** Prompts of the tiny model to begin with. */

const TOOL = "Answer with one name.\nTools:";
const DOORS = [
  ["Use this tool to open a door.", "open_door"],
  ["Use this tool to open a window.", "open_window"],
  ["Use this tool to close a door.", "close_door"],
  ["Use this tool to close a window.", "close_window"],
  ["Use this tool to print a document.", "print_document"],
];

const mood = { slot: "mood", value: { choice: ["positive", "negative", "neutral"] } };
const stars = { slot: "stars", value: { integer: { min: 1, max: 5 } } };

const tool = (name, description, field) => ({
  name,
  description,
  parameters: {
    type: "object",
    properties: { [field]: { type: "string", maxLength: 24 } },
    required: [field],
    additionalProperties: false,
  },
});

const json = (value) => JSON.stringify(value, null, 2);

export const QUESTIONS = {
  "A review": {
    system: "Label the review: positive, negative or neutral.",
    user: "The dress is so beautiful, and I loved it.",
    kind: "texts",
    may: "positive\nnegative\nneutral",
  },
  "Yes or no": {
    system: "Answer yes or no.",
    user: "I know that the dog is full. So, is the dog empty?",
    kind: "texts",
    may: "yes\nno",
  },
  "One of five tools": {
    system: [TOOL, ...DOORS.map(([about, name]) => `${about}<|tool|>${name}`), ""].join("\n"),
    user: "Hello, can you close the window",
    kind: "texts",
    may: DOORS.map(([, name]) => name).join("\n"),
  },
  "A form": {
    system: "Label the review: positive, negative or neutral.",
    user: "The service is so awful, and it was a waste of money.",
    kind: "spec",
    may: json({ form: ['{"mood": "', mood, '", "stars": ', stars, "}"] }),
  },
  "A call": {
    system: "Answer with a tool call.",
    user: "Hello, can you print the document into report.pdf",
    kind: "tools",
    may: json([
      tool("print_document", "Helps you print a document.", "file"),
      tool("book_room", "Helps you book a room.", "title"),
      tool("call_team", "Helps you call the team.", "number"),
    ]),
  },
};
