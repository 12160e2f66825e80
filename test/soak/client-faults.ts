import type { Params } from "../../protocol/methods.ts";
import type { Actor } from "./actor.ts";
import type { Pushed } from "./ledger.ts";
import type { Operation } from "./operation.ts";

/** Repeats a push by its id. A second delivery by the daemon is recorded as a violation. */
export async function again(actor: Actor, pushed: Pushed): Promise<boolean> {
  const askedAt = Date.now();
  const peer = await actor.world.peer(actor.random);
  const called = await actor.world.callBy(peer, "delivery/push", pushed.params as Params<"delivery/push">);
  if (called.kind === "cut") return false;
  if (called.kind === "refused") {
    if (called.error.kind === "shutting_down") return false;
    complain(actor, pushed, `a push that was accepted was refused when it was repeated: ${called.error.message}`);
    return true;
  }
  actor.world.ledger.saw({ at: Date.now(), askedAt, from: "delivery/push", life: peer.life, delivery: called.result });
  return true;
}

function complain(actor: Actor, pushed: Pushed, message: string): void {
  actor.world.violations.push({ kind: "protocol", message, deliveryId: pushed.id, session: actor.name });
}

/** Faults of clients, and actions that clients take when they are unsure. */
export const clientFaults: readonly Operation[] = [
  {
    kind: "same id, same body",
    run: async (actor) => {
      const pushed = await actor.push();
      if (actor.random.chance(0.5)) await actor.pause(50);
      return await again(actor, pushed);
    },
  },
  {
    kind: "same id, other body",
    run: async (actor) => {
      const pushed = await actor.push();
      // The store may have failed at that moment.
      if (pushed.answer !== "accepted") return false;
      const params = { ...(pushed.params as Params<"delivery/push">), content: `${pushed.text} and more` };
      const called = await actor.world.call("delivery/push", params, actor.random);
      if (called.kind === "cut" || (called.kind === "refused" && called.error.kind === "shutting_down")) return false;
      const said = called.kind === "result" ? "accepted" : called.error.kind;
      if (said !== "conflict") complain(actor, pushed, `the same id with another body was not a conflict but ${said}`);
      return true;
    },
  },
  {
    kind: "same id, concurrently",
    run: async (actor) => {
      const pushed = actor.newPush();
      await Promise.all(Array.from({ length: 4 }, () => actor.bring(pushed)));
      return pushed.answer === "accepted";
    },
  },
  {
    kind: "connection cut in a push",
    run: async (actor) => {
      const size = actor.random.chance(0.2) ? "large" : "small";
      const pushed = actor.newPush({ size, deliverAs: "steer", triggerTurn: true });
      const peer = await actor.world.openPeer();
      await peer.callAndCut(
        "delivery/push",
        pushed.params as Params<"delivery/push">,
        actor.random.pick(["some", "all"]),
      );
      if (actor.random.chance(0.5)) await actor.pause(20);
      await actor.bring(pushed);
      return true;
    },
  },
];
