/** A promise with separate resolve and reject functions. */
export interface Deferred<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
}

/** Its rejection is never reported as unhandled: callers that need the outcome await it. */
export function deferred<T>(): Deferred<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  promise.catch(() => {});
  return { promise, resolve, reject };
}
