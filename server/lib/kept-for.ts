/**
 * Caches a value, and recomputes it when it is older than this many milliseconds. If that fails, the former value remains;
 * without one, the error is thrown.
 */
export function keptFor<T>(ms: number, make: () => T): () => T {
  let kept: { readonly value: T; readonly at: number } | undefined;
  return () => {
    const now = performance.now();
    if (kept === undefined || now - kept.at >= ms) kept = { value: remade(make, kept), at: now };
    return kept.value;
  };
}

function remade<T>(make: () => T, former: { readonly value: T } | undefined): T {
  try {
    return make();
  } catch (error) {
    if (former === undefined) throw error;
    return former.value;
  }
}
