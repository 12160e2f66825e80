import type { Labels } from "../../protocol/session-options.ts";

/** What of a session decides who knows of it. It stays the same for the session's life. */
export interface SessionScope {
  /** Without links. */
  readonly cwd: string;
  readonly labels?: Labels | undefined;
}

/** Whether a session exists for somebody. Where none is given, all do. */
export type Covers = (scope: SessionScope) => boolean;
