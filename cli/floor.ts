/** A lock on the terminal: while one writer holds it, other output waits. */
export class Floor {
  #taken: PromiseWithResolvers<void> | undefined;

  /** Resolves when it is free; undefined if it is free now. */
  get free(): Promise<void> | undefined {
    return this.#taken?.promise;
  }

  take(): void {
    this.#taken ??= Promise.withResolvers();
  }

  give(): void {
    this.#taken?.resolve();
    this.#taken = undefined;
  }
}
