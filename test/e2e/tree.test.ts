import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { connect, type SessionHandle } from "../../client/index.ts";
import { Gate } from "../../provider/gate.ts";
import { answer, delayed, hold } from "../../provider/reply.ts";
import { fallAsleep } from "../helpers/asleep.ts";
import { shareStage } from "../helpers/shared-stage.ts";
import { watch } from "../helpers/watcher.ts";

const shared = shareStage({
  agent: { settings: { extensions: [join(import.meta.dirname, "..", "fixtures", "extension", "staying.ts")] } },
});

interface Entry {
  readonly id: string;
  readonly type?: string;
  readonly parentId?: string;
  readonly message?: { readonly role: string; readonly content: unknown };
}

async function entries(session: SessionHandle): Promise<readonly Entry[]> {
  return ((await session.command({ type: "get_entries" })) as { entries: Entry[] }).entries;
}

/** The id of the message of this role whose content has the text. */
async function entryOf(session: SessionHandle, role: string, text: string): Promise<string> {
  const found = (await entries(session)).find(
    ({ message }) => message?.role === role && JSON.stringify(message.content).includes(text),
  );
  return found?.id ?? "none";
}

test("a session continues from another entry of its tree: reported to all, kept by the file, and with its price", async () => {
  await using stage = await shared.use();
  const { provider, stateDir } = stage;
  const session = await stage.freshSession();
  await using bob = await connect({ stateDir, name: "Bob", validateResults: true });
  const his = bob.session(session.id);
  await using watcher = await watch(stage.daemon.file, session.id);
  const moves = () => watcher.heard.filter(({ method }) => method === "session/navigated").map(({ params }) => params);
  const lastRequest = (): string => JSON.stringify(provider.requests.at(-1)?.messages);
  const prompt = async (text: string, reply: string): Promise<void> => {
    provider.add(answer(reply));
    await session.promptAndWait(text);
    await session.waitForIdle();
  };

  await prompt("First question.", "First reply.");
  await prompt("Second question.", "Second reply.");
  const first = await entryOf(session, "assistant", "First reply.");
  const second = await entryOf(session, "assistant", "Second reply.");
  const by = { clientId: bob.id, name: "Bob" };

  // Away from the second answer, also for a pi that is started later.
  const moved = await his.navigate(first);
  expect(moved).toEqual({ outcome: "moved", leafId: expect.any(String) });
  await watcher.until(({ method }) => method === "session/navigated");
  expect(moves()).toMatchObject([{ from: second, to: moved.leafId, by }]);
  expect(await his.navigate(first)).toEqual({ outcome: "unchanged", leafId: moved.leafId });
  await fallAsleep(bob, session.id);
  await prompt("Third question.", "Third reply.");
  expect(lastRequest()).toContain("First reply.");
  expect(lastRequest()).not.toContain("Second");

  // To before a user's message, whose text is returned.
  const third = await entryOf(session, "user", "Third question.");
  expect(await his.navigate(third)).toMatchObject({ outcome: "moved", text: "Third question." });

  // A push on an abandoned branch waits there, and is carried when that branch is continued.
  const push = session.push({ customType: "note", content: "Noted here.", triggerTurn: false });
  await push.inserted;
  await his.setLabel(first, "the start");
  const afterNote = (await entries(session)).at(-1)?.id ?? "none";
  await his.navigate(second);
  const parked = ({ method, params }: { method: string; params: { delivery?: { state: string } } }): boolean =>
    method === "delivery/updated" && params.delivery?.state === "parked";
  expect((await watcher.until(parked)).params.delivery).toMatchObject({ deliveryId: push.id, state: "parked" });
  // No request can carry it from here, so none is made for it.
  const requests = provider.requests.length;
  const resent = await watcher.call("delivery/resend", { deliveryId: push.id });
  expect(resent.error?.data).toMatchObject({ name: "wrong_state", delivery: { state: "parked" } });
  expect(provider.requests).toHaveLength(requests);
  const note = (await entries(session)).find((entry) => JSON.stringify(entry).includes("Noted here."))?.id ?? "none";
  expect(await his.navigate(note)).toMatchObject({ outcome: "moved", text: "Noted here." });
  await his.navigate(afterNote);
  await prompt("Fourth question.", "Fourth reply.");
  expect(lastRequest()).toContain("Noted here.");
  await push.delivered;

  // With a summary of the abandoned branch, which costs.
  const before = (await watcher.call("cost/report", { sessionId: session.id })).result as Report;
  provider.add(answer("What was left."));
  const summed = await his.navigate(second, { summarize: true });
  expect(summed).toMatchObject({ outcome: "moved", leafId: summed.summaryEntryId });
  const toldOf = await watcher.until(({ params }) => params["summaryEntryId"] === summed.summaryEntryId);
  expect(toldOf.params).toMatchObject({ to: summed.leafId, by });
  await prompt("Fifth question.", "Fifth reply.");
  expect(lastRequest()).toContain("What was left.");
  const after = (await watcher.call("cost/report", { sessionId: session.id })).result as Report;
  expect(before.bySource["branch_summary"]).toBeUndefined();
  expect(after.bySource["branch_summary"]?.totalTokens).toBeGreaterThan(0);

  // An abort ends the summary, and the position is unchanged.
  const summing = new Gate();
  provider.add(delayed(hold(summing), answer("Never.")));
  const aborted = his.navigate(first, { summarize: true });
  await summing.reached;
  await session.abort();
  expect(await aborted).toMatchObject({ outcome: "cancelled" });

  // Refused by name: during a run, by an extension, for a missing entry.
  const gate = new Gate();
  provider.add(delayed(hold(gate), answer("Sixth reply.")));
  const run = session.promptAndWait("Sixth question.");
  await gate.reached;
  await expect(his.navigate(first)).rejects.toMatchObject({ kind: "session_busy" });
  gate.open();
  await run;
  await session.waitForIdle();
  await watcher.call("daemon/info", {});
  const count = moves().length;
  await session.prompt("/stay");
  expect(await his.navigate(first)).toMatchObject({ outcome: "cancelled" });
  await session.prompt("/go");
  await expect(his.navigate("no-such-entry")).rejects.toMatchObject({ kind: "entry_not_found" });
  await watcher.call("daemon/info", {});
  expect(moves()).toHaveLength(count);

  // Labels.
  await his.setLabel(second, "a dead end");
  await his.setLabel(first, "the beginning");
  expect(await session.labels()).toMatchObject([
    { entryId: second, label: "a dead end" },
    { entryId: first, label: "the beginning" },
  ]);
  await his.setLabel(second, null);
  expect(await session.labels()).toMatchObject([{ entryId: first, label: "the beginning" }]);
  const removed = await watcher.until(
    ({ method, params }) => method === "session/labelled" && params["label"] === null,
  );
  expect(removed.params).toMatchObject({ entryId: second, by });
  await expect(his.setLabel("no-such-entry", "x")).rejects.toMatchObject({ kind: "entry_not_found" });
});

test("a move to before the leaf message completes, even if an abort or another program's entries intervene", async () => {
  await using stage = await shared.use();
  const { provider } = stage;
  const session = await stage.freshSession();
  await using watcher = await watch(stage.daemon.file, session.id);
  provider.add(answer("The reply."));
  await session.promptAndWait("The question.");
  await session.waitForIdle();
  const reply = await entryOf(session, "assistant", "The reply.");
  const told = (method: string) => watcher.heard.filter((heard) => heard.method === method).map(({ params }) => params);

  // Labels and marks after an entry do not change that the branch ends there.
  const push = session.push({ customType: "note", content: "Noted here.", triggerTurn: false });
  await push.inserted;
  const { id: note } = (await entries(session)).at(-1) ?? { id: "none" };
  const moved = await session.navigate(note);
  expect(moved).toMatchObject({ outcome: "moved", text: "Noted here." });
  const label = "l".repeat(300);
  await session.prompt(`/label ${reply} ${label}`);
  const labelled = await watcher.until(({ method }) => method === "session/labelled");
  expect(labelled.params).toMatchObject({ entryId: reply, label: label.slice(0, 200) });
  expect(await session.labels()).toMatchObject([{ entryId: reply, label }]);
  expect(await session.navigate(reply)).toMatchObject({ outcome: "unchanged" });

  // An abort right after the call ends it at any stage.
  const root = await entryOf(session, "user", "The question.");
  const summing = new Gate();
  provider.add(delayed(hold(summing), answer("Never.")));
  const aborted = session.navigate(root, { summarize: true });
  await session.abort();
  expect(await aborted).toMatchObject({ outcome: "cancelled" });
  summing.open();

  // A label is written after another program's entries, which stay on the branch.
  const { file } = await session.get();
  const theirs = {
    type: "custom",
    id: "deadbeef",
    parentId: (await entries(session)).at(-1)?.id,
    customType: "theirs",
  };
  appendFileSync(file, `${JSON.stringify({ ...theirs, timestamp: new Date().toISOString() })}\n`);
  await session.setLabel(reply, "short");
  expect(told("session/foreignWrite")).toMatchObject([{ action: "reloaded", write: { entries: 1 } }]);
  expect((await entries(session)).at(-1)).toMatchObject({ type: "label", parentId: "deadbeef" });
  // Reported once each, also after the start of another pi.
  expect(told("session/labelled").map((params) => params["label"])).toEqual([label.slice(0, 200), "short"]);

  // If pi moved and is killed, its entries are not taken for another program's.
  await session.navigate(root);
  await session.navigate(reply);
  process.kill((await session.get()).pid as number, "SIGKILL");
  await watcher.until(({ method, params }) => method === "session/updated" && params["session"].pid === undefined);
  await session.promptAndWait("And now?");
  expect(JSON.stringify(provider.requests.at(-1)?.messages)).toContain("The reply.");
  expect(told("session/foreignWrite")).toHaveLength(1);
});

interface Report {
  readonly bySource: Readonly<Record<string, { readonly totalTokens: number }>>;
}
