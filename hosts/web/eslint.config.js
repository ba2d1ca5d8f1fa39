import shared from "../typescript/eslint.config.js";

export default [{ ignores: ["build/", "dist/", "wasm/"] }, ...shared];
