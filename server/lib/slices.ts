/** How long work runs before the event loop continues, in milliseconds. A single step may take longer. */
const sliceMs = 1;

/** Divides long work, so that it does not delay other work of the event loop. */
export class Slices {
  #until = performance.now() + sliceMs;

  /** Call after each step. Undefined: go on with the next step at once. */
  next(): Promise<void> | undefined {
    if (performance.now() < this.#until) return undefined;
    return nextTurn().then(() => {
      this.#until = performance.now() + sliceMs;
    });
  }
}

/** Resolves in the next turn of the event loop. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
