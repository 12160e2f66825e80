/** Caches a value, and recomputes it when it is older than this many milliseconds. */
export function keptFor<T>(ms: number, make: () => T): () => T {
  let kept: { readonly value: T; readonly at: number } | undefined;
  return () => {
    const now = performance.now();
    if (kept === undefined || now - kept.at >= ms) kept = { value: make(), at: now };
    return kept.value;
  };
}
