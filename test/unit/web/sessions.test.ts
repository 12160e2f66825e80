import { expect, test } from "vitest";
import { type RunOutcome, WireError } from "../../../client/browser.ts";
import { AllSessions } from "../../../web/state/sessions.ts";
import { FakeDaemon, sessionInfo, settled } from "./fake-daemon.ts";
import { FakePage } from "./fake-page.ts";

type Info = ReturnType<typeof sessionInfo>;

async function opened(...sessions: readonly Info[]): Promise<{ daemon: FakeDaemon; sessions: AllSessions }> {
  return await openedIn(new FakePage(), ...sessions);
}

/** In a tab that may have had a page before. */
async function openedIn(
  { storage }: FakePage,
  ...sessions: readonly Info[]
): Promise<{ daemon: FakeDaemon; sessions: AllSessions }> {
  const daemon = new FakeDaemon();
  daemon.answer("session/list", { sessions });
  const all = new AllSessions(daemon, storage);
  await all.start();
  return { daemon, sessions: all };
}

/** A session whose newest run has ended. */
function ended(sessionId: string, at: number, outcome: RunOutcome = "settled"): Info {
  return sessionInfo(sessionId, { summary: { at, outcome } });
}

function groupsOf(sessions: AllSessions): readonly string[] {
  return sessions.groups.value.map(({ name, rows }) => `${name}: ${rows.map(({ sessionId }) => sessionId).join(" ")}`);
}

const dialog = { dialogId: "dialog-1", requestId: "1", method: "confirm", title: "Run it?", deadline: 9 } as const;
const exit = { at: 1, code: 1, signal: null, expected: false, stderrTail: "" };
const lostPrompt = { promptId: "p", text: "x", length: 1, at: 5 };

test("groups sessions by what they need, the newest first", async () => {
  const { sessions } = await opened(
    sessionInfo("asleep", { state: "hibernated" }),
    sessionInfo("awake", { updatedAt: 2 }),
    sessionInfo("newer", { updatedAt: 3 }),
    sessionInfo("runs", { state: "running", runId: "r" }),
    sessionInfo("starts", { state: "starting" }),
    sessionInfo("crashed", { state: "crashed", exit }),
    sessionInfo("lost", { lostPrompts: [lostPrompt] }),
    sessionInfo("asks", { state: "running", pendingDialogs: [dialog] }),
    sessionInfo("stuck", { state: "running", unresponsive: { since: 1 } }),
  );
  expect(groupsOf(sessions)).toEqual([
    "waits: asks",
    "failed: crashed lost stuck",
    "runs: runs starts",
    "awake: newer awake",
    "asleep: asleep",
  ]);
  expect(sessions.find("crashed")?.why).toBe("Its pi has ended (exit code 1).");
  expect(sessions.find("lost")?.why).toBe("A message was lost.");
  expect(sessions.count.value).toBe(9);
});

test("moves a session whose run has ended unseen, until someone looks", async () => {
  const { daemon, sessions } = await opened(ended("a", 5), ended("b", 6), sessionInfo("c"));
  expect(groupsOf(sessions)).toEqual(["awake: a b c"]);
  sessions.look("b", 10);
  for (const session of [ended("a", 7), ended("b", 8), ended("c", 9, "failed")]) daemon.changeSession(session);
  expect(groupsOf(sessions)).toEqual(["failed: c", "finished: a", "awake: b"]);
  sessions.look("a", 11);
  sessions.look("c", 12);
  expect(groupsOf(sessions)).toEqual(["awake: a b c"]);
  sessions.look(undefined, 13);
  daemon.changeSession(ended("c", 10, "interrupted"));
  expect(sessions.find("c")?.why).toBe("Its last run was interrupted.");
});

test("a reload of the page, and a daemon that was lost, leave what has finished unseen in its group", async () => {
  const page = new FakePage();
  const before = await openedIn(page, ended("old", 3), ended("seen", 4), ended("unseen", 5));
  before.sessions.look("seen", 1);
  before.daemon.changeSession(ended("seen", 6));
  before.daemon.changeSession(ended("unseen", 7));
  const found = [ended("old", 3), ended("seen", 6), ended("unseen", 7), ended("meanwhile", 8)];
  const after = await openedIn(new FakePage(page.kept), ...found);
  expect(groupsOf(after.sessions)).toEqual(["finished: unseen meanwhile", "awake: old seen"]);
  after.sessions.look("unseen", 2);
  after.daemon.answer("session/list", { sessions: [...found, ended("while-lost", 9)] });
  after.daemon.connection({ kind: "connected", daemon: "same" });
  await settled();
  expect(groupsOf(after.sessions)).toEqual(["finished: meanwhile while-lost", "awake: old seen unseen"]);
  expect([...page.kept.keys()]).toEqual(["pi-rpcd.seen"]);
  after.sessions.forget();
  expect(page.kept.size).toBe(0);
});

test("a tab keeps the times of a bounded number of sessions, and no other tab's or program's nonsense", async () => {
  const page = new FakePage(new Map([["pi-rpcd.seen", '{"before":1,"at":[7,["a"],["b",2],{}]}']]));
  const many = Array.from({ length: 1_200 }, (_, i) => ended(`s${i}`, 10 + i));
  const { sessions } = await openedIn(page, ended("b", 2), ended("c", 3), ...many);
  expect(groupsOf(sessions).at(-1)).toBe("awake: b");
  for (const { sessionId } of many) sessions.look(sessionId, 1);
  const kept = JSON.parse(page.kept.get("pi-rpcd.seen") ?? "") as { at: unknown[] };
  expect(kept.at).toHaveLength(1_000);
  expect(kept.at.at(-1)).toEqual(["s1199", 1209]);
  for (const nonsense of ["", "null", "7", '{"before":"x","at":[]}', "{"]) {
    const other = await openedIn(new FakePage(new Map([["pi-rpcd.seen", nonsense]])), ended("a", 5));
    expect(groupsOf(other.sessions)).toEqual(["awake: a"]);
  }
});

test("tells each end of a run once, and none that was there when the list was read", async () => {
  const { daemon, sessions } = await opened(ended("a", 5), sessionInfo("b"));
  const told: string[] = [];
  sessions.onRunEnded(({ sessionId, summary }) => told.push(`${sessionId} ${summary?.at}`));
  daemon.changeSession(ended("a", 5));
  daemon.changeSession(ended("b", 6));
  daemon.changeSession({ ...ended("b", 6), name: "renamed" });
  daemon.answer("session/list", { sessions: [ended("a", 8), ended("b", 6), ended("new", 9)] });
  daemon.connection({ kind: "connected", daemon: "same" });
  await settled();
  expect(told).toEqual(["b 6", "a 8", "new 9"]);
});

test("shows lost messages until someone looks, and later ones again", async () => {
  const { daemon, sessions } = await opened(sessionInfo("a", { lostPrompts: [lostPrompt] }));
  sessions.look("a", 10);
  sessions.look(undefined, 20);
  expect(groupsOf(sessions)).toEqual(["awake: a"]);
  daemon.changeSession(sessionInfo("a", { lostPrompts: [lostPrompt, { ...lostPrompt, at: 30 }] }));
  expect(sessions.find("a")?.why).toBe("A message was lost.");
});

test("follows changes, and reads the list again when the connection is back", async () => {
  const { daemon, sessions } = await opened(sessionInfo("a"), sessionInfo("b"));
  const row = sessions.find("b");
  daemon.changeSession(sessionInfo("a", { name: "Fix the limiter" }));
  daemon.changeSession(sessionInfo("new"));
  expect(sessions.find("a")?.title).toBe("Fix the limiter");
  expect(sessions.find("b")).toBe(row);
  daemon.removeSession("new");
  expect(sessions.find("new")).toBeUndefined();
  daemon.answer("session/list", { sessions: [sessionInfo("b")] });
  daemon.connection({ kind: "connected", daemon: "same" });
  await settled();
  expect(groupsOf(sessions)).toEqual(["awake: b"]);
});

test("does not lose a change that comes while the list is being read", async () => {
  const { daemon, sessions } = await opened();
  const list = Promise.withResolvers<never>();
  daemon.on("session/list", () => list.promise);
  daemon.connection({ kind: "connected", daemon: "same" });
  daemon.changeSession(sessionInfo("a", { name: "new" }));
  daemon.removeSession("b");
  list.resolve({ sessions: [sessionInfo("a", { name: "old" }), sessionInfo("b")] } as never);
  await settled();
  expect(groupsOf(sessions)).toEqual(["awake: a"]);
  expect(sessions.find("a")?.title).toBe("new");
});

test("filters by name, label, directory and model", async () => {
  const { sessions } = await opened(
    sessionInfo("a", { name: "Fix the limiter", labels: { issue: "318" } }),
    sessionInfo("b", { cwd: "/project/docs", model: { provider: "scripted", id: "model-2" } }),
  );
  const found = (words: string): readonly string[] => {
    sessions.filter.value = words;
    return sessions.groups.value.flatMap(({ rows }) => rows.map(({ sessionId }) => sessionId));
  };
  expect(found("LIMITER fix")).toEqual(["a"]);
  expect(found("issue=318")).toEqual(["a"]);
  expect(found("docs")).toEqual(["b"]);
  expect(found("model-2")).toEqual(["b"]);
  expect(found("limiter docs")).toEqual([]);
  expect(sessions.directories.value).toEqual(["/project/a", "/project/docs"]);
});

test("creates a session with what was entered, and its first prompt", async () => {
  const { daemon, sessions } = await opened();
  daemon.answer("session/create", sessionInfo("new"));
  daemon.answer("session/prompt", { promptId: "p", disposition: "started" });
  const created = await sessions.create({ directory: "/work", model: "a/b", name: "", firstPrompt: "Fix it" });
  expect(created).toEqual({ kind: "done", value: "new" });
  expect(daemon.calls.slice(-2).map(({ params }) => params)).toEqual([
    { cwd: "/work", model: "a/b" },
    { sessionId: "new", text: "Fix it" },
  ]);
  expect(sessions.find("new")).toBeDefined();
  daemon.on("session/prompt", () => Promise.reject(new WireError("budget_exceeded", "The budget is spent.")));
  expect(await sessions.create({ directory: "/work", firstPrompt: "Fix it" })).toEqual({
    kind: "refused",
    words: "The session was created, but its first message was refused: The budget is spent.",
  });
});

test("lists pi's stored sessions page by page, and opens one", async () => {
  const { daemon, sessions } = await opened();
  daemon.on("session/list", ({ storedAfter }) => {
    const page = storedAfter === undefined ? { sessions: [{ file: "/a" }], next: "n" } : { sessions: [{ file: "/b" }] };
    return { sessions: [], stored: page } as never;
  });
  await sessions.stored.more();
  expect(sessions.stored.hasMore.value).toBe(true);
  await sessions.stored.more();
  expect(sessions.stored.sessions.value.map(({ file }) => file)).toEqual(["/a", "/b"]);
  expect(sessions.stored.hasMore.value).toBe(false);
  daemon.answer("session/open", sessionInfo("stored"));
  expect(await sessions.openStored("/a")).toEqual({ kind: "done", value: "stored" });
  expect(sessions.find("stored")).toBeDefined();
});

test("says with the daemon's words what was refused, and which option would allow it", async () => {
  const { daemon, sessions } = await opened(sessionInfo("a"));
  const refuse = (needs: string): void =>
    daemon.on("session/rename", () =>
      Promise.reject(new WireError("forbidden", "The token does not allow this.", { needs })),
    );
  refuse("prompt");
  expect(await sessions.rename("a", "x")).toEqual({
    kind: "refused",
    words: "The token does not allow this. Open the page again without --read-only.",
  });
  refuse("bash");
  expect(await sessions.rename("a", "x")).toMatchObject({ words: expect.stringContaining("`pi-rpcd web --bash`") });
  refuse("admin");
  expect(await sessions.rename("a", "x")).toMatchObject({ words: "The token does not allow this." });
});

test("says why the list cannot be read", async () => {
  const daemon = new FakeDaemon();
  daemon.on("session/list", () => Promise.reject(new Error("The daemon is overloaded.")));
  const sessions = new AllSessions(daemon, new FakePage().storage);
  await sessions.start();
  expect(sessions.state.value).toEqual({ kind: "refused", words: "The daemon is overloaded." });
});
