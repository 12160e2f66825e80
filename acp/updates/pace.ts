/** Runs the newest of the requested actions, at most one in an interval. */
export class Pace {
  readonly #intervalMs: number;
  #nextAt: number;
  #action: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** The first action runs an interval from now at the earliest. */
  constructor(intervalMs: number) {
    this.#intervalMs = intervalMs;
    this.#nextAt = Date.now() + intervalMs;
  }

  /** Replaces an action that has not run yet. */
  request(action: () => void): void {
    this.#action = action;
    this.#timer ??= setTimeout(() => this.#run(), Math.max(0, this.#nextAt - Date.now()));
  }

  /** Drops the action that has not run yet. */
  cancel(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#action = undefined;
  }

  #run(): void {
    const action = this.#action;
    this.cancel();
    this.#nextAt = Date.now() + this.#intervalMs;
    action?.();
  }
}
