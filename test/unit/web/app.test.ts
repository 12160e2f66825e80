import { expect, test } from "vitest";
import { AnotherDaemonError, ConnectionClosedError, ConnectionFailedError } from "../../../client/browser.ts";
import { isReading } from "../../../protocol/method-row.ts";
import { methods } from "../../../protocol/methods.ts";
import { SignIn } from "../../../web/sign-in.ts";
import { PageApp } from "../../../web/state/app.ts";
import { readingMethods } from "../../../web/state/reading.ts";
import { credentials, FakeTabs } from "./fake-browser.ts";
import { FakeDaemon, sessionInfo, settled } from "./fake-daemon.ts";
import { FakePage } from "./fake-page.ts";

interface Options {
  readonly connect?: () => Promise<FakeDaemon>;
  readonly isServed?: boolean;
  readonly hasToken?: boolean;
}

class Tab {
  readonly daemon = new FakeDaemon();
  readonly page = new FakePage();
  readonly tabs = new FakeTabs();
  readonly browser = this.tabs.tab();
  readonly app: PageApp;

  constructor({ connect, isServed = true, hasToken = true }: Options = {}) {
    if (hasToken) this.browser.storage.setItem("pi-rpcd.credentials", JSON.stringify(credentials));
    this.daemon.answer("session/list", {
      sessions: [sessionInfo("a", { state: "hibernated" }), sessionInfo("b", { state: "hibernated" })],
    });
    this.app = new PageApp({
      page: this.page,
      signIn: new SignIn(this.browser),
      connect: connect ?? (async () => this.daemon),
      isServed: async () => isServed,
    });
  }

  async start(): Promise<void> {
    await this.app.start();
    await settled();
  }

  /** Another tab that asks for the token. */
  async asked(): Promise<string> {
    return (await new SignIn(this.tabs.tab()).obtain()).kind;
  }
}

const lost = (code: number, attempt = 1): Parameters<FakeDaemon["connection"]>[0] => ({
  kind: "lost",
  reason:
    attempt === 1
      ? new ConnectionClosedError({ kind: "ended", code, reason: "" } as never)
      : new ConnectionFailedError("no"),
  attempt,
  nextTryInMs: 500,
});

test("connects, and shows what there is", async () => {
  const tab = new Tab();
  expect(tab.app.connection.value).toEqual({ kind: "connecting" });
  await tab.start();
  expect(tab.app.connection.value).toEqual({ kind: "connected", daemon: {} });
  expect(tab.app.workspace.value?.sessions.count.value).toBe(2);
  expect(tab.app.title.value).toBe("host /state");
  expect(await tab.asked()).toBe("signed_in");
});

test("has the open questions in its title", async () => {
  const tab = new Tab();
  const dialog = { dialogId: "d1", sessionId: "a", title: "Sure?", method: "confirm", openedAt: 1 };
  tab.daemon.answer("dialog/list", { dialogs: [dialog] });
  await tab.start();
  expect(tab.app.title.value).toBe("(1) host /state");
});

test("says since when the connection is lost, and when the next try is; all stays", async () => {
  const tab = new Tab();
  await tab.start();
  tab.app.workspace.value?.select("a");
  const since = tab.page.now();
  tab.daemon.connection(lost(1006));
  tab.page.pass(2_000);
  tab.daemon.connection(lost(1006, 2));
  expect(tab.app.connection.value).toEqual({ kind: "lost", since, nextTryAt: since + 2_500, attempt: 2 });
  expect(tab.app.workspace.value?.selected.value?.sessionId).toBe("a");
  expect(tab.app.workspace.value?.selected.value?.composer.permission.value.kind).toBe("no");
  expect(await tab.asked()).toBe("no_token");
  tab.daemon.connection({ kind: "connected", daemon: "same" });
  expect(tab.app.connection.value.kind).toBe("connected");
  expect(tab.app.workspace.value?.selected.value?.composer.permission.value.kind).toBe("yes");
});

test("ends when its token has ended, and deletes it", async () => {
  const tab = new Tab();
  await tab.start();
  tab.daemon.connection(lost(4401));
  expect(tab.app.connection.value).toMatchObject({ kind: "ended", why: "refused" });
  expect(tab.browser.kept.size).toBe(0);
  expect(tab.daemon.isClosed).toBe(true);
  expect(tab.app.workspace.value).toBeDefined();
});

test("ends when the daemon serves the page but takes no connection; goes on trying while nothing answers", async () => {
  const refused = new Tab({ isServed: true });
  await refused.start();
  for (const attempt of [1, 2, 3]) refused.daemon.connection(lost(1006, attempt));
  await settled();
  expect(refused.app.connection.value).toMatchObject({ kind: "ended", why: "refused" });
  const gone = new Tab({ isServed: false });
  await gone.start();
  for (const attempt of [1, 2, 3, 4, 5]) gone.daemon.connection(lost(1006, attempt));
  await settled();
  expect(gone.app.connection.value).toMatchObject({ kind: "lost", attempt: 5 });
  expect(gone.browser.kept.size).toBe(1);
});

test.each([
  ["another daemon", new AnotherDaemonError(), true, "another_daemon", 0],
  ["a refused token", new ConnectionFailedError("no"), true, "refused", 0],
  ["no daemon", new ConnectionFailedError("no"), false, "failed", 1],
] as const)("says that it cannot connect: %s", async (_, error, isServed, why, kept) => {
  const tab = new Tab({ isServed, connect: () => Promise.reject(error) });
  await tab.start();
  expect(tab.app.connection.value).toMatchObject({
    kind: "ended",
    why,
    words: expect.stringContaining("`pi-rpcd web`"),
  });
  expect(tab.browser.kept.size).toBe(kept);
});

test("says that it has no token", async () => {
  const tab = new Tab({ hasToken: false });
  await tab.start();
  expect(tab.app.connection.value).toMatchObject({ kind: "ended", why: "signed_out" });
  expect(tab.app.workspace.value).toBeUndefined();
});

test("ends when another daemon answers after a lost connection", async () => {
  const tab = new Tab();
  await tab.start();
  tab.daemon.connection(lost(1006));
  const end = { kind: "failed", code: 1006, reason: "", error: new AnotherDaemonError() } as const;
  tab.daemon.connection({ kind: "closed", end } as never);
  expect(tab.app.connection.value).toMatchObject({ kind: "ended", why: "another_daemon" });
  expect(tab.browser.kept.size).toBe(0);
});

test("signs out: the token ends at the daemon, and the connection with it", async () => {
  const tab = new Tab();
  await tab.start();
  await tab.app.signOut();
  expect(tab.tabs.posts).toMatchObject([{ path: "/sign-out", token: "secret" }]);
  expect(tab.app.connection.value).toMatchObject({ kind: "ended", why: "signed_off" });
  expect(tab.daemon.isClosed).toBe(true);
  expect(tab.browser.kept.size).toBe(0);
});

test("keeps drafts while other sessions are shown", async () => {
  const tab = new Tab();
  await tab.start();
  const { workspace } = tab.app;
  const draft = (): { write(text: string): void; readonly text: { readonly value: string } } => {
    const selected = workspace.value?.selected.value;
    if (selected === undefined) throw new Error("No session is shown.");
    return selected.composer.draft;
  };
  workspace.value?.select("a");
  draft().write("Half a thought");
  workspace.value?.select("b");
  expect(draft().text.value).toBe("");
  workspace.value?.select(undefined);
  workspace.value?.select("a");
  expect(draft().text.value).toBe("Half a thought");
});

test("shows one session at a time, and the same one only once", async () => {
  const tab = new Tab();
  await tab.start();
  tab.app.workspace.value?.select("a");
  await settled();
  const shown = tab.app.workspace.value?.selected.value;
  tab.app.workspace.value?.select("a");
  expect(tab.app.workspace.value?.selected.value).toBe(shown);
  tab.app.workspace.value?.select("b");
  await settled();
  expect(tab.daemon.subscriptions.map(({ sessionId }) => sessionId)).toEqual(["b"]);
});

test("looking calls only methods that change nothing and start no pi", async () => {
  const tab = new Tab();
  const page = { entries: [], leafId: null, cursor: 1, epoch: "a", before: "p" };
  tab.daemon.answer("transcript/page", page);
  await tab.start();
  const workspace = tab.app.workspace.value;
  for (const sessionId of ["a", "b", "a"]) {
    workspace?.select(sessionId);
    await settled();
    await workspace?.selected.value?.conversation.older();
    workspace?.selected.value?.conversation.setFilter("changes");
    tab.page.hide(true);
    tab.page.hide(false);
  }
  await workspace?.sessions.stored.more();
  tab.daemon.connection(lost(1006));
  tab.daemon.connection({ kind: "connected", daemon: "same" });
  await settled();
  expect(tab.daemon.methods.length).toBeGreaterThan(8);
  const others = tab.daemon.calls.filter(({ method }) => !(readingMethods as readonly string[]).includes(method));
  expect(new Set(others.map((call) => JSON.stringify(call)))).toEqual(
    new Set(
      ["a", "b"].map((sessionId) => JSON.stringify({ method: "model/list", params: { sessionId, cached: true } })),
    ),
  );
});

test.each(readingMethods)("%s changes nothing and starts no pi", (method) => {
  const row = methods[method];
  expect(isReading(row)).toBe(true);
  expect("asleep" in row ? row.asleep : undefined).not.toBe("wake");
});
