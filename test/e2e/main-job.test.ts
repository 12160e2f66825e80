import { describe, expect, test } from "vitest";
import { type Delivery, isToolExecutionStart, type SessionHandle } from "../../client/index.ts";
import { Gate } from "../../provider/gate.ts";
import { answer, call, delayed, hold, status } from "../../provider/reply.ts";
import { patience } from "../helpers/patience.ts";
import { shareStage } from "../helpers/shared-stage.ts";

const shared = shareStage();
const apis = ["scripted", "scripted-anthropic"] as const;
const result = "The background build has failed in lint: 3 findings — ä€😀 \u2028 <&>\"'\\ end";

/** Resolves when the agent has begun to run a tool. */
async function toolStarted(session: SessionHandle): Promise<{ until: () => Promise<void> }> {
  const events = session.events();
  await events.ready;
  return {
    until: async () => {
      for await (const { event } of events) if (isToolExecutionStart(event)) return;
    },
  };
}

const states = (delivery: Delivery): readonly string[] => delivery.history.map(({ state }) => state);

describe.each(apis)("with %s, a message pushed into the running agent", (api) => {
  test("that is idle starts a run, with the whole system prompt and the tools", async () => {
    await using stage = await shared.use();
    const session = await stage.freshSession(api);
    await session.push({ customType: "note", content: "wake up" }).answered;
    const [request] = stage.provider.requests;
    expect(request?.toolNames).toEqual(expect.arrayContaining(["bash", "read", "edit", "write"]));
    expect(JSON.stringify(request?.body)).toContain("coding assistant");
    expect(request?.countText("wake up", { roles: ["user"] })).toBe(1);
  });

  test("is delivered with evidence from the very request that carries it, and answered", async () => {
    await using stage = await shared.use({
      script: [answer("I run it.", call("bash", { command: "sleep 1" })), answer("Lint has failed, then.")],
    });
    const session = await stage.session(api);
    const tool = await toolStarted(session);
    const run = session.runUntilSettled("Run the build");
    await tool.until();
    const delivery = session.push({ customType: "build", content: result, details: { job: 7 } });
    const delivered = await delivery.delivered;
    const answered = await delivery.answered;
    expect(await run).toMatchObject({ text: "Lint has failed, then.", stopReason: "stop" });

    expect(states(answered)).toEqual(["accepted", "held", "inserted", "prepared", "delivered", "answered"]);
    expect(answered.attempts).toMatchObject([
      { n: 1, outcome: "delivered", evidence: "headers", status: 200, payload: "confirmed" },
    ]);
    expect(delivered.settledAt).toBeDefined();
    const [first, second] = stage.provider.requests;
    expect(stage.provider.requests).toHaveLength(2);
    expect(first?.countText(result)).toBe(0);
    expect(second?.countText(result, { roles: ["user"] })).toBe(1);
    const [attempt] = answered.attempts;
    expect(second?.receivedAt).toBeGreaterThanOrEqual(attempt?.preparedAt ?? Number.NaN);
    expect(second?.receivedAt).toBeLessThanOrEqual(attempt?.endedAt ?? Number.NaN);
    expect(second?.violations).toEqual([]);
  });

  test("is not delivered before the provider has sent its headers", async () => {
    const gate = new Gate();
    await using stage = await shared.use({ script: [delayed(hold(gate), answer("Got it."))] });
    const session = await stage.session(api);
    const delivery = session.push({ customType: "note", content: "hello" });
    await gate.reached;
    const now = await delivery.get();
    expect(now.state).toBe("prepared");
    gate.open();
    expect((await delivery.delivered).evidence).toBeDefined();
    expect((await delivery.answered).state).toBe("answered");
  });

  test("is delivered by the second attempt when the provider was overloaded at the first", async () => {
    await using stage = await shared.use({ script: [status(529), answer("Now.")] });
    const session = await stage.session(api);
    const answered = await session.push({ customType: "note", content: "again" }).answered;
    expect(answered.attempts.map(({ outcome }) => outcome)).toEqual(["failed", "delivered"]);
    expect(stage.provider.requests.map((request) => request.countText("again", { roles: ["user"] }))).toEqual([1, 1]);
  });

  test("is parked, with a notification, when the provider refuses for good; a later run carries it", async () => {
    await using stage = await shared.use({ script: [status(400), answer("Both.")] });
    const session = await stage.session(api);
    const delivery = session.push({ customType: "note", content: "carried later" });
    await expect(delivery.delivered).rejects.toMatchObject({
      delivery: { state: "parked", reason: { code: "run_failed" } },
    });
    await session.promptAndWait("go on");
    expect(await delivery.answered).toMatchObject({ state: "answered" });
    expect(stage.provider.requests.at(-1)?.countText("carried later", { roles: ["user"] })).toBe(1);
  });
});

test("a push that a failed run has left starts no run when another push takes it into the transcript", async () => {
  const gate = new Gate();
  await using stage = await shared.use({ script: [delayed(hold(gate), status(400)), answer("Both.")] });
  const session = await stage.freshSession();
  const run = session.prompt("Go.");
  await stage.provider.waitForRequest();
  const { deliveryId } = await session.push({ customType: "n", content: "left by its run" }).accepted;
  const left = () => stage.client.call("delivery/get", { deliveryId });
  await expect.poll(async () => (await left()).state, patience).toBe("held");
  gate.open();
  await run.settled();
  expect(await left()).toMatchObject({ state: "parked", reason: { code: "run_failed" } });
  await session.push({ customType: "n", content: "starts none", triggerTurn: false }).inserted;
  expect([(await left()).state, (await session.get()).state]).toEqual(["inserted", "idle"]);
  await session.promptAndWait("And now?");
  expect((await left()).state).toBe("answered");
  expect(stage.provider.requests).toHaveLength(2);
});

test("several pushes during a tool call enter the next request in their order", async () => {
  await using stage = await shared.use({
    script: [answer(call("bash", { command: "sleep 1" })), answer("All three.")],
  });
  const session = await stage.session();
  const tool = await toolStarted(session);
  const run = session.runUntilSettled("go");
  await tool.until();
  const deliveries = ["one", "two", "three"].map((content) =>
    session.push({ customType: "n", content: `push ${content}` }),
  );
  for (const delivery of deliveries) await delivery.answered;
  await run;
  const texts = stage.provider.requests[1]?.messages
    .filter(({ role }) => role === "user")
    .flatMap((message) => message.texts);
  expect(texts?.filter((text) => text.startsWith("push "))).toEqual(["push one", "push two", "push three"]);
  expect(stage.provider.requests).toHaveLength(2);
});

test("a nextTurn push waits for the next prompt and is in its first request", async () => {
  await using stage = await shared.use();
  const session = await stage.session();
  const delivery = session.push({ customType: "n", content: "for later", deliverAs: "nextTurn" });
  await delivery.accepted;
  await session.promptAndWait("the prompt");
  expect((await delivery.answered).state).toBe("answered");
  expect(stage.provider.requests).toHaveLength(1);
  expect(stage.provider.requests[0]?.countText("for later", { roles: ["user"] })).toBe(1);
});
