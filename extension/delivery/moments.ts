import type { HeldItem } from "./held.ts";

/** When held pushes can be handed to pi. */
export type Moment =
  /** A turn of a run has ended. */
  | "turnEnd"
  /** The run is about to end. */
  | "beforeSettle"
  /** No run is active. */
  | "idle"
  /** A prompt is about to follow. */
  | "beforePrompt"
  /** A carrier is about to start a run. */
  | "carry";

/** Returns the pushes due at a moment, in order. Pushes already offered to pi are never due. */
export function dueAt(moment: Moment, items: readonly HeldItem[]): HeldItem[] {
  const here = items.filter(({ custody }) => custody.kind !== "offered");
  switch (moment) {
    case "turnEnd":
      return here.filter(({ push }) => push.deliverAs === "steer");
    case "beforeSettle":
    case "carry":
      return here.filter(({ push }) => push.deliverAs !== "nextTurn");
    case "idle": {
      const due = here.filter(({ push, custody }) => push.deliverAs !== "nextTurn" && custody.kind === "waiting");
      // A parked push starts no run, but goes with a run that another push starts. It keeps its position: a later push
      // of the same kind does not overtake it.
      if (wantsRun(due)) return here.filter(({ push }) => push.deliverAs !== "nextTurn");
      return here.filter((item, i) => {
        const { deliverAs } = item.push;
        return (
          due.includes(item) || here.slice(i).some((later) => due.includes(later) && later.push.deliverAs === deliverAs)
        );
      });
    }
    case "beforePrompt":
      return here;
  }
}

/** Whether any push asks for a run. */
export function wantsRun(items: readonly HeldItem[]): boolean {
  return items.some(({ push }) => push.triggerTurn);
}

/** How a run ended. */
export type RunEnd = "completed" | "failed" | "aborted";

/** Which held pushes the end of a run drops or parks. The others keep waiting. */
export function actionsAfterRun(
  end: RunEnd,
  items: readonly HeldItem[],
): { readonly drop: string[]; readonly park: string[] } {
  const drop: string[] = [];
  const park: string[] = [];
  for (const { push } of end === "completed" ? [] : items) {
    if (end === "aborted" && push.onAbort === "drop") drop.push(push.deliveryId);
    else if (push.deliverAs !== "nextTurn" && (end === "aborted" || push.triggerTurn)) park.push(push.deliveryId);
  }
  return { drop, park };
}
