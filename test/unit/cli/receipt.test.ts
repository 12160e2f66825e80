import { describe, expect, test } from "vitest";
import { checkReceipt, type Evidence, type LoggedRequest } from "../../../cli/demo/checks.ts";
import { describeStep, StepReader, waitOutcome } from "../../../cli/receipt.ts";
import type { Delivery, HistoryStep } from "../../../protocol/delivery.ts";

const requestId = "0199c2a0-0000-7000-8000-00001234abcd";
const history: readonly HistoryStep[] = [
  { state: "accepted", at: 1_000 },
  { state: "held", at: 1_001 },
  { state: "inserted", at: 3_000 },
  { state: "prepared", at: 3_001, requestId },
  { state: "delivered", at: 3_310, requestId, evidence: "headers" },
  { state: "answered", at: 3_700, requestId, evidence: "message" },
];
const delivery: Delivery = {
  deliveryId: "d",
  sessionId: "s",
  state: "answered",
  customType: "t",
  deliverAs: "steer",
  triggerTurn: true,
  attempts: [
    {
      requestId,
      n: 1,
      preparedAt: 3_001,
      payload: "confirmed",
      outcome: "delivered",
      endedAt: 3_310,
      status: 200,
      evidence: "headers",
    },
  ],
  history: [...history],
  createdAt: 1_000,
  updatedAt: 3_700,
};

function until(length: number): Delivery {
  const state = history[length - 1]?.state ?? "accepted";
  return { ...delivery, state, history: history.slice(0, length) };
}

describe("a step of a receipt", () => {
  test("names its evidence", () => {
    const words = history.map((step) => describeStep(step, delivery));
    expect(words[3]).toBe("in request …1234abcd, attempt 1");
    expect(words[4]).toBe("accepted by the provider: evidence headers (HTTP 200), payload confirmed");
    expect(words[5]).toBe("the answer is complete: evidence message");
    expect(words.every((word) => word !== "")).toBe(true);
  });

  test("that deviates gives the reason", () => {
    const reason = { code: "abort", message: "The run was aborted." } as const;
    expect(describeStep({ state: "parked", at: 1, reason }, delivery)).toBe("The run was aborted. (abort)");
  });

  test("is read once, also when several arrived together", () => {
    const reader = new StepReader();
    expect(reader.read(until(1)).map(({ state }) => state)).toEqual(["accepted"]);
    expect(reader.read(until(4)).map(({ state }) => state)).toEqual(["held", "inserted", "prepared"]);
    expect(reader.read(until(4))).toEqual([]);
  });
});

describe("a wait", () => {
  test("continues below the awaited state and ends at it", () => {
    expect(waitOutcome(until(4), "delivered")).toBe("open");
    expect(waitOutcome(until(5), "delivered")).toBe("reached");
    expect(waitOutcome(until(6), "delivered")).toBe("reached");
  });

  test("has reached its state even if the delivery was parked later", () => {
    const parked: Delivery = { ...until(3), state: "parked" };
    expect(waitOutcome(parked, "inserted")).toBe("reached");
    expect(waitOutcome(parked, "delivered")).toBe("unmet");
  });

  test("for an answer ends with a delivery that will get none", () => {
    const unanswered: Delivery = { ...until(5), reason: { code: "unanswered_error", message: "" } };
    expect(waitOutcome(unanswered, "answered")).toBe("unmet");
  });
});

describe("the demo's checks", () => {
  const text = "build 7 is green";
  const request = (n: number, receivedAt: number, count: number): LoggedRequest => ({
    n,
    receivedAt,
    status: 200,
    countText: (wanted) => (wanted === text ? count : 0),
  });
  const evidence: Evidence = {
    delivery,
    text,
    requests: [request(1, 500, 0), request(2, 3_005, 1)],
    acceptsAfterMs: 300,
    answer: "I heard that build 7 is green.",
    expected: "build 7",
  };
  const failing = (change: Partial<Evidence>): readonly number[] =>
    checkReceipt({ ...evidence, ...change }).flatMap(({ holds }, index) => (holds ? [] : [index]));

  test("accept a correct receipt", () => {
    expect(failing({})).toEqual([]);
  });

  test("notice a missing state", () => {
    expect(failing({ delivery: { ...delivery, history: history.filter(({ state }) => state !== "held") } })).toEqual([
      0,
    ]);
  });

  test("notice a text that is in no request, or twice in one", () => {
    expect(failing({ requests: [request(1, 500, 0), request(2, 3_005, 0)] })).toContain(1);
    expect(failing({ requests: [request(1, 500, 0), request(2, 3_005, 2)] })).toEqual([1]);
  });

  test("notice a receipt that names another request than the one with the text", () => {
    expect(failing({ requests: [request(1, 500, 1), request(2, 3_005, 1)] })).toContain(2);
    expect(failing({ requests: [request(1, 3_002, 0), request(2, 3_400, 1)] })).toContain(2);
  });

  test("notice a delivered state reported too early", () => {
    expect(failing({ requests: [request(1, 500, 0), request(2, 3_200, 1)] })).toEqual([3]);
  });

  test("notice a delivered state without evidence or with an unverified payload", () => {
    const [attempt] = delivery.attempts;
    if (attempt === undefined) throw new Error("the fixture has one");
    const unverified: Delivery = { ...delivery, attempts: [{ ...attempt, payload: "unverified" }] };
    expect(failing({ delivery: unverified })).toEqual([3]);
    const bare = history.map(({ evidence: _, ...step }) => step);
    expect(failing({ delivery: { ...delivery, history: bare } })).toEqual([3]);
  });

  test("notice an answer that does not know the message", () => {
    expect(failing({ answer: "The check went well." })).toEqual([4]);
  });
});
