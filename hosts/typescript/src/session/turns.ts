/** Calls in sequence: each has the session to itself, so a cancel cannot affect another call. */
export class Turns {
  #last: Promise<unknown> = Promise.resolve();

  /** Runs when all before are over. If the signal aborts while it waits, it never runs, and `aborted()` is thrown. */
  take<T>(signal: AbortSignal | undefined, aborted: () => Error, run: () => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const stop = () => reject(aborted());
      if (signal?.aborted) {
        stop();
        return;
      }
      signal?.addEventListener("abort", stop, { once: true });
      const turn = this.#last.then(() => {
        signal?.removeEventListener("abort", stop);
        if (signal?.aborted) throw aborted();
        return run();
      });
      this.#last = turn.catch(() => {});
      turn.then(resolve, reject);
    });
  }
}
