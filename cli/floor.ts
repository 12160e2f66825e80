/** Who writes on the terminal: as long as somebody has the floor, others wait with what they have to say. */
export class Floor {
  #taken: PromiseWithResolvers<void> | undefined;

  /** Resolves when it is free; undefined where it is. */
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
