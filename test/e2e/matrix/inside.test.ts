import { randomUUID } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Delivery, DeliveryHandle, PushParams } from "../../../client/index.ts";
import { Gate } from "../../../provider/gate.ts";
import { answer, delayed, hold, status } from "../../../provider/reply.ts";
import { Notifications } from "../../helpers/notifications.ts";
import { type Api, attemptsOf, type Cell, endOf, MatrixStage, note } from "./matrix-stage.ts";

// Commands of extensions inside pi while a push is in transit: another session, another branch, a reload.

const apis: readonly Api[] = ["scripted", "scripted-anthropic"];
let world: MatrixStage;
beforeAll(async () => {
  // Some cells need the file of another session.
  world = await MatrixStage.open({ extensions: ["matrix-pi"], sessions: 2 * cases.length });
});
afterAll(async () => await world[Symbol.asyncDispose]());

interface Place {
  readonly name: string;
  readonly reach: (cell: Cell) => Promise<DeliveryHandle>;
}

const pushed = async (cell: Cell, state: Delivery["state"], params: Partial<PushParams>): Promise<DeliveryHandle> => {
  const delivery = cell.push(params);
  await cell.until(delivery, state);
  await cell.idle();
  return delivery;
};
const held: Place = { name: "held", reach: (cell) => pushed(cell, "held", { deliverAs: "nextTurn" }) };
const inserted: Place = { name: "inserted", reach: (cell) => pushed(cell, "inserted", { triggerTurn: false }) };
const refused: Place = {
  name: "parked, in the transcript",
  reach: async (cell) => {
    cell.add(status(400));
    return await pushed(cell, "parked", {});
  },
};
const hanging: Place = {
  name: "in a request without headers yet",
  reach: async (cell) => {
    const gate = new Gate();
    cell.add(delayed(hold(gate), answer("Never read.")));
    const delivery = cell.push();
    await gate.reached;
    await cell.until(delivery, "prepared");
    return delivery;
  },
};
const answered: Place = { name: "answered", reach: (cell) => pushed(cell, "answered", {}) };

interface Change {
  readonly name: string;
  /**
   * The command to run once the push is in its place. `first` is the entry of a first prompt, `push` the push's own.
   */
  readonly command: (ids: { readonly first: string; readonly push: string; readonly otherFile: string }) => string;
  readonly isOtherSession: boolean;
}

const reload: Change = { name: "reload", command: () => "/matrix-reload", isOtherSession: false };
const newSession: Change = { name: "newSession", command: () => "/matrix-new", isOtherSession: true };
const forkBefore: Change = {
  name: "fork before the push",
  command: ({ first }) => `/matrix-fork ${first}`,
  isOtherSession: true,
};
const forkAt: Change = {
  name: "fork at the push",
  command: ({ push }) => `/matrix-fork ${push}`,
  isOtherSession: true,
};
const switchSession: Change = {
  name: "switchSession",
  command: ({ otherFile }) => `/matrix-switch ${otherFile}`,
  isOtherSession: true,
};
const treeBefore: Change = {
  name: "navigateTree before the push",
  command: ({ first }) => `/matrix-tree ${first}`,
  isOtherSession: false,
};

interface Row {
  readonly change: Change;
  readonly place: Place;
  /** The state after the command. */
  readonly end: string;
  /** The state after a following prompt. */
  readonly last: string;
  /** Whether that prompt's request carries it. */
  readonly isCarried: boolean;
}

/** The session continues like one that has hibernated, and its next request carries a waiting push. */
const left = { last: "answered", isCarried: true };

const rows: readonly Row[] = [
  { change: reload, place: held, end: "held", last: "answered", isCarried: true },
  { change: reload, place: inserted, end: "inserted", last: "answered", isCarried: true },
  { change: reload, place: refused, end: "parked run_failed", last: "answered", isCarried: true },
  { change: reload, place: answered, end: "answered", last: "answered", isCarried: true },
  ...[newSession, forkBefore, switchSession].flatMap((change): Row[] => [
    { change, place: held, end: "held", ...left },
    { change, place: inserted, end: "parked interrupted", ...left },
    { change, place: refused, end: "parked run_failed", ...left },
    { change, place: hanging, end: "parked abort", ...left },
    { change, place: answered, end: "answered", ...left },
  ]),
  // The other session also has the push in its past, which does not affect the push.
  { change: forkAt, place: inserted, end: "parked interrupted", ...left },
  { change: forkAt, place: refused, end: "parked run_failed", ...left },
  { change: forkAt, place: hanging, end: "parked abort", ...left },
  { change: forkAt, place: answered, end: "answered", ...left },
  // The push is on a branch that the conversation has left.
  { change: treeBefore, place: held, end: "held", last: "answered", isCarried: true },
  { change: treeBefore, place: inserted, end: "parked off_branch", last: "parked off_branch", isCarried: false },
  { change: treeBefore, place: refused, end: "parked off_branch", last: "parked off_branch", isCarried: false },
  { change: treeBefore, place: answered, end: "answered", last: "answered", isCarried: false },
];

const cases = apis.flatMap((api) => rows.map((row) => ({ ...row, api, does: row.change.name, where: row.place.name })));

/** The id of the last entry of pi's session file that has this text. */
function entryWith(file: string, text: string): string {
  const line = readFileSync(file, "utf8")
    .split("\n")
    .findLast((each) => each.includes(text) && !each.includes('"type":"session"'));
  return (JSON.parse(line ?? "{}") as { readonly id: string }).id;
}

const filesOfOthers = new Map<Api, Promise<string>>();

/** The file of a closed session, which no other cell gets. */
async function fileOfAnother(api: Api): Promise<string> {
  const original = filesOfOthers.get(api) ?? makeFileOfAnother(api);
  filesOfOthers.set(api, original);
  const file = await original;
  const [head = "", ...entries] = readFileSync(file, "utf8").split("\n");
  const id = randomUUID();
  const copy = join(dirname(file), `copy_${id}.jsonl`);
  writeFileSync(copy, [JSON.stringify({ ...(JSON.parse(head) as object), id }), ...entries].join("\n"));
  return copy;
}

async function makeFileOfAnother(api: Api): Promise<string> {
  await using other = await world.cell(api);
  await other.session.promptAndWait("Elsewhere.");
  return (await other.session.get()).file;
}

describe("inside pi", () => {
  test.concurrent.for(cases)("a $does while a push is $where ($api)", async (row, { task }) => {
    const { api, change, place, end, last, isCarried } = row;
    await using cell = await world.cellAnywhere(api);
    await cell.session.promptAndWait("A first prompt.");
    await cell.idle();
    cell.add(answer("An answer before the push."));
    await cell.session.promptAndWait("A second prompt.");
    await cell.idle();
    const delivery = await place.reach(cell);
    const { file } = await cell.session.get();
    const ids = {
      first: entryWith(file, "An answer before the push."),
      push: place === held ? "" : entryWith(file, delivery.id),
      otherFile: change === switchSession ? await fileOfAnother(api) : "",
    };
    await using told = await Notifications.of(world.stage.stateDir, cell.session.id);
    expect((await cell.session.prompt(change.command(ids))).disposition).toBe("handled");
    if (!change.isOtherSession) await cell.idle();
    else {
      const { params } = await told.until(({ name }) => name === "session/replaced");
      // It holds the pi; otherwise there would be too many.
      await world.stage.client.session(String(params["to"])).close();
    }
    const [state] = end.split(" ") as [Parameters<Cell["until"]>[1]];
    expect(endOf(await cell.until(delivery, state))).toBe(end);
    // One session file for the session's life.
    expect((await cell.session.get()).file).toBe(file);

    const before = cell.carried.length;
    await cell.session.promptAndWait("Go on.");
    await cell.idle();
    const [lastState] = last.split(" ") as [Parameters<Cell["until"]>[1]];
    const now = await cell.until(delivery, lastState);
    note(task, { does: change.name, where: place.name, api, end: endOf(now) });
    expect(endOf(now)).toBe(last);
    expect(cell.carried.slice(before)).toEqual([isCarried ? 1 : 0]);
    const isInside = now.history.some((step) => step.state === "inserted");
    expect(cell.entriesIn(file, delivery.id)).toBe(isInside ? 1 : 0);
    expect(told.named("session/replaced")).toHaveLength(change.isOtherSession ? 1 : 0);
    expect(told.named("session/foreignWrite")).toEqual([]);
    if (isCarried && place !== answered) {
      expect(attemptsOf(now).at(-1)).toBe("delivered headers 200 confirmed");
    }
    cell.expectLawful();
    // A push to the current session is not affected.
    expect((await cell.push({ content: "One for the session as it is now." }).answered).state).toBe("answered");
    await cell.idle();
    cell.done();
  });
});
