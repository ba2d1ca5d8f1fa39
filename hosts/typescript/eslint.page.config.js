// Of the page that `tokentrie serve` shows; run from its folder: npm run check:page.
import js from "@eslint/js";
import { defineConfig } from "eslint/config";

export const BROWSER = [
  "Blob", "CustomEvent", "Event", "AbortController", "TextDecoderStream", "URL", "console", "document", "fetch",
  "getComputedStyle", "getSelection", "history", "innerHeight", "location", "matchMedia", "navigator", "performance",
  "sessionStorage", "setTimeout", "structuredClone", "window",
]; // prettier-ignore

export default defineConfig(js.configs.recommended, {
  languageOptions: { globals: Object.fromEntries(BROWSER.map((name) => [name, "readonly"])) },
  linterOptions: { reportUnusedDisableDirectives: "error" },
});
