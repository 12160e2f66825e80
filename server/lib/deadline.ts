/** The outcome of {@link within}: what the promise gave, or that the time was up first. */
export type Within<T> = { readonly kind: "done"; readonly value: T } | { readonly kind: "timeout" };

/** Waits for a promise at most `timeoutMs`. The promise is not cancelled, and its later rejection is nobody's. */
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
