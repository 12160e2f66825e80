import type { AgentSettledEvent, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { expect, test } from "vitest";
import { emptyMemory } from "../../../extension/memory.ts";
import { RunWatch } from "../../../extension/run-watch.ts";

const quiet = { signal: new AbortController().signal } as ExtensionContext;
const aborted = { signal: AbortSignal.abort() } as ExtensionContext;
const silent: AgentSettledEvent = { type: "agent_settled" };
const said = (isAborted: boolean): AgentSettledEvent =>
  ({ type: "agent_settled", aborted: isAborted }) as AgentSettledEvent;

type Ending = "completed" | "failed" | "aborted";

test.for<readonly [string, Ending, (run: RunWatch) => void, AgentSettledEvent]>([
  ["as pi says", "aborted", () => {}, said(true)],
  ["as pi says, whatever else was seen", "completed", (run) => run.answered("stop", aborted), said(false)],
  ["failed when its last answer did", "failed", (run) => run.answered("error", quiet), said(false)],
  [
    "failed where pi does not say",
    "failed",
    (run) => {
      run.answered("error", quiet);
      run.beforeSettle(quiet);
    },
    silent,
  ],
  ["completed if pi does not say", "completed", (run) => run.answered("toolUse", quiet), silent],
  [
    "aborted where its last boundary is missing after a failure",
    "aborted",
    (run) => run.answered("error", quiet),
    silent,
  ],
  [
    "aborted where its last boundary is missing after a compaction",
    "aborted",
    (run) => {
      run.answered("stop", quiet);
      run.compacted();
    },
    silent,
  ],
  [
    "aborted by its signal",
    "aborted",
    (run) => {
      run.answered("error", aborted);
      run.beforeSettle(quiet);
    },
    silent,
  ],
  [
    "completed after a turn that failed and was repeated",
    "completed",
    (run) => {
      run.answered("error", quiet);
      run.started(quiet);
      run.answered("stop", quiet);
    },
    said(false),
  ],
])("a run has ended %s", ([, end, play, settled]) => {
  const run = new RunWatch(emptyMemory());
  run.started(quiet);
  play(run);
  expect(run.settled(settled)).toBe(end);
});

test("the last boundary is requested if nothing else tells how the run ends", () => {
  const run = new RunWatch(emptyMemory());
  expect(run.needsSettleHook).toBe(false);
  run.started(quiet);
  expect(run.needsSettleHook).toBe(false);
  run.answered("error", quiet);
  expect(run.needsSettleHook).toBe(true);
  run.settled(said(false));
  run.started(quiet);
  run.answered("error", quiet);
  expect(run.needsSettleHook).toBe(false);
});

test("after a run has settled, only a frame or another run proves that pi has finished with it", () => {
  const memory = emptyMemory();
  const run = new RunWatch(memory);
  run.started(quiet);
  run.frameReceived();
  expect(memory.run.kind).toBe("running");
  run.settled(said(false));
  expect(memory.run.kind).toBe("settling");
  run.frameReceived();
  expect(memory.run.kind).toBe("idle");
});

test("a prompt is awaited, but not forever", () => {
  const run = new RunWatch(emptyMemory());
  run.prompted(1_000);
  expect(run.isPrompting(2_999)).toBe(true);
  expect(run.isPrompting(3_000)).toBe(false);
  run.started(quiet);
  expect(run.isPrompting(1_001)).toBe(false);
  run.prompted(1_000);
  expect(run.isPrompting(1_001)).toBe(false);
});
