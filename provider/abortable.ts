/** Waits for a promise until the signal aborts; then rejects with the signal's reason. The promise is not cancelled. */
export async function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const onAbort = (): void => aborted.reject(signal.reason);
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([promise, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** Waits until the signal aborts; then rejects with its reason. */
export function untilAborted(signal: AbortSignal): Promise<never> {
  return orAborted(Promise.withResolvers<never>().promise, signal);
}
