import type { Control } from "../../protocol/control.ts";
import type { DialogSummary } from "../../protocol/dialog.ts";
import type { LostPrompt, SessionInfo } from "../../protocol/session.ts";
import type { SessionFacts } from "./session-record.ts";
import type { SessionState } from "./session-state.ts";

export interface InfoParts {
  readonly facts: SessionFacts;
  readonly state: SessionState;
  /** It lost its pi, and cannot start another. */
  readonly isLost: boolean;
  readonly supervisor: Pick<SessionInfo, "idleAfterMs" | "restarts" | "unresponsive">;
  readonly cursor: number;
  readonly epoch: string;
  readonly pendingDeliveries: number;
  readonly control: Control;
  readonly pendingDialogs: readonly DialogSummary[];
  readonly lostPrompts: readonly LostPrompt[];
}

/** A session as clients see it. */
export function sessionInfo({
  facts,
  state,
  isLost,
  supervisor,
  cursor,
  epoch,
  pendingDeliveries,
  control,
  pendingDialogs,
  lostPrompts,
}: InfoParts): SessionInfo {
  const exit = state.kind === "crashed" || state.kind === "hibernated" ? state.exit : undefined;
  return {
    ...facts,
    ...(isLost ? { ephemeral: "lost" as const } : {}),
    state: state.kind,
    ...(state.kind === "idle" || state.kind === "running" ? { pid: state.child.pid } : {}),
    ...(state.kind === "running" ? { runId: state.runId } : {}),
    ...supervisor,
    cursor,
    epoch,
    pendingDeliveries,
    ...(control.policy === "shared" && control.controller === undefined ? {} : { control }),
    pendingDialogs: [...pendingDialogs],
    lostPrompts: [...lostPrompts],
    ...(exit === undefined ? {} : { exit }),
  };
}
