/** What one check of the doctor's found. */
export interface Finding {
  readonly name: string;
  /** `skipped`: it cannot be looked at because of another finding. */
  readonly state: "good" | "odd" | "bad" | "skipped";
  readonly found: string;
  /** What to do about it; given where it is not good. */
  readonly todo?: string;
}

export function good(name: string, found: string): Finding {
  return { name, state: "good", found };
}

/** It works, and is not as it should be. */
export function odd(name: string, found: string, todo: string): Finding {
  return { name, state: "odd", found, todo };
}

export function bad(name: string, found: string, todo: string): Finding {
  return { name, state: "bad", found, todo };
}

export function skipped(name: string, found: string): Finding {
  return { name, state: "skipped", found };
}
