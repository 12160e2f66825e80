type State = "idle" | "running" | "requires_action";
/** Why the work has stopped, and other fields of the state. */
export type Stop = Readonly<Record<string, unknown>>;

export interface ForegroundOptions {
  readonly send: (update: object) => void;
  /** How many tools run. */
  readonly runningTools: () => number;
}

/**
 * What a session does for the user: a run, or commands of this client. Tells each change of its state, after what led to
 * it.
 */
export class Foreground {
  readonly #options: ForegroundOptions;
  /** While a run is on. */
  #run: PromiseWithResolvers<void> | undefined;
  #commands = 0;
  readonly #open = new Set<string>();
  /** A list of open dialogs can be older than the end of one of them. */
  readonly #resolved = new Set<string>();
  #told: State = "idle";

  constructor(options: ForegroundOptions) {
    this.#options = options;
  }

  /** Sets whether a run is on. `stop`: how it has ended, if that is known. */
  run(isRunning: boolean, stop?: Stop): void {
    this.#set(isRunning);
    this.look(stop);
  }

  /** Resolves when no run is on. */
  get runOver(): Promise<void> {
    return this.#run?.promise ?? Promise.resolve();
  }

  commandBegan(): void {
    this.#commands += 1;
    this.look();
  }

  commandEnded(stop: Stop): void {
    this.#commands -= 1;
    this.look(stop);
  }

  /** A dialog is open: only a user can end it. */
  asked(dialogId: string): void {
    if (!this.#resolved.has(dialogId)) this.#open.add(dialogId);
    this.look();
  }

  resolved(dialogId: string): void {
    this.#resolved.add(dialogId);
    this.#open.delete(dialogId);
    this.look();
  }

  /** Which dialogs are open is not known any more. */
  forgetDialogs(): void {
    this.#open.clear();
    this.look();
  }

  /** Tells the state, also if it is the same. */
  snapshot(isRunning = this.#run !== undefined): void {
    this.#set(isRunning);
    this.#tell(this.#state, {});
  }

  /** Tells the state if it has changed. */
  look(stop: Stop = {}): void {
    const state = this.#state;
    if (state !== this.#told) this.#tell(state, stop);
  }

  #set(isRunning: boolean): void {
    if (isRunning) this.#run ??= Promise.withResolvers();
    else {
      this.#run?.resolve();
      this.#run = undefined;
    }
  }

  #tell(state: State, stop: Stop): void {
    this.#told = state;
    this.#options.send({ sessionUpdate: "state_update", state, ...(state === "idle" ? stop : {}) });
  }

  get #state(): State {
    if (this.#run === undefined && this.#commands === 0) return "idle";
    // One tool waits for the answer. Another one goes on meanwhile.
    return this.#open.size > 0 && this.#options.runningTools() < 2 ? "requires_action" : "running";
  }
}
