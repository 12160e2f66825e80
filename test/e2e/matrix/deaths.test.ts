import { afterAll, beforeAll, describe, expect, type TestContext, test } from "vitest";
import { type Death, deaths } from "./deaths.ts";
import { type Api, attemptsOf, type Cell, endOf, World } from "./world.ts";

// A process dies by `kill -9` while a push is at each point of its way. Into the transcript it goes exactly once.

const apis: readonly Api[] = ["scripted", "scripted-anthropic"];
const extensions = ["matrix-pi"];

interface Placed {
  readonly cell: Cell;
  readonly death: Death;
  readonly deliveryId: string;
  readonly end: string;
}

/** The state right behind the death, as far as it comes by itself; then a prompt that carries what is left. */
async function afterwards({ cell, death, deliveryId }: Omit<Placed, "end">): Promise<string> {
  const delivery = cell.session.delivery(deliveryId);
  const [state] = death.end.split(" ") as [Parameters<Cell["until"]>[1]];
  const now = await cell.until(delivery, state);
  expect(endOf(now)).toBe(death.end);
  expect(attemptsOf(now)).toEqual(death.attempts);
  expect(cell.carried).toEqual(death.carried);
  expect(await cell.entries(deliveryId)).toBe(death.entries);
  const isOver = state === "answered" || state === "delivered";
  await cell.session.promptAndWait("Go on.", { ifRunning: "followUp" });
  const last = await delivery.get();
  if (isOver) expect(endOf(last)).toBe(death.end);
  else {
    expect(endOf(await delivery.answered)).toBe("answered");
    expect(attemptsOf(await delivery.get())).toEqual([...death.attempts, "delivered headers 200 confirmed"]);
  }
  expect((await delivery.get()).redelivered).toBe(death.redelivered);
  expect(cell.carried.at(-1)).toBe(1);
  expect(await cell.entries(deliveryId)).toBe(1);
  cell.expectLawful();
  return endOf(now);
}

const note = ({ task }: Pick<TestContext, "task">, does: string, death: Death, api: Api, end: string): void => {
  Object.assign(task.meta, { cell: { does, agent: death.name, api, end } });
};

const cases = apis.flatMap((api) => deaths.map((death) => ({ api, death, where: death.name })));

describe("when pi is killed, a push", () => {
  let world: World;
  beforeAll(async () => {
    world = await World.open({ extensions });
  });
  afterAll(async () => await world[Symbol.asyncDispose]());

  test.concurrent.for(cases)("that is $where ends right ($api)", async ({ api, death }, context) => {
    await using cell = await world.cell(api);
    const { id } = await death.reach(cell);
    const { pid, generation } = await cell.session.get();
    process.kill(pid as number, "SIGKILL");
    await cell.died(generation);
    note(context, "child killed", death, api, await afterwards({ cell, death, deliveryId: id }));
  });
});

describe("when the daemon is killed, a push", () => {
  test.for(apis)("ends right wherever it is (%s)", async (api, context) => {
    await using world = await World.open({ extensions, isKillable: true });
    const placed = await Promise.all(
      deaths.map(async (death) => {
        const cell = await world.cell(api);
        return { cell, death, deliveryId: (await death.reach(cell)).id };
      }),
    );
    await world.stage.restart();
    for (const { cell } of placed) cell.runAfterDeath();
    const ends: string[] = [];
    for (const each of placed) ends.push(`${each.death.name}: ${await afterwards(each)}`);
    Object.assign(context.task.meta, { cells: ends.map((end) => ({ does: "daemon killed", end, api })) });
  });
});
