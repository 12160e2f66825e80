import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { DeliveryHandle, PushParams } from "../../../client/index.ts";
import { status } from "../../../provider/reply.ts";
import { patience } from "../../helpers/patience.ts";
import { backingOff, compacting, inTool, streaming } from "./agents.ts";
import { type Api, type Cell, endOf, MatrixStage, note } from "./matrix-stage.ts";

// What clients can do to a push in transit: abort, clear, cancel, let it expire, send again.

const apis: readonly Api[] = ["scripted", "scripted-anthropic"];
let world: MatrixStage;
beforeAll(async () => {
  world = await MatrixStage.open({
    settings: {
      retry: { enabled: true, maxRetries: 3, baseDelayMs: 60, maxAgentDelayMs: 60, provider: { maxRetries: 0 } },
    },
  });
});
afterAll(async () => await world[Symbol.asyncDispose]());

type Params = Partial<PushParams>;

/** Where the push is when the client acts. */
interface Place {
  readonly name: string;
  readonly params?: Params;
  /** Brings the push there with these params, runs `whenPlaced`, and lets the agent continue. */
  readonly reach: (
    cell: Cell,
    params: Params,
    whenPlaced: (delivery: DeliveryHandle) => Promise<void>,
  ) => Promise<void>;
}

const held = (agent: typeof streaming): Place => ({
  name: `held, the agent ${agent.name}`,
  reach: async (cell, params, whenPlaced) => {
    await agent.reach(cell, () => cell.push(params), whenPlaced);
  },
});
const heldForPrompt: Place = {
  name: "held for the next prompt",
  params: { deliverAs: "nextTurn" },
  reach: async (cell, params, whenPlaced) => {
    const delivery = cell.push(params);
    await cell.until(delivery, "held");
    await whenPlaced(delivery);
  },
};
const parkedHeld: Place = {
  name: "parked by an abort, and held",
  reach: async (cell, params, whenPlaced) => {
    await inTool.reach(
      cell,
      () => cell.push(params),
      async (delivery) => {
        await cell.session.abort();
        await cell.until(delivery, "parked");
        await whenPlaced(delivery);
      },
    );
  },
};
const inserted: Place = {
  name: "in the transcript, without a run",
  params: { triggerTurn: false },
  reach: async (cell, params, whenPlaced) => {
    const delivery = cell.push(params);
    await cell.until(delivery, "inserted");
    await whenPlaced(delivery);
  },
};
const refused: Place = {
  name: "parked, in the transcript",
  reach: async (cell, params, whenPlaced) => {
    cell.add(status(400));
    const delivery = cell.push(params);
    await cell.until(delivery, "parked");
    await cell.idle();
    await whenPlaced(delivery);
  },
};
const answered: Place = {
  name: "answered",
  reach: async (cell, params, whenPlaced) => {
    const delivery = cell.push(params);
    await delivery.answered;
    await cell.idle();
    await whenPlaced(delivery);
  },
};

interface Row {
  readonly what: string;
  readonly place: Place;
  readonly params?: Params;
  readonly whenPlaced: (cell: Cell, delivery: DeliveryHandle) => Promise<void>;
  /** Where the push is when it stops moving by itself. */
  readonly end: string;
}

const abort = async (cell: Cell): Promise<void> => void (await cell.session.abort());
const clear = async (cell: Cell): Promise<void> => {
  await cell.world.stage.client.call("session/clearQueue", { sessionId: cell.session.id });
};
/** The daemon does not let clients clear pi's queue directly. */
const clearInPi = async (cell: Cell): Promise<void> =>
  await expect(cell.session.command({ type: "clear_queue" })).rejects.toMatchObject({ kind: "forbidden" });
const cancel =
  (isInTime: boolean) =>
  async (_cell: Cell, delivery: DeliveryHandle): Promise<void> =>
    expect(await delivery.cancel()).toBe(isInTime);
const expire = async (_cell: Cell, delivery: DeliveryHandle): Promise<void> => {
  const { expiresAt = Number.NaN } = await delivery.get();
  // Waits until the expiry and its consequences are over.
  await vi.waitFor(() => expect(Date.now()).toBeGreaterThan(expiresAt), { ...patience, interval: 15 });
  await delivery.get();
};
/** Also on a loaded machine a push reaches its place before. */
const expiry: Params = { expiresAfterMs: 6_000 };
const resend = async (_cell: Cell, delivery: DeliveryHandle): Promise<void> => void (await delivery.resend());

const whileBusy = [streaming, inTool, backingOff].map(held);
const anyHeld = [...whileBusy, held(compacting), heldForPrompt];

const rows: readonly Row[] = [
  ...whileBusy.flatMap((place): Row[] => [
    { what: "abort", place, whenPlaced: abort, end: "parked abort" },
    { what: "abort, onAbort drop", place, params: { onAbort: "drop" }, whenPlaced: abort, end: "dropped policy" },
    {
      what: "abort, nextTurn, onAbort drop",
      place,
      params: { deliverAs: "nextTurn", onAbort: "drop" },
      whenPlaced: abort,
      end: "dropped policy",
    },
    { what: "abort, nextTurn", place, params: { deliverAs: "nextTurn" }, whenPlaced: abort, end: "held" },
    { what: "abort, followUp", place, params: { deliverAs: "followUp" }, whenPlaced: abort, end: "parked abort" },
  ]),
  // The abort ends the compaction; there is no run that could lose the push.
  { what: "abort", place: held(compacting), whenPlaced: abort, end: "answered" },
  {
    what: "abort, onAbort drop",
    place: held(compacting),
    params: { onAbort: "drop" },
    whenPlaced: abort,
    end: "answered",
  },
  // No run to abort.
  { what: "abort", place: heldForPrompt, params: { onAbort: "drop" }, whenPlaced: abort, end: "held" },
  { what: "abort", place: inserted, params: { onAbort: "drop" }, whenPlaced: abort, end: "inserted" },
  { what: "abort", place: parkedHeld, params: { onAbort: "park" }, whenPlaced: abort, end: "parked abort" },
  { what: "abort", place: refused, params: { onAbort: "drop" }, whenPlaced: abort, end: "parked run_failed" },

  ...anyHeld.flatMap((place): Row[] => [
    {
      what: "clearQueue, onClearQueue drop",
      place,
      params: { onClearQueue: "drop" },
      whenPlaced: clear,
      end: "dropped clear_queue",
    },
    { what: "clearQueue", place, whenPlaced: clear, end: place === heldForPrompt ? "held" : "answered" },
    { what: "pi's own clear_queue", place, whenPlaced: clearInPi, end: place === heldForPrompt ? "held" : "answered" },
    { what: "cancel", place, whenPlaced: cancel(true), end: "cancelled cancelled" },
    { what: "expiry", place, params: expiry, whenPlaced: expire, end: "expired expired" },
  ]),
  {
    what: "clearQueue, onClearQueue drop",
    place: parkedHeld,
    params: { onClearQueue: "drop" },
    whenPlaced: clear,
    end: "dropped clear_queue",
  },
  {
    what: "clearQueue, onClearQueue drop",
    place: inserted,
    params: { onClearQueue: "drop" },
    whenPlaced: clear,
    end: "inserted",
  },
  {
    what: "clearQueue, onClearQueue drop",
    place: refused,
    params: { onClearQueue: "drop" },
    whenPlaced: clear,
    end: "parked run_failed",
  },
  { what: "cancel", place: parkedHeld, whenPlaced: cancel(true), end: "cancelled cancelled" },
  { what: "cancel", place: inserted, whenPlaced: cancel(false), end: "inserted" },
  { what: "cancel", place: refused, whenPlaced: cancel(false), end: "parked run_failed" },
  { what: "cancel", place: answered, whenPlaced: cancel(false), end: "answered" },
  { what: "expiry", place: parkedHeld, params: expiry, whenPlaced: expire, end: "expired expired" },
  { what: "expiry", place: inserted, params: expiry, whenPlaced: expire, end: "inserted" },
  { what: "expiry", place: refused, params: expiry, whenPlaced: expire, end: "parked run_failed" },
  { what: "resend", place: parkedHeld, whenPlaced: resend, end: "answered" },
  { what: "resend", place: refused, whenPlaced: resend, end: "answered" },
];

const cases = apis.flatMap((api) => rows.map((row) => ({ ...row, api, where: row.place.name })));

describe("a push", () => {
  test.concurrent.for(cases)(
    "that is $where, and then: $what ($api)",
    async ({ api, place, params, whenPlaced, what, end }, { task }) => {
      await using cell = await world.cellAnywhere(api);
      let delivery: DeliveryHandle | undefined;
      await place.reach(cell, { ...place.params, ...params }, async (pushed) => {
        delivery = pushed;
        await whenPlaced(cell, pushed);
      });
      if (delivery === undefined) throw new Error("there was no push");
      const [state] = end.split(" ") as [Parameters<Cell["until"]>[1]];
      const now = await cell.until(delivery, state);
      await cell.idle();
      note(task, { does: what, where: place.name, api, end: endOf(now) });
      expect(endOf(await delivery.get())).toBe(end);
      const isInside = place === inserted || place === refused || place === answered || state === "answered";
      expect(await cell.entries(delivery.id)).toBe(isInside ? 1 : 0);
      const before = cell.carried.reduce((sum, count) => sum + count, 0);
      const attempts = (await delivery.get()).attempts.length;
      expect(before).toBe(attempts);

      await cell.session.promptAndWait("Go on.");
      const isOver = state === "dropped" || state === "cancelled" || state === "expired";
      if (isOver) {
        expect(endOf(await delivery.get())).toBe(end);
        expect(cell.carried.at(-1)).toBe(0);
        expect(await cell.entries(delivery.id)).toBe(0);
      } else {
        expect(endOf(await delivery.answered)).toBe("answered");
        expect(cell.carried.at(-1)).toBe(1);
        expect(await cell.entries(delivery.id)).toBe(1);
      }
      cell.expectLawful();
      await cell.idle();
      cell.done();
    },
  );
});
