import type { DeliveryHandle } from "../../../client/index.ts";
import { Gate } from "../../../provider/gate.ts";
import { answer, delayed, errorEvent, hang, hold, overflow, reset, status } from "../../../provider/reply.ts";
import type { Source } from "../../../provider/script.ts";
import type { Cell } from "./matrix-stage.ts";

/** How the provider answers the requests that carry the push, and the required result. */
export interface ProviderAct {
  readonly name: string;
  readonly needsHistory?: true;
  /** Replies to the requests that carry the push, and other actions at the same time. */
  readonly make: () => { readonly replies: readonly Source[]; readonly act?: Act };
  readonly end: string;
  readonly attempts: readonly string[];
  /** The required result directly after a compaction, if it differs. */
  readonly afterCompaction?: { readonly end: string; readonly attempts: readonly string[] };
}

type Act = (cell: Cell, delivery: DeliveryHandle) => Promise<void>;

const got = "delivered headers 200 confirmed";

/** What the provider does in the middle of an answer after pi has seen the headers. */
function midStream(broken: ReturnType<typeof errorEvent>): ReturnType<ProviderAct["make"]> {
  const gate = new Gate();
  return {
    replies: [answer("Unders", hold(gate), broken)],
    act: async (_cell, delivery) => {
      await delivery.delivered;
      gate.open();
    },
  };
}

export const providerActs: readonly ProviderAct[] = [
  { name: "200", make: () => ({ replies: [answer("Good.")] }), end: "answered", attempts: [got] },
  {
    name: "529, then 200",
    make: () => ({ replies: [status(529), answer("Good.")] }),
    end: "answered",
    attempts: ["failed 529 confirmed", got],
  },
  {
    name: "529 until pi gives up",
    make: () => ({ replies: [status(529), status(529), status(529), status(529)] }),
    end: "parked run_failed",
    attempts: Array.from({ length: 4 }, () => "failed 529 confirmed"),
  },
  {
    name: "401",
    make: () => ({ replies: [status(401)] }),
    end: "parked run_failed",
    attempts: ["failed 401 confirmed"],
  },
  {
    name: "400",
    make: () => ({ replies: [status(400)] }),
    end: "parked run_failed",
    attempts: ["failed 400 confirmed"],
  },
  {
    name: "hangs before the headers, then abort",
    make: () => {
      const gate = new Gate();
      return {
        replies: [delayed(hold(gate), hang())],
        act: async (cell) => {
          await gate.reached;
          await cell.session.abort();
        },
      };
    },
    end: "parked abort",
    attempts: ["aborted confirmed"],
  },
  {
    name: "hangs in the middle, then abort",
    make: () => ({
      replies: [answer("Unders", hang())],
      act: async (cell, delivery) => {
        await delivery.delivered;
        await cell.session.abort();
      },
    }),
    end: "delivered unanswered_aborted",
    attempts: [got],
  },
  {
    name: "resets before the headers, then 200",
    make: () => ({ replies: [reset(), answer("Good.")] }),
    end: "answered",
    attempts: ["failed confirmed", got],
  },
  {
    name: "resets before the headers until pi gives up",
    make: () => ({ replies: [reset(), reset(), reset(), reset()] }),
    end: "parked run_failed",
    attempts: Array.from({ length: 4 }, () => "failed confirmed"),
  },
  {
    name: "resets in the middle, then 200",
    make: () => midStream(reset()),
    end: "answered",
    attempts: [got, got],
  },
  {
    name: "resets in the middle, then refuses",
    make: () => {
      const { replies, ...rest } = midStream(reset());
      return { replies: [...replies, status(400)], ...rest };
    },
    end: "delivered unanswered_error",
    attempts: [got, "failed 400 confirmed"],
  },
  {
    name: "200 with an error event in the middle, then 200",
    make: () => midStream(errorEvent()),
    end: "answered",
    attempts: [got, got],
  },
  {
    name: "context overflow, then compaction and 200",
    needsHistory: true,
    make: () => ({ replies: [overflow(), answer("Good.")] }),
    end: "answered",
    attempts: ["failed 400 confirmed", got],
    // pi finds nothing more to compact, and stops.
    afterCompaction: { end: "parked run_failed", attempts: ["failed 400 confirmed"] },
  },
];
