const waits = new Set<() => string>();

/** Rejects if the work takes longer; the error names what was waited for. */
export async function within<T>(seconds: number, what: string | (() => string), work: Promise<T>): Promise<T> {
  const describe = typeof what === "string" ? () => what : what;
  const { promise: expired, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`${describe()}: not within ${seconds} s`)), seconds * 1_000);
  waits.add(describe);
  try {
    return await Promise.race([work, expired]);
  } finally {
    clearTimeout(timer);
    waits.delete(describe);
  }
}

/** What this process waits for at present. */
export function pendingWaits(): readonly string[] {
  return [...waits].map((describe) => describe());
}
