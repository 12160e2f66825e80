import { describe, expect, test } from "vitest";
import type { Dialog, DialogAnswer, DialogPolicy } from "../../../protocol/dialog.ts";
import type { WireError } from "../../../protocol/errors.ts";
import { Grant } from "../../../server/rpc/grant.ts";
import type { Session } from "../../../server/session/session.ts";
import { dispatcherOf } from "../../helpers/conversation.ts";
import { type Core, type Heard, type Recorder, recorder, startCore } from "../../helpers/core.ts";

interface Scene {
  readonly core: Core;
  readonly session: Session;
  readonly heard: Recorder;
}

/** A session with a client that can answer, unless `dialogs` is false. */
async function scene(core: Core, options: { policy?: DialogPolicy; dialogs?: boolean } = {}): Promise<Scene> {
  const { policy, dialogs = true } = options;
  const session = await core.registry.create({
    cwd: core.cwd,
    ...(policy === undefined ? {} : { dialogPolicy: policy }),
  });
  const heard = recorder();
  session.subscribe(heard, { after: 0, dialogs });
  return { core, session, heard };
}

const confirm = { method: "confirm", message: "?" };
const asking = (how: "gate" | "hook" | "/ask", ...questions: object[]): string =>
  `${how} ${JSON.stringify(questions.length === 0 ? [confirm] : questions)}`;

const prompt = ({ session }: Scene, text: string) => session.prompting.prompt({ text, ifRunning: "refuse" });

const named = (method: string) => (heard: Heard) => heard.method === method;
const event = (type: string) => (heard: Heard) => heard.method === "session/event" && heard.params.event.type === type;

async function opened({ heard }: Scene): Promise<Dialog> {
  return (await heard.until(named("dialog/opened"))).params.dialog as Dialog;
}

/** The answers that the fake pi reports. */
const answersOf = ({ heard }: Scene): object[] =>
  heard.heard.filter(event("dialog_answered")).map(({ params }) => params.event.answer);

const endings = ({ heard }: Scene): string[] =>
  heard.heard.filter(named("dialog/resolved")).map(({ params }) => `${params.how} by ${params.by}`);

const respond = ({ core }: Scene, dialogId: string, answer: DialogAnswer, clientId = "c1") =>
  core.dialogs.respond(dialogId, answer, { clientId });

const kindOf = (attempt: () => unknown): string => {
  try {
    attempt();
    return "success";
  } catch (error) {
    return (error as WireError).kind;
  }
};

describe("a question of an extension", () => {
  test("is reported after pi's own record, and its answer reaches the extension", async () => {
    await using core = await startCore();
    const on = await scene(core);
    await prompt(on, asking("gate", { method: "select", options: ["a", "b"] }));
    const dialog = await opened(on);
    const names = on.heard.heard.map(({ method, params }) => params.event?.type ?? method);
    expect(names.indexOf("dialog/opened")).toBe(names.indexOf("extension_ui_request") + 1);
    expect(dialog).toMatchObject({ method: "select", options: ["a", "b"], requestId: "q1", generation: 1 });
    expect(dialog.runId).toBe(on.session.runId);
    expect(on.session.info().pendingDialogs).toMatchObject([{ dialogId: dialog.dialogId, title: "Sure?" }]);
    respond(on, dialog.dialogId, { value: "b" });
    await on.heard.until(event("agent_settled"));
    expect(answersOf(on)).toEqual([{ type: "extension_ui_response", id: "q1", value: "b" }]);
    expect(endings(on)).toEqual(["answered by client"]);
    expect(on.session.info().pendingDialogs).toEqual([]);
    const pending = on.heard.heard.filter(named("session/updated")).map(({ params }) => params.session.pendingDialogs);
    expect(pending.map(({ length }) => length)).toContain(1);
  });

  test("has the same id in a replay", async () => {
    await using core = await startCore();
    const on = await scene(core);
    await prompt(on, asking("gate"));
    const { dialogId } = await opened(on);
    const late = recorder("late");
    on.session.subscribe(late, { after: 0, dialogs: true });
    expect(late.heard.filter(named("dialog/opened"))).toEqual(on.heard.heard.filter(named("dialog/opened")));
    respond(on, dialogId, { confirmed: true }, "late");
    expect(late.heard.filter(named("dialog/resolved"))).toMatchObject([
      { params: { dialogId, client: { clientId: "late" } } },
    ]);
  });

  test("several at once are answered in any order", async () => {
    await using core = await startCore();
    const on = await scene(core);
    await prompt(on, asking("gate", confirm, { method: "input" }, { method: "editor", prefill: "x" }));
    await on.heard.until((heard) => heard.params.dialog?.requestId === "q3");
    const [first, second, third] = core.dialogs.page({}).dialogs as [Dialog, Dialog, Dialog];
    respond(on, third.dialogId, { value: "z" });
    respond(on, first.dialogId, { confirmed: false });
    respond(on, second.dialogId, { cancelled: true });
    await on.heard.until(event("agent_settled"));
    expect(answersOf(on)).toMatchObject([{ id: "q3", value: "z" }, { id: "q1" }, { id: "q2", cancelled: true }]);
  });

  test.each(["hibernate", "reload", "shutdown", "close"] as const)(
    "ends before its pi does when the session must %s",
    async (how) => {
      await using core = await startCore();
      const on = await scene(core);
      // A command asks without starting a run.
      void prompt(on, asking("/ask")).catch(() => {});
      const { dialogId } = await opened(on);
      const { state } = on.session;
      const ended = {
        hibernate: () => on.session.supervisor.hibernate(true),
        reload: () => on.session.reload(),
        shutdown: () => on.session.shutDown(0),
        close: () => on.session.close(),
      }[how]();
      await on.heard.until(named("dialog/resolved"));
      expect("child" in state && state.child.state.kind).not.toBe("exited");
      expect(kindOf(() => respond(on, dialogId, { confirmed: true }))).toBe("stale");
      await ended;
      expect(endings(on)).toEqual([how === "close" ? "ended by close" : "ended by hibernate"]);
    },
  );

  test("of two answers one reaches pi, and the other client learns who answered", async () => {
    await using core = await startCore();
    const on = await scene(core);
    await prompt(on, asking("gate"));
    const { dialogId } = await opened(on);
    respond(on, dialogId, { confirmed: true }, "c1");
    expect(kindOf(() => respond(on, dialogId, { confirmed: false }, "c2"))).toBe("stale");
    await on.heard.until(event("agent_settled"));
    expect(answersOf(on)).toEqual([{ type: "extension_ui_response", id: "q1", confirmed: true }]);
  });

  test("that has ended: the controller's answer is stale, other clients are refused, and other tokens do not find it", async () => {
    await using core = await startCore();
    const on = await scene(core);
    const by = { clientId: "c1" };
    on.session.control.acquire({ by, ttlMs: 60_000, takeOver: false, policy: "exclusive" });
    const converse = dispatcherOf(core);
    const other = new Grant({ name: "ci", capabilities: ["prompt"], cwds: ["/elsewhere"] });
    await prompt(on, asking("gate"));
    const { dialogId } = await opened(on);
    const answer = async (clientId: string, grant?: Grant) => {
      const given = await converse(clientId, grant).call("dialog/respond", { dialogId, answer: { confirmed: true } });
      return "error" in given ? (given.error.data as WireError["data"]).name : "answered";
    };
    expect(await answer("c2")).toBe("not_controller");
    expect(await answer("c1")).toBe("answered");
    expect([await answer("c2"), await answer("c1")]).toEqual(["not_controller", "stale"]);
    expect(await answer("c3", other)).toBe("dialog_not_found");
  });

  test("by a command blocks no other call, and ends without a run", async () => {
    await using core = await startCore();
    const on = await scene(core);
    const asked = prompt(on, asking("/ask"));
    const { dialogId, runId } = await opened(on);
    expect(runId).toBeUndefined();
    await prompt(on, "another prompt");
    await on.heard.until(event("agent_settled"));
    respond(on, dialogId, { confirmed: true });
    expect(await asked).toMatchObject({ disposition: "handled" });
    expect(endings(on)).toEqual(["answered by client"]);
  });

  test("before pi accepts a prompt is answered while that prompt holds the session's queue", async () => {
    await using core = await startCore();
    const on = await scene(core);
    const held = prompt(on, asking("hook"));
    const { dialogId } = await opened(on);
    const next = on.session.prompting.prompt({ text: "behind it", ifRunning: "followUp" });
    respond(on, dialogId, { confirmed: true });
    expect((await held).disposition).toBe("started");
    expect((await next).promptId).toEqual(expect.any(String));
  });

  test("without a responder is dismissed immediately, and the run continues", async () => {
    await using core = await startCore();
    const on = await scene(core, { dialogs: false });
    await prompt(on, asking("gate"));
    await on.heard.until(event("agent_settled"));
    expect(endings(on)).toEqual(["cancelled by no_responder"]);
    expect(on.heard.heard.filter(named("dialog/opened"))).toEqual([]);
  });

  test("survives its responder with `wait`, and is offered to the next one with the same id", async () => {
    await using core = await startCore();
    const on = await scene(core, { policy: { kind: "wait" } });
    await prompt(on, asking("gate"));
    const { dialogId } = await opened(on);
    on.session.unsubscribe(on.heard.id);
    const [dialog] = core.dialogs.page({ sessionId: on.session.sessionId }).dialogs;
    expect(dialog?.dialogId).toBe(dialogId);
    const next = recorder("next");
    on.session.subscribe(next, { after: 0, dialogs: true });
    respond(on, dialogId, { confirmed: true }, "next");
    await next.until(event("agent_settled"));
  });

  test("is cancelled once all that can answer have abstained; one that leaves without an answer may return", async () => {
    await using core = await startCore();
    const on = await scene(core, { policy: { kind: "wait" } });
    const [second, third] = [recorder("second"), recorder("third")];
    on.session.subscribe(second, { dialogs: true });
    on.session.subscribe(third, { dialogs: true });
    await prompt(on, asking("gate", { method: "input" }));
    const { dialogId } = await opened(on);
    for (const id of [on.heard.id, on.heard.id, second.id]) expect(core.dialogs.abstain(dialogId, id)).toBeUndefined();
    expect(endings(on)).toEqual([]);
    on.session.unsubscribe(third.id);
    expect(core.dialogs.page({}).dialogs).toMatchObject([{ dialogId, unattendedUntil: expect.any(Number) }]);
    on.session.subscribe(third, { dialogs: true });
    const [again] = core.dialogs.page({}).dialogs;
    expect(again).not.toHaveProperty("unattendedUntil");
    core.dialogs.abstain(dialogId, third.id);
    await on.heard.until(event("agent_settled"));
    expect(endings(on)).toEqual(["cancelled by no_responder"]);
    expect(answersOf(on)).toMatchObject([{ id: "q1", cancelled: true }]);
    expect(kindOf(() => core.dialogs.abstain(dialogId, second.id))).toBe("stale");
  });

  test("waits for a connection that answers the dialogs of all sessions it may see, and for no other", async () => {
    await using core = await startCore();
    const on = await scene(core, { dialogs: false });
    const { answerers } = core.dialogs;
    const [page, elsewhere, again] = ["page", "elsewhere", "again"].map(recorder) as [Recorder, Recorder, Recorder];
    answerers.add(elsewhere, { clientId: "c2", covers: ({ cwd }) => cwd !== core.cwd });
    await prompt(on, asking("gate"));
    await on.heard.until(event("agent_settled"));
    expect(endings(on)).toEqual(["cancelled by no_responder"]);
    // It also follows the session, which counts once.
    on.session.subscribe(page, { dialogs: true });
    answerers.add(page, { clientId: undefined });
    answerers.named("page", "c1");
    await prompt(on, asking("gate", { method: "input" }));
    const { dialogId } = await opened(on);
    const [open] = core.dialogs.page({}).dialogs;
    expect(open).not.toHaveProperty("unattendedUntil");
    on.session.unsubscribe("page");
    expect(core.dialogs.page({}).dialogs).toEqual([open]);
    answerers.remove("page");
    expect(core.dialogs.page({}).dialogs).toMatchObject([{ dialogId, unattendedUntil: expect.any(Number) }]);
    answerers.add(again, { clientId: "c1" });
    expect(core.dialogs.page({}).dialogs).toEqual([open]);
    expect(kindOf(() => core.dialogs.abstain(dialogId, "elsewhere"))).toBe("invalid_request");
    core.dialogs.abstain(dialogId, "again");
    expect(endings(on).at(-1)).toBe("cancelled by no_responder");
  });

  test("from which one client has abstained is open to the others, later ones and itself included", async () => {
    await using core = await startCore();
    const on = await scene(core, { policy: { kind: "wait" } });
    const owner = recorder("owner");
    on.session.subscribe(owner, { dialogs: true, clientId: "c1" });
    const by = { clientId: "c1" };
    await on.session.prompting.prompt({ text: asking("gate", { method: "input" }), ifRunning: "refuse", by });
    const { dialogId, openToOthersAt } = await opened(on);
    expect(openToOthersAt).toBeDefined();
    core.dialogs.abstain(dialogId, owner.id);
    expect(on.heard.heard.filter(named("dialog/updated"))).toHaveLength(1);
    const later = recorder("later");
    on.session.subscribe(later, { dialogs: true });
    on.session.unsubscribe(on.heard.id);
    expect(core.dialogs.page({}).dialogs).toHaveLength(1);
    respond(on, dialogId, { value: "typed" }, "c2");
    await later.until(event("agent_settled"));
    expect(later.heard.filter(named("dialog/resolved"))).toMatchObject([{ params: { how: "answered" } }]);
  });

  test("is kept for those that have not abstained after the one that has left, under the session's policy", async () => {
    await using core = await startCore();
    const on = await scene(core, { policy: { kind: "wait" } });
    const second = recorder("second");
    on.session.subscribe(second, { after: 0, dialogs: true });
    await prompt(on, asking("gate", { method: "input" }));
    const { dialogId } = await opened(on);
    core.dialogs.abstain(dialogId, on.heard.id);
    on.session.unsubscribe(on.heard.id);
    on.session.unsubscribe(second.id);
    expect(core.dialogs.page({}).dialogs).toHaveLength(1);
    on.session.subscribe(second, { after: 0, dialogs: true });
    respond(on, dialogId, { value: "typed" });
    await second.until(event("agent_settled"));
  });

  test("takes an abstention only from a connection that can answer, and not with an answer", async () => {
    await using core = await startCore();
    const on = await scene(core);
    const converse = dispatcherOf(core);
    const reader = converse("c2");
    const connection = recorder("connection of c2");
    on.session.subscribe(connection);
    await prompt(on, asking("gate", { method: "input" }));
    const { dialogId } = await opened(on);
    const nameOf = (given: object): string =>
      "error" in given ? ((given as { error: { data: WireError["data"] } }).error.data.name as string) : "done";
    const call = (params: object) => reader.call("dialog/respond", { dialogId, ...params } as never);
    expect(nameOf(await call({ abstain: true }))).toBe("invalid_request");
    expect(nameOf(await call({}))).toBe("invalid_params");
    expect(nameOf(await call({ abstain: true, answer: { cancelled: true } }))).toBe("invalid_params");
    on.session.subscribe(connection, { dialogs: true });
    expect(await call({ abstain: true })).toMatchObject({ result: { dialogId } });
    expect(await call({ answer: { cancelled: true } })).toMatchObject({ result: { resolution: { by: "client" } } });
  });

  test("with pi's own timeout ends half a second before it, and pi returns its default", async () => {
    await using core = await startCore();
    const on = await scene(core);
    await prompt(on, asking("gate", { ...confirm, timeout: 600 }));
    const { dialogId } = await opened(on);
    await on.heard.until(event("agent_settled"));
    expect(endings(on)).toEqual(["ended by pi"]);
    expect(kindOf(() => respond(on, dialogId, { confirmed: true }))).toBe("stale");
    expect(answersOf(on)).toEqual([]);
  });
});

describe("a session with an open dialog", () => {
  test("is aborted without waiting for an answer", async () => {
    await using core = await startCore();
    const on = await scene(core);
    await prompt(on, asking("gate"));
    await opened(on);
    expect(await on.session.prompting.abort()).toBe(true);
    expect(endings(on)).toEqual(["cancelled by abort"]);
    expect(on.session.state.kind).toBe("idle");
  });

  test("is aborted also while a prompt waits for the answer", async () => {
    await using core = await startCore();
    const on = await scene(core);
    const held = prompt(on, asking("hook"));
    await opened(on);
    await on.session.prompting.abort();
    expect(endings(on)).toEqual(["cancelled by abort"]);
    expect((await held).disposition).toBe("started");
  });

  test("has its queue cleared: a prompt that waits for an answer is released, a question of the run stays open", async () => {
    await using core = await startCore();
    const on = await scene(core);
    core.behave();
    const held = prompt(on, asking("hook"));
    await opened(on);
    const cleared = on.session.prompting.clearQueue().catch((error: WireError) => error.kind);
    await held;
    expect(endings(on)).toEqual(["cancelled by clear_queue"]);
    await cleared;
    await on.heard.until(event("agent_settled"));
    await prompt(on, asking("gate"));
    await on.heard.until((heard) => heard.params.dialog?.requestId === "q2");
    await on.session.prompting.clearQueue().catch(() => {});
    expect(endings(on)).toHaveLength(1);
  });

  test.each([
    ["hibernate", (session: Session) => session.shutDown(0)],
    ["close", (session: Session) => session.close()],
  ] as const)("ends by %s without waiting for an answer", async (by, end) => {
    await using core = await startCore();
    const on = await scene(core);
    const held = prompt(on, asking("hook")).catch((error: WireError) => error.kind);
    await opened(on);
    await end(on.session);
    expect(await held).toBe("child_exited");
    expect(endings(on)).toEqual([`ended by ${by}`]);
  });

  test("has none after its child has died", async () => {
    await using core = await startCore();
    const on = await scene(core);
    await prompt(on, asking("gate"));
    const { dialogId } = await opened(on);
    process.kill(on.session.info().pid as number, "SIGKILL");
    await on.heard.until(named("dialog/resolved"));
    expect(endings(on)).toEqual(["ended by child_exited"]);
    expect(kindOf(() => respond(on, dialogId, { confirmed: true }))).toBe("stale");
    // Another child is started after an interrupted run.
    await on.heard.until(({ params }) => params.session?.generation === 2 && params.session.state === "idle");
  });

  test("disappears when the daemon is killed, which is reported once", async () => {
    await using core = await startCore();
    const on = await scene(core, { policy: { kind: "wait" } });
    await prompt(on, asking("gate"));
    const { dialogId } = await opened(on);
    // Everything written before this is on disk by then.
    await on.session.saved();
    await core.kill();
    const again = core.registry.get(on.session.sessionId);
    const late = recorder("late");
    again.subscribe(late, { after: 0, dialogs: true });
    const resolved = await late.until(named("dialog/resolved"));
    expect(resolved.params).toMatchObject({ dialogId, how: "ended", by: "daemon_restart" });
    expect(again.info().pendingDialogs).toEqual([]);
    expect(kindOf(() => respond(on, dialogId, { confirmed: true }))).toBe("stale");
  });

  test("forgets its dialogs when it is closed", async () => {
    await using core = await startCore();
    const on = await scene(core);
    await prompt(on, asking("gate"));
    const { dialogId } = await opened(on);
    await core.registry.close(on.session.sessionId);
    expect(kindOf(() => respond(on, dialogId, { confirmed: true }))).toBe("dialog_not_found");
  });
});

test("10,000 questions at once are bounded, and each is answered", async () => {
  await using core = await startCore();
  const on = await scene(core);
  await prompt(on, asking("gate", ...Array.from({ length: 10_000 }, () => confirm)));
  await on.heard.until((heard) => heard.params.event?.id === "q10000");
  const { dialogs } = core.dialogs.page({ limit: 500 });
  expect(dialogs).toHaveLength(64);
  for (const { dialogId } of dialogs) respond(on, dialogId, { confirmed: true });
  await on.heard.until(event("agent_settled"));
  expect(answersOf(on)).toHaveLength(10_000);
  const told = Map.groupBy(endings(on), (ending) => ending);
  expect([told.get("cancelled by too_many")?.length, told.get("answered by client")?.length]).toEqual([9_936, 64]);
});
