import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Client } from "../../../client/client.ts";
import type { DeliveryHandle } from "../../../client/delivery.ts";
import type { Diagnostic } from "../../../client/diagnostic.ts";
import { DeliveryError } from "../../../client/local-errors.ts";
import type { Delivery, DeliveryState, ReasonCode, WaitUntil } from "../../../protocol/delivery.ts";
import { WireError } from "../../../protocol/errors.ts";
import { FakeDaemon, noAnswer } from "./fake-daemon.ts";
import { delivery, sessionId, sessionInfo } from "./fixtures.ts";

const message = { customType: "build", content: "green" };
const ladder: readonly DeliveryState[] = ["accepted", "held", "inserted", "prepared", "delivered", "answered"];

/** The states up to and including this one. */
function upTo(state: DeliveryState): readonly DeliveryState[] {
  return ladder.slice(0, ladder.indexOf(state) + 1);
}

let daemon: FakeDaemon;
let client: Client;
let diagnostics: Diagnostic[];
let seq: number;

beforeEach(async () => {
  diagnostics = [];
  seq = 0;
  daemon = await FakeDaemon.start();
  client = await daemon.connect({ onDiagnostic: (diagnostic) => diagnostics.push(diagnostic) });
  daemon.answer("delivery/push", ({ deliveryId = "" }) => delivery(deliveryId, ["accepted"]));
  daemon.answer("delivery/wait", () => noAnswer);
  daemon.answer("session/subscribe", () => ({ cursor: seq, epoch: "e" }));
  daemon.answer("session/unsubscribe", () => ({ wasSubscribed: true }));
});

afterEach(async () => {
  await client.close();
  await daemon[Symbol.asyncDispose]();
});

function push(): DeliveryHandle {
  return client.session(sessionId).push({ ...message, deliveryId: "d" });
}

function notify(record: Delivery): void {
  seq += 1;
  daemon.notify("delivery/updated", { sessionId, seq, at: seq, delivery: record });
}

/** From now on the daemon answers waits with this record. */
function settleWaits(record: Delivery): void {
  daemon.answer("delivery/wait", () => record);
}

describe("session.push", () => {
  it("returns a handle immediately, with its own UUIDv7", async () => {
    const pushed = client.session(sessionId).push(message);
    expect(pushed.id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(pushed.state).toBeUndefined();
    expect(await pushed.accepted).toEqual(delivery(pushed.id, ["accepted"]));
    expect(pushed.state).toBe("accepted");
    expect(daemon.seen("delivery/push")[0]?.params).toEqual({ ...message, sessionId, deliveryId: pushed.id });
  });

  it("accepts the caller's id, so that a push can be repeated", async () => {
    const [first, again] = [push(), push()];
    expect([first.id, again.id]).toEqual(["d", "d"]);
    await Promise.all([first.accepted, again.accepted]);
  });

  it("is the same object when it is awaited", async () => {
    const pushed = push();
    expect(await (pushed as unknown)).toBe(pushed);
  });

  it("starts a wait only when a promise is read, and one for each", async () => {
    const pushed = push();
    await pushed.accepted;
    await client.info();
    expect(daemon.seen("delivery/wait")).toEqual([]);
    expect(pushed.delivered).toBe(pushed.delivered);
    void pushed.inserted;
    await daemon.called("delivery/wait", 2);
    expect(daemon.seen("delivery/wait").map(({ params }) => params["until"])).toEqual(["delivered", "inserted"]);
  });
});

describe("the promises", () => {
  it.each(["inserted", "prepared", "delivered", "answered"] as const)(
    "%s resolves with the daemon's record",
    async (until) => {
      const record = delivery("d", upTo(until));
      settleWaits(record);
      const pushed = push();
      expect(await pushed[until]).toEqual(record);
      expect(pushed.current).toEqual(record);
    },
  );

  it("resolve with a later state, and at once when it is known", async () => {
    settleWaits(delivery("d", upTo("answered")));
    const pushed = push();
    expect((await pushed.inserted).state).toBe("answered");
    expect((await pushed.delivered).state).toBe("answered");
    expect(daemon.seen("delivery/wait")).toHaveLength(1);
  });

  it("resolve by notification when the session is subscribed, before the wait is answered", async () => {
    await client.session(sessionId).events().ready;
    const pushed = push();
    const delivered = pushed.delivered;
    await daemon.called("delivery/wait");
    notify(delivery("d", upTo("prepared")));
    notify(delivery("other", upTo("answered")));
    notify(delivery("d", upTo("delivered")));
    expect((await delivered).state).toBe("delivered");
    expect(pushed.state).toBe("delivered");
  });

  it("ask again when a wait's time limit is over", async () => {
    let asked = 0;
    daemon.answer("delivery/wait", () => {
      asked += 1;
      if (asked < 3) throw new WireError("deadline_exceeded", "not yet");
      return delivery("d", upTo("delivered"));
    });
    expect((await push().delivered).state).toBe("delivered");
    expect(asked).toBe(3);
  });

  const unmet: readonly [WaitUntil, Delivery][] = [
    ["inserted", delivery("d", ["accepted", "held", "parked"], because("abort"))],
    ["delivered", delivery("d", [...upTo("prepared"), "parked"], because("run_failed"))],
    ["delivered", delivery("d", ["accepted", "dropped"], because("clear_queue"))],
    ["delivered", delivery("d", ["accepted", "cancelled"])],
    ["delivered", delivery("d", ["accepted", "expired"])],
    ["prepared", delivery("d", ["accepted", "failed"], because("session_lost"))],
    ["delivered", delivery("d", [...upTo("prepared"), "unknown"], because("session_closed"))],
    ["answered", delivery("d", upTo("delivered"), because("unanswered_aborted"))],
  ];
  it.each(unmet)("%s rejects with the record of a delivery that will not reach it: %j", async (until, record) => {
    settleWaits(record);
    const error: unknown = await push()[until].catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(DeliveryError);
    expect(error).toMatchObject({ kind: "delivery", delivery: record, until });
    const why = record.reason === undefined ? record.state : `${record.state} (${record.reason.code}: in words)`;
    expect((error as Error).message).toBe(`Delivery d did not reach "${until}": it is ${why}`);
  });

  it("start again after a parked delivery continued", async () => {
    const parked = delivery("d", ["accepted", "held", "parked"], because("abort"));
    settleWaits(parked);
    const pushed = push();
    await expect(pushed.delivered).rejects.toMatchObject({ delivery: parked });
    await expect(pushed.delivered).rejects.toMatchObject({ delivery: parked });
    settleWaits(delivery("d", [...parked.history.map(({ state }) => state), "inserted", "prepared", "delivered"]));
    expect((await pushed.delivered).state).toBe("delivered");
  });

  it("reject with the push's error, without an unhandled rejection", async () => {
    daemon.answer("delivery/push", () => {
      throw new WireError("too_large", "The content exceeds its limit.");
    });
    const pushed = push();
    await expect(pushed.answered).rejects.toMatchObject({ kind: "too_large" });
    await expect(pushed.accepted).rejects.toBeInstanceOf(WireError);
    expect(pushed.state).toBeUndefined();
    expect(daemon.seen("delivery/wait")).toEqual([]);
    const unsendable = client.session(sessionId).push({ customType: "-", content: "" });
    await expect(unsendable.accepted).rejects.toMatchObject({ kind: "invalid_params" });
    expect(diagnostics).toMatchObject([
      { kind: "push_failed", deliveryId: "d", error: { kind: "too_large" } },
      { kind: "push_failed", deliveryId: unsendable.id },
    ]);
  });

  it("reject when the socket dies during the push or a wait, handled or not, with reconnect: false", async () => {
    await client.close();
    client = await daemon.connect({ reconnect: false });
    const waiting = push();
    const promises = [waiting.inserted, waiting.prepared, waiting.delivered, waiting.answered];
    await daemon.called("delivery/wait", 4);
    daemon.answer("delivery/push", () => noAnswer);
    const unanswered = client.session(sessionId).push({ ...message, deliveryId: "e" });
    void unanswered.delivered;
    void unanswered.answered;
    await daemon.called("delivery/push", 2);
    daemon.breakSockets();
    await client.closed;
    // Only two are read: an unhandled rejection of the others would fail the run.
    await expect(promises[2]).rejects.toMatchObject({ kind: "connection_closed", code: 1006 });
    await expect(unanswered.accepted).rejects.toMatchObject({ kind: "connection_closed" });
    await expect(client.session(sessionId).push(message).delivered).rejects.toMatchObject({
      kind: "connection_closed",
    });
  });

  it("reject when the client is closed", async () => {
    const { delivered } = push();
    await daemon.called("delivery/wait");
    await client.close();
    await expect(delivered).rejects.toMatchObject({ kind: "connection_closed", code: 1000 });
  });

  it("reject with the reason of the push's signal, at any point", async () => {
    const controller = new AbortController();
    const pushed = client.session(sessionId).push(message, { signal: controller.signal });
    const { delivered } = pushed;
    await daemon.called("delivery/wait");
    controller.abort(new Error("too long"));
    await expect(delivered).rejects.toThrow("too long");
    await expect(pushed.inserted).rejects.toThrow("too long");
    await daemon.called("$/cancelRequest");
  });
});

describe("wait", () => {
  it("waits for `delivered` by default, and only its own signal ends it", async () => {
    const pushed = push();
    const controller = new AbortController();
    const aborted = pushed.wait("inserted", { signal: controller.signal });
    const waiting = pushed.wait();
    await daemon.called("delivery/wait", 2);
    controller.abort(new Error("too long"));
    await expect(aborted).rejects.toThrow("too long");
    settleWaits(delivery("d", upTo("delivered")));
    await client.session(sessionId).events().ready;
    notify(delivery("d", upTo("delivered")));
    expect((await waiting).state).toBe("delivered");
    await expect(pushed.wait("answered", { signal: controller.signal })).rejects.toThrow("too long");
  });

  it("ends on its signal while the push itself is not answered", async () => {
    daemon.answer("delivery/push", () => noAnswer);
    const pushed = push();
    const controller = new AbortController();
    const waiting = pushed.wait("delivered", { signal: controller.signal });
    await daemon.called("delivery/push");
    controller.abort(new Error("too long"));
    await expect(waiting).rejects.toThrow("too long");
  });
});

describe("session.delivery", () => {
  it("follows a delivery that was pushed before", async () => {
    daemon.answer("delivery/get", ({ deliveryId }) => delivery(deliveryId, upTo("inserted")));
    settleWaits(delivery("d", upTo("delivered")));
    const known = client.session(sessionId).delivery("d");
    expect((await known.accepted).state).toBe("inserted");
    expect((await known.delivered).state).toBe("delivered");
    expect((await known.get()).state).toBe("inserted");
    expect(known.state).toBe("delivered");
  });

  it("rejects for one that the daemon does not know", async () => {
    daemon.answer("delivery/get", () => {
      throw new WireError("delivery_not_found", "No delivery has this id.");
    });
    await expect(client.session(sessionId).delivery("d").delivered).rejects.toMatchObject({
      kind: "delivery_not_found",
    });
  });
});

describe("updates", () => {
  const states = async (
    pushed: DeliveryHandle,
  ): Promise<{ readonly states: readonly string[]; readonly error?: unknown }> => {
    const seen: string[] = [];
    try {
      for await (const { state } of pushed.updates()) seen.push(state);
      return { states: seen };
    } catch (error) {
      return { states: seen, error };
    }
  };

  it("yields each state from the current one to the last", async () => {
    daemon.answer("delivery/get", () => delivery("d", upTo("accepted")));
    const pushed = push();
    const seen = states(pushed);
    await daemon.called("delivery/get");
    for (const state of ladder.slice(1)) notify(delivery("d", upTo(state)));
    expect(await seen).toEqual({ states: ladder });
    await daemon.called("session/unsubscribe");
    expect(await states(pushed)).toEqual({ states: ["answered"] });
    expect(daemon.seen("session/subscribe")).toHaveLength(1);
  });

  it("catches up on events before the subscription, and never goes back", async () => {
    daemon.answer("session/subscribe", () => {
      notify(delivery("d", upTo("held")));
      return { cursor: 1, epoch: "e" };
    });
    daemon.answer("delivery/get", () => {
      notify(delivery("d", upTo("prepared")));
      return delivery("d", upTo("inserted"));
    });
    const seen = states(push());
    await daemon.called("delivery/get");
    notify(delivery("d", upTo("delivered")));
    notify(delivery("d", upTo("delivered"), because("unanswered_error")));
    const { states: all } = await seen;
    expect(all.filter((state) => state !== "inserted" && state !== "accepted")).toEqual([
      "held",
      "prepared",
      "delivered",
      "delivered",
    ]);
  });

  it("continues through a parked state", async () => {
    daemon.answer("delivery/get", () => delivery("d", upTo("prepared")));
    const seen = states(push());
    await daemon.called("delivery/get");
    await client.info();
    notify(delivery("d", [...upTo("prepared"), "parked"], because("run_failed")));
    notify(delivery("d", [...upTo("prepared"), "parked", "prepared", "delivered", "answered"]));
    expect((await seen).states).toEqual(["accepted", "prepared", "parked", "answered"]);
  });

  it("ends when the loop is left, and unsubscribes", async () => {
    daemon.answer("delivery/get", () => delivery("d", upTo("accepted")));
    for await (const { state } of push().updates()) {
      expect(state).toBe("accepted");
      break;
    }
    await daemon.called("session/unsubscribe");
  });

  it("ends when the session is closed or the client is", async () => {
    daemon.answer("delivery/get", () => delivery("d", upTo("accepted")));
    const closing = states(push());
    await daemon.called("delivery/get");
    daemon.notify("session/updated", { sessionId, seq: 9, at: 1, session: sessionInfo({ state: "closed" }) });
    expect(await closing).toEqual({ states: ["accepted"] });
    const open = states(push());
    await daemon.called("delivery/get", 2);
    await client.close();
    expect(await open).toEqual({ states: ["accepted"] });
  });

  it("throws the refusal of the push, when the socket dies for good, and on its signal", async () => {
    await client.close();
    client = await daemon.connect({ reconnect: false });
    daemon.answer("delivery/get", () => delivery("d", upTo("accepted")));
    const controller = new AbortController();
    const aborted = client.session(sessionId).push(message).updates({ signal: controller.signal });
    await aborted.next();
    controller.abort(new Error("enough"));
    await expect(aborted.next()).rejects.toThrow("enough");
    expect(await aborted.next()).toEqual({ done: true, value: undefined });
    await expect(push().updates({ signal: controller.signal }).next()).rejects.toThrow("enough");

    const dying = states(push());
    await daemon.called("delivery/get");
    daemon.answer("delivery/push", () => {
      throw new WireError("session_not_found", "No session has this id.");
    });
    expect(await states(client.session(sessionId).push(message))).toMatchObject({
      states: [],
      error: { kind: "session_not_found" },
    });
    daemon.breakSockets();
    expect(await dying).toMatchObject({ error: { kind: "connection_closed" } });
  });
});

function because(code: ReasonCode): Pick<Delivery, "reason"> {
  return { reason: { code, message: "in words" } };
}
