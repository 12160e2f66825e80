import { describe, expect, test } from "vitest";
import { readDaemonFile } from "../../../client/index.ts";
import { LogRecorder } from "../../helpers/log-recorder.ts";
import { liveRestoreConfig } from "../../helpers/restore-stage.ts";
import { SessionRecord } from "../../helpers/session-record.ts";
import { type AgentState, agentStates } from "../matrix/agents.ts";
import { type Api, attemptsOf, type Cell, endOf, MatrixStage, note } from "../matrix/matrix-stage.ts";
import { type Point, points } from "./points.ts";

// The daemon dies by `kill -9` while a push is at each point of its way. pi lives on, so nothing may differ from a push
// without a kill: not its states, not its attempts, not its requests, and no client may see a gap.

const apis: readonly Api[] = ["scripted", "scripted-anthropic"];
const got = "delivered headers 200 confirmed";

const open = (sessions: number): Promise<MatrixStage> =>
  MatrixStage.open({
    isKillable: true,
    config: liveRestoreConfig(),
    extensions: ["matrix-pi"],
    sessions,
    // The back-off is long enough for a push to arrive during it.
    settings: {
      retry: { enabled: true, maxRetries: 3, baseDelayMs: 60, maxAgentDelayMs: 60, provider: { maxRetries: 0 } },
    },
  });

/** Like `Promise.all`, but waits for all also if some reject, so that nothing is begun after the end of the test. */
async function all<T>(promises: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(promises);
  return await Promise.all(promises);
}

/** A cell with a client that follows its session over all daemons. */
interface Watched extends AsyncDisposable {
  readonly cell: Cell;
  /** Checks that the pi is the same. */
  isSame(): Promise<void>;
  /** Checks also what the client got. */
  check(): Promise<void>;
}

async function watched(world: MatrixStage, api: Api): Promise<Watched> {
  const cell = await world.cell(api);
  const { pid, generation, epoch } = await cell.session.get();
  const record = new SessionRecord(cell.session.id);
  const reader = new LogRecorder({
    name: "a client",
    record,
    // The file of a killed daemon stays until the next one writes its own.
    listening: () => readDaemonFile(world.stage.stateDir),
  });
  const isSame = async (): Promise<void> => {
    expect(await cell.session.get()).toMatchObject({ pid, generation, epoch });
  };
  return {
    cell,
    isSame,
    check: async () => {
      await isSame();
      await reader.reached((await cell.session.get()).cursor);
      record.checkNumbers();
      record.checkReceipts();
      record.checkStates();
      expect(record.faults).toEqual([]);
    },
    [Symbol.asyncDispose]: async () => {
      await reader[Symbol.asyncDispose]();
      await cell[Symbol.asyncDispose]();
    },
  };
}

/** A push that waits is carried by the next prompt, in the same transcript. */
async function carry(cell: Cell, deliveryId: string, { attempts, carried }: Point): Promise<void> {
  const delivery = cell.session.delivery(deliveryId);
  await cell.session.promptAndWait("Go on.");
  expect(endOf(await delivery.answered)).toBe("answered");
  expect(attemptsOf(await delivery.get())).toEqual([...attempts, got]);
  expect(cell.carried).toEqual([...carried, 1]);
}

describe("when the daemon is killed and pi lives on, a push", () => {
  test.for(apis)("continues from every point of its way (%s)", async (api, { task }) => {
    await using world = await open(points.length);
    await using stack = new AsyncDisposableStack();
    const places = await all(points.map(async () => stack.use(await watched(world, api))));
    const placed = await all(
      points.map(async (point, n) => {
        const { cell, check, isSame } = places[n] as Watched;
        const { delivery, release } = await point.reach(cell);
        return { cell, check, isSame, point, id: delivery.id, release };
      }),
    );
    await world.stage.restart();
    for (const { isSame, point } of placed) if (point.isSuspended === undefined) await isSame();
    for (const { release } of placed) release?.();
    for (const { cell, check, point, id } of placed) {
      const delivery = cell.session.delivery(id);
      const [state] = point.end.split(" ") as [Parameters<Cell["until"]>[1]];
      const now = await cell.until(delivery, state);
      await cell.idle();
      note(task, { does: "the daemon is killed", where: point.name, api, end: endOf(now) });
      expect(endOf(now), point.name).toBe(point.end);
      expect(attemptsOf(now), point.name).toEqual(point.attempts);
      expect(cell.carried, point.name).toEqual(point.carried);
      expect(await cell.entries(id), point.name).toBe(point.entries);
      if (point.end !== "answered") await carry(cell, id, point);
      expect((await delivery.get()).redelivered).toBeUndefined();
      expect(await cell.entries(id)).toBe(1);
      cell.expectLawful();
      await cell.idle();
      await check();
    }
  });
});

interface Moment {
  readonly deliverAs: "steer" | "followUp" | "nextTurn";
  readonly triggerTurn: boolean;
  /** Where the push stops moving by itself, and how many requests of the conversation carry it until then. */
  readonly end: (agent: AgentState) => { readonly end: "answered" | "inserted" | "held"; readonly carried: number[] };
}

/** As many requests without the push as the agent makes before it. */
const without = ({ requestsBefore }: AgentState): number[] => Array.from({ length: requestsBefore }, () => 0);
const inTool = ({ name }: AgentState): boolean => name === "in a tool call";

const moments: readonly Moment[] = [
  { deliverAs: "steer", triggerTurn: true, end: (agent) => ({ end: "answered", carried: [...without(agent), 1] }) },
  {
    deliverAs: "steer",
    triggerTurn: false,
    end: (agent) =>
      inTool(agent) ? { end: "answered", carried: [0, 1] } : { end: "inserted", carried: without(agent) },
  },
  {
    deliverAs: "followUp",
    triggerTurn: true,
    end: (agent) => ({ end: "answered", carried: inTool(agent) ? [0, 0, 1] : [...without(agent), 1] }),
  },
  {
    deliverAs: "followUp",
    triggerTurn: false,
    end: (agent) => ({ end: "inserted", carried: inTool(agent) ? [0, 0] : without(agent) }),
  },
  {
    deliverAs: "nextTurn",
    triggerTurn: true,
    end: (agent) => ({ end: "held", carried: inTool(agent) ? [0, 0] : without(agent) }),
  },
];

// While idle a push does not wait at its place.
const busy = agentStates.filter(({ name }) => name !== "idle");

describe("when the daemon is killed and pi lives on, a push that waits", () => {
  test.for(busy)("goes at its moment: $name", async (agent, { task }) => {
    const api: Api = "scripted";
    await using world = await open(moments.length);
    await using stack = new AsyncDisposableStack();
    const restarted = Promise.withResolvers<void>();
    const cells = await all(moments.map(async () => stack.use(await watched(world, api))));
    const places = await all(
      moments.map(async (moment, n) => {
        const { cell, check } = cells[n] as Watched;
        const placed = Promise.withResolvers<string>();
        const { deliverAs, triggerTurn } = moment;
        const over = agent.reach(
          cell,
          () => cell.push({ deliverAs, triggerTurn }),
          async (delivery) => {
            placed.resolve(delivery.id);
            await restarted.promise;
          },
        );
        over.catch(placed.reject);
        return { moment, cell, check, over, id: await placed.promise };
      }),
    );
    await world.stage.restart();
    restarted.resolve();
    for (const { isSame } of cells) await isSame();
    for (const { moment, cell, check, over, id } of places) {
      await over;
      const { end, carried } = moment.end(agent);
      const label = `${moment.deliverAs}, triggerTurn ${moment.triggerTurn}`;
      const delivery = cell.session.delivery(id);
      const now = await cell.until(delivery, end);
      await cell.idle();
      note(task, { does: `the daemon is killed, ${label}`, where: agent.name, api, end: endOf(now) });
      expect(endOf(now), label).toBe(end);
      expect(cell.carried, label).toEqual(carried);
      if (end !== "answered") {
        await cell.session.promptAndWait("Go on.");
        expect(cell.carried, label).toEqual([...carried, 1]);
      }
      expect(attemptsOf(await delivery.answered), label).toEqual([got]);
      expect(await cell.entries(id), label).toBe(1);
      cell.expectLawful();
      await cell.idle();
      await check();
    }
  });
});
