import shared from "../typescript/eslint.config.js";
import { BROWSER } from "../typescript/eslint.page.config.js";

export default [
  { ignores: ["build/", "dist/", "wasm/"] },
  ...shared,
  {
    files: ["playground/*.js"],
    languageOptions: {
      globals: Object.fromEntries(
        [...BROWSER, "TextDecoder", "TextEncoder", "clearTimeout"].map((name) => [name, "readonly"]),
      ),
    },
  },
];
