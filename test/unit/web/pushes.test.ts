import { expect, test } from "vitest";
import type { Delivery, DeliveryState } from "../../../client/browser.ts";
import { WireError } from "../../../client/browser.ts";
import { actionsOf, offsetWords, timelineOf } from "../../../web/state/push-timeline.ts";
import { AllPushes } from "../../../web/state/pushes.ts";
import { FakeDaemon, settled } from "./fake-daemon.ts";
import { FakePage } from "./fake-page.ts";

function delivery(deliveryId: string, state: DeliveryState = "answered", fields: Partial<Delivery> = {}): Delivery {
  return {
    deliveryId,
    sessionId: "s1",
    state,
    customType: "note",
    preview: `words of ${deliveryId}`,
    deliverAs: "steer",
    triggerTurn: true,
    attempts: [],
    history: [{ state: "accepted", at: 1_000 }],
    createdAt: 1_000,
    updatedAt: 1_000,
    ...fields,
  };
}

class Fixture {
  readonly daemon = new FakeDaemon();
  readonly page = new FakePage();
  readonly pushes = new AllPushes({ ...this, titleOf: (sessionId) => `title of ${sessionId}` });
  /** What the daemon has, newest first. */
  all: readonly Delivery[] = [];

  constructor(all: readonly Delivery[] = []) {
    this.all = all;
    this.daemon.on("delivery/list", ({ states, sessionId, limit = 100, after }) => {
      const fitting = this.all.filter(
        (one) => states?.includes(one.state) === true && (sessionId === undefined || one.sessionId === sessionId),
      );
      const from = after === undefined ? 0 : fitting.findIndex(({ deliveryId }) => deliveryId === after) + 1;
      const deliveries = fitting.slice(from, from + limit);
      const next = fitting.length > from + limit ? deliveries.at(-1)?.deliveryId : undefined;
      return { deliveries, ...(next === undefined ? {} : { next }) };
    });
    this.daemon.on("delivery/get", ({ deliveryId, content }) => {
      const found = this.all.find((one) => one.deliveryId === deliveryId);
      if (found === undefined) throw new WireError("delivery_not_found", "There is no such delivery.");
      return content === true ? { ...found, content: "all of it" } : found;
    });
  }

  async watch(): Promise<() => void> {
    const stop = this.pushes.watch();
    await settled();
    return stop;
  }

  get shown(): readonly string[] {
    return this.pushes.groups.value.map(
      ({ name, rows }) => `${name}: ${rows.map(({ deliveryId }) => deliveryId).join(" ")}`,
    );
  }
}

test("groups the pushes of all sessions by state, open ones first, the newest first in each", async () => {
  const unanswered = { reason: { code: "unanswered_aborted", message: "It was aborted." } } as const;
  const fixture = new Fixture([
    delivery("a", "answered", { createdAt: 9 }),
    delivery("b", "answered", { createdAt: 8 }),
    delivery("c", "dropped"),
    delivery("d", "delivered"),
    delivery("e", "delivered", unanswered),
    delivery("f", "expired"),
    delivery("g", "held", { createdAt: 3 }),
    delivery("h", "accepted", { createdAt: 4 }),
    delivery("i", "parked"),
    delivery("j", "prepared", { createdAt: 5 }),
  ]);
  await fixture.watch();
  expect(fixture.shown).toEqual([
    "parked: i",
    "waiting: h g",
    "underWay: d j",
    "undelivered: c",
    "unanswered: e",
    "answered: a b",
    "withdrawn: f",
  ]);
  fixture.pushes.filter.value = "words TITLE dropped";
  expect(fixture.shown).toEqual(["undelivered: c"]);
});

test("follows every change while the page is visible, once a frame, and asks for nothing while it is hidden", async () => {
  const fixture = new Fixture([delivery("a", "held")]);
  const { daemon, page } = fixture;
  const stop = await fixture.watch();
  for (const state of ["inserted", "prepared"] as const)
    daemon.updateDelivery(delivery("a", state, { updatedAt: 2_000 }));
  daemon.updateDelivery(delivery("b", "accepted", { createdAt: 2_000, updatedAt: 2_000 }));
  expect(fixture.shown).toEqual(["waiting: a"]);
  expect(page.draw()).toBe(1);
  expect(fixture.shown).toEqual(["waiting: b", "underWay: a"]);
  // A late notification of an earlier state changes nothing.
  daemon.updateDelivery(delivery("a", "held", { updatedAt: 1_500 }));
  page.draw();
  expect(fixture.shown).toEqual(["waiting: b", "underWay: a"]);

  page.hide(true);
  expect(daemon.deliveryListeners).toBe(0);
  const { length } = daemon.calls;
  daemon.connection({ kind: "connected", daemon: "same" });
  await settled();
  expect(daemon.calls.length).toBe(length);
  fixture.all = [delivery("a", "answered", { updatedAt: 3_000 })];
  page.hide(false);
  await settled();
  expect(daemon.deliveryListeners).toBe(1);
  expect(fixture.shown).toEqual(["answered: a"]);
  stop();
  expect(daemon.deliveryListeners).toBe(0);
});

test("a change that comes while the list is being read is kept", async () => {
  const fixture = new Fixture();
  let answer = (): void => {};
  fixture.daemon.on("delivery/list", async ({ states }) => {
    if (states?.includes("held") === true)
      await new Promise<void>((resolve) => {
        answer = resolve;
      });
    return { deliveries: states?.includes("held") === true ? [delivery("a", "held")] : [] };
  });
  await fixture.watch();
  fixture.daemon.updateDelivery(delivery("a", "answered", { updatedAt: 2_000 }));
  fixture.page.draw();
  answer();
  await settled();
  expect(fixture.shown).toEqual(["answered: a"]);
});

test("lists one session, loads older ones, and keeps no more than a bounded number, the open ones before all", async () => {
  const many = Array.from({ length: 5_600 }, (_, index) =>
    delivery(`d${index}`, "answered", { createdAt: 10_000 - index }),
  );
  const fixture = new Fixture([...many, delivery("other", "parked", { sessionId: "s2", createdAt: 1 })]);
  const { pushes } = fixture;
  await fixture.watch();
  expect(pushes.count.value).toBe(201);
  while (pushes.hasMore.value) await pushes.more();
  expect(pushes.isFull.value).toBe(true);
  expect(pushes.count.value).toBeLessThanOrEqual(5_000);
  expect(pushes.groups.value[0]?.rows[0]?.deliveryId).toBe("other");
  expect(pushes.groups.value[1]?.rows[0]?.deliveryId).toBe("d0");
  pushes.only("s2");
  expect(pushes.state.value.kind).toBe("loading");
  await settled();
  expect(fixture.shown).toEqual(["parked: other"]);
  fixture.daemon.updateDelivery(delivery("new", "held"));
  fixture.page.draw();
  expect(fixture.shown).toEqual(["parked: other"]);
});

test("says why the list cannot be read", async () => {
  const fixture = new Fixture();
  fixture.daemon.on("delivery/list", () => {
    throw new WireError("store_failed", "The disk is full.");
  });
  await fixture.watch();
  expect(fixture.pushes.state.value).toEqual({ kind: "refused", words: "The disk is full." });
});

test("an opened push is live, has its content on request, and its actions say what the daemon says", async () => {
  const fixture = new Fixture([delivery("a", "parked")]);
  const { daemon, pushes } = fixture;
  await fixture.watch();
  pushes.open("a");
  await settled();
  const push = pushes.opened.value;
  expect(push?.delivery.value).toMatchObject({ kind: "known", value: { state: "parked" } });
  expect(daemon.calls.filter(({ method }) => method === "delivery/get")).toHaveLength(1);
  await push?.showContent();
  expect(push?.content.value).toMatchObject({ kind: "known", value: { images: [] } });
  if (push?.content.value.kind === "known") expect(push.content.value.value.text.text.value).toBe("all of it");

  daemon.on("delivery/resend", () => {
    throw new WireError("forbidden", "This token may not prompt.", { needs: "prompt" });
  });
  expect(await push?.resend()).toEqual({
    kind: "refused",
    words: "This token may not prompt. Open the page again without --read-only.",
  });
  daemon.on("delivery/cancel", () => ({ cancelled: false, delivery: delivery("a", "inserted", { updatedAt: 2_000 }) }));
  expect(await push?.cancel()).toEqual({ kind: "refused", words: "It was too late to withdraw it." });
  expect(push?.delivery.value).toMatchObject({ value: { state: "inserted" } });
  daemon.updateDelivery(delivery("a", "answered", { updatedAt: 3_000 }));
  expect(push?.delivery.value).toMatchObject({ value: { state: "answered" } });
  pushes.open("gone");
  await settled();
  expect(pushes.opened.value?.delivery.value).toEqual({ kind: "refused", words: "There is no such delivery." });
});

test("a timeline has every step and request of the delivery, in words with their evidence", () => {
  const by = { clientId: "client-id", name: "editor" };
  const reason = { code: "run_failed", message: "The run ended." } as const;
  const { steps, requests, why } = timelineOf(
    delivery("a", "answered", {
      deliverAs: "followUp",
      history: [
        { state: "accepted", at: 1_000, by },
        { state: "held", at: 1_006 },
        { state: "inserted", at: 2_000 },
        { state: "prepared", at: 2_001, requestId: "r1" },
        { state: "parked", at: 3_000, reason },
        { state: "inserted", at: 4_000, by },
        { state: "prepared", at: 4_001, requestId: "r2" },
        { state: "delivered", at: 4_100, requestId: "r2", evidence: "headers" },
        { state: "answered", at: 5_000, requestId: "r2", evidence: "message" },
      ],
      attempts: [
        {
          requestId: "r1",
          n: 1,
          preparedAt: 2_001,
          payload: "confirmed",
          outcome: "failed",
          endedAt: 2_100,
          status: 529,
          error: "busy",
        },
        {
          requestId: "r2",
          n: 2,
          preparedAt: 4_001,
          payload: "confirmed",
          outcome: "delivered",
          endedAt: 4_100,
          status: 200,
          evidence: "headers",
        },
        { requestId: "r3", n: 3, preparedAt: 6_000, payload: "unchecked" },
        { requestId: "r4", n: 4, preparedAt: 7_000, payload: "unverified", outcome: "unknown", endedAt: 7_010 },
      ],
    }),
  );
  expect(steps.map(({ state, sinceStartMs, attempt, words }) => [state, sinceStartMs, attempt, words])).toEqual([
    ["accepted", 0, undefined, "The daemon has stored it."],
    ["held", 6, undefined, "pi keeps it until the run would end."],
    ["inserted", 1_000, undefined, "It is in the conversation, and never twice."],
    ["prepared", 1_001, 1, "A request to the provider was made, with it in its messages."],
    ["parked", 2_000, undefined, "The run ended."],
    ["inserted", 3_000, undefined, "A run was asked to carry it."],
    ["prepared", 3_001, 2, "A request to the provider was made, with it in its messages."],
    ["delivered", 3_100, 2, "The model has it: the provider answered with success and began its stream (status 200)."],
    ["answered", 4_000, 2, "The answer to that request is complete."],
  ]);
  expect(steps[0]?.by).toEqual(by);
  expect(
    requests.map(({ n, outcome, words, tookMs, status, error }) => [n, outcome, words, tookMs, status, error]),
  ).toEqual([
    [1, "failed", "failed", 99, 529, "busy"],
    [2, "delivered", "accepted", 99, 200, undefined],
    [3, "open", "no answer yet", undefined, undefined, undefined],
    [4, "unknown", "accepted, without the content", 10, undefined, undefined],
  ]);
  expect(why).toBeUndefined();
  const dialog = { code: "dialog", message: "The run waits." } as const;
  expect(timelineOf(delivery("b", "held", { reason: dialog })).why).toBe("The run waits.");
});

test("says what the state of a push allows, and why not the rest", () => {
  const words = (state: DeliveryState, fields: Partial<Delivery> = {}, isOver = false): readonly string[] => {
    const { cancel, resend } = actionsOf(delivery("a", state, fields), isOver);
    return [cancel, resend].map((possible) => (possible.kind === "yes" ? "yes" : possible.words));
  };
  const onlyParked = "Only a push that is parked can be sent again.";
  const inside = "It is in the conversation, so it cannot be withdrawn.";
  expect(words("held")).toEqual(["yes", onlyParked]);
  expect(words("parked")).toEqual(["yes", "yes"]);
  expect(words("parked", { insertedAt: 1 })).toEqual([inside, "yes"]);
  expect(words("prepared", { insertedAt: 1 })).toEqual([inside, onlyParked]);
  expect(words("answered", { insertedAt: 1 }, true)).toEqual(["Its way has ended.", "Its way has ended."]);
});

test.each([
  [0, "+0 ms"],
  [999, "+999 ms"],
  [3_740, "+3.7 s"],
  [185_000, "+3 min 5 s"],
  [7_380_000, "+2 h 3 min"],
  [349_200_000, "+4 d 1 h"],
  [-20, "−20 ms"],
])("%i ms since the beginning is %s", (ms, words) => {
  expect(offsetWords(ms)).toBe(words);
});
