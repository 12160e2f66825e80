import { expect, test } from "vitest";
import { lastEvents } from "../../../server/log/last-events.ts";
import { memoryLog } from "../../helpers/logs.ts";

const generation = 2;
const pending = [{ id: "build", title: "A build" }];

/** A log of pi's events of a generation, and of the daemon's own notifications. */
function logOf() {
  const log = memoryLog();
  return {
    log,
    pi: (type: string, more: object = {}, of = generation) =>
      log.appendEvent(Buffer.from(JSON.stringify({ type, ...more })), of, false),
    begins: (runId: string) => log.append("run/started", { runId }),
    look: (runId: string | undefined, upTo = log.cursor) => lastEvents(log, { upTo, generation, runId }),
  };
}

test("a child that goes on has the queue, and the background work, from before its run", () => {
  const { log, pi, begins, look } = logOf();
  pi("queue_update", { followUp: ["Then this."] });
  log.append("pending/updated", { pending });
  for (const runId of ["run-1", "run-2"]) {
    pi("agent_start");
    begins(runId);
    pi("message_end", { message: { role: "assistant", content: runId } });
  }
  const found = { queue: { followUp: ["Then this."] }, pending };
  expect(look("run-2")).toMatchObject(found);
  expect(look(undefined)).toMatchObject(found);
});

test("the agent's start that began a run is before the run's own start", () => {
  const { pi, begins, look } = logOf();
  pi("agent_start");
  pi("agent_end");
  pi("agent_settled");
  pi("agent_start");
  begins("run-1");
  expect(look("run-1").agent).toEqual({ type: "agent_start" });
});

test("what ended an earlier run says nothing of this one", () => {
  const { pi, begins, look } = logOf();
  pi("agent_start");
  begins("run-1");
  pi("message_end", { message: { role: "assistant", content: "Done." } });
  pi("agent_end");
  pi("agent_settled");
  expect(look(undefined)).toEqual({ agent: { type: "agent_end" }, pending: [] });
  begins("run-2");
  expect(look("run-2")).toEqual({ agent: { type: "agent_end" }, pending: [] });
});

test("an agent that may have settled in its run is told with its start", () => {
  const { pi, begins, look } = logOf();
  pi("agent_start");
  begins("run-1");
  pi("agent_settled", { aborted: false });
  expect(look("run-1")).toMatchObject({ agent: { type: "agent_start" }, settled: { aborted: false } });
});

test("neither later notifications nor those of an earlier child are looked at", () => {
  const { log, pi, look } = logOf();
  pi("queue_update", { followUp: ["Of another child."] }, generation - 1);
  pi("compaction_start");
  const upTo = log.cursor;
  pi("compaction_end");
  expect(look(undefined, upTo)).toEqual({ compaction: { type: "compaction_start" }, pending: [] });
});
