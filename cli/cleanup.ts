/** Steps to undo, run once in reverse order, all of them even if some fail. */
export class Cleanup {
  readonly #steps: (() => unknown)[] = [];
  #done: Promise<void> | undefined;

  add(step: () => unknown): void {
    this.#steps.push(step);
  }

  /** Always returns the same promise. Rejects with the first failure, after the last step. */
  run(): Promise<void> {
    this.#done ??= this.#run();
    return this.#done;
  }

  async #run(): Promise<void> {
    const failures: unknown[] = [];
    for (let step = this.#steps.pop(); step !== undefined; step = this.#steps.pop()) {
      try {
        await step();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }
}
