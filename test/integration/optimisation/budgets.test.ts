import { expect, test } from "vitest";
import type { Client, SessionHandle } from "../../../client/index.ts";
import { answer, call, status } from "../../../provider/reply.ts";
import { Notifications } from "../../helpers/notifications.ts";
import { startStage } from "../../helpers/stage.ts";

/** Each answer costs 0.01 USD: 10,000 tokens at a dollar for a million. */
const cent = { usage: { inputTokens: 10_000, outputTokens: 0 } };
const cents = (...replies: readonly ReturnType<typeof answer>[]) => replies.map((reply) => ({ ...reply, ...cent }));
const report = (client: Client, { id: sessionId }: SessionHandle) => client.call("cost/report", { sessionId });
const sumOf = (phases: readonly { readonly label: string; readonly requests: number }[]) =>
  phases.map(({ label, requests }) => [label, requests]);

test("a spent budget with `stop` refuses the next prompt but no running one, also after a restart and while hibernated", async () => {
  await using stage = await startStage();
  const session = await stage.client.createSession({
    cwd: stage.cwd,
    model: "scripted/model-1",
    optimisation: { cost: { budgetUsd: 0.035, onBudget: "stop" } },
  });
  const sessionId = session.id;
  await using told = await Notifications.of(stage.stateDir, sessionId);
  // The run reaches four cents in the middle, and continues to its end.
  stage.provider.add(
    ...cents(...Array.from({ length: 4 }, () => answer(call("bash", { command: "true" }))), answer("Done.")),
  );
  expect(await session.promptAndWait("Work.")).toBe("Done.");
  const reached = told
    .named("cost/budgetReached")
    .map(({ params }) => [params["level"], params["action"], params["scope"], params["budgetUsd"]]);
  expect(reached).toEqual([
    ["warning", "stop", "session", 0.035],
    ["spent", "stop", "session", 0.035],
  ]);
  const [checkpoint, ...further] = told.named("cost/checkpointed").map(({ params }) => params);
  expect(further).toEqual([]);
  expect(checkpoint).toMatchObject({
    event: { label: "run" },
    detail: { requests: 5, estimated: false, phasePath: [] },
  });

  const refusal = { kind: "budget_exceeded", data: { scope: "session", budgetUsd: 0.035 } };
  await expect(session.promptAndWait("More.")).rejects.toMatchObject(refusal);
  await expect(session.steer("More.")).rejects.toMatchObject(refusal);
  await stage.restart();
  await expect(stage.client.session(sessionId).promptAndWait("More.")).rejects.toMatchObject(refusal);
  const asleep = await report(stage.client, session);
  expect((await stage.client.session(sessionId).get()).generation).toBe(1);
  expect(asleep).toMatchObject({ requests: 5, estimated: false, budget: { usd: 0.035, onBudget: "stop" } });
  expect(asleep.total.cost.total).toBeCloseTo(0.05, 9);
  expect(asleep.checkpoints).toHaveLength(1);
  expect(stage.provider.requests).toHaveLength(5);

  // Phases and budgets continue; a call's budget takes precedence over the configuration's.
  const { client } = stage;
  const again = client.session(sessionId);
  const { budget } = await client.call("cost/setBudget", { sessionId, budgetUsd: null });
  expect(budget).toBe(null);
  await client.call("cost/startPhase", { sessionId, label: "outer" });
  await client.call("cost/startPhase", { sessionId, label: "inner", budgetUsd: 0.015, onBudget: "stop" });
  stage.provider.add(...cents(answer("One."), answer("Two.")));
  await again.promptAndWait("More.");
  await again.promptAndWait("And more.");
  await expect(again.promptAndWait("Again.")).rejects.toMatchObject({
    kind: "budget_exceeded",
    data: { scope: "phase", label: "inner" },
  });
  await stage.restart();
  const open = await report(stage.client, session);
  expect(sumOf(open.phases)).toEqual([
    ["outer", 2],
    ["inner", 2],
  ]);
  expect(open.phases.map(({ isOpen, path }) => [isOpen, path])).toEqual([
    [true, ["outer"]],
    [true, ["outer", "inner"]],
  ]);
  await expect(stage.client.call("cost/endPhase", { sessionId, label: "other" })).rejects.toMatchObject({
    kind: "phase_not_open",
  });
  const { phase } = await stage.client.call("cost/endPhase", { sessionId });
  expect(phase).toMatchObject({ label: "inner", isOpen: false, requests: 2 });
  stage.provider.add(status(400), ...cents(answer("Three.")));
  await stage.client.session(sessionId).runUntilSettled("Fails.");
  await stage.client.session(sessionId).promptAndWait("Last.");
  const ended = await report(stage.client, session);
  expect(sumOf(ended.phases)).toEqual([
    ["outer", 3],
    ["inner", 2],
  ]);
  const stats = await stage.client.call("session/getStats", { sessionId });
  expect(ended.total.cost.total).toBe((stats as { cost: number }).cost);
  expect(ended.total.totalTokens).toBe((stats as { tokens: { total: number } }).tokens.total);
  const deltas = ended.checkpoints.reduce((sum, { event }) => sum + event.deltaTokens.cost.total, 0);
  expect(Math.abs(deltas - ended.total.cost.total)).toBeLessThan(1e-9);
});

test("a session without the part reports that it is off, an order turns it on, and a budget without prices is refused", async () => {
  const free = { id: "free", cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 } };
  await using stage = await startStage({ agent: { models: [{ id: "model-1" }, free] } });
  const { client } = stage;
  const wanted = { cwd: stage.cwd, model: "scripted/free" };
  await expect(client.createSession({ ...wanted, optimisation: { cost: { budgetUsd: 1 } } })).rejects.toMatchObject({
    kind: "price_unknown",
  });
  expect((await client.call("session/list", {})).sessions).toEqual([]);
  const session = await client.createSession(wanted);
  const sessionId = session.id;
  expect(await report(client, session)).toMatchObject({ requests: 0, total: { totalTokens: 0 }, checkpoints: [] });
  await session.promptAndWait("Hello.");
  const before = await report(client, session);
  expect(before).toMatchObject({ requests: 1, estimated: true, phases: [], checkpoints: [] });
  await expect(client.call("cost/setBudget", { sessionId, budgetUsd: 1 })).rejects.toMatchObject({
    kind: "price_unknown",
  });
  await session.setModel("scripted", "model-1");
  const { event, detail } = await client.call("cost/checkpoint", { sessionId, label: "discuss-phase" });
  expect(event).toMatchObject({ type: "cost_checkpoint", label: "discuss-phase", deltaTokens: before.total });
  expect(detail).toMatchObject({ requests: 1, estimated: true });
  await using told = await Notifications.of(stage.stateDir, sessionId);
  stage.provider.add(...cents(answer("Fine.")));
  await session.promptAndWait("/cost start slice 3 $0.005 warn");
  await session.promptAndWait("Work.");
  await session.promptAndWait("/cost end");
  expect(
    told.named("cost/budgetReached").map(({ params }) => [params["label"], params["level"], params["action"]]),
  ).toEqual([["slice 3", "spent", "warn"]]);
  await told.until(({ params }) => (params["event"] as { label?: string } | undefined)?.label === "slice 3");
  const labels = told.named("cost/checkpointed").map(({ params }) => (params["event"] as { label: string }).label);
  expect(labels).toEqual(["run", "slice 3"]);
  const { phases } = await report(client, session);
  expect(phases).toMatchObject([{ label: "slice 3", isOpen: false, requests: 1, budget: { usd: 0.005 } }]);
});
