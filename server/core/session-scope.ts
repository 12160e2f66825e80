import type { Labels } from "../../protocol/session-options.ts";

/** The facts that decide who may see a session. They never change. */
export interface SessionScope {
  /** Resolved, without links. */
  readonly cwd: string;
  readonly labels?: Labels | undefined;
}

/** Whether a session is visible to a caller. Default: every session. */
export type Covers = (scope: SessionScope) => boolean;
