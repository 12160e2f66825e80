import type { Attempt, Delivery, DeliveryState } from "../../protocol/delivery.ts";

/** One request in the provider's log. */
export interface LoggedRequest {
  readonly n: number;
  readonly receivedAt: number;
  readonly status: number | undefined;
  countText(text: string): number;
}

export interface Evidence {
  readonly delivery: Delivery;
  /** The pushed text. */
  readonly text: string;
  readonly requests: readonly LoggedRequest[];
  /** How long the provider took to accept a request. */
  readonly acceptsAfterMs: number;
  /** The last answer of the run, and the text it must contain if the model read the push. */
  readonly answer: string;
  readonly expected: string;
}

export interface Check {
  readonly name: string;
  readonly holds: boolean;
  /** The facts that were found. */
  readonly found: string;
}

/** Two processes read the clock and truncate to a millisecond. */
const timerSlackMs = 5;

const wantedStates: readonly DeliveryState[] = ["accepted", "held", "inserted", "prepared", "delivered", "answered"];

/** Checks that the receipt and the provider's log agree. Each has its own source; neither is derived from the other. */
export function checkReceipt({
  delivery,
  text,
  requests,
  acceptsAfterMs,
  answer,
  expected,
}: Evidence): readonly Check[] {
  const states = delivery.history.map(({ state }) => state);
  const delivered = delivery.history.find(({ state }) => state === "delivered");
  const answered = delivery.history.find(({ state }) => state === "answered");
  const attempt = delivery.attempts.find(({ requestId }) => requestId === delivered?.requestId);
  const counts = requests.map((request) => request.countText(text));
  const first = requests.find((request) => request.countText(text) > 0);
  const during = attempt === undefined ? [] : requests.filter((request) => isOf(attempt, request));
  const deliveredAfterMs = (delivered?.at ?? 0) - (first?.receivedAt ?? 0);
  return [
    {
      name: "the receipt reached every state once, in order",
      holds: states.join() === wantedStates.join(),
      found: states.join(" → "),
    },
    {
      name: "the provider's log has the pushed text once, in one request and in no earlier one",
      holds: first !== undefined && counts[requests.indexOf(first)] === 1,
      found: requests.map(({ n }, index) => `request ${n}: ${times(counts[index] ?? 0)}`).join(", "),
    },
    {
      name: "that request is the one that the receipt names",
      holds: attempt !== undefined && during.length === 1 && during[0] === first,
      found: `received while attempt ${attempt?.n ?? "?"} was open: ${during.map(({ n }) => `request ${n}`).join(", ") || "none"}`,
    },
    {
      name: "delivered was reported with evidence, after the provider had accepted",
      holds:
        delivered?.evidence !== undefined &&
        attempt?.payload === "confirmed" &&
        attempt.outcome === "delivered" &&
        first?.status === 200 &&
        deliveredAfterMs >= acceptsAfterMs - timerSlackMs,
      found: `evidence ${delivered?.evidence ?? "none"}, payload ${attempt?.payload ?? "unknown"}; the provider accepted after ${acceptsAfterMs} ms, delivered was reported after ${deliveredAfterMs} ms`,
    },
    {
      name: "the model answered after that, and had read the message",
      holds:
        answered !== undefined &&
        answered.requestId === delivered?.requestId &&
        answered.at >= (delivered?.at ?? Number.POSITIVE_INFINITY) &&
        answer.includes(expected),
      found: `answered ${since(answered?.at, delivered?.at)} after delivered`,
    },
  ];
}

/** Both use this machine's clock: the attempt's request was received while the attempt was open. */
function isOf({ preparedAt, endedAt }: Attempt, { receivedAt }: LoggedRequest): boolean {
  return receivedAt >= preparedAt && receivedAt <= (endedAt ?? Number.POSITIVE_INFINITY);
}

function times(count: number): string {
  return count === 0 ? "no" : count === 1 ? "once" : `${count} times`;
}

function since(later: number | undefined, earlier: number | undefined): string {
  return later === undefined || earlier === undefined ? "never" : `${later - earlier} ms`;
}
