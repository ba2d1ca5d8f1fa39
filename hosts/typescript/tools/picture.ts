/**
 * Draws what `examples/choose-tool.ts` prints with the tiny model as it looks in a terminal: `docs/choose-tool.svg`.
 *
 *     TOKENTRIE_LIB=… npm run picture
 */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const ROOT = new URL("../../../../", import.meta.url);
const model = fileURLToPath(new URL("python/tokentrie/models/tiny.gguf", ROOT));
const example = fileURLToPath(new URL("../examples/choose-tool.js", import.meta.url));
const printed = execFileSync(process.execPath, [example, model], { encoding: "utf8" });

const CLASSES: Record<string, string> = { "1": "bold", "2": "dim", "32": "green" };
const LINE = 20;
const COLUMN = 8.43;
const MARGIN = 20;
const HEAD = 34;

const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

/** The parts of a line, each with the classes that the escapes before it turn on. */
function parts(line: string): { text: string; classes: string }[] {
  const found: { text: string; classes: string }[] = [];
  const on = new Set<string>();
  let from = 0;
  // eslint-disable-next-line no-control-regex -- this is what a terminal reads
  for (const code of [...line.matchAll(/\x1b\[(\d+)m/g), null]) {
    const text = line.slice(from, code?.index);
    if (text !== "") found.push({ text, classes: [...on].join(" ") });
    if (code === null) break;
    const name = CLASSES[code[1] ?? ""];
    if (name === undefined) on.clear();
    else on.add(name);
    from = code.index + code[0].length;
  }
  return found;
}

const lines = printed.trimEnd().split("\n").map(parts);
const columns = Math.max(...lines.map((line) => line.reduce((sum, { text }) => sum + text.length, 0)));
const width = Math.ceil(columns * COLUMN + 2 * MARGIN);
const height = lines.length * LINE + HEAD + MARGIN;
const drawn = lines.map((line, index) => {
  const spans = line.map(
    ({ text, classes }) => `<tspan${classes ? ` class="${classes}"` : ""}>${escaped(text)}</tspan>`,
  );
  return `<text x="${MARGIN}" y="${HEAD + index * LINE + 14}" xml:space="preserve">${spans.join("")}</text>`;
});
const size = `width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"`;
const styles = [
  'text{font:14px ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#e4e8ec}',
  ".bold{font-weight:600}.dim{fill:#8b97a3}.green{fill:#6fd08c}",
];
const buttons = ["#e06c5f", "#e0b45f", "#6fb96a"].map(
  (color, index) => `<circle cx="${20 + 18 * index}" cy="17" r="5" fill="${color}"/>`,
);
const svg = `<svg xmlns="http://www.w3.org/2000/svg" ${size} role="img">
<title>A tool is chosen in a terminal</title>
<style>${styles.join("")}</style>
<rect width="${width}" height="${height}" rx="8" fill="#16191d"/>
${buttons.join("")}
${drawn.join("\n")}
</svg>
`;
const target = fileURLToPath(new URL("hosts/typescript/docs/choose-tool.svg", ROOT));
writeFileSync(target, svg);
console.log(target);
