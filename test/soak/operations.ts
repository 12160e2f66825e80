import { Gate } from "../../provider/gate.ts";
import {
  answer,
  delay,
  delayed,
  errorEvent,
  hang,
  hold,
  overflow,
  type Reply,
  reset,
  status,
} from "../../provider/reply.ts";
import type { Actor } from "./actor.ts";
import { clientFaults } from "./client-faults.ts";
import { controls } from "./controls.ts";
import type { Operation } from "./operation.ts";
import { processFaults } from "./process-faults.ts";
import { storeFaults } from "./store-faults.ts";

/** A reaction of the provider to the session's next request, in any state of the agent. */
function provider(kind: string, reply: (actor: Actor) => Reply): Operation {
  return {
    kind,
    run: async (actor) => {
      const leave = await actor.enterAny();
      const fault = actor.plan(reply(actor));
      const pushing = actor.pushSome();
      await actor.pause(20);
      leave();
      await pushing;
      const taken = await actor.taken(fault);
      if (actor.random.chance(0.3)) await actor.push();
      return taken !== undefined;
    },
  };
}

/** The provider hangs, and the run is aborted. */
function hanging(kind: string, reply: (gate: Gate) => Reply): Operation {
  return {
    kind,
    run: async (actor) => {
      const gate = new Gate();
      const fault = actor.plan(reply(gate));
      await actor.pushSome();
      if ((await actor.taken(fault)) === undefined) return false;
      await actor.soon(gate.reached);
      if (actor.random.chance(0.5)) await actor.push();
      await actor.pause(15);
      await actor.abort();
      return true;
    },
  };
}

const providerFaults: readonly Operation[] = [
  provider("provider 529, then 200", () => status(529)),
  {
    kind: "provider 529 until retries are exhausted",
    run: async (actor) => {
      const faults = Array.from({ length: 4 }, () => actor.plan(status(529)));
      await actor.pushSome();
      const taken = await Promise.all(faults.map((fault) => actor.taken(fault)));
      return taken.every((entry) => entry !== undefined);
    },
  },
  provider("provider 400", () => status(400)),
  provider("provider 401", () => status(401)),
  provider("provider resets before headers", () => reset()),
  provider("provider resets mid-stream", () => answer("Half an ", reset())),
  provider("provider sends an error event mid-stream", () => answer("Half an ", errorEvent())),
  provider("provider is slow", ({ random }) =>
    delayed(delay(random.integer(20, 200)), answer("Slow", delay(random.integer(10, 100)), "ly.")),
  ),
  hanging("provider hangs before headers, abort", (gate) => delayed(hold(gate), answer("Never."))),
  hanging("provider hangs mid-stream, abort", (gate) => answer("Half an ", hold(gate), hang())),
  {
    kind: "provider says the context is full, compaction",
    run: async (actor) => {
      // A transcript of a few turns, so that there is something to compact.
      await actor.prompt();
      await actor.quiet();
      const fault = actor.plan(overflow());
      await actor.pushSome();
      return (await actor.taken(fault)) !== undefined;
    },
  },
];

/** All operations, one row each. */
export const operations: readonly Operation[] = [
  ...providerFaults,
  ...controls,
  ...processFaults,
  ...clientFaults,
  ...storeFaults,
];
