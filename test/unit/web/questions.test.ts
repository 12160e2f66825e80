import { expect, test } from "vitest";
import { WireError } from "../../../client/browser.ts";
import type { Dialog, DialogResolution } from "../../../protocol/dialog.ts";
import { AllQuestions } from "../../../web/state/questions.ts";
import { FakeDaemon, settled } from "./fake-daemon.ts";
import { FakePage } from "./fake-page.ts";

function dialog(dialogId: string, fields: Partial<Dialog> = {}): Dialog {
  return {
    dialogId,
    requestId: dialogId,
    sessionId: "s1",
    generation: 1,
    method: "confirm",
    title: `Question ${dialogId}`,
    openedAt: 1,
    deadline: 9_000_000,
    state: "open",
    ...fields,
  };
}

const mine: DialogResolution = { how: "answered", by: "client", client: { clientId: "this-page" }, at: 1 };
const theirs: DialogResolution = {
  how: "answered",
  by: "client",
  client: { clientId: "other-client", name: "editor" },
  at: 1,
};

async function opened(
  ...dialogs: readonly Dialog[]
): Promise<{ daemon: FakeDaemon; page: FakePage; questions: AllQuestions }> {
  const daemon = new FakeDaemon();
  const page = new FakePage();
  daemon.answer("dialog/list", { dialogs });
  const questions = new AllQuestions({ daemon, page, titleOf: (sessionId) => `title of ${sessionId}` });
  await questions.start();
  return { daemon, page, questions };
}

function shownIn(questions: AllQuestions): readonly string[] {
  return questions.all.value.map(({ dialog: { dialogId }, state }) =>
    state.kind === "ended" ? `${dialogId}: ${state.words}` : `${dialogId}: ${state.kind}`,
  );
}

test("shows the open questions of all sessions, oldest first, and says that it answers", async () => {
  const { daemon, questions } = await opened(dialog("b", { openedAt: 2 }), dialog("a"));
  expect(shownIn(questions)).toEqual(["a: open", "b: open"]);
  expect(questions.all.value[0]?.from).toBe("title of s1");
  expect(daemon.answers).toEqual([true]);
  daemon.changeDialog({
    sessionId: "s2",
    change: "opened",
    dialogId: "c",
    dialog: dialog("c", { sessionId: "s2", openedAt: 3 }),
  });
  expect(questions.open.value).toBe(3);
});

test("takes an answer half a second after the question appeared, not before", async () => {
  const { daemon, page, questions } = await opened(dialog("a"));
  daemon.answer("dialog/respond", { dialogId: "a", resolution: mine });
  page.pass(499);
  expect(await questions.answer("a", { confirmed: true })).toEqual({
    kind: "refused",
    words: "Read the question first.",
  });
  expect(daemon.methods).not.toContain("dialog/respond");
  page.pass(1);
  expect(await questions.answer("a", { confirmed: true })).toMatchObject({ kind: "done" });
  expect(shownIn(questions)).toEqual(["a: The question was answered by you."]);
  expect(questions.open.value).toBe(0);
});

test("sends one answer, and takes another one only after a refusal", async () => {
  const { daemon, page, questions } = await opened(dialog("a"));
  page.pass(500);
  const answer = Promise.withResolvers<never>();
  daemon.on("dialog/respond", () => answer.promise);
  const first = questions.answer("a", { confirmed: true });
  expect(shownIn(questions)).toEqual(["a: answering"]);
  expect(await questions.answer("a", { confirmed: false })).toMatchObject({ kind: "refused" });
  answer.reject(new WireError("invalid_params", "The answer does not fit."));
  expect(await first).toEqual({ kind: "refused", words: "The answer does not fit." });
  expect(questions.all.value[0]).toMatchObject({ state: { kind: "open" }, refusal: "The answer does not fit." });
});

test("says who was first", async () => {
  const { daemon, page, questions } = await opened(dialog("a"), dialog("b"));
  page.pass(500);
  daemon.changeDialog({ sessionId: "s1", change: "resolved", dialogId: "a", resolution: theirs });
  daemon.on("dialog/respond", () =>
    Promise.reject(new WireError("stale", "It is not open any more.", { resolution: theirs } as never)),
  );
  expect(await questions.answer("b", { confirmed: true })).toEqual({
    kind: "refused",
    words: "The question was answered by editor.",
  });
  expect(shownIn(questions)).toEqual([
    "a: The question was answered by editor.",
    "b: The question was answered by editor.",
  ]);
  questions.dismissEnded("a");
  expect(shownIn(questions)).toHaveLength(1);
});

test("waits with an answer until a question that is reserved is open to all", async () => {
  const { daemon, page, questions } = await opened(dialog("a"));
  page.pass(500);
  let isReserved = true;
  daemon.on("dialog/respond", () => {
    if (isReserved) throw new WireError("dialog_reserved", "It is reserved.", { retryAfterMs: 3_600_000 });
    return { dialogId: "a", resolution: mine };
  });
  const answering = questions.answer("a", { confirmed: true });
  await settled();
  isReserved = false;
  daemon.changeDialog({ sessionId: "s1", change: "updated", dialogId: "a", openToOthersAt: 1 });
  expect(await answering).toMatchObject({ kind: "done" });
});

test("still answers after the connection was lost, and knows which questions are open", async () => {
  const { daemon, page, questions } = await opened(dialog("a"), dialog("b"));
  daemon.answer("dialog/list", { dialogs: [dialog("b"), dialog("c", { openedAt: 5 })] });
  daemon.connection({ kind: "connected", daemon: "same" });
  await settled();
  expect(shownIn(questions)).toEqual(["a: The question has ended.", "b: open", "c: open"]);
  page.pass(500);
  daemon.answer("dialog/respond", { dialogId: "c", resolution: mine });
  expect(await questions.answer("c", { confirmed: true })).toMatchObject({ kind: "done" });
});

test("does not show a question that ended while the open ones were asked for", async () => {
  const { daemon, questions } = await opened();
  const list = Promise.withResolvers<never>();
  daemon.on("dialog/list", () => list.promise);
  daemon.connection({ kind: "connected", daemon: "same" });
  daemon.changeDialog({ sessionId: "s1", change: "resolved", dialogId: "a", resolution: theirs });
  list.resolve({ dialogs: [dialog("a")] } as never);
  await settled();
  expect(shownIn(questions)).toEqual([]);
});

test("a token that may only read does not answer", async () => {
  const daemon = new FakeDaemon();
  daemon.setAnswersDialogs = () =>
    Promise.reject(new WireError("forbidden", "The token lacks it.", { needs: "prompt" }));
  daemon.answer("dialog/list", { dialogs: [dialog("a")] });
  const questions = new AllQuestions({ daemon, page: new FakePage(), titleOf: () => "" });
  await questions.start();
  expect(shownIn(questions)).toEqual(["a: open"]);
  expect([questions.mayAnswer.value, questions.answersHere.value]).toEqual([false, false]);
});

test("says no more that it answers when it is switched off", async () => {
  const { daemon, questions } = await opened();
  expect([questions.mayAnswer.value, questions.answersHere.value]).toEqual([true, true]);
  await questions.setAnswersHere(false);
  expect(daemon.answers).toEqual([true, false]);
  expect([questions.mayAnswer.value, questions.answersHere.value]).toEqual([true, false]);
});
