import { once } from "node:events";
import { join } from "node:path";
import { expect, test } from "vitest";
import { connect, type Dialog, type DialogAnswer, type SessionHandle } from "../../client/index.ts";
import type { NotificationParams } from "../../protocol/notifications.ts";
import { Gate } from "../../provider/gate.ts";
import { answer, call, delayed, hold } from "../../provider/reply.ts";
import { CuttingProxy } from "../helpers/cutting-proxy.ts";
import { shareStage } from "../helpers/shared-stage.ts";
import { type Stage, startStage } from "../helpers/stage.ts";
import { type Watcher, watch } from "../helpers/watcher.ts";

const extension = join(import.meta.dirname, "..", "fixtures", "extension", "asking.ts");

const agent = { settings: { extensions: [extension] } };
// Long enough that only the tests' own actions open a question to others.
const shared = shareStage({ agent, config: JSON.stringify({ dialogDelayMs: 86_400_000 }) });

/** A stage whose extension asks while pi starts. */
function stageAsking(atStart: object): Promise<Stage> {
  return startStage({ agent, env: () => ({ ASK_AT_START: JSON.stringify(atStart) }) });
}

const isNotify = (text: string) => (heard: { params: { event?: { method?: string; message?: string } } }) =>
  heard.params.event?.method === "notify" && heard.params.event.message === text;

const endings = (watcher: Watcher): string[] =>
  watcher.heard
    .filter(({ method }) => method === "dialog/resolved")
    .map(({ params }) => `${params.how} by ${params.by}`);

/** The first open dialog with this title. */
async function opened(watcher: Watcher, title: string): Promise<Dialog> {
  const heard = await watcher.until(
    ({ method, params }) => method === "dialog/opened" && params.dialog.title === title,
  );
  return heard.params.dialog;
}

const ask = (session: SessionHandle, ...questions: object[]) => session.prompt(`/ask ${JSON.stringify(questions)}`);

test("clients answer an extension's questions, each once, in a run and without one", async () => {
  await using stage = await shared.use();
  const { client, provider, cwd } = stage;
  const session = await client.createSession({ cwd, model: "scripted/model-1", dialogPolicy: { kind: "wait" } });
  await using watcher = await watch(stage.daemon.file, session.id);

  // Several at once, of every kind, answered by a handler.
  const answers: Readonly<Record<string, DialogAnswer>> = {
    Which: { value: "b\u2028" },
    Sure: { confirmed: true },
    Name: { value: "Ada" },
    Text: { value: "two\nlines" },
    Dismissed: { cancelled: true },
  };
  const asked: Dialog[] = [];
  const responder = session.onDialog((dialog) => {
    asked.push(dialog);
    return answers[dialog.title];
  });
  await responder.ready;
  await ask(
    session,
    { method: "select", title: "Which", options: ["a", "b\u2028"] },
    { method: "confirm", title: "Sure", text: "Really?" },
    { method: "input", title: "Name", text: "your name" },
    { method: "editor", title: "Text", text: "one line" },
    { method: "select", title: "Dismissed", options: ["a"] },
  );
  await watcher.until(isNotify(JSON.stringify(["b\u2028", true, "Ada", "two\nlines", null])));
  expect(asked.map(({ method, message, placeholder, prefill }) => [method, message ?? placeholder ?? prefill])).toEqual(
    [
      ["select", undefined],
      ["confirm", "Really?"],
      ["input", "your name"],
      ["editor", "one line"],
      ["select", undefined],
    ],
  );
  expect(endings(watcher).sort()).toEqual([
    "answered by client",
    "answered by client",
    "answered by client",
    "answered by client",
    "cancelled by client",
  ]);
  responder.stop();

  // Before a tool call, with two clients: the first valid answer counts, and the model gets it.
  provider.add(answer("I do.", call("bash", { command: "echo ask-first" })), answer("It was run."));
  const run = session.promptAndWait("Go.");
  const gate = await opened(watcher, "Run it?");
  expect((await session.get()).pendingDialogs).toMatchObject([{ dialogId: gate.dialogId, title: "Run it?" }]);
  expect(gate.runId).toBe((await session.get()).runId);
  await expect(session.respond(gate.dialogId, { value: "yes" })).rejects.toMatchObject({ kind: "invalid_params" });
  // A push waits with the run, and its state says so.
  const push = session.push({ customType: "n", content: "The build is green." });
  const waits = await watcher.until(
    ({ method, params }) => method === "delivery/updated" && params.delivery.reason !== undefined,
  );
  expect(waits.params.delivery).toMatchObject({ deliveryId: push.id, state: "held", reason: { code: "dialog" } });
  expect(await push.get()).toMatchObject({ state: "held", reason: { code: "dialog" } });
  await session.respond(gate.dialogId, { confirmed: true });
  const late = await watcher.call("dialog/respond", { dialogId: gate.dialogId, answer: { confirmed: false } });
  expect(late.error?.data).toMatchObject({ name: "stale", resolution: { by: "client", how: "answered" } });
  expect(await run).toBe("It was run.");
  expect((await push.answered).reason).toBeUndefined();

  // An abort does not wait for an answer.
  provider.add(answer("Again.", call("bash", { command: "echo ask-first twice" })));
  await session.prompt("Go again.");
  await watcher.until(({ params }) => params.dialog?.message === "echo ask-first twice");
  expect((await session.abort()).aborted).toBe(true);
  // On one connection, an answer arrives after everything sent before it.
  await watcher.call("daemon/info", {});
  expect(endings(watcher).at(-1)).toBe("cancelled by abort");

  // Neither does one while an extension asks before pi accepts a prompt, which blocks all other calls.
  provider.add(answer("Taken."));
  const held = session.prompt("hold this");
  await opened(watcher, "Take the prompt?");
  await session.abort();
  await held;
  await watcher.call("daemon/info", {});
  expect(endings(watcher).at(-1)).toBe("cancelled by abort");

  // pi's own timeout, and an extension's signal, which pi does not report: the dialog stays until its deadline.
  await ask(session, { method: "confirm", title: "In time", timeout: 900 });
  await watcher.until(isNotify("[false]"));
  await watcher.call("daemon/info", {});
  expect(endings(watcher).at(-1)).toBe("ended by pi");
  await ask(session, { method: "input", title: "Given up", abortAfterMs: 50 });
  const given = await opened(watcher, "Given up");
  await watcher.until(isNotify("[null]"));
  await session.respond(given.dialogId, { value: "nobody reads it" });

  // The child dies while a question is open.
  const lost = ask(session, { method: "confirm", title: "Lost" }).catch((error: { kind: string }) => error.kind);
  await opened(watcher, "Lost");
  process.kill((await session.get()).pid as number, "SIGKILL");
  await watcher.until(({ method, params }) => method === "dialog/resolved" && params.title === "Lost");
  expect(endings(watcher).at(-1)).toBe("ended by child_exited");
  expect(await lost).toBe("child_exited");
  expect(await session.dialogs()).toEqual([]);
});

test.each([
  { when: "at an open question", isAnswered: false },
  { when: "just before the question's answer", isAnswered: true },
])("an abort $when ends the run before the model is asked again", async ({ isAnswered }) => {
  await using stage = await shared.use();
  const { client, provider, cwd } = stage;
  const session = await client.createSession({ cwd, model: "scripted/model-1", dialogPolicy: { kind: "wait" } });
  await using watcher = await watch(stage.daemon.file, session.id);
  // A tool whose question ends before pi has the abort goes on, and in one of three runs asks the model.
  const times = 20;
  for (let n = 1; n <= times; n += 1) {
    const command = `echo ask-first ${n}`;
    provider.add(answer(call("bash", { command })));
    await session.prompt(`Go ${n}.`);
    const { params } = await watcher.until((heard) => heard.params.dialog?.message === command);
    const aborted = watcher.call("session/abort", { sessionId: session.id });
    const { dialogId } = params.dialog;
    if (isAnswered) await watcher.call("dialog/respond", { dialogId, answer: { cancelled: true } });
    expect((await aborted).result).toMatchObject({ aborted: true });
    expect(provider.requests).toHaveLength(n);
  }
  // The abort can also be with pi before the answer comes.
  const expected = isAnswered ? "cancelled by client" : "cancelled by abort";
  expect(endings(watcher).filter((end) => end !== expected && end !== "cancelled by abort")).toEqual([]);
  expect(endings(watcher)).toHaveLength(times);
});

test("without a responder the extension continues with its default and gets the reason", async () => {
  await using stage = await shared.use();
  const session = await stage.session();
  await using watcher = await watch(stage.daemon.file, session.id);
  await ask(session, { method: "confirm", title: "Anybody" }, { method: "editor", title: "Nobody" });
  await watcher.until(isNotify("[false,null]"));
  expect(endings(watcher)).toEqual(["cancelled by no_responder", "cancelled by no_responder"]);
  expect(watcher.heard.filter(({ method }) => method === "dialog/opened")).toEqual([]);
});

test("a client that dies while a question is open finds it again under its id, and its handler is called", async () => {
  await using stage = await shared.use();
  const session = await stage.session();
  const first = await watch(stage.daemon.file, session.id, { dialogs: true });
  const asked = ask(session, { method: "input", title: "Held" });
  const { dialogId } = await opened(first, "Held");
  await first[Symbol.asyncDispose]();
  const seen: string[] = [];
  const responder = session.onDialog((dialog) => {
    seen.push(dialog.dialogId);
    return { value: "late but there" };
  });
  await asked;
  expect(seen).toEqual([dialogId]);
  responder.stop();
});

test("a client that answers the dialogs of all sessions gets their questions, also after a lost connection", async () => {
  await using stage = await shared.use();
  const { socketPath, token } = stage.daemon.file;
  await using proxy = await CuttingProxy.start(join(stage.root, "cut.sock"), socketPath);
  await using page = await connect({ socketPath: proxy.socketPath, token, name: "page", validateResults: true });
  const changes: NotificationParams<"daemon/dialogChanged">[] = [];
  const heard = new EventTarget();
  await page.onDialogChanged((change) => {
    changes.push(change);
    heard.dispatchEvent(new Event("change"));
  });
  const change = async (kind: string, title: string): Promise<NotificationParams<"daemon/dialogChanged">> => {
    for (;;) {
      const opened = changes.find(({ dialog }) => dialog?.title === title);
      const found =
        kind === "opened"
          ? opened
          : changes.find(({ resolution, dialogId }) => resolution !== undefined && dialogId === opened?.dialogId);
      if (found !== undefined) return found;
      await once(heard, "change");
    }
  };
  const updated: string[] = [];
  await page.onDeliveryUpdated(({ delivery }) => updated.push(`${delivery.deliveryId} ${delivery.state}`));
  await page.setAnswersDialogs(true);

  // Its own prompt leads to the first question, which it may answer before others.
  const session = page.session((await stage.session()).id);
  const asked = ask(session, { method: "confirm", title: "Before" });
  const { dialog: before } = await change("opened", "Before");
  expect(before).toMatchObject({
    sessionId: session.id,
    owner: { clientId: page.id },
    openToOthersAt: expect.any(Number),
  });
  await session.respond(before?.dialogId ?? "", { confirmed: true });
  await asked;
  expect((await change("resolved", "Before")).resolution).toMatchObject({
    how: "answered",
    client: { clientId: page.id, name: "page" },
  });

  const again = new Promise<void>((done) => page.onConnection(({ kind }) => kind === "connected" && done()));
  proxy.cut({ from: "client", nth: 1, share: 0 });
  await page.info();
  await again;
  const other = await stage.session();
  const askedAgain = ask(other, { method: "input", title: "After" });
  const { dialogId } = await change("opened", "After");
  await other.respond(dialogId, { value: "by another client" });
  await askedAgain;
  expect((await change("resolved", "After")).resolution).toMatchObject({ client: { clientId: stage.client.id } });
  const push = other.push({ customType: "n", content: "x", deliverAs: "nextTurn" });
  await push.accepted;
  await push.cancel();
  await page.info();
  expect(updated).toContain(`${push.id} cancelled`);

  // Nobody answers any more, so the extension continues with its default.
  await page.setAnswersDialogs(false);
  await ask(other, { method: "confirm", title: "Nobody" });
  expect(changes.filter(({ change: kind }) => kind === "opened")).toHaveLength(2);
});

test("the client whose prompt led to a question answers it first; other clients' answers wait until it leaves", async () => {
  await using stage = await shared.use();
  const { stateDir, provider } = stage;
  await using ada = await connect({ stateDir, name: "Ada", validateResults: true });
  await using bob = await connect({ stateDir, validateResults: true });
  const his = await stage.session();
  const session = bob.session(his.id);
  await using watcher = await watch(stage.daemon.file, his.id, { dialogs: true });
  const owner = { clientId: ada.id, name: "Ada" };
  const command = "echo ask-first";

  // Bob's answers are automatic, and arrive before Ada decides.
  const bobs: Dialog[] = [];
  const responder = session.onDialog((dialog) => {
    bobs.push(dialog);
    return { confirmed: true };
  });
  await responder.ready;
  let decide = Promise.withResolvers<DialogAnswer>();
  const adas = ada.session(his.id).onDialog(() => decide.promise);
  await adas.ready;

  const asking = (text: string, toolCallId: string): void =>
    provider.add(answer(call("bash", { command: `${command} ${text}` }, toolCallId)), answer(`After ${text}.`));
  const opens = async (text: string): Promise<Dialog> => {
    const { params } = await watcher.until(({ params }) => params.dialog?.message === `${command} ${text}`);
    return params.dialog;
  };
  const refusedOther = async ({ dialogId }: Dialog): Promise<void> => {
    const params = { dialogId, answer: { confirmed: true } };
    const { error } = await watcher.call("dialog/respond", params);
    expect(error?.data).toMatchObject({ name: "dialog_reserved", owner, retryable: true });
  };
  const end = ({ dialogId }: Dialog) =>
    watcher.until(({ method, params }) => method === "dialog/resolved" && params.dialogId === dialogId);

  asking("prompted", "call-1");
  const run = ada.session(his.id).promptAndWait("Go.");
  const first = await opens("prompted");
  expect(first.owner).toEqual(owner);
  expect(first.openToOthersAt).toBeGreaterThan(first.openedAt);
  expect((await session.dialogs())[0]).toMatchObject({ dialogId: first.dialogId, owner });
  await refusedOther(first);
  decide.resolve({ confirmed: false });
  expect((await end(first)).params.client).toEqual(owner);
  expect(await run).toBe("After prompted.");
  await session.waitForIdle();

  // The same holds for a question that a push led to, and for one of a command, which starts no run.
  for (const how of ["pushed", "commanded"]) {
    decide = Promise.withResolvers<DialogAnswer>();
    if (how === "pushed") asking(how, "call-2");
    const done =
      how === "pushed"
        ? ada.session(his.id).push({ customType: "note", content: "Go on." }).answered
        : ask(ada.session(his.id), { method: "confirm", title: how, text: `${command} ${how}` });
    const dialog = await opens(how);
    expect(dialog.owner).toEqual(owner);
    await refusedOther(dialog);
    decide.resolve({ cancelled: true });
    expect((await end(dialog)).params.client).toEqual(owner);
    await done;
    await session.waitForIdle();
  }

  // In a session with a controller only the controller answers, immediately.
  decide = Promise.withResolvers<DialogAnswer>();
  asking("controlled", "call-3");
  await ada.session(his.id).prompt("And go.");
  const controlled = await opens("controlled");
  await refusedOther(controlled);
  await session.acquireControl({ policy: "exclusive" });
  await watcher.until(({ method, params }) => method === "dialog/updated" && params.dialogId === controlled.dialogId);
  expect((await end(controlled)).params.client).toEqual({ clientId: bob.id });
  await session.acquireControl({ policy: "shared" });
  await session.releaseControl();
  await session.waitForIdle();

  // After she has left, all may answer immediately, and are notified.
  asking("left", "call-4");
  await ada.session(his.id).prompt("Go again.");
  const left = await opens("left");
  await refusedOther(left);
  await ada.close();
  await watcher.until(({ method, params }) => method === "dialog/updated" && params.dialogId === left.dialogId);
  expect((await end(left)).params.client).toEqual({ clientId: bob.id });
  await session.waitForIdle();
  expect(bobs.map(({ dialogId }) => dialogId)).toContain(first.dialogId);
  responder.stop();
});

test("an owner that identifies itself after subscribing is recognised, and keeps its question on another connection", async () => {
  await using stage = await shared.use();
  const session = await stage.session();
  const sessionId = session.id;
  const client = { id: "client-ada-1", name: "Ada" };
  const connected = async () => {
    const watcher = await watch(stage.daemon.file, sessionId, { dialogs: true });
    await watcher.call("daemon/hello", { client });
    return watcher;
  };
  const first = await connected();
  await using second = await connected();
  await using bob = await watch(stage.daemon.file, sessionId, { dialogs: true });
  const asks = (from: Watcher, title: string) =>
    from.call("session/prompt", { sessionId, text: `/ask ${JSON.stringify([{ method: "confirm", title }])}` });
  const respond = (from: Watcher, { dialogId }: Dialog) =>
    from.call("dialog/respond", { dialogId, answer: { confirmed: true } });

  void asks(first, "Hers");
  const hers = await opened(bob, "Hers");
  expect(hers.owner).toEqual({ clientId: client.id, name: client.name });
  await first[Symbol.asyncDispose]();
  expect((await respond(bob, hers)).error?.data).toMatchObject({ name: "dialog_reserved" });
  expect((await respond(second, hers)).error).toBeUndefined();
  expect(bob.heard.filter(({ method }) => method === "dialog/updated")).toEqual([]);

  // During her run another client's command asks: the question could come from either, so neither has priority.
  const gate = new Gate();
  stage.provider.add(delayed(hold(gate), answer("Done.")));
  await second.call("session/prompt", { sessionId, text: "Go." });
  await gate.reached;
  void asks(bob, "His");
  const his = await opened(bob, "His");
  expect([his.owner, his.openToOthersAt]).toEqual([undefined, undefined]);
  expect((await respond(bob, his)).error).toBeUndefined();
  gate.open();
  await session.waitForIdle();
});

test("extensions are told on pi.events of a question that no client can answer, before they get its default", async () => {
  await using stage = await shared.use();
  const session = await stage.session();
  await using watcher = await watch(stage.daemon.file, session.id);
  await ask(session, { method: "confirm", title: "Anybody there" });
  const resolved = await watcher.until(({ params }) => params.title === "Anybody there" && params.by !== undefined);
  const { requestId, method, title } = resolved.params;
  await watcher.until(isNotify("[false]"));
  const notes = watcher.heard.flatMap(({ params }) =>
    params.event?.method === "notify" ? [params.event.message] : [],
  );
  expect(notes).toEqual([`told: ${JSON.stringify({ requestId, method, title, reason: "no_responder" })}`, "[false]"]);
});

test("ctx.ui.custom() resolves with undefined or rejects by name, as the session configures, and is reported", async () => {
  await using stage = await shared.use();
  const throwing = await stage.client.createSession({
    cwd: stage.cwd,
    model: "scripted/model-1",
    customUi: "throw",
  });
  const error = { name: "CustomUiUnsupportedError", kind: "customUiUnsupported" };
  for (const [session, got] of [
    [await stage.session(), undefined],
    [throwing, error],
  ] as const) {
    await using watcher = await watch(stage.daemon.file, session.id);
    const told = { method: "custom", reason: "custom_ui_unsupported" };
    // Also after a reload, which creates the helper's modules again.
    for (const times of [1, 2]) {
      await session.prompt("/draw");
      await watcher.until(() => watcher.heard.filter(isNotify(`drawn: ${JSON.stringify(got)}`)).length === times);
      expect(watcher.heard.filter(({ method }) => method === "dialog/unsupported").map(({ params }) => params)).toEqual(
        Array.from({ length: times }, () => expect.objectContaining(told)),
      );
      expect(watcher.heard.filter(isNotify(`told: ${JSON.stringify(told)}`))).toHaveLength(times);
      if (times === 1) await session.prompt("/again");
    }
  }
});

test("a question during pi's start that no client can answer makes the start fail with its name", async () => {
  await using stage = await stageAsking({});
  const error = await stage.session().catch((refusal: unknown) => refusal);
  expect(error).toMatchObject({ kind: "startup_dialog", data: { title: "May I start?" } });
});

test("a question with a timeout during pi's start delays the start until the timeout", async () => {
  await using stage = await stageAsking({ timeout: 1_500 });
  const session = await stage.session();
  expect((await session.get()).state).toBe("idle");
});

test("a question that does not block pi's start is reported as soon as pi reads", async () => {
  await using stage = await stageAsking({ detached: true });
  const session = await stage.client.createSession({
    cwd: stage.cwd,
    model: "scripted/model-1",
    dialogPolicy: { kind: "wait" },
  });
  const answered = Promise.withResolvers<string>();
  session.onDialog(({ title }) => {
    answered.resolve(title);
    return { confirmed: true };
  });
  expect(await answered.promise).toBe("May I start?");
});
