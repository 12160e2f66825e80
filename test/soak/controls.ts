import type { Actor } from "./actor.ts";
import type { Operation } from "./operation.ts";

/** Cancels a push. Returns whether the daemon confirms it. */
export async function cancel(actor: Actor, deliveryId: string): Promise<boolean> {
  const called = await actor.world.call("delivery/cancel", { deliveryId }, actor.random);
  if (called.kind !== "result") return false;
  const { cancelled, delivery } = called.result;
  if (cancelled) actor.world.ledger.claimed("delivery/cancel", [{ deliveryId, state: delivery.state }]);
  return cancelled;
}

/** Actions of clients and extensions other than pushing. */
export const controls: readonly Operation[] = [
  {
    kind: "abort",
    run: async (actor) => {
      const leave = await actor.enter(actor.random.pick(["streaming", "waiting", "inTool"]));
      const pushing = Promise.all([actor.push(), actor.pushSome()]);
      await actor.pause(30);
      await actor.abort();
      leave();
      await pushing;
      return true;
    },
  },
  {
    kind: "clear the queue",
    run: async (actor) => {
      const leave = await actor.enter(actor.random.pick(["idle", "streaming", "inTool"]));
      const pushing = Promise.all([
        actor.push({ onClearQueue: "drop" }),
        actor.push({ onClearQueue: "drop", deliverAs: "nextTurn" }),
        actor.push(),
      ]);
      if (actor.random.chance(0.6)) await pushing;
      const { sessionId } = actor;
      const called = await actor.world.call("session/clearQueue", { sessionId }, actor.random);
      if (called.kind === "result") actor.world.ledger.claimed("session/clearQueue", called.result.deliveries);
      leave();
      await pushing;
      return called.kind === "result";
    },
  },
  {
    kind: "compaction on request",
    run: async (actor) => {
      await actor.prompt();
      await actor.quiet();
      await actor.push({ triggerTurn: false });
      const compacting = actor.command({ type: "compact" });
      await actor.pause(10);
      await actor.pushSome();
      return (await compacting).kind === "result";
    },
  },
  {
    kind: "reload inside pi",
    run: async (actor) => {
      if (actor.random.chance(0.5)) await actor.push({ deliverAs: "nextTurn" });
      const reloading = actor.prompt("/soak-reload");
      if (actor.random.chance(0.5)) await actor.pause(20);
      await actor.pushSome();
      return await reloading;
    },
  },
  {
    kind: "new session inside pi",
    run: async (actor) => {
      await actor.push({ deliverAs: "nextTurn" });
      const replacing = actor.prompt("/soak-new");
      await actor.pause(80);
      await actor.pushSome();
      const isReplaced = await replacing;
      await closeForeignSessions(actor);
      return isReplaced;
    },
  },
  {
    kind: "cancel",
    run: async (actor) => {
      const leave = await actor.enterAny();
      const pushes = await Promise.all([actor.push({ deliverAs: "nextTurn" }), actor.push(), actor.push()]);
      await actor.pause(20);
      const cancelling = pushes.map(({ id }) => cancel(actor, id));
      if (actor.random.chance(0.5)) leave();
      const results = await Promise.all(cancelling);
      leave();
      return results.includes(true);
    },
  },
  {
    kind: "expiry",
    run: async (actor) => {
      const leave = await actor.enterAny();
      const expiresAfterMs = actor.random.integer(1, 120);
      const pushes = await Promise.all([
        actor.push({ deliverAs: "nextTurn", expiresAfterMs }),
        actor.push({ deliverAs: actor.random.pick(["steer", "followUp"]), expiresAfterMs }),
      ]);
      await actor.pause(150);
      leave();
      const expired = await Promise.all(pushes.map((pushed) => actor.reached(pushed, "expired")));
      return expired.includes(true);
    },
  },
  {
    kind: "resend",
    run: async (actor) => {
      const leave = await actor.enter("waiting");
      const pushed = await actor.push({ deliverAs: "steer", triggerTurn: true, onAbort: "park" });
      await actor.abort();
      leave();
      if (!(await actor.reached(pushed, "parked"))) return false;
      const called = await actor.world.call("delivery/resend", { deliveryId: pushed.id }, actor.random);
      if (called.kind !== "result") return false;
      return await actor.reached(pushed, "delivered");
    },
  },
];

/** Closes the sessions that have taken over another one's pi, to limit their number. */
async function closeForeignSessions({ world, random }: Actor): Promise<void> {
  const listed = await world.call("session/list", {}, random);
  if (listed.kind !== "result") return;
  for (const { sessionId } of listed.result.sessions) {
    if (!world.isWatched(sessionId)) await world.call("session/close", { sessionId }, random);
  }
}
