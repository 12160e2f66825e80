import type { ChildExit } from "../../protocol/session.ts";

/** The state of a child. Transitions only go forward. */
export type ChildState =
  | { readonly kind: "starting" }
  | { readonly kind: "ready" }
  | { readonly kind: "stopping" }
  | { readonly kind: "exited"; readonly exit: ChildExit };

const order: readonly ChildState["kind"][] = ["starting", "ready", "stopping", "exited"];

/** The later of two states: a child that was stopped during its start does not become ready. */
export function advance(from: ChildState, to: ChildState): ChildState {
  return order.indexOf(to.kind) > order.indexOf(from.kind) ? to : from;
}
