import { expect, test } from "vitest";
import { Gate } from "../../../provider/gate.ts";
import { answer, call, hold } from "../../../provider/reply.ts";
import { startProvider } from "../../../provider/server.ts";
import { push, startPi } from "./driver.ts";
import { sharePi } from "./shared-pi.ts";

const shared = sharePi();

const delivered = ["inserted", "prepared", "delivered headers 200 confirmed", "answered"];

test("a steering push during a tool call is in the very next request", async () => {
  await using lent = await shared.use();
  const { pi, provider } = lent;
  const tool = pi.blockingCommand();
  provider.add(answer(call("bash", { command: tool.command })), "Done.");
  await pi.rpc({ type: "prompt", message: "Run it." });
  await pi.event("tool_execution_start");
  expect(await pi.hold(push("d1", "Stop using tabs."))).toEqual({ held: ["d1"], inserted: [], running: true });
  await tool.release();
  expect(await pi.settled()).toMatchObject({ aborted: false, failed: false, held: [] });
  expect(pi.receiptsOf("d1")).toEqual(delivered);
  expect(provider.requests.map((request) => request.countText("Stop using tabs."))).toEqual([0, 1]);
  expect(provider.requests[1]?.messages.at(-1)?.texts).toEqual(["Stop using tabs."]);
});

test("several steering pushes enter one request, in order", async () => {
  await using lent = await shared.use();
  const { pi, provider } = lent;
  const tool = pi.blockingCommand();
  provider.add(answer(call("bash", { command: tool.command })), "Done.");
  await pi.rpc({ type: "prompt", message: "Run it." });
  await pi.event("tool_execution_start");
  for (const n of [1, 2, 3, 4]) await pi.hold(push(`d${n}`, `Steer ${n}.`));
  await tool.release();
  await pi.settled();
  expect(provider.requests).toHaveLength(2);
  expect(provider.requests[1]?.messages.slice(-4).map(({ texts }) => texts[0])).toEqual(
    [1, 2, 3, 4].map((n) => `Steer ${n}.`),
  );
  for (const n of [1, 2, 3, 4]) expect(pi.receiptsOf(`d${n}`)).toEqual(delivered);
});

test("a steering push during the last answer of a run makes the run continue", async () => {
  const gate = new Gate();
  await using lent = await shared.use({ script: [answer("Hel", hold(gate), "lo."), "Indeed."] });
  const { pi, provider } = lent;
  await pi.rpc({ type: "prompt", message: "Say hello." });
  await gate.reached;
  await pi.hold(push("d1", "Say goodbye too."));
  gate.open();
  await pi.settled();
  expect(pi.receiptsOf("d1")).toEqual(delivered);
  expect(provider.requests.map((request) => request.countText("Say goodbye too."))).toEqual([0, 1]);
});

test("a follow-up push is inserted when the run would end", async () => {
  await using lent = await shared.use();
  const { pi, provider } = lent;
  const tool = pi.blockingCommand();
  provider.add(answer(call("bash", { command: tool.command })), "Done.", "And that too.");
  await pi.rpc({ type: "prompt", message: "Run it." });
  await pi.event("tool_execution_start");
  await pi.hold(
    push("d1", "Then clean up.", { deliverAs: "followUp" }),
    push("d2", "And write it down.", { deliverAs: "followUp" }),
  );
  await tool.release();
  await pi.settled();
  expect(pi.frames("settled")).toHaveLength(1);
  expect(provider.requests.map((request) => request.countText("Then clean up."))).toEqual([0, 0, 1]);
  expect(provider.requests[2]?.messages.slice(-2).map(({ texts }) => texts[0])).toEqual([
    "Then clean up.",
    "And write it down.",
  ]);
  expect(pi.receiptsOf("d1")).toEqual(delivered);
  expect(pi.receiptsOf("d2")).toEqual(delivered);
});

test("a push that wants no run is appended at the turn's end and causes no request", async () => {
  const gate = new Gate();
  await using lent = await shared.use({ script: [answer("Hel", hold(gate), "lo.")] });
  const { pi, provider } = lent;
  await pi.rpc({ type: "prompt", message: "Say hello." });
  await gate.reached;
  await pi.hold(
    push("d1", "A note.", { triggerTurn: false }),
    push("d2", "Another.", { triggerTurn: false, deliverAs: "followUp" }),
  );
  gate.open();
  expect(await pi.settled()).toMatchObject({ held: [] });
  expect(provider.requests).toHaveLength(1);
  expect(await pi.inserted()).toEqual(["d1", "d2"]);
  expect(pi.receiptsOf("d1")).toEqual(["inserted"]);
  await pi.rpc({ type: "prompt", message: "Go on." });
  await pi.settled(2);
  expect(pi.receiptsOf("d1")).toEqual(delivered);
  expect(pi.receiptsOf("d2")).toEqual(delivered);
});

test("a push that wants no run enters the next request of a run that continues anyway", async () => {
  await using lent = await shared.use();
  const { pi, provider } = lent;
  const tool = pi.blockingCommand();
  provider.add(answer(call("bash", { command: tool.command })), "Done.");
  await pi.rpc({ type: "prompt", message: "Run it." });
  await pi.event("tool_execution_start");
  await pi.hold(push("d1", "A note.", { triggerTurn: false }));
  await tool.release();
  await pi.settled();
  expect(provider.requests.map((request) => request.countText("A note."))).toEqual([0, 1]);
  expect(pi.receiptsOf("d1")).toEqual(delivered);
});

test("a push for the next turn stays out of a run", async () => {
  const gate = new Gate();
  await using lent = await shared.use({ script: [answer("Hel", hold(gate), "lo.")] });
  const { pi, provider } = lent;
  await pi.rpc({ type: "prompt", message: "Say hello." });
  await gate.reached;
  await pi.hold(push("d1", "Later.", { deliverAs: "nextTurn" }));
  expect(await pi.send({ kind: "beforePrompt" })).toEqual({ held: ["d1"], inserted: [], running: true });
  gate.open();
  expect(await pi.settled()).toMatchObject({ held: ["d1"] });
  expect(provider.requests).toHaveLength(1);
});

test("a push that is given up during a tool call is in no request and in no file", async () => {
  await using lent = await shared.use();
  const { pi, provider } = lent;
  const tool = pi.blockingCommand();
  provider.add(answer(call("bash", { command: tool.command })), "Done.");
  await pi.rpc({ type: "prompt", message: "Run it." });
  await pi.event("tool_execution_start");
  await pi.hold(push("d1", "Never mind."), push("d2", "Do mind."));
  expect(await pi.send({ kind: "release", deliveryIds: ["d1"] })).toEqual({
    released: ["d1"],
    tooLate: [],
    pending: [],
  });
  await tool.release();
  await pi.settled();
  expect(pi.receiptsOf("d1")).toEqual([]);
  expect(await pi.inserted()).toEqual(["d2"]);
});

test("a prompt and a push in the same run both reach the model once", async () => {
  await using lent = await shared.use();
  const { pi, provider } = lent;
  const tool = pi.blockingCommand();
  provider.add(answer(call("bash", { command: tool.command })), "Done.", "Done again.");
  await pi.rpc({ type: "prompt", message: "Run it." });
  await pi.event("tool_execution_start");
  await pi.rpc({ type: "prompt", message: "Typed meanwhile.", streamingBehavior: "steer" });
  await pi.hold(push("d1", "Pushed meanwhile."));
  await tool.release();
  await pi.settled();
  expect(provider.requests[1]?.countText("Typed meanwhile.")).toBe(1);
  expect(provider.requests[1]?.countText("Pushed meanwhile.")).toBe(1);
  expect(provider.requests).toHaveLength(2);
});

test("drafts lost to another extension's fault are proposed again at the next boundary", async () => {
  await using provider = await startProvider();
  await using pi = await startPi({ provider, after: ["bad-drafts"] });
  const tool = pi.blockingCommand();
  provider.add(answer(call("bash", { command: tool.command })), "Done.", "Indeed.");
  await pi.rpc({ type: "prompt", message: "Run it." });
  await pi.event("tool_execution_start");
  await pi.hold(push("d1", "Not lost."));
  await tool.release();
  await pi.settled();
  expect(provider.requests.map((request) => request.countText("Not lost."))).toEqual([0, 0, 1]);
  expect(pi.receiptsOf("d1")).toEqual(delivered);
  expect(await pi.inserted()).toEqual(["d1"]);
});

test("another extension's drafts are kept, before and after the helper", async () => {
  await using provider = await startProvider();
  await using pi = await startPi({ provider, before: ["own-draft"] });
  const tool = pi.blockingCommand();
  provider.add(answer(call("bash", { command: tool.command })), "Done.");
  await pi.rpc({ type: "prompt", message: "Run it." });
  await pi.event("tool_execution_start");
  await pi.hold(push("d1", "Mine."));
  await tool.release();
  await pi.settled();
  expect(provider.requests[1]?.messages.slice(-2).map(({ texts }) => texts[0])).toEqual([
    "A draft of another extension.",
    "Mine.",
  ]);
});
