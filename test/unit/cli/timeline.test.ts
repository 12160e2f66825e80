import { expect, test } from "vitest";
import { timeline } from "../../../cli/timeline.ts";
import type { Delivery } from "../../../protocol/delivery.ts";

const at = Date.UTC(2026, 0, 2, 3, 4, 5);
const delivery: Delivery = {
  deliveryId: "build-318",
  sessionId: "0199c2f0-0000-7000-8000-000000000001",
  state: "answered",
  customType: "build",
  deliverAs: "steer",
  triggerTurn: true,
  attempts: [
    {
      requestId: "r1",
      n: 1,
      preparedAt: at + 20,
      endedAt: at + 50,
      payload: "confirmed",
      outcome: "failed",
      status: 529,
      error: "over\u001b[2Jloaded\nagain",
    },
    {
      requestId: "r2",
      n: 2,
      preparedAt: at + 90,
      endedAt: at + 120,
      payload: "confirmed",
      outcome: "delivered",
      status: 200,
      evidence: "headers",
    },
  ],
  evidence: "message",
  history: [
    { state: "accepted", at },
    { state: "inserted", at: at + 10 },
    { state: "prepared", at: at + 20, requestId: "r1" },
    { state: "prepared", at: at + 90, requestId: "r2" },
    { state: "delivered", at: at + 120, requestId: "r2", evidence: "headers" },
    { state: "answered", at: at + 1_500, requestId: "r2", evidence: "message" },
  ],
  createdAt: at,
  updatedAt: at + 1_500,
  settledAt: at + 120,
};

const textsOf = (columns?: number): readonly string[] => timeline(delivery, columns).map(({ text }) => text);

test("a timeline has the states with their times, and the attempts with their evidence", () => {
  expect(textsOf()).toEqual([
    "build-318  answered",
    "  session     0199c2f0-0000-7000-8000-000000000001",
    "  type        build",
    "  deliver as  steer",
    "",
    "TIME                      AFTER     STATE      WHAT",
    "2026-01-02T03:04:05.000Z  +0.000 s  accepted   stored by the daemon",
    "2026-01-02T03:04:05.010Z  +0.010 s  inserted   is in the transcript",
    "2026-01-02T03:04:05.020Z  +0.020 s  prepared   in request r1, attempt 1",
    "2026-01-02T03:04:05.090Z  +0.090 s  prepared   in request r2, attempt 2",
    "2026-01-02T03:04:05.120Z  +0.120 s  delivered  accepted by the provider: evidence headers (HTTP 200), payload confirmed",
    "2026-01-02T03:04:06.500Z  +1.500 s  answered   the answer is complete: evidence message",
    "",
    "ATTEMPT  AFTER     TOOK     OUTCOME    EVIDENCE  PAYLOAD    STATUS  REQUEST AND ERROR",
    "1        +0.020 s  0.030 s  failed     -         confirmed  529     r1 over[2Jloaded | again",
    "2        +0.090 s  0.030 s  delivered  headers   confirmed  200     r2",
  ]);
});

test("a timeline fits into the terminal", () => {
  for (const columns of [20, 40, 80])
    for (const text of textsOf(columns)) expect([...text].length).toBeLessThanOrEqual(columns);
});

test("a parked delivery gives the reason, and that the model may have seen it", () => {
  const { attempts: _none, ...rest } = delivery;
  const parked: Delivery = {
    ...rest,
    attempts: [],
    state: "parked",
    triggerTurn: false,
    redelivered: true,
    expiresAt: at + 60_000,
    reason: { code: "abort", message: "The run was aborted." },
  };
  const texts = timeline(parked).map(({ text }) => text);
  expect(texts).toEqual(
    expect.arrayContaining([
      "  deliver as   steer, starts no run",
      "  expires      2026-01-02T03:05:05.000Z",
      "  redelivered  the model may have seen it already",
      "  reason       The run was aborted. (abort)",
    ]),
  );
  expect(texts.some((text) => text.startsWith("ATTEMPT"))).toBe(false);
});
