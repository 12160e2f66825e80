import { expect, test } from "vitest";
import type { ScriptedName } from "../../../provider/agent-dir.ts";
import { startProvider } from "../../../provider/server.ts";
import { push, startPi } from "./driver.ts";
import { sharePi } from "./shared-pi.ts";

const shared = sharePi();

const delivered = ["inserted", "prepared", "delivered headers 200 confirmed", "answered"];

test("a push while idle is in one request, is delivered on the provider's headers, and is answered", async () => {
  await using lent = await shared.use({ script: ["Understood."] });
  const { pi, provider } = lent;
  const reply = await pi.hold(push("d1", "The build has failed."));
  expect(reply).toEqual({ held: ["d1"], inserted: [], running: true });
  expect(await pi.settled()).toMatchObject({ aborted: false, failed: false, held: [] });
  expect(pi.receiptsOf("d1")).toEqual(delivered);
  expect(provider.requests).toHaveLength(1);
  expect(provider.requests[0]?.countText("The build has failed.")).toBe(1);
  expect(await pi.inserted()).toEqual(["d1"]);
});

test.for<[ScriptedName, string]>([
  ["scripted-responses", "delivered headers 200 confirmed"],
  ["scripted-anthropic", "delivered headers 200 confirmed"],
  ["scripted-google", "delivered content confirmed"],
])("a push is delivered at %s with the evidence that its adapter gives", async ([api, verdict]) => {
  await using lent = await shared.use({ script: ["Understood."], api });
  const { pi } = lent;
  await pi.hold(push("d1", "The build has failed."));
  await pi.settled();
  expect(pi.receiptsOf("d1")).toEqual(["inserted", "prepared", verdict, "answered"]);
});

test.for<ScriptedName>(["scripted", "scripted-anthropic"])(
  "the first run of a session has prompt and tools at %s when a push starts it",
  async (api) => {
    await using provider = await startProvider({ script: ["One.", "Two.", "Three."] });
    await using pi = await startPi({ provider, api });
    await pi.hold(push("d1", "The first message of the session."));
    await pi.settled(1);
    await pi.rpc({ type: "prompt", message: "And now a prompt." });
    await pi.settled(2);
    await pi.hold(push("d2", "And another push."));
    await pi.settled(3);
    const prompts = provider.requests.map(({ messages }) => messages[0]?.texts.join("\n"));
    expect(prompts[0]).toContain("You are");
    expect(new Set(prompts).size).toBe(1);
    for (const { messages, toolNames } of provider.requests) {
      expect(toolNames).toContain("bash");
      expect(messages.filter(({ role }) => role === "system")).toHaveLength(1);
    }
  },
);

test("pushes that arrive together while idle enter one request, in order", async () => {
  await using lent = await shared.use();
  const { pi, provider } = lent;
  const reply = await pi.hold(
    push("d1", "First."),
    push("d2", "Second.", { triggerTurn: false }),
    push("d3", "Third.", { deliverAs: "followUp" }),
  );
  expect(reply).toEqual({ held: ["d3"], inserted: ["d1", "d2"], running: true });
  await pi.settled();
  expect(provider.requests).toHaveLength(1);
  expect(provider.requests[0]?.messages.slice(-3).map(({ texts }) => texts)).toEqual([
    ["First."],
    ["Second."],
    ["Third."],
  ]);
  for (const id of ["d1", "d2", "d3"]) expect(pi.receiptsOf(id)).toEqual(delivered);
});

test("a push that wants no run is appended immediately and is in the next request", async () => {
  await using lent = await shared.use();
  const { pi, provider } = lent;
  const reply = await pi.hold(push("d1", "For your information.", { triggerTurn: false }));
  expect(reply).toEqual({ held: [], inserted: ["d1"], running: false });
  expect(provider.requests).toHaveLength(0);
  await pi.rpc({ type: "prompt", message: "Go." });
  await pi.settled();
  expect(pi.receiptsOf("d1")).toEqual(delivered);
  expect(provider.requests[0]?.messages.slice(-2).map(({ texts }) => texts)).toEqual([
    ["For your information."],
    ["Go."],
  ]);
});

test("a push for the next turn waits for the prompt and precedes it", async () => {
  await using lent = await shared.use();
  const { pi, provider } = lent;
  expect(await pi.hold(push("d1", "Remember this.", { deliverAs: "nextTurn" }))).toEqual({
    held: ["d1"],
    inserted: [],
    running: false,
  });
  expect(await pi.send({ kind: "ping" })).toEqual({ running: false, held: ["d1"] });
  expect(await pi.send({ kind: "beforePrompt" })).toEqual({ held: [], inserted: ["d1"], running: false });
  await pi.rpc({ type: "prompt", message: "Go." });
  await pi.settled();
  expect(pi.receiptsOf("d1")).toEqual(delivered);
  expect(provider.requests).toHaveLength(1);
  expect(provider.requests[0]?.messages.slice(-2).map(({ texts }) => texts)).toEqual([["Remember this."], ["Go."]]);
});

test("a push that is held twice becomes one message", async () => {
  await using lent = await shared.use();
  const { pi } = lent;
  const twice = push("d1", "Only once.", { deliverAs: "nextTurn" });
  await pi.hold(twice);
  await pi.hold(twice, twice);
  await pi.send({ kind: "beforePrompt" });
  expect(await pi.hold(twice)).toEqual({ held: [], inserted: ["d1"], running: false });
  await pi.send({ kind: "beforePrompt" });
  expect(await pi.inserted()).toEqual(["d1"]);
});

test("a push can be given up only while it is held", async () => {
  await using lent = await shared.use();
  const { pi } = lent;
  await pi.hold(push("d1", "One.", { deliverAs: "nextTurn" }), push("d2", "Two.", { deliverAs: "nextTurn" }));
  expect(await pi.send({ kind: "release", deliveryIds: ["d1", "d9"] })).toEqual({
    released: ["d1", "d9"],
    tooLate: [],
    pending: [],
  });
  await pi.send({ kind: "beforePrompt" });
  expect(await pi.send({ kind: "release", deliveryIds: ["d2"] })).toEqual({
    released: [],
    tooLate: ["d2"],
    pending: [],
  });
  expect(await pi.inserted()).toEqual(["d2"]);
});

test("a carrier starts a run for a message in the transcript, and is in no request", async () => {
  await using lent = await shared.use();
  const { pi, provider } = lent;
  await pi.hold(push("d1", "Nobody has read this.", { triggerTurn: false }));
  expect(await pi.send({ kind: "carry" })).toEqual({ started: true });
  await pi.settled();
  expect(pi.receiptsOf("d1")).toEqual(delivered);
  expect(provider.requests[0]?.messages.filter(({ role }) => role === "user").map(({ texts }) => texts)).toEqual([
    ["Nobody has read this."],
  ]);
  await pi.rpc({ type: "prompt", message: "Go." });
  await pi.settled(2);
  expect(provider.requests[1]?.messages.filter(({ role }) => role === "user")).toHaveLength(2);
});

test("the client's own details are kept in addition to the identity", async () => {
  await using lent = await shared.use();
  const { pi } = lent;
  await pi.hold(push("d1", "With details.", { details: { job: 7, "pi-rpcd": "forged" } }));
  const ended = await pi.event("message_end", ({ message }) => (message as { role: string }).role === "custom");
  expect((ended["message"] as { details: unknown }).details).toEqual({ job: 7, "pi-rpcd": { deliveryId: "d1" } });
  await pi.settled();
});
