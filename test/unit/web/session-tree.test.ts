import { expect, test } from "vitest";
import { WireError } from "../../../client/browser.ts";
import type { OutlineEntry } from "../../../protocol/transcript-methods.ts";
import { Branching } from "../../../web/state/branching.ts";
import type { SessionNotification } from "../../../web/state/daemon.ts";
import { SessionTree } from "../../../web/state/session-tree.ts";
import { FakeDaemon, settled } from "./fake-daemon.ts";
import { FakePage } from "./fake-page.ts";

const entry = (n: number, more: Partial<OutlineEntry> = {}): OutlineEntry => ({
  entryId: `e${n}`,
  parentId: n === 0 ? null : `e${n - 1}`,
  type: "message",
  role: "assistant",
  ...more,
});

/** A daemon whose session has these entries, and the tree of a page. */
class Fixture {
  readonly daemon = new FakeDaemon();
  readonly page = new FakePage();
  entries: OutlineEntry[];
  /** Counts rewritings of the file. */
  version = 0;
  error: Error | undefined;
  readonly limits: (number | undefined)[] = [];

  constructor(count: number) {
    this.entries = Array.from({ length: count }, (_, n) => entry(n));
    this.daemon.on("transcript/outline", ({ before, limit = 500 }) => {
      this.limits.push(limit);
      if (this.error !== undefined) throw this.error;
      const [version, end] = (before ?? `${this.version}.${this.entries.length}`).split(".").map(Number);
      if (version !== this.version) throw new WireError("transcript_changed", "It was rewritten.");
      const from = Math.max(0, (end ?? 0) - limit);
      return {
        entries: this.entries.slice(from, end),
        ...(from > 0 && { before: `${version}.${from}` }),
        ...(before === undefined && { leafId: this.entries.at(-1)?.entryId ?? null, parent: { sessionId: "parent" } }),
      };
    });
  }

  tree(): SessionTree {
    return new SessionTree({ daemon: this.daemon, page: this.page, sessionId: "s" });
  }

  add(count: number): void {
    for (let added = 0; added < count; added += 1) this.entries.push(entry(this.entries.length));
  }

  told(type = "message_end"): void {
    this.daemon.notify({
      name: "session/event",
      params: { sessionId: "s", seq: 1, at: 1, event: { type } },
    } as unknown as SessionNotification);
  }
}

const idsOf = (tree: SessionTree): string[] =>
  [...tree.tree.value.from(`e${tree.tree.value.size - 1}`)].map(({ entryId }) => entryId);
const sizeOf = (tree: SessionTree) => expect.poll(() => tree.tree.value.size);

test("all entries are read in few calls, and of a longer tree the earlier ones by a press", async () => {
  const fixture = new Fixture(10_000);
  const tree = fixture.tree();
  await sizeOf(tree).toBe(10_000);
  expect([fixture.limits.length, tree.hasEarlier.value, tree.state.value.kind]).toEqual([5, false, "ready"]);
  expect(tree.parent.value).toEqual({ sessionId: "parent" });
  expect(idsOf(tree)).toHaveLength(10_000);
  const long = new Fixture(47_000);
  const part = long.tree();
  await sizeOf(part).toBe(20_000);
  expect(part.rows.value.at(-1)).toMatchObject({ id: "e27000", isCut: true });
  // Pressing twice reads once.
  await Promise.all([part.readEarlier(), part.readEarlier()]);
  expect([part.tree.value.size, part.hasEarlier.value, long.limits.length]).toEqual([40_000, true, 20]);
  await part.readEarlier();
  expect([part.tree.value.size, part.hasEarlier.value]).toEqual([47_000, false]);
  expect(part.rows.value).toHaveLength(3);
});

test("what is written later comes once, by one call at a time, also when it is much", async () => {
  const fixture = new Fixture(300);
  const tree = fixture.tree();
  await sizeOf(tree).toBe(300);
  for (const count of [1, 5, 250, 5_000]) {
    fixture.add(count);
    const calls = fixture.limits.length;
    for (let times = 0; times < 30; times += 1) fixture.told();
    await sizeOf(tree).toBe(fixture.entries.length);
    await settled();
    expect(idsOf(tree)).toEqual(fixture.entries.map(({ entryId }) => entryId).reverse());
    expect(fixture.limits.length - calls).toBeLessThan(8);
  }
  const calls = fixture.limits.length;
  fixture.told("message_update");
  await settled();
  expect(fixture.limits).toHaveLength(calls);
  tree.close();
  fixture.told();
  expect([fixture.limits.length, fixture.daemon.subscriptions.length]).toEqual([calls, 0]);
});

test("a hidden page reads when it is shown, and what comes while the tree is read is not lost", async () => {
  const fixture = new Fixture(10);
  const tree = fixture.tree();
  fixture.add(1);
  fixture.told();
  await sizeOf(tree).toBe(11);
  fixture.page.hide(true);
  fixture.add(1);
  fixture.told();
  await settled();
  expect(tree.tree.value.size).toBe(11);
  fixture.page.hide(false);
  await sizeOf(tree).toBe(12);
});

test("what could not be read is read when the page is shown again", async () => {
  const fixture = new Fixture(10);
  const tree = fixture.tree();
  await sizeOf(tree).toBe(10);
  fixture.error = new Error("The daemon is busy.");
  fixture.add(1);
  fixture.told();
  await settled();
  fixture.error = undefined;
  fixture.page.hide(true);
  fixture.page.hide(false);
  await sizeOf(tree).toBe(11);
});

test("a file that was rewritten is read anew, and what was refused is said and can be tried again", async () => {
  const fixture = new Fixture(5_000);
  const tree = fixture.tree();
  await sizeOf(tree).toBe(5_000);
  fixture.version += 1;
  fixture.entries = Array.from({ length: 3_000 }, (_, n) => ({
    ...entry(n),
    entryId: `f${n}`,
    parentId: n === 0 ? null : `f${n - 1}`,
  }));
  fixture.told("rpcd_entry");
  await expect.poll(() => [tree.tree.value.has("f0"), tree.tree.value.size]).toEqual([true, 3_000]);
  fixture.error = new Error("The daemon is busy.");
  const refused = fixture.tree();
  await expect.poll(() => refused.state.value).toEqual({ kind: "refused", words: "The daemon is busy." });
  fixture.error = undefined;
  await refused.reload();
  expect([refused.state.value.kind, refused.tree.value.size]).toEqual(["ready", 3_000]);
  fixture.error = new Error("Again.");
  expect(await refused.reload()).toMatchObject({ kind: "refused", words: "Again." });
  expect(refused.state.value.kind).toBe("ready");
});

test("another branch is read to its own end, and the session stays as it is", async () => {
  const fixture = new Fixture(6);
  fixture.entries.push(entry(6, { parentId: "e2" }), entry(7));
  const pages: unknown[] = [];
  fixture.daemon.on("transcript/page", (params) => {
    pages.push(params);
    const message = { role: "user", content: "Words.", timestamp: 1 };
    return { entries: [{ type: "message", id: "e5", parentId: null, message }], leafId: "e5" } as never;
  });
  const tree = fixture.tree();
  await sizeOf(tree).toBe(8);
  tree.openBranch("e4");
  const { branch } = tree;
  await expect.poll(() => branch.value?.conversation.state.value.kind).toBe("ready");
  expect(pages).toEqual([{ sessionId: "s", leafId: "e5", limit: 100 }]);
  const rows = branch.value?.conversation.groups.value.flatMap((group) => group.rows.value) ?? [];
  expect(rows.map(({ item }) => item.value.kind)).toEqual(["user"]);
  expect(fixture.daemon.methods).toEqual(["transcript/outline", "transcript/page"]);
  tree.closeBranch();
  expect(branch.value).toBeUndefined();
});

test("forks are asked for by entry, by the time of a message, or at the end, and refusals say what may allow them", async () => {
  const daemon = new FakeDaemon();
  const branching = new Branching({ daemon, sessionId: "s" });
  daemon.answer("session/fork", { session: { sessionId: "new" }, text: "Words." });
  daemon.answer("session/clone", { session: { sessionId: "copy" } });
  const message = { role: "user", content: "Words.", timestamp: 7 };
  daemon.answer("transcript/page", { entries: [{ type: "message", id: "e1", parentId: null, message }], leafId: "e1" });
  expect(await branching.fork({ kind: "message", at: 7 })).toEqual({
    kind: "done",
    value: { sessionId: "new", text: "Words." },
  });
  expect(daemon.calls.at(-1)?.params).toEqual({ sessionId: "s", abortRun: false, entryId: "e1" });
  expect(await branching.fork({ kind: "end" })).toMatchObject({ kind: "done", value: { sessionId: "copy" } });
  expect(await branching.fork({ kind: "message", at: 8 })).toMatchObject({ kind: "refused", isBusy: false });
  daemon.on("session/fork", () => {
    throw new WireError("session_busy", "The session is busy.");
  });
  const place = { kind: "entry", entryId: "e1" } as const;
  expect(await branching.fork(place)).toEqual({ kind: "refused", words: "The session is busy.", isBusy: true });
  expect(await branching.fork(place, true)).toMatchObject({ kind: "refused", isBusy: false });
  expect(daemon.calls.at(-1)?.params).toEqual({ sessionId: "s", abortRun: true, entryId: "e1" });
  daemon.answer("session/navigate", { outcome: "cancelled", leafId: null });
  expect(await branching.goOn("e1")).toMatchObject({ kind: "refused" });
  daemon.answer("session/navigate", { outcome: "moved", leafId: null, text: "Words." });
  expect(await branching.goOn("e1")).toEqual({ kind: "done", value: "Words." });
});
