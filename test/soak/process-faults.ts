import { setTimeout as sleep } from "node:timers/promises";
import { Gate } from "../../provider/gate.ts";
import { answer, delayed, hold } from "../../provider/reply.ts";
import type { Actor } from "./actor.ts";
import { again } from "./client-faults.ts";
import { cancel } from "./controls.ts";
import type { Operation } from "./operation.ts";

type ChildCue = "at random" | "before inserted" | "after inserted" | "after prepared" | "after headers";
type Cue = ChildCue | "after delivered" | "after answered" | "after cancelled";

const nothing = (): void => {};

/**
 * Pushes, and returns at the cue. The returned function lets a request continue that waits: one whose pi survives would
 * wait forever. Undefined: the cue did not come.
 */
async function onCue(actor: Actor, cue: Cue): Promise<(() => void) | undefined> {
  switch (cue) {
    case "at random": {
      const leave = await actor.enterAny();
      const pushing = actor.pushSome();
      await actor.pause(60);
      // Calls that wait for an answer get it from the next life.
      void pushing.finally(leave);
      return nothing;
    }
    case "before inserted": {
      const leave = await actor.enter(actor.random.pick(["idle", "streaming"]));
      await actor.pushSome();
      void sleep(500).then(leave);
      return nothing;
    }
    case "after inserted": {
      const pushed = await actor.push({ deliverAs: "steer", triggerTurn: actor.random.chance(0.7) });
      return (await actor.reached(pushed, "inserted")) ? nothing : undefined;
    }
    case "after prepared": {
      const gate = new Gate();
      actor.plan(delayed(hold(gate), answer("Too late.")));
      const pushed = await actor.push({ deliverAs: "steer", triggerTurn: true });
      return leaving(gate, await actor.reached(pushed, "prepared"));
    }
    case "after headers": {
      const gate = new Gate();
      const planned = actor.plan(answer("Half ", hold(gate), "an answer."));
      await actor.push({ deliverAs: "steer", triggerTurn: true });
      const taken = await actor.taken(planned);
      return leaving(gate, taken !== undefined && (await actor.soon(taken.headersSent)));
    }
    case "after delivered":
    case "after answered": {
      const pushed = await actor.push({ deliverAs: "steer", triggerTurn: true });
      return (await actor.reached(pushed, cue === "after delivered" ? "delivered" : "answered")) ? nothing : undefined;
    }
    case "after cancelled": {
      const { id } = await actor.push({ deliverAs: "nextTurn" });
      return (await cancel(actor, id)) ? nothing : undefined;
    }
  }
}

/** Opens the gate of a cue that did not come in time: a request that takes the reply later would hang forever. */
function leaving(gate: Gate, isThere: boolean): (() => void) | undefined {
  if (isThere) return () => gate.open();
  gate.open();
  return undefined;
}

function childKilled(cue: ChildCue): Operation {
  return {
    kind: `child kill -9, ${cue}`,
    run: async (actor) => {
      const leave = await onCue(actor, cue);
      const pid = actor.childPid();
      const isKilled = leave !== undefined && actor.signalChild("SIGKILL");
      if (isKilled) await actor.childGone(pid);
      leave?.();
      if (!isKilled) return false;
      actor.world.plan.withdraw(actor.model);
      // Wakes the session: on its own it does so less and less often.
      await actor.pushSome();
      return true;
    },
  };
}

function daemonEnded(signal: "SIGKILL" | "SIGTERM", cue: Cue): Operation {
  return {
    kind: `daemon ${signal}`,
    run: async (actor) => {
      const before = actor.world.ledger.pushes.size;
      const leave = await onCue(actor, cue);
      if (leave === undefined) return false;
      await actor.world.replaceDaemon(signal);
      leave();
      actor.world.plan.withdraw(actor.model);
      const pushes = [...actor.world.ledger.pushes.values()].slice(before);
      const own = pushes.filter(({ session, answer: got }) => session === actor.name && got === "accepted");
      const repeated = await Promise.all(own.map((pushed) => again(actor, pushed)));
      if (repeated.includes(true)) actor.world.tally.count(repeatedAfterRestart);
      return true;
    },
  };
}

/** Counted with each end of a daemon, after which the pushes before it are repeated. */
export const repeatedAfterRestart = "same id, after a daemon's restart";

const childCues: readonly ChildCue[] = [
  "at random",
  "before inserted",
  "after inserted",
  "after prepared",
  "after headers",
];
/** Facts reported shortly before must still hold in the next life. */
const toldCues: readonly Cue[] = ["after delivered", "after answered", "after cancelled"];

/** Actions on processes. */
export const processFaults: readonly Operation[] = [
  ...childCues.map(childKilled),
  {
    kind: "daemon kill -9",
    run: (actor) => daemonEnded("SIGKILL", actor.random.pick(childCues)).run(actor),
  },
  {
    kind: "daemon kill -9, after a receipt",
    run: (actor) => daemonEnded("SIGKILL", actor.random.pick(toldCues)).run(actor),
  },
  daemonEnded("SIGTERM", "at random"),
  {
    kind: "child stopped and continued",
    run: async (actor) => {
      const leave = await actor.enterAny();
      const pid = actor.childPid();
      if (pid === undefined || !actor.signalChild("SIGSTOP")) return false;
      try {
        const pushing = actor.pushSome(4);
        await actor.soon(pushing, 2_000);
        await actor.pause(100);
      } finally {
        try {
          process.kill(pid, "SIGCONT");
        } catch {
          // It has ended in the meantime.
        }
        leave();
      }
      return true;
    },
  },
];
