import { expect, test } from "vitest";
import { Foreground } from "../../../../acp/v2/foreground.ts";

function start(): { foreground: Foreground; told: object[]; tools: { running: number } } {
  const told: object[] = [];
  const tools = { running: 1 };
  const send = ({ sessionUpdate: _kind, ...state }: { readonly sessionUpdate?: string }): void => void told.push(state);
  return { foreground: new Foreground({ send, runningTools: () => tools.running }), told, tools };
}

test("the state is told when it changes, with how the work has ended", () => {
  const { foreground, told } = start();
  foreground.run(false);
  foreground.run(true);
  foreground.run(true);
  foreground.run(false, { stopReason: "end_turn" });
  foreground.snapshot();
  foreground.snapshot(true);
  expect(told).toEqual([
    { state: "running" },
    { state: "idle", stopReason: "end_turn" },
    { state: "idle" },
    { state: "running" },
  ]);
});

test("a session is idle when neither a run nor a command is on", () => {
  const { foreground, told } = start();
  foreground.commandBegan();
  foreground.run(true);
  foreground.run(false, { stopReason: "error" });
  foreground.commandBegan();
  foreground.commandEnded({ stopReason: "end_turn" });
  expect(told).toEqual([{ state: "running" }]);
  foreground.commandEnded({ stopReason: "cancelled" });
  expect(told.slice(1)).toEqual([{ state: "idle", stopReason: "cancelled" }]);
});

test("an open question needs the user, unless another tool goes on", () => {
  const { foreground, told, tools } = start();
  foreground.asked("before a run");
  foreground.resolved("before a run");
  foreground.run(true);
  tools.running = 2;
  foreground.asked("one");
  expect(told).toEqual([{ state: "running" }]);
  tools.running = 1;
  foreground.look();
  foreground.asked("two");
  foreground.resolved("one");
  foreground.resolved("two");
  foreground.asked("two");
  expect(told).toEqual([{ state: "running" }, { state: "requires_action" }, { state: "running" }]);
  foreground.asked("three");
  foreground.forgetDialogs();
  foreground.asked("four");
  foreground.run(false);
  expect(told.slice(3)).toEqual([
    { state: "requires_action" },
    { state: "running" },
    { state: "requires_action" },
    { state: "idle" },
  ]);
});

test("the end of a run can be waited for", async () => {
  const { foreground } = start();
  await foreground.runOver;
  foreground.run(true);
  const over = foreground.runOver.then(() => "over");
  expect(await Promise.race([over, Promise.resolve("on")])).toBe("on");
  foreground.run(false);
  expect(await over).toBe("over");
});
