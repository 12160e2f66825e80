import type { Attempt, Delivery } from "../protocol/delivery.ts";
import { inSeconds } from "./format.ts";
import type { Style } from "./output.ts";
import { describeStep } from "./receipt.ts";
import { oneLine, table, truncate } from "./text.ts";

/** One line of a timeline. */
export interface TimelineLine {
  readonly text: string;
  readonly style?: Style;
}

/** A delivery's timeline: its states with their times, and its attempts with their evidence. */
export function timeline(delivery: Delivery, columns = Number.POSITIVE_INFINITY): readonly TimelineLine[] {
  const { deliveryId, sessionId, state, reason, customType, deliverAs, triggerTurn, redelivered, expiresAt } = delivery;
  const facts: readonly (readonly [string, string])[] = [
    ["session", sessionId],
    ["type", customType],
    ["deliver as", `${deliverAs}${triggerTurn ? "" : ", starts no run"}`],
    ...(expiresAt === undefined ? [] : [["expires", new Date(expiresAt).toISOString()] as const]),
    ...(redelivered === true ? [["redelivered", "the model may have seen it already"] as const] : []),
    ...(reason === undefined ? [] : [["reason", `${reason.message} (${reason.code})`] as const]),
  ];
  return [
    { text: cut(`${deliveryId}  ${state}`), style: "bold" },
    ...table(
      facts.map(([name, value]) => [`  ${name}`, oneLine(value)]),
      columns,
    ).map((text) => ({ text })),
    { text: "" },
    ...headed(steps(delivery), columns),
    ...(delivery.attempts.length === 0 ? [] : [{ text: "" }, ...headed(attempts(delivery), columns)]),
  ];

  function cut(text: string): string {
    return truncate(oneLine(text), columns);
  }
}

function headed(rows: readonly (readonly string[])[], columns: number): TimelineLine[] {
  return table(
    rows.map((row) => row.map(oneLine)),
    columns,
  ).map((text, index) => (index === 0 ? { text, style: "dim" } : { text }));
}

function steps(delivery: Delivery): readonly (readonly string[])[] {
  return [
    ["TIME", "AFTER", "STATE", "WHAT"],
    ...delivery.history.map((step) => [
      new Date(step.at).toISOString(),
      after(delivery, step.at),
      step.state,
      describeStep(step, delivery),
    ]),
  ];
}

function attempts(delivery: Delivery): readonly (readonly string[])[] {
  return [
    ["ATTEMPT", "AFTER", "TOOK", "OUTCOME", "EVIDENCE", "PAYLOAD", "STATUS", "REQUEST AND ERROR"],
    ...delivery.attempts.map((attempt) => [
      String(attempt.n),
      after(delivery, attempt.preparedAt),
      attempt.endedAt === undefined ? "-" : inSeconds(attempt.endedAt - attempt.preparedAt, 3),
      attempt.outcome ?? "open",
      attempt.evidence ?? "-",
      attempt.payload,
      attempt.status === undefined ? "-" : String(attempt.status),
      errorOf(attempt),
    ]),
  ];
}

function errorOf({ requestId, error }: Attempt): string {
  return error === undefined ? requestId : `${requestId} ${error}`;
}

function after({ createdAt }: Delivery, at: number): string {
  return `+${inSeconds(at - createdAt, 3)}`;
}
