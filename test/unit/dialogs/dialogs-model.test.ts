import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { DialogAnswer, DialogMethod, DialogPolicy } from "../../../protocol/dialog.ts";
import { limits } from "../../../server/configuration/limits.ts";
import { DialogFixture, type Said } from "../../helpers/dialog-fixture.ts";

const { maxDialogMs, maxDialogsPerSession } = limits.dialogs;

/** A question inside a pi that behaves as measured. */
interface Waiting {
  readonly method: DialogMethod;
  /** The time at which the extension's signal, or pi's own timeout, ends it. */
  endsAt: number | undefined;
  /** Answers written to pi while it waited. */
  taken: unknown;
}

/** The expected state, derived from the operations alone. */
class Expected {
  /** Questions that the living pi waits for. */
  readonly waiting = new Map<string, Waiting>();
  /** Answers that the daemon has accepted, by dialog. */
  readonly accepted = new Map<string, DialogAnswer>();
  /** How many posts and notifications were checked. */
  posted = 0;
  said = 0;
  /** Each dialog that was ever reported. */
  readonly ids: string[] = [];
  /** Until when each dialog is reserved for its owner, and the owner. */
  readonly reserved = new Map<string, { readonly owner: string; readonly until: number }>();
  runs = 0;
  /** An abort that pi has not got yet, and that it gets by `send`. */
  coming: { readonly send: () => void; readonly until: number } | undefined;
  endAbort: (() => void) | undefined;
}

type Step = fc.Command<Expected, DialogFixture>;

class Operation implements Step {
  readonly #name: string;
  readonly #run: (model: Expected, room: DialogFixture) => void;
  readonly #when: (model: Readonly<Expected>) => boolean;

  constructor(
    name: string,
    run: (model: Expected, room: DialogFixture) => void,
    when: (model: Readonly<Expected>) => boolean = () => true,
  ) {
    this.#name = name;
    this.#run = run;
    this.#when = when;
  }

  check(model: Readonly<Expected>): boolean {
    return this.#when(model);
  }

  run(model: Expected, room: DialogFixture): void {
    this.#run(model, room);
    look(model, room);
  }

  toString(): string {
    return this.#name;
  }
}

/** Invariants. */
function look(model: Expected, room: DialogFixture): void {
  const now = room.clock.now();
  for (const { endsAt } of model.waiting.values()) if (endsAt !== undefined && endsAt <= now) hide(model, now);
  for (const record of room.posted.slice(model.posted)) {
    const question = model.waiting.get(String(record["id"]));
    // pi ignores an answer that it does not wait for. No pending question gets two.
    if (question === undefined) continue;
    expect(question.taken, "a second answer").toBeUndefined();
    question.taken = record;
  }
  model.posted = room.posted.length;
  if (now >= (model.coming?.until ?? now + 1)) model.coming = undefined;
  for (const { method, params } of room.said.slice(model.said)) {
    const { dialogId, owner, openToOthersAt, openedAt } = params.dialog ?? params;
    if (method === "dialog/opened" && openToOthersAt !== undefined) {
      model.reserved.set(dialogId, { owner: owner.clientId, until: now + openToOthersAt - openedAt });
    } else if (method === "dialog/updated") model.reserved.delete(dialogId);
  }
  model.said = room.said.length;
  const { opened, resolved } = sorted(room.said);
  for (const ids of [opened, resolved]) expect(new Set(ids).size, "told twice").toBe(ids.length);
  for (const id of [...opened, ...resolved]) if (!model.ids.includes(id)) model.ids.push(id);
  const open = room.open.map(({ dialogId }) => dialogId);
  const isComing = model.coming !== undefined;
  // pi's abort would wait for it.
  if (isAborting(model)) expect(open).toEqual([]);
  // Every shown dialog is either open or reported as ended, never both.
  expect(opened.filter((id) => !resolved.includes(id)).sort()).toEqual([...open].sort());
  for (const { deadline, requestId } of room.open) {
    expect(deadline).toBeGreaterThan(0);
    // An answered dialog is not offered any more.
    expect(model.waiting.get(requestId)?.taken).toBeUndefined();
  }
  // No pending question of pi is forgotten: it is open, or answered after an abort at the latest, or pi ends it itself.
  const known = new Set(room.open.map(({ requestId }) => requestId));
  for (const [id, { taken, endsAt }] of model.waiting) {
    const isOver = taken !== undefined || endsAt !== undefined;
    expect(isOver || isComing || known.has(id), `${id} hangs`).toBe(true);
  }
  // An ended dialog leaves no timer.
  expect(room.clock.waiting).toBeLessThanOrEqual(open.length + Number(isComing) + room.killedTimers);
}

/** Whether pi has an abort. */
function isAborting({ endAbort, coming }: Expected): boolean {
  return endAbort !== undefined && coming === undefined;
}

function hide(model: Expected, now: number): void {
  for (const [id, { endsAt }] of model.waiting) if (endsAt !== undefined && endsAt <= now) model.waiting.delete(id);
}

function sorted(said: readonly Said[]): { readonly opened: string[]; readonly resolved: string[] } {
  return {
    opened: said.flatMap(({ method, params }) => (method === "dialog/opened" ? [params.dialog.dialogId] : [])),
    resolved: said.flatMap(({ method, params }) => (method === "dialog/resolved" ? [params.dialogId] : [])),
  };
}

function pick<T>(from: readonly T[], at: number): T | undefined {
  return from.length === 0 ? undefined : from[at % from.length];
}

const methods: readonly DialogMethod[] = ["select", "confirm", "input", "editor"];
const answers: readonly DialogAnswer[] = [
  { value: "a" },
  { value: "none of them" },
  { confirmed: true },
  { confirmed: false },
  { cancelled: true },
];

function isValid(method: DialogMethod, answer: DialogAnswer): boolean {
  if ("cancelled" in answer) return true;
  if ("confirmed" in answer) return method === "confirm";
  return method === "input" || method === "editor" || (method === "select" && answer.value === "a");
}

function isForOthers({ reserved }: Expected, room: DialogFixture, dialogId: string, client: string): boolean {
  const { owner = client, until = 0 } = reserved.get(dialogId) ?? {};
  return owner !== client && room.clock.now() < until;
}

function ask(method: DialogMethod, timeout: number | undefined, size: number): Operation {
  return new Operation(`ask ${method} ${timeout ?? ""} ${size}`, (model, room) => {
    const question = { method, title: "t".repeat(size), options: ["a", "b"] };
    const endsAt = timeout === undefined ? undefined : room.clock.now() + timeout;
    const id = room.nextId;
    model.waiting.set(id, { method, endsAt, taken: undefined });
    room.ask({ ...question, ...(timeout === undefined ? {} : { timeout }) });
  });
}

function respond(which: number, answer: DialogAnswer, client: string): Operation {
  return new Operation(`respond ${which} ${JSON.stringify(answer)} ${client}`, (model, room) => {
    const dialogId = pick(model.ids, which);
    if (dialogId === undefined) return;
    const open = room.open.find((dialog) => dialog.dialogId === dialogId);
    const posted = room.posted.length;
    const outcome = room.refusal(dialogId, answer, client);
    // A dialog that was never open is forgotten with its daemon.
    const late = sorted(room.said).opened.includes(dialogId) ? ["stale"] : ["stale", "dialog_not_found"];
    if (open === undefined) expect(late).toContain(outcome);
    else if (isForOthers(model, room, open.dialogId, client)) expect(outcome).toBe("dialog_reserved");
    else if (!isValid(open.method, answer)) expect(outcome).toBe("invalid_params");
    else {
      expect(outcome).toBe("none");
      expect(model.accepted.has(dialogId), "answered twice").toBe(false);
      model.accepted.set(dialogId, answer);
      const reply = { type: "extension_ui_response", id: open.requestId, ...answer };
      expect(room.posted.slice(posted)).toEqual(model.coming === undefined ? [reply] : []);
      expect(room.said.at(-1)?.params).toMatchObject({ dialogId, by: "client", client: { clientId: client } });
    }
    if (outcome !== "none") expect(room.posted.length).toBe(posted);
  });
}

const simple: Readonly<Record<string, Operation>> = {
  settle: new Operation("settle", (_, room) => {
    const { runId } = room;
    room.runId = undefined;
    room.dialogs.runSettled(runId);
  }),
  start: new Operation("start a run", (model, room) => {
    model.runs += 1;
    room.runId ??= `r${model.runs}`;
  }),
  signal: new Operation("a signal ends the newest question inside pi", (model, room) => {
    const newest = [...model.waiting].filter(([, { taken }]) => taken === undefined).at(-1);
    if (newest !== undefined) newest[1].endsAt = room.clock.now();
  }),
  abort: new Operation(
    "begin an abort",
    (model, room) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      const open = room.open.length;
      void room.dialogs.whileAborting((send) => {
        model.coming = { send, until: room.clock.now() + 1_000 };
        return promise;
      });
      expect(room.open).toHaveLength(open);
      model.endAbort = resolve;
    },
    ({ endAbort }) => endAbort === undefined,
  ),
  send: new Operation(
    "pi gets the abort",
    (model) => {
      model.coming?.send();
      model.coming = undefined;
    },
    ({ coming }) => coming !== undefined,
  ),
  clear: new Operation("clear the queue", (_, room) => room.dialogs.cancelAll("clear_queue")),
  crash: new Operation("crash", (model, room) => {
    model.waiting.clear();
    room.runId = undefined;
    room.die();
    expect(room.open).toEqual([]);
    room.revive();
  }),
  hibernate: new Operation("hibernate", (model, room) => {
    room.dialogs.endAll("hibernate");
    model.waiting.clear();
    room.runId = undefined;
  }),
  kill: new Operation("kill the daemon", (model, room) => {
    model.waiting.clear();
    model.endAbort = undefined;
    model.coming = undefined;
    room.kill();
    expect(room.open).toEqual([]);
  }),
};

const policies: readonly DialogPolicy[] = [
  { kind: "cancel" },
  { kind: "default", afterMs: 0 },
  { kind: "default", afterMs: 3_000 },
  { kind: "wait", deadlineMs: 60_000 },
  { kind: "wait" },
];

const operations = [
  fc
    .record({
      method: fc.constantFrom(...methods),
      timeout: fc.constantFrom(undefined, undefined, 300, 2_000, 20_000),
      size: fc.constantFrom(1, 1, 1, 5_000),
    })
    .map(({ method, timeout, size }) => ask(method, timeout, size)),
  fc
    .record({ which: fc.nat(50), answer: fc.constantFrom(...answers), client: fc.constantFrom("c1", "c2", "c3") })
    .map(({ which, answer, client }) => respond(which, answer, client)),
  fc.constantFrom("c1", "c2", undefined).map(
    (client) =>
      new Operation(`what is asked now is for ${client}`, (_, room) => {
        room.owner = client;
      }),
  ),
  fc.subarray(["c1", "c2", "c3"]).map(
    (clients) =>
      new Operation(`${clients} can answer`, (_, room) => {
        room.clients = new Set(clients);
        room.attend(clients.length);
      }),
  ),
  fc.nat(3).map((n) => new Operation(`${n} can answer`, (_, room) => room.attend(n))),
  fc
    .constantFrom(1, 400, 1_500, 5_000, 40_000)
    .map((ms) => new Operation(`${ms} ms pass`, (_, room) => room.clock.advance(ms))),
  fc.constantFrom(...Object.values(simple)),
];

/** In any case: after the longest time of a dialog, nothing waits any more. */
function finish(model: Expected, room: DialogFixture): void {
  model.endAbort?.();
  room.clock.advance(maxDialogMs + 1);
  look(model, room);
  expect(room.open).toEqual([]);
  const { opened, resolved } = sorted(room.said);
  expect(opened.filter((id) => !resolved.includes(id))).toEqual([]);
  for (const [id, { taken }] of model.waiting) expect(taken, `${id} hangs`).toBeDefined();
}

describe("dialogs in any order of questions, answers, absences, timeouts, aborts, settlings and deaths", () => {
  it("send pi one answer each, are reported once, and never hang without a deadline", () => {
    const steps = fc.commands(operations, { maxCommands: 60 });
    fc.assert(
      fc.property(fc.constantFrom(...policies), steps, (policy, commands) => {
        const room = new DialogFixture(policy, { maxDialogsPerSession: 5, maxDialogBytes: 4_000 });
        const model = new Expected();
        fc.modelRun(() => ({ model, real: room }), commands);
        finish(model, room);
      }),
      { numRuns: Number(process.env["DIALOG_RUNS"] ?? 1_500) },
    );
    expect(maxDialogsPerSession).toBeGreaterThan(5);
  });
});
