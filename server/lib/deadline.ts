/** The outcome of {@link within}: what the promise gave, or that the time was up first. */
export type Within<T> = { readonly kind: "done"; readonly value: T } | { readonly kind: "timeout" };

/** Waits for a promise at most `timeoutMs`. The promise is not cancelled. The timer keeps no process alive. */
export async function within<T>(promise: Promise<T>, timeoutMs: number): Promise<Within<T>> {
  const { promise: timeUp, resolve } = Promise.withResolvers<Within<T>>();
  const timer = setTimeout(() => resolve({ kind: "timeout" }), timeoutMs);
  try {
    return await Promise.race([promise.then((value): Within<T> => ({ kind: "done", value })), timeUp]);
  } finally {
    clearTimeout(timer);
  }
}
