import { expect, test } from "vitest";
import type { SessionHandle } from "../../../client/index.ts";
import { Gate } from "../../../provider/gate.ts";
import { answer, call, hold, thinking } from "../../../provider/reply.ts";
import type { Conversation } from "../../../web/state/conversation.ts";
import { patience } from "../../helpers/patience.ts";
import { shareStage } from "../../helpers/shared-stage.ts";
import { itemsOf, loaded, messagesOf, open, TurnPage } from "./pages.ts";

const shared = shareStage();

/** Calls `moment` after each of pi's events, until the returned function is called. */
function atEachEvent(session: SessionHandle, moment: () => void): () => void {
  return session.listen({ begin: moment, gap: moment, receive: moment, end: () => {} });
}

test("shows each message once, at whatever moment of a run the page is loaded", async () => {
  await using stage = await shared.use({
    script: [
      answer(thinking("I think."), "I look. ", call("bash", { command: "echo one" })),
      answer("Then ", "I ", "look ", "again.", call("bash", { command: "echo two; echo three" })),
      answer("All ", "is ", "**well**."),
    ],
  });
  const session = await stage.freshSession();
  const pages: Conversation[] = [];
  const stop = atEachEvent(session, () => pages.push(open(stage.client, session.id)));
  await session.promptAndWait("Look at it");
  stop();
  await session.waitForIdle();
  const expected = messagesOf(await loaded(open(stage.client, session.id)));
  expect(expected).toEqual([
    "user  Look at it",
    "thought whole I think.",
    "text whole I look. ",
    "bash echo one done one\n",
    "text whole Then I look again.",
    "bash echo two; echo three done two\nthree\n",
    "text whole All is **well**.",
  ]);
  expect(pages.length).toBeGreaterThan(20);
  for (const page of pages) await expect.poll(() => messagesOf(page), patience).toEqual(expected);
  for (const page of pages) page.close();
});

test("shows an answer as it streams, also to a page that was loaded or hidden in the middle of it", async () => {
  const gate = new Gate();
  await using stage = await shared.use({ script: [answer("First half, ", hold(gate), "second half.")] });
  const session = await stage.freshSession();
  const [early, turn] = [open(stage.client, session.id), new TurnPage()];
  const hiding = open(stage.client, session.id, turn);
  await Promise.all([loaded(early), loaded(hiding)]);
  const run = session.promptAndWait("Tell me");
  const half = ["user  Tell me", "text streaming First half, "];
  await expect.poll(() => messagesOf(early), patience).toEqual(half);
  const late = await loaded(open(stage.client, session.id));
  await expect.poll(() => messagesOf(late), patience).toEqual(half);
  turn.hide(true);
  turn.hide(false);
  await expect.poll(() => messagesOf(hiding), patience).toEqual(half);
  gate.open();
  await run;
  const whole = ["user  Tell me", "text whole First half, second half."];
  for (const page of [early, late, hiding]) {
    await expect.poll(() => messagesOf(page), patience).toEqual(whole);
    await expect.poll(() => itemsOf(page)[0], patience).toMatchObject({ who: { kind: "you" } });
    page.close();
  }
});

test("shows a stopped run and a push with what the daemon knows of them", async () => {
  const gate = new Gate();
  await using stage = await shared.use({ script: [answer("Half", hold(gate)), "Thanks."] });
  const session = await stage.freshSession();
  const page = await loaded(open(stage.client, session.id));
  await session.prompt("Tell me");
  await gate.reached;
  await expect.poll(() => messagesOf(page), patience).toContain("text streaming Half");
  await session.abort();
  const stopped = { kind: "note", about: "abort", who: { kind: "you" } };
  await expect.poll(() => itemsOf(page).at(-1), patience).toMatchObject(stopped);
  const delivery = session.push({ customType: "build", content: "The build failed." });
  await delivery.answered;
  const push = { kind: "push", customType: "build", deliveryId: delivery.id, state: "answered" };
  const pushIn = (conversation: Conversation): unknown => itemsOf(conversation).find(({ kind }) => kind === "push");
  await expect.poll(() => pushIn(page), patience).toMatchObject(push);
  const later = await loaded(open(stage.client, session.id));
  expect(pushIn(later)).toMatchObject(push);
  expect(messagesOf(later)).toEqual(messagesOf(page));
  for (const each of [page, later]) each.close();
  gate.open();
});
