/**
 * Returns the promise's result. If the signal aborts and `graceMs` pass, throws the signal's reason and ignores a later
 * result.
 */
export async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal, graceMs: number): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  let timer: NodeJS.Timeout | undefined;
  const abort = (): void => {
    timer = setTimeout(() => reject(signal.reason), graceMs);
  };
  if (signal.aborted) abort();
  else signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", abort);
  }
}
