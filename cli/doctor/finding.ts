/** The result of one check of the doctor. */
export interface Finding {
  readonly name: string;
  /** `skipped`: the check depends on a failed one. */
  readonly state: "good" | "odd" | "bad" | "skipped";
  readonly found: string;
  /** How to fix it; absent if it is good. */
  readonly todo?: string;
}

/** What `doctor --json` prints. */
export interface Report {
  /** Whether no finding is bad. */
  readonly ok: boolean;
  readonly stateDir: string;
  readonly findings: readonly Finding[];
}

export function good(name: string, found: string): Finding {
  return { name, state: "good", found };
}

/** It works, but should be different. */
export function odd(name: string, found: string, todo: string): Finding {
  return { name, state: "odd", found, todo };
}

export function bad(name: string, found: string, todo: string): Finding {
  return { name, state: "bad", found, todo };
}

export function skipped(name: string, found: string): Finding {
  return { name, state: "skipped", found };
}
