/** Whether children survive the daemon, and what became of those of former daemons. Clients see it in `daemon/info`. */
export interface LiveRestoreFacts {
  available: boolean;
  /** Why it is not available, as a sentence. */
  why?: string;
  /** Children that this daemon continued. */
  restored: number;
  /** Children that were to survive a former daemon, but could not be continued. */
  lost: number;
}

/** The facts of a daemon that has not looked for children yet. */
export function liveRestoreFacts(isWanted: boolean): LiveRestoreFacts {
  const none = { restored: 0, lost: 0 };
  if (isWanted) return { available: true, ...none };
  return { available: false, why: "The setting liveRestore is false.", ...none };
}

/** Which children end with the daemon although they should not, told in its facts. */
export class KeptChildren {
  readonly #facts: LiveRestoreFacts;
  /** Of the newest child. */
  #newest: string | undefined;
  /** Of living children, by their ids. */
  readonly #problems = new Map<string, string>();

  constructor(facts: LiveRestoreFacts) {
    this.#facts = facts;
  }

  /** Why live restore is not available. */
  get problem(): string | undefined {
    return this.#newest ?? [...this.#problems.values()].at(-1);
  }

  started(childId: string, problem: string | undefined): void {
    this.#newest = problem;
    if (problem !== undefined) this.#problems.set(childId, problem);
    this.#tell();
  }

  ended(childId: string): void {
    if (this.#problems.delete(childId)) this.#tell();
  }

  #tell(): void {
    const { problem } = this;
    this.#facts.available = problem === undefined;
    if (problem === undefined) delete this.#facts.why;
    else this.#facts.why = problem;
  }
}
