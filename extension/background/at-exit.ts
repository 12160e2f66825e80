const key = Symbol.for("pi-rpcd.at-exit.1");

/**
 * Does something when the process ends by itself or by a signal that pi handles, never when it is killed. One listener
 * serves all copies and lives of these modules: Node warns of many. Returns the function that takes it back.
 */
export function atExit(act: () => void): () => void {
  const global = globalThis as { [key]?: Set<() => void> };
  let acts = global[key];
  if (acts === undefined) {
    const all = new Set<() => void>();
    process.once("exit", () => {
      for (const each of all) each();
    });
    global[key] = all;
    acts = all;
  }
  acts.add(act);
  return () => void acts.delete(act);
}
