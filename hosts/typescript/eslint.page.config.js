// The page that `tokentrie serve` shows, and the playground; run from its folder: npm run check:page.
import js from "@eslint/js";
import { defineConfig } from "eslint/config";

const BROWSER = [
  "AbortController", "Blob", "CustomEvent", "Event", "TextDecoder", "TextDecoderStream", "TextEncoder", "URL",
  "clearTimeout", "console", "document", "fetch", "getSelection", "history", "innerHeight", "location", "matchMedia",
  "navigator", "performance", "sessionStorage", "setTimeout", "structuredClone", "window",
]; // prettier-ignore

export default defineConfig(js.configs.recommended, {
  languageOptions: { globals: Object.fromEntries(BROWSER.map((name) => [name, "readonly"])) },
  linterOptions: { reportUnusedDisableDirectives: "error" },
});
