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
  ["as pi says, whatever else was seen", "completed", (run) => run.turnEnded("completed", aborted), said(false)],
  ["failed when its last turn did", "failed", (run) => run.turnEnded("error", quiet), said(false)],
  ["failed where pi does not say", "failed", (run) => run.beforeSettle("error", quiet), silent],
  ["completed where pi does not say", "completed", (run) => run.beforeSettle("completed", quiet), silent],
  ["aborted where its last boundary is missing", "aborted", (run) => run.turnEnded("completed", quiet), silent],
  [
    "aborted by its signal",
    "aborted",
    (run) => {
      run.turnEnded("error", aborted);
      run.beforeSettle("error", quiet);
    },
    silent,
  ],
  [
    "completed behind a turn that failed and was tried again",
    "completed",
    (run) => {
      run.turnEnded("error", quiet);
      run.started(quiet);
      run.turnEnded("completed", quiet);
    },
    said(false),
  ],
])("a run has ended %s", ([, end, play, settled]) => {
  const run = new RunWatch(emptyMemory());
  run.started(quiet);
  play(run);
  expect(run.settled(settled)).toBe(end);
});

test("after a run has settled, only a frame or another run proves that pi is through with it", () => {
  const memory = emptyMemory();
  const run = new RunWatch(memory);
  run.started(quiet);
  run.frameCame();
  expect(memory.run.kind).toBe("running");
  run.settled(said(false));
  expect(memory.run.kind).toBe("settling");
  run.frameCame();
  expect(memory.run.kind).toBe("idle");
});

test("a prompt is waited for, and not for ever", () => {
  const run = new RunWatch(emptyMemory());
  run.prompted(1_000);
  expect(run.isPrompting(2_999)).toBe(true);
  expect(run.isPrompting(3_000)).toBe(false);
  run.started(quiet);
  expect(run.isPrompting(1_001)).toBe(false);
  run.prompted(1_000);
  expect(run.isPrompting(1_001)).toBe(false);
});
