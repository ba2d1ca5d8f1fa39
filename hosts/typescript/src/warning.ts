/** Warns as Node and bun do: on stderr, or to whoever listens to the process's `warning`. */
export function warn(message: string): void {
  process.emitWarning(message, "TokenTrieWarning");
}

/** Says that leaves of a payload can never come. */
export function warnLeftOut(outside: number): void {
  if (outside > 0) warn(`payload: ${outside} leaves need ids outside the vocabulary and were left out`);
}
