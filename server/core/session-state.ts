import type { ChildExit, SessionState as StateName } from "../../protocol/session.ts";
import type { Child } from "../pi/child.ts";

/** The life cycle of a session. Data exist only in the states in which they are valid. */
export type SessionState =
  | { readonly kind: "hibernated"; readonly exit?: ChildExit | undefined }
  | { readonly kind: "starting" }
  | { readonly kind: "idle"; readonly child: Child }
  | { readonly kind: "running"; readonly child: Child; readonly runId: string }
  | { readonly kind: "crashed"; readonly exit?: ChildExit | undefined }
  | { readonly kind: "closing" }
  | { readonly kind: "closed" };

const next: Readonly<Record<StateName, readonly StateName[]>> = {
  hibernated: ["hibernated", "starting", "closing"],
  starting: ["idle", "running", "crashed", "hibernated", "closing"],
  idle: ["running", "crashed", "hibernated", "closing"],
  running: ["idle", "running", "crashed", "hibernated", "closing"],
  crashed: ["starting", "closing"],
  closing: ["closed"],
  closed: [],
};

/** Whether a transition is allowed. */
export function mayBecome(from: StateName, to: StateName): boolean {
  return next[from].includes(to);
}
