const key = Symbol.for("pi-rpcd.at-exit.1");

/**
 * Runs a callback when the process exits by itself or by a signal that pi handles, but not when it is killed. All
 * copies of this module share one listener because Node warns about many. Returns a function that removes the callback.
 */
export function atExit(callback: () => void): () => void {
  const global = globalThis as { [key]?: Set<() => void> };
  let callbacks = global[key];
  if (callbacks === undefined) {
    const all = new Set<() => void>();
    process.once("exit", () => {
      for (const each of all) each();
    });
    global[key] = all;
    callbacks = all;
  }
  callbacks.add(callback);
  return () => void callbacks.delete(callback);
}
