import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { expect, test } from "vitest";
import { HandOver } from "../../../extension/delivery/hand-over.ts";
import { InsertedPushes } from "../../../extension/delivery/inserted.ts";
import type { OutwardBody } from "../../../extension/link/outbound.ts";
import { emptyMemory } from "../../../extension/memory.ts";
import { RunWatch } from "../../../extension/run-watch.ts";
import { CARRIER_TYPE } from "../../../protocol/link.ts";
import { unchecked } from "../../helpers/partial.ts";
import { heldPush } from "./pushes.ts";
import { session } from "./session.ts";

/**
 * A fake pi that does what the real one does only in rare moments: it starts no run, refuses a message, is busy for
 * long.
 */
function fakePi() {
  const memory = emptyMemory();
  const run = new RunWatch(memory);
  const reader = session();
  const sent: OutwardBody[] = [];
  const faults: string[] = [];
  const pi = { isBusy: false, startsRuns: true, appends: true, waits: 0, starts: [] as string[] };
  const ctx = { sessionManager: reader, isIdle: () => !pi.isBusy } as unknown as ExtensionContext;
  const handOver = new HandOver({
    memory,
    run,
    inserted: new InsertedPushes(memory.inserted),
    pi: {
      sendMessage: (message, options) => {
        if (options?.triggerTurn === true) {
          pi.starts.push(message.customType);
          pi.isBusy = true;
          if (!pi.startsRuns) return;
        }
        if (pi.appends) reader.add({ type: "custom_message", id: `e${reader.entries.length}`, ...message });
      },
    },
    send: (frame) => sent.push(frame),
    fault: (where, thrown) => faults.push(`${where}: ${String(thrown)}`),
    wait: () => {
      pi.waits += 1;
    },
  });
  const entries = (): unknown[] =>
    reader.entries.map((entry) =>
      entry.type === "custom_message"
        ? (entry.details as { "pi-rpcd"?: { deliveryId: string } } | undefined)?.["pi-rpcd"]?.deliveryId
        : "?",
    );
  return { pi, ctx, handOver, run, memory, sent, faults, entries };
}

test("a run that pi does not start is requested again, and given up after three times", () => {
  const { pi, ctx, handOver, faults, entries } = fakePi();
  pi.startsRuns = false;
  handOver.hold([heldPush("d1")], ctx);
  for (let n = 0; n < 3; n += 1) {
    handOver.retry(ctx);
    pi.isBusy = false;
    handOver.retry(ctx);
  }
  pi.isBusy = false;
  handOver.retry(ctx);
  expect(pi.starts).toHaveLength(3);
  expect(faults).toHaveLength(1);
  expect(handOver.held()).toEqual(["d1"]);
  pi.startsRuns = true;
  handOver.hold([heldPush("d2")], ctx);
  expect(entries()).toEqual(["d1", "d2"]);
});

test("until the run that a push starts is seen, the push is not handed over again", () => {
  const { pi, ctx, handOver } = fakePi();
  pi.startsRuns = false;
  handOver.hold([heldPush("d1")], ctx);
  handOver.retry(ctx);
  handOver.hold([heldPush("d1"), heldPush("d2")], ctx);
  handOver.retry(ctx);
  expect(pi.starts).toHaveLength(1);
  expect(handOver.release(["d1", "d2", "d3"], ctx)).toEqual({ released: ["d2", "d3"], tooLate: [], pending: ["d1"] });
});

test("a message that pi does not append stays held", () => {
  const { pi, ctx, handOver, sent } = fakePi();
  pi.appends = false;
  expect(handOver.hold([heldPush("d1", { triggerTurn: false })], ctx)).toEqual({
    held: ["d1"],
    inserted: [],
    running: false,
  });
  pi.appends = true;
  handOver.retry(ctx);
  expect(sent).toEqual([{ kind: "inserted", deliveryIds: ["d1"] }]);
  expect(handOver.held()).toEqual([]);
});

test("while pi is busy without a run nothing is handed over, and the attempt is repeated", () => {
  const { pi, ctx, handOver, entries } = fakePi();
  pi.isBusy = true;
  expect(handOver.hold([heldPush("d1"), heldPush("d2", { triggerTurn: false })], ctx)).toMatchObject({
    held: ["d1", "d2"],
    running: false,
  });
  expect(pi.waits).toBe(1);
  handOver.retry(ctx);
  expect(pi.waits).toBe(2);
  pi.isBusy = false;
  handOver.retry(ctx);
  expect(entries()).toEqual(["d1", "d2"]);
});

test("while a prompt is being processed no run is started by itself", () => {
  const { pi, ctx, handOver, run } = fakePi();
  pi.isBusy = true;
  handOver.hold([heldPush("d1")], ctx);
  pi.isBusy = false;
  run.prompted();
  handOver.retry(ctx);
  expect(pi.starts).toEqual([]);
});

test("while pi may still be reporting that a run has settled, a carrier starts the next", () => {
  const { pi, ctx, handOver, run, entries } = fakePi();
  pi.isBusy = true;
  handOver.hold([heldPush("d1")], ctx);
  run.started(ctx);
  pi.isBusy = false;
  handOver.retry(ctx);
  expect(pi.starts).toEqual([]);
  handOver.settled(run.settled(unchecked({ type: "agent_settled", aborted: false })), ctx);
  expect(pi.starts).toEqual([CARRIER_TYPE]);
  expect(entries()).toEqual(["d1", undefined]);
});
