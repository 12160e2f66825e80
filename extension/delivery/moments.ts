import type { HeldItem } from "./held.ts";

/** The moments at which held pushes can be handed to pi. */
export type Moment =
  /** A turn of a run has ended. */
  | "turnEnd"
  /** The run would end. */
  | "beforeSettle"
  /** No run is on. */
  | "idle"
  /** A prompt is about to follow. */
  | "beforePrompt"
  /** A run is about to be started by a carrier. */
  | "carry";

/** The held pushes whose moment it is, in their order. What pi was given already is never due. */
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
      // What an abort or a failure has left goes with a run that another push starts, and keeps its place before it; it
      // starts none itself, but a later push of its kind does not come before it.
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

/** Whether one of them asks for a run. */
export function wantsRun(items: readonly HeldItem[]): boolean {
  return items.some(({ push }) => push.triggerTurn);
}

/** How a run ended. */
export type RunEnd = "completed" | "failed" | "aborted";

/** What the end of a run does to the pushes that are still held. The others wait on. */
export function leftBy(end: RunEnd, items: readonly HeldItem[]): { readonly drop: string[]; readonly park: string[] } {
  const drop: string[] = [];
  const park: string[] = [];
  for (const { push } of end === "completed" ? [] : items) {
    if (end === "aborted" && push.onAbort === "drop") drop.push(push.deliveryId);
    else if (push.deliverAs !== "nextTurn" && (end === "aborted" || push.triggerTurn)) park.push(push.deliveryId);
  }
  return { drop, park };
}
