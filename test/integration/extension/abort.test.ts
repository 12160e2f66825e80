import { expect, test } from "vitest";
import { Gate } from "../../../provider/gate.ts";
import { answer, call, delayed, hang, hold } from "../../../provider/reply.ts";
import { startProvider } from "../../../provider/server.ts";
import { push, startPi } from "./driver.ts";
import { sharePi } from "./shared-pi.ts";

const shared = sharePi();

test("an abort before the headers ends the attempt as aborted", async () => {
  const gate = new Gate();
  await using lent = await shared.use({ script: [delayed(hold(gate), hang())] });
  const { pi } = lent;
  await pi.hold(push("d1", "Hello."));
  await gate.reached;
  await pi.rpc({ type: "abort" });
  expect(await pi.settled()).toMatchObject({ aborted: true, failed: false, held: [] });
  expect(pi.receiptsOf("d1")).toEqual(["inserted", "prepared", "aborted confirmed"]);
});

test("an abort in the middle of the answer leaves the push delivered and not answered", async () => {
  const gate = new Gate();
  await using lent = await shared.use({ script: [answer("Hel", hold(gate), "lo.")] });
  const { pi } = lent;
  await pi.hold(push("d1", "Hello."));
  await pi.event("message_update");
  await pi.rpc({ type: "abort" });
  expect(await pi.settled()).toMatchObject({ aborted: true });
  expect(pi.receiptsOf("d1")).toEqual(["inserted", "prepared", "delivered headers 200 confirmed"]);
  await pi.rpc({ type: "prompt", message: "Go on." });
  await pi.settled(2);
  expect(pi.receiptsOf("d1")).toHaveLength(3);
});

test("a steering push that an abort during a tool overtakes stays held, and goes before the next prompt", async () => {
  await using lent = await shared.use();
  const { pi, provider } = lent;
  const tool = pi.blockingCommand();
  provider.add(answer(call("bash", { command: tool.command })));
  await pi.rpc({ type: "prompt", message: "Run it." });
  await pi.event("tool_execution_start");
  await pi.hold(push("d1", "Parked."), push("d2", "For the next turn.", { deliverAs: "nextTurn", onAbort: "drop" }));
  await pi.hold(push("d3", "Dropped.", { onAbort: "drop" }));
  await pi.rpc({ type: "abort" });
  expect(await pi.settled()).toMatchObject({ aborted: true, held: ["d1"] });
  expect(pi.frames("dropped")).toMatchObject([{ deliveryIds: ["d2", "d3"], reason: "abort" }]);
  expect(await pi.inserted()).toEqual([]);
  expect(await pi.send({ kind: "beforePrompt" })).toEqual({ held: [], inserted: ["d1"], running: false });
  await pi.rpc({ type: "prompt", message: "Go on." });
  await pi.settled(2);
  expect(pi.receiptsOf("d1")).toEqual(["inserted", "prepared", "delivered headers 200 confirmed", "answered"]);
  expect(
    provider.requests
      .at(-1)
      ?.messages.slice(-2)
      .map(({ texts }) => texts[0]),
  ).toEqual(["Parked.", "Go on."]);
});

test("a push left by an abort keeps its place before later pushes, and starts no run by itself", async () => {
  await using lent = await shared.use();
  const { pi, provider } = lent;
  const tool = pi.blockingCommand();
  provider.add(answer(call("bash", { command: tool.command })));
  await pi.rpc({ type: "prompt", message: "Run it." });
  await pi.event("tool_execution_start");
  await pi.hold(push("d1", "Parked."));
  await pi.rpc({ type: "abort" });
  await pi.settled();
  await pi.hold(push("d2", "A note.", { triggerTurn: false }));
  expect(await pi.inserted()).toEqual(["d1", "d2"]);
  await pi.hold(push("d3", "Now."));
  await pi.settled(2);
  expect(await pi.inserted()).toEqual(["d1", "d2", "d3"]);
  for (const id of ["d1", "d2", "d3"]) expect(pi.receiptsOf(id).at(-1)).toBe("answered");
});

test("a push left by an abort enters, at its first boundary, a run that a prompt starts", async () => {
  await using lent = await shared.use();
  const { pi, provider } = lent;
  const tool = pi.blockingCommand();
  provider.add(answer(call("bash", { command: tool.command })), "One.", "Two.");
  await pi.rpc({ type: "prompt", message: "Run it." });
  await pi.event("tool_execution_start");
  await pi.hold(push("d1", "Parked."));
  await pi.rpc({ type: "abort" });
  await pi.settled();
  await pi.rpc({ type: "prompt", message: "Go on." });
  await pi.settled(2);
  expect(provider.requests.map((request) => request.countText("Parked."))).toEqual([0, 0, 1]);
  expect(pi.receiptsOf("d1").at(-1)).toBe("answered");
});

test("a request that pi only appears to make after an abort during a tool does not deliver", async () => {
  await using provider = await startProvider();
  // The push is never in a payload, so its delivery is still open when the tool runs.
  await using pi = await startPi({ provider, before: ["remove-marked"] });
  const tool = pi.blockingCommand();
  provider.add(answer(call("bash", { command: tool.command })));
  await pi.rpc({ type: "prompt", message: "Wait." });
  await pi.event("tool_execution_start");
  await tool.release();
  await pi.settled();
  const second = pi.blockingCommand();
  provider.add(answer(call("bash", { command: second.command })));
  await pi.hold(push("d1", "REMOVE ME"));
  await pi.event("tool_execution_start", ({ args }) => (args as { command: string }).command === second.command);
  const before = provider.requests.length;
  await pi.rpc({ type: "abort" });
  expect(await pi.settled(2)).toMatchObject({ aborted: true });
  expect(provider.requests).toHaveLength(before);
  expect(pi.receiptsOf("d1")).toEqual([
    "inserted",
    "prepared",
    "delivered headers 200 unverified",
    "prepared",
    "aborted unchecked",
  ]);
});
