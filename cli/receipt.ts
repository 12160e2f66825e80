import type { Delivery, HistoryStep, WaitUntil } from "../protocol/delivery.ts";
import { endsWait, hasReached } from "../protocol/delivery-progress.ts";

/** Explains a state of a delivery and its evidence. */
export function describeStep(step: HistoryStep, delivery: Delivery): string {
  const attempt = delivery.attempts.find(({ requestId }) => requestId === step.requestId);
  const request = `request ${shortId(step.requestId ?? "")}`;
  switch (step.state) {
    case "accepted":
      return "stored by the daemon";
    case "held":
      return "held by the helper inside pi until it can be inserted";
    case "inserted":
      return "is in the transcript";
    case "prepared":
      return `in ${request}${attempt === undefined ? "" : `, attempt ${attempt.n}`}`;
    case "delivered":
      return `accepted by the provider: evidence ${evidenceOf(step, attempt?.status)}, payload ${attempt?.payload ?? "unchecked"}`;
    case "answered":
      return `the answer is complete: evidence ${evidenceOf(step)}`;
    default:
      return step.reason === undefined ? "" : `${step.reason.message} (${step.reason.code})`;
  }
}

/** Reads the new steps of a delivery's history. */
export class StepReader {
  #seen = 0;

  read({ history }: Delivery): readonly HistoryStep[] {
    const steps = history.slice(this.#seen);
    this.#seen = Math.max(this.#seen, history.length);
    return steps;
  }
}

/** Whether a wait for `until` has ended, and how. */
export function waitOutcome(delivery: Delivery, until: WaitUntil): "reached" | "unmet" | "open" {
  if (until === "inserted" && delivery.insertedAt !== undefined) return "reached";
  if ([delivery, ...delivery.history].some(({ state }) => hasReached(state, until))) return "reached";
  return endsWait(delivery, until) ? "unmet" : "open";
}

/** The end of an id, because ids of the same moment have the same beginning. */
function shortId(id: string): string {
  return id.length <= 12 ? id : `…${id.slice(-8)}`;
}

function evidenceOf({ evidence }: HistoryStep, status?: number): string {
  return `${evidence ?? "none"}${status === undefined ? "" : ` (HTTP ${status})`}`;
}
