import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { endingWithDaemon } from "../../helpers/stage.ts";
import { type Death, deaths } from "./deaths.ts";
import { type Api, attemptsOf, type Cell, endOf, MatrixStage, note } from "./matrix-stage.ts";

// A process dies by `kill -9` while a push is at each point of its way. The push must enter the transcript exactly
// once.

const apis: readonly Api[] = ["scripted", "scripted-anthropic"];
const extensions = ["matrix-pi"];

/** How a push that the death left parked is carried. */
type Rescue = "a prompt" | "resend";

interface Case {
  readonly api: Api;
  readonly death: Death;
  readonly where: string;
  readonly rescue: Rescue;
}

interface Placed extends Case {
  readonly cell: Cell;
  readonly deliveryId: string;
}

/** The state directly after the death, once it no longer changes by itself; then how it is carried if it is left. */
async function afterwards({ cell, death, deliveryId, rescue }: Placed): Promise<string> {
  const delivery = cell.session.delivery(deliveryId);
  const [state] = death.end.split(" ") as [Parameters<Cell["until"]>[1]];
  const now = await cell.until(delivery, state);
  expect(endOf(now)).toBe(death.end);
  expect(attemptsOf(now)).toEqual(death.attempts);
  expect(cell.carried).toEqual(death.carried);
  expect(await cell.entries(deliveryId)).toBe(death.entries);
  const isOver = state === "answered" || state === "delivered";
  if (rescue === "resend") await delivery.resend();
  else await cell.session.promptAndWait("Go on.", { ifRunning: "followUp" });
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

const casesOf = (api: Api): Case[] =>
  deaths.flatMap((death) => {
    const rescues: Rescue[] = death.end.startsWith("parked") ? ["a prompt", "resend"] : ["a prompt"];
    return rescues.map((rescue) => ({ api, death, where: death.name, rescue }));
  });

const cases = apis.flatMap(casesOf);

describe("when pi is killed, a push", () => {
  let world: MatrixStage;
  beforeAll(async () => {
    world = await MatrixStage.open({ extensions, sessions: cases.length });
  });
  afterAll(async () => await world[Symbol.asyncDispose]());

  test.concurrent.for(cases)("that is $where ends correctly, by $rescue ($api)", async (each, { task }) => {
    await using cell = await world.cell(each.api);
    const { id } = await each.death.reach(cell);
    const { pid, generation } = await cell.session.get();
    process.kill(pid as number, "SIGKILL");
    await cell.died(generation);
    const end = await afterwards({ ...each, cell, deliveryId: id });
    note(task, { does: "pi is killed", where: each.where, api: each.api, end });
  });
});

// test/e2e/live-restore/matrix.test.ts has the same for a pi that lives on.
describe("when the daemon is killed and pi ends with it, a push", () => {
  test.for(apis)("ends correctly at every point of its way (%s)", async (api, { task }) => {
    await using world = await MatrixStage.open({
      extensions,
      isKillable: true,
      config: endingWithDaemon,
      sessions: cases.length,
    });
    const placed = await Promise.all(
      casesOf(api).map(async (each) => {
        const cell = await world.cell(api);
        return { ...each, cell, deliveryId: (await each.death.reach(cell)).id };
      }),
    );
    await world.stage.restart();
    for (const { cell } of placed) cell.runAfterDeath();
    for (const each of placed) {
      note(task, { does: "the daemon is killed", where: each.where, api, end: await afterwards(each) });
    }
  });
});
