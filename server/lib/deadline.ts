/** The outcome of {@link within}: the promise's value, or a timeout. */
export type Within<T> = { readonly kind: "done"; readonly value: T } | { readonly kind: "timeout" };

/** Waits for a promise at most `timeoutMs`. The promise is not cancelled, and its later rejection is ignored. */
export async function within<T>(promise: Promise<T>, timeoutMs: number): Promise<Within<T>> {
  promise.catch(() => {});
  const { promise: timeUp, resolve } = Promise.withResolvers<Within<T>>();
  const timer = setTimeout(() => resolve({ kind: "timeout" }), timeoutMs);
  try {
    return await Promise.race([promise.then((value): Within<T> => ({ kind: "done", value })), timeUp]);
  } finally {
    clearTimeout(timer);
  }
}

/** Waits for a promise until the signal is aborted; then it throws the signal's reason. The promise is not cancelled. */
export async function unlessAborted<T>(promise: Promise<T> | T, signal: AbortSignal): Promise<T> {
  // A rejection after the abort is ignored.
  if (promise instanceof Promise) promise.catch(() => {});
  signal.throwIfAborted();
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = (): void => reject(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
