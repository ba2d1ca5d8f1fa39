/** Interval at which a cancel is repeated: one that comes before the library has begun does nothing. */
const AGAIN_MS = 5;

/** Runs something that takes a while; from when the signal aborts until its end `cancel` is called again and again. */
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
