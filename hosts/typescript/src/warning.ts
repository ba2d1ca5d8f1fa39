/** Warns as Node and bun do: on stderr, or to whoever listens to the process's `warning`. */
export function warn(message: string): void {
  process.emitWarning(message, "TokenTrieWarning");
}
