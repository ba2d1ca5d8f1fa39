/** Interval between repeated cancels: a cancel before the library has begun has no effect. */
const AGAIN_MS = 5;

/** Runs a long operation. After the signal aborts, `cancel` is called repeatedly until the operation ends. */
export async function cancelling<T>(
  signal: AbortSignal | undefined,
  cancel: () => void,
  run: () => Promise<T>,
): Promise<T> {
  let again: ReturnType<typeof setInterval> | undefined;
  const aborted = () => {
    cancel();
    again ??= setInterval(cancel, AGAIN_MS);
  };
  if (signal?.aborted) aborted();
  else signal?.addEventListener("abort", aborted, { once: true });
  try {
    return await run();
  } finally {
    signal?.removeEventListener("abort", aborted);
    clearInterval(again);
  }
}
