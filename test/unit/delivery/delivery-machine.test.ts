import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Delivery } from "../../../protocol/delivery.ts";
import { type DeliveryInput, transition, withInsertedAt } from "../../../protocol/delivery-machine.ts";
import { deliveryStates, isTerminal } from "../../../protocol/delivery-progress.ts";

const accepted: Delivery = {
  deliveryId: "d",
  sessionId: "s",
  state: "accepted",
  customType: "t",
  deliverAs: "steer",
  triggerTurn: true,
  attempts: [],
  history: [{ state: "accepted", at: 0 }],
  createdAt: 0,
  updatedAt: 0,
};

const at = 1;
const held = { kind: "held", at } as const;
const inserted = { kind: "inserted", at } as const;
const prepared = (requestId = "r1") => ({ kind: "prepared", at, requestId }) as const;
const delivered = (requestId = "r1", payload: "confirmed" | "unverified" | "unchecked" = "confirmed") =>
  ({ kind: "verdict", at, requestId, outcome: "delivered", payload, evidence: "headers", status: 200 }) as const;
const failed = (requestId = "r1", status = 529) =>
  ({ kind: "verdict", at, requestId, outcome: "failed", payload: "confirmed", status, error: "overloaded" }) as const;
const aborted = (requestId = "r1") =>
  ({ kind: "verdict", at, requestId, outcome: "aborted", payload: "confirmed" }) as const;
const answered = (requestId = "r1") => ({ kind: "answered", at, requestId }) as const;
const settled = (how: Partial<Extract<DeliveryInput, { kind: "settled" }>> = {}) =>
  ({ kind: "settled", at, aborted: false, failed: false, held: false, ...how }) as const;
const withdrawn = (as: "cancelled" | "expired") =>
  ({ kind: "withdrawn", at, as, reason: { code: as, message: "" } }) as const;
const postponed = { kind: "postponed", at, reason: { code: "not_started", message: "" } } as const;
const leftOut = (code: "removed_by_extension" | "off_branch") =>
  ({ kind: "leftOut", at, reason: { code, message: "" } }) as const;
const waits = (isOpen: boolean) => ({ kind: "dialog", at, isOpen }) as const;
const resent = { kind: "resent", at } as const;
const childEnded = { kind: "childEnded", at } as const;
const sessionClosed = { kind: "sessionClosed", at } as const;
const sessionLeft = (code: "session_replaced" | "session_closed") => ({ kind: "sessionLeft", at, code }) as const;
const dropped = { kind: "dropped", at, reason: { code: "compacted", message: "" } } as const;

/** Every possible input of a delivery. */
const everyInput: readonly DeliveryInput[] = [
  held,
  inserted,
  prepared(),
  prepared("r2"),
  delivered(),
  delivered("r2"),
  delivered("r2", "unverified"),
  failed(),
  failed("r2"),
  aborted(),
  answered(),
  answered("r2"),
  settled(),
  settled({ aborted: true, held: true }),
  settled({ failed: true }),
  dropped,
  ...(["cancelled", "expired", "dropped", "failed"] as const).map(
    (as): DeliveryInput => ({ kind: "withdrawn", at, as, reason: { code: "cancelled", message: "" } }),
  ),
  postponed,
  waits(true),
  waits(false),
  leftOut("off_branch"),
  resent,
  childEnded,
  sessionClosed,
  sessionLeft("session_replaced"),
  sessionLeft("session_closed"),
];

function run(inputs: readonly DeliveryInput[], start: Delivery = accepted): Delivery {
  return inputs.reduce((delivery, input) => {
    const result = transition(delivery, input);
    return result.kind === "changed" ? result.delivery : delivery;
  }, start);
}

describe("a delivery", () => {
  test.each<[string, readonly DeliveryInput[], string, string | undefined]>([
    ["is answered on the straight path", [held, inserted, prepared(), delivered(), answered()], "answered", undefined],
    ["is inserted by reconciliation without being held", [inserted], "inserted", undefined],
    ["is prepared even when its insertion was not reported", [held, prepared()], "prepared", undefined],
    ["stays prepared while pi retries", [held, inserted, prepared(), failed()], "prepared", undefined],
    [
      "is answered by a retry",
      [inserted, prepared(), failed(), prepared("r2"), delivered("r2"), answered("r2")],
      "answered",
      undefined,
    ],
    [
      "is parked when the run fails",
      [inserted, prepared(), failed("r1", 400), settled({ failed: true })],
      "parked",
      "run_failed",
    ],
    [
      "is parked by an abort before headers",
      [inserted, prepared(), aborted(), settled({ aborted: true })],
      "parked",
      "abort",
    ],
    [
      "is delivered from parked by a later run",
      [inserted, prepared(), aborted(), settled({ aborted: true }), prepared("r2"), delivered("r2")],
      "delivered",
      undefined,
    ],
    [
      "is parked when its payload lacked it",
      [inserted, prepared(), delivered("r1", "unverified")],
      "parked",
      "unverified",
    ],
    [
      "is delivered without a payload check where there is none",
      [inserted, prepared(), delivered("r1", "unchecked")],
      "delivered",
      undefined,
    ],
    [
      "is not answered by the answer to a request that lacked it",
      [inserted, prepared(), delivered("r1", "unverified"), answered()],
      "parked",
      "unverified",
    ],
    [
      "stays delivered when its run ends without an answer",
      [inserted, prepared(), delivered(), settled({ failed: true })],
      "delivered",
      "unanswered_error",
    ],
    [
      "stays delivered when its run is aborted",
      [inserted, prepared(), delivered(), settled({ aborted: true })],
      "delivered",
      "unanswered_aborted",
    ],
    [
      "stays delivered when its child dies",
      [inserted, prepared(), delivered(), childEnded],
      "delivered",
      "interrupted",
    ],
    ["is parked when its child dies during the attempt", [inserted, prepared(), childEnded], "parked", "interrupted"],
    ["stays inserted when its child dies before any attempt", [inserted, childEnded], "inserted", undefined],
    ["stays held when its child dies", [held, childEnded], "held", undefined],
    ["is parked while held when the run is aborted", [held, settled({ aborted: true, held: true })], "parked", "abort"],
    ["fails when its session is closed before it is inserted", [held, sessionClosed], "failed", "session_closed"],
    [
      "is unknown when its session is closed after its insertion",
      [inserted, prepared(), sessionClosed],
      "unknown",
      "session_closed",
    ],
    [
      "is dropped when pi leaves its session before it is inserted",
      [held, sessionLeft("session_replaced")],
      "dropped",
      "session_replaced",
    ],
    [
      "is unknown when pi leaves its session after its insertion",
      [inserted, prepared(), sessionLeft("session_closed")],
      "unknown",
      "session_closed",
    ],
    [
      "stays delivered when pi leaves its session",
      [inserted, prepared(), delivered(), sessionLeft("session_replaced")],
      "delivered",
      "session_replaced",
    ],
    ["is dropped when it leaves the transcript", [inserted, dropped], "dropped", "compacted"],
    [
      "is parked when a request leaves it out, though the run ends well",
      [inserted, leftOut("removed_by_extension"), settled()],
      "parked",
      "removed_by_extension",
    ],
    [
      "is in the transcript when a request leaves it out, though its insertion was not reported",
      [held, leftOut("off_branch"), withdrawn("cancelled")],
      "parked",
      "off_branch",
    ],
    [
      "is delivered by a later request than those that leave it out",
      [inserted, leftOut("removed_by_extension"), leftOut("off_branch"), prepared(), delivered()],
      "delivered",
      undefined,
    ],
    [
      "is parked again when the request of a resend leaves it out",
      [inserted, leftOut("off_branch"), resent, leftOut("off_branch")],
      "parked",
      "off_branch",
    ],
    [
      "stays delivered when a request leaves it out",
      [inserted, prepared(), delivered(), leftOut("off_branch")],
      "delivered",
      undefined,
    ],
    ["is cancelled while it is accepted", [withdrawn("cancelled")], "cancelled", "cancelled"],
    ["is cancelled while it is held", [held, withdrawn("cancelled")], "cancelled", "cancelled"],
    [
      "is cancelled when an abort has left it held",
      [held, settled({ aborted: true, held: true }), withdrawn("cancelled")],
      "cancelled",
      "cancelled",
    ],
    ["expires while it is held", [held, withdrawn("expired")], "expired", "expired"],
    ["is not cancelled once it is inserted", [held, inserted, withdrawn("cancelled")], "inserted", undefined],
    [
      "is not cancelled when it is parked in the transcript",
      [inserted, prepared(), failed("r1", 400), settled({ failed: true }), withdrawn("cancelled")],
      "parked",
      "run_failed",
    ],
    ["cannot be inserted once it is cancelled", [held, withdrawn("cancelled"), inserted], "cancelled", "cancelled"],
    ["has the reason that its run waits for a dialog", [held, waits(true)], "held", "dialog"],
    ["loses the reason once its run no longer waits", [held, waits(true), waits(false)], "held", undefined],
    ["is inserted without a dialog as its reason", [held, waits(true), inserted], "inserted", undefined],
    ["has no dialog as its reason before it is held", [waits(true)], "accepted", undefined],
    ["has the reason why it waits for a pi", [postponed], "accepted", "not_started"],
    ["loses the reason why it waited once it is held", [postponed, held], "held", undefined],
    [
      "stands in the transcript again when it is sent again",
      [inserted, prepared(), failed("r1", 400), settled({ failed: true }), resent],
      "inserted",
      undefined,
    ],
    ["is held again when it is sent again", [held, settled({ aborted: true, held: true }), resent], "held", undefined],
    ["is not dropped once it is delivered", [inserted, prepared(), delivered(), dropped], "delivered", undefined],
  ])("%s", (_title, inputs, state, reason) => {
    const delivery = run(inputs);
    expect([delivery.state, delivery.reason?.code]).toEqual([state, reason]);
  });

  test("waits for no dialog when it is nextTurn", () => {
    expect(run([held, waits(true)], { ...accepted, deliverAs: "nextTurn" }).reason).toBeUndefined();
  });

  test("keeps waiting for the next prompt when it is nextTurn and the run is aborted", () => {
    expect(run([held, settled({ aborted: true, held: true })], { ...accepted, deliverAs: "nextTurn" }).state).toBe(
      "held",
    );
  });

  test("names its evidence, and counts its attempts", () => {
    const delivery = run([inserted, prepared(), failed(), prepared("r2"), delivered("r2"), answered("r2")]);
    expect(delivery.evidence).toBe("message");
    expect(delivery.attempts).toMatchObject([
      { n: 1, requestId: "r1", outcome: "failed", status: 529, error: "overloaded" },
      { n: 2, requestId: "r2", outcome: "delivered", evidence: "headers", status: 200 },
    ]);
    expect(delivery.history.map(({ state }) => state)).toEqual([
      "accepted",
      "inserted",
      "prepared",
      "prepared",
      "delivered",
      "answered",
    ]);
    expect(delivery.redelivered).toBeUndefined();
  });

  test("has a history that never goes back, and attempts with the times that pi measured", () => {
    const inputs: readonly DeliveryInput[] = [
      { ...held, at: 200 },
      inserted,
      { ...prepared(), at: 50 },
      { ...delivered(), at: 60 },
    ];
    const { history, attempts } = inputs.reduce<Delivery>((before, input) => {
      const result = transition(before, input);
      return result.kind === "changed" ? result.delivery : before;
    }, accepted);
    expect(history.map((step) => step.at)).toEqual([0, 200, 200, 200, 200]);
    expect(attempts).toMatchObject([{ preparedAt: 50, endedAt: 60 }]);
  });

  test("is marked redelivered when an earlier attempt's verdict was lost with its child", () => {
    const delivery = run([inserted, prepared(), childEnded, prepared("r2"), delivered("r2")]);
    expect(delivery.redelivered).toBe(true);
    expect(delivery.attempts[0]?.outcome).toBe("unknown");
  });

  test("is not marked redelivered after an attempt whose payload lacked it", () => {
    const delivery = run([inserted, prepared(), delivered("r1", "unverified"), prepared("r2"), delivered("r2")]);
    expect([delivery.state, delivery.redelivered]).toEqual(["delivered", undefined]);
  });

  test.each<[string, readonly DeliveryInput[], DeliveryInput]>([
    ["a verdict on a request that it was not in", [inserted], delivered("other")],
    ["a second verdict on the same attempt", [inserted, prepared(), failed()], delivered()],
    ["an answer to a request that it was not in", [inserted, prepared(), delivered()], answered("other")],
  ])("takes %s as impossible", (_title, inputs, input) => {
    expect(transition(run(inputs), input)).toEqual({ kind: "impossible" });
  });

  test("is never delivered without a verdict, never changes after its end, and never loses its history", () => {
    const inputs = fc.tuple(fc.constantFrom(...everyInput), fc.integer({ min: -5, max: 5 }));
    fc.assert(
      fc.property(fc.array(inputs, { maxLength: 25 }), (sequence) => {
        let delivery = accepted;
        for (const [input, at] of sequence) {
          const before = delivery;
          const result = transition(delivery, { ...input, at });
          if (isTerminal(before)) expect(result.kind).toBe("ignored");
          if (result.kind !== "changed") continue;
          delivery = result.delivery;
          if (delivery.state === "delivered" || delivery.state === "answered") {
            expect(
              delivery.attempts.some(({ outcome, payload }) => outcome === "delivered" && payload !== "unverified"),
            ).toBe(true);
            expect(delivery.settledAt).toBeDefined();
          }
          const wasInserted = before.history.some(({ state }) => state === "inserted");
          expect(before.insertedAt !== undefined).toBe(wasInserted);
          const times = delivery.history.map((step) => step.at);
          expect(times).toEqual(times.toSorted((a, b) => a - b));
          if (wasInserted) expect(["cancelled", "expired", "held"]).not.toContain(delivery.state);
          if (before.state === "delivered") expect(["delivered", "answered"]).toContain(delivery.state);
          expect(delivery.history.length).toBeGreaterThanOrEqual(before.history.length);
          expect(delivery.history.at(-1)?.state).toBe(delivery.state);
        }
      }),
      { numRuns: 3_000 },
    );
  });

  test("allows exactly the steps in the table of states", () => {
    const kindOf = ({ state, reason, insertedAt, attempts }: Delivery): string =>
      JSON.stringify([state, reason !== undefined, insertedAt !== undefined, attempts.map(({ outcome }) => outcome)]);
    const found = new Map([[kindOf(accepted), accepted]]);
    const taken = new Set<string>();
    for (const from of found.values()) {
      for (const input of everyInput) {
        const result = transition(from, input);
        if (input.kind !== "verdict" && input.kind !== "answered") expect(result.kind).not.toBe("impossible");
        if (result.kind !== "changed") continue;
        const { history } = result.delivery;
        const states = [from.state, ...history.slice(from.history.length).map(({ state }) => state)];
        for (const [i, state] of states.slice(1).entries()) taken.add(`${states[i]} → ${state}`);
        const kind = kindOf(result.delivery);
        if (!found.has(kind)) found.set(kind, result.delivery);
      }
    }
    const table = Object.entries(deliveryStates).flatMap(([from, { next }]) => next.map((to) => `${from} → ${to}`));
    expect([...taken].toSorted()).toEqual(table.toSorted());
  });

  test("is known to be in the transcript after any number of failed requests", () => {
    const retries = Array.from({ length: 70 }, (_, i) => [prepared(`r${i}`), failed(`r${i}`)]).flat();
    const parked = run([inserted, ...retries, settled({ failed: true })]);
    expect(parked.history.some(({ state }) => state === "inserted")).toBe(false);
    expect(parked).toMatchObject({ state: "parked", insertedAt: at });
    expect(run([resent], parked).state).toBe("inserted");
    expect(run([withdrawn("cancelled")], parked).state).toBe("parked");
    expect(run([sessionClosed], parked).state).toBe("unknown");
    // A record of an earlier version that had it only in the history.
    const { insertedAt: _, ...older } = parked;
    expect(run([sessionClosed], withInsertedAt(older)).state).toBe("unknown");
    expect(withInsertedAt(accepted)).toBe(accepted);
  });

  test("starts no run by itself once an abort has left it", () => {
    const left = run([held, settled({ aborted: true, held: true }), inserted]);
    expect([left.state, run([childEnded], left).state]).toEqual(["inserted", "parked"]);
  });
});
