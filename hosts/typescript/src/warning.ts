/** Warns like Node and bun: on stderr, or to listeners of the process's `warning` event. In a page, on its console. */
export function warn(message: string): void {
  const { process, console } = globalThis as { process?: Partial<NodeJS.Process>; console?: Console };
  if (process?.emitWarning) process.emitWarning(message, "TokenTrieWarning");
  else console?.warn(message);
}

/** Says that leaves of a payload can never come. */
export function warnLeftOut(outside: number): void {
  if (outside > 0) warn(`payload: ${outside} leaves need ids outside the vocabulary and were left out`);
}
