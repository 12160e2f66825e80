import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Gate } from "../../../provider/gate.ts";
import { answer, delayed, hold, type Reply, status } from "../../../provider/reply.ts";
import { type AgentState, idle, inTool, streaming } from "./agents.ts";
import { type Api, attemptsOf, endOf, MatrixStage, note } from "./matrix-stage.ts";

// What other extensions do with a push, and unrelated requests in between, which keep a prompt cache warm.

const apis: readonly Api[] = ["scripted", "scripted-anthropic"];

describe("an extension that removes the push", () => {
  let world: MatrixStage;
  beforeAll(async () => {
    world = await MatrixStage.open({ extensions: ["remove-late"] });
  });
  afterAll(async () => await world[Symbol.asyncDispose]());

  const rows = [
    {
      does: "from the context",
      words: "REMOVE FIRST",
      end: "parked removed_by_extension",
      attempts: [],
      last: "parked removed_by_extension",
      isCarried: false,
    },
    {
      does: "after the helper's check",
      words: "REMOVE LATE",
      end: "parked unverified",
      attempts: ["unknown headers 200 unverified"],
      last: "parked unverified",
      isCarried: false,
    },
    {
      does: "after the helper's check, once",
      words: "REMOVE ONCE",
      end: "parked unverified",
      attempts: ["unknown headers 200 unverified"],
      last: "answered",
      isCarried: true,
    },
  ] as const;
  // The rest must be a valid request: with Anthropic's API it must end with a user message.
  const isLawful = (api: Api, agent: AgentState): boolean => api === "scripted" || agent === inTool;
  const cases = apis.flatMap((api) =>
    rows.flatMap((row) =>
      [idle, streaming, inTool]
        .filter((agent) => isLawful(api, agent))
        .map((agent) => ({ ...row, api, agent, where: agent.name })),
    ),
  );

  test.concurrent.for(cases)("$does has its one right end when the agent is $where ($api)", async (row, { task }) => {
    const { api, agent, words, end, attempts, last, isCarried, does } = row;
    await using cell = await world.cellAnywhere(api);
    const delivery = await agent.reach(cell, () => cell.push({ content: `${cell.text} ${words}` }));
    const now = await cell.rest(delivery);
    await cell.idle();
    note(task, { does: `an extension removes it ${does}`, where: agent.name, api, end: endOf(now) });
    expect(endOf(now)).toBe(end);
    expect(attemptsOf(now)).toEqual(attempts);
    expect(cell.carried).toEqual(Array.from({ length: agent.requestsBefore + 1 }, () => 0));
    expect(await cell.entries(delivery.id)).toBe(1);
    await cell.session.promptAndWait("Go on.");
    await cell.idle();
    expect(endOf(await delivery.get())).toBe(last);
    expect(cell.carried.at(-1)).toBe(isCarried ? 1 : 0);
    expect((await delivery.get()).redelivered).toBeUndefined();
    expect(await cell.entries(delivery.id)).toBe(1);
    cell.done();
  });
});

describe("a request that keeps the prompt cache warm", () => {
  let world: MatrixStage;
  beforeAll(async () => {
    // pi warms ten seconds before the cache expires, which here is 300 ms after each request.
    world = await MatrixStage.open({
      extensions: ["always-warm"],
      settings: { cacheWarming: "idle" },
      model: { promptCache: { short: 10.3, long: 10.3 } },
    });
  });
  afterAll(async () => await world[Symbol.asyncDispose]());

  const rows: readonly { does: string; reply: (gate: Gate) => Reply; end: string; attempts: readonly string[] }[] = [
    {
      does: "400",
      reply: (gate) => delayed(hold(gate), status(400)),
      end: "parked run_failed",
      attempts: ["failed 400 confirmed"],
    },
    {
      does: "200",
      reply: (gate) => delayed(hold(gate), answer("Good.")),
      end: "answered",
      attempts: ["delivered content confirmed"],
    },
  ];
  const cases = apis.flatMap((api) => rows.map((row) => ({ ...row, api })));

  test.concurrent.for(cases)(
    "is answered while the push's own request waits, which then gets $does: gives no evidence ($api)",
    async ({ api, does, reply, end, attempts }, { task }) => {
      await using cell = await world.cell(api);
      const gate = new Gate();
      cell.add(reply(gate));
      const delivery = cell.push();
      await gate.reached;
      const { provider } = world.stage;
      const warm = await provider.waitForRequest((request) => request.isWarming && request.model === cell.model);
      expect(await warm.ended).toBe("answered");
      expect(warm.countText(cell.text)).toBe(1);
      // All reports of the helper have arrived by now.
      await cell.session.command({ type: "get_state" });
      expect((await delivery.get()).state).toBe("prepared");
      gate.open();
      const now = await cell.rest(delivery);
      note(task, { does: `a warm request, then ${does}`, where: "idle", api, end: endOf(now) });
      expect(endOf(now)).toBe(end);
      expect(attemptsOf(now)).toEqual(attempts);
      expect(cell.carried).toEqual([1]);
      expect(await cell.entries(delivery.id)).toBe(1);
    },
  );

  test.concurrent.for(apis)("that is in progress when a push arrives gives no evidence (%s)", async (api, { task }) => {
    await using cell = await world.cell(api);
    const gate = new Gate();
    world.replies.addWarming(cell.model, delayed(hold(gate), answer(".")));
    await cell.session.promptAndWait("Hello.");
    await cell.idle();
    await gate.reached;
    const [warm] = world.stage.provider.requests.filter(({ isWarming, model }) => isWarming && model === cell.model);
    cell.add(status(529), answer("Good."));
    const delivery = cell.push();
    const now = await delivery.answered;
    note(task, { does: "a warm request in progress", where: "idle", api, end: endOf(now) });
    // pi cancels the warming request for the newer one.
    expect(await warm?.ended).toBe("closed_by_client");
    expect(attemptsOf(now)).toEqual(["failed 529 confirmed", "delivered headers 200 confirmed"]);
    expect(cell.carried).toEqual([0, 1, 1]);
    expect(await cell.entries(delivery.id)).toBe(1);
  });
});

describe("a request that keeps the prompt cache warm, if no extension insists on it", () => {
  test.for(apis)("is not made during an open attempt, and made without one (%s)", async (api, { task }) => {
    // pi decides to warm because of the savings, if the answer is there by then: an unanswered request has saved
    // nothing.
    await using world = await MatrixStage.open({
      settings: { cacheWarming: "idle" },
      model: {
        promptCache: { short: 13, long: 13 },
        cost: { input: 100_000, output: 1, cacheRead: 1, cacheWrite: 100_000 },
      },
    });
    await using cell = await world.cell(api);
    const isWarm = (request: { isWarming: boolean }): boolean => request.isWarming;
    await cell.session.promptAndWait("Hello.");
    await world.stage.provider.waitForRequest(isWarm);
    const warmed = world.stage.provider.requests.filter(isWarm).length;
    const gate = new Gate();
    cell.add(delayed(hold(gate), answer("Good.")));
    const delivery = cell.push();
    await gate.reached;
    const before = world.stage.provider.requests.filter(isWarm).length;
    // Another session of the same kind, without a push in its prompt, is warmed at the same time.
    await using other = await world.cell(api);
    await other.session.promptAndWait("Hello.");
    await world.stage.provider.waitForRequest((request) => request.isWarming && request.model === other.model);
    expect(
      world.stage.provider.requests.filter((request) => request.isWarming && request.model === cell.model),
    ).toHaveLength(before);
    expect(warmed).toBeGreaterThan(0);
    gate.open();
    const now = await delivery.answered;
    note(task, { does: "a warm request is vetoed", where: "idle", api, end: endOf(now) });
    // The helper cannot exclude that the headers belong to a warming request.
    expect(attemptsOf(now)).toEqual(["delivered content confirmed"]);
  });
});
