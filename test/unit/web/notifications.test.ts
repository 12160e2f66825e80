import { signal } from "@preact/signals";
import { expect, test } from "vitest";
import type { Dialog } from "../../../protocol/dialog.ts";
import { PageWorkspace } from "../../../web/state/workspace.ts";
import { hostileTexts } from "../../helpers/hostile-texts.ts";
import { FakeDaemon, sessionInfo, settled } from "./fake-daemon.ts";
import { FakePage } from "./fake-page.ts";

class Scene {
  readonly daemon = new FakeDaemon();
  readonly page: FakePage;
  readonly workspace: PageWorkspace;
  /** Sessions to which clicks led. */
  readonly chosen: string[] = [];

  private constructor(kept?: Map<string, string>) {
    this.page = new FakePage(kept);
    this.daemon.answer("session/list", { sessions: [sessionInfo("a", { name: "Fix it" }), sessionInfo("b")] });
    this.workspace = new PageWorkspace({ daemon: this.daemon, page: this.page, isConnected: signal(true) });
    this.workspace.notifications.onChosen((sessionId) => this.chosen.push(sessionId));
  }

  static async open(kept?: Map<string, string>): Promise<Scene> {
    const scene = new Scene(kept);
    await scene.workspace.start();
    return scene;
  }

  /** With notifications on, hidden. */
  static async hidden(): Promise<Scene> {
    const scene = await Scene.open();
    await scene.workspace.notifications.turn(true);
    scene.page.hide(true);
    return scene;
  }

  get state(): string {
    return this.workspace.notifications.state.value;
  }

  get shown(): readonly string[] {
    return Array.from(this.page.notifier.shown.values(), ({ title, body }) => `${title}: ${body}`);
  }

  asks(dialogId: string, fields: Partial<Dialog> = {}): void {
    const dialog = { dialogId, sessionId: "a", method: "confirm", title: "Run it?", openedAt: 1, ...fields } as Dialog;
    this.daemon.changeDialog({ sessionId: dialog.sessionId, dialogId, change: "opened", dialog });
  }

  ends(sessionId: string, at: number, outcome: "settled" | "failed" = "settled", text?: string): void {
    const lastText = text === undefined ? {} : { lastText: { text, at } };
    const name = sessionId === "a" ? { name: "Fix it" } : {};
    this.daemon.changeSession(sessionInfo(sessionId, { ...name, summary: { at, outcome, ...lastText } }));
  }
}

test("the browser is asked only when a person turns notifications on, and nothing is shown before", async () => {
  const scene = await Scene.open();
  scene.page.hide(true);
  scene.asks("one");
  scene.ends("a", 5);
  await settled();
  expect([scene.state, scene.page.notifier.asked, scene.shown]).toEqual(["off", 0, []]);
  scene.page.notifier.answer = "denied";
  await scene.workspace.notifications.turn(true);
  scene.ends("a", 6);
  expect([scene.state, scene.page.notifier.asked, scene.shown]).toEqual(["denied", 1, []]);
  // Allowed in the browser's settings meanwhile.
  scene.page.notifier.permission = "granted";
  scene.page.hide(false);
  expect(scene.state).toBe("on");
});

test("a question or an end of a run is shown while the page is hidden, once, and a click leads to its session", async () => {
  const scene = await Scene.hidden();
  scene.asks("one", { message: "rm -rf x" });
  scene.ends("a", 5, "settled", "All is well.");
  scene.ends("b", 6, "failed", "Half of");
  scene.ends("b", 6, "failed", "Half of");
  expect(scene.shown).toEqual(["Fix it asks: Run it? rm -rf x", "Fix it: All is well.", "b: Its run failed."]);
  scene.page.notifier.shown.get("run-b")?.onClick();
  expect(scene.chosen).toEqual(["b"]);
  // It was answered elsewhere.
  scene.daemon.changeDialog({ sessionId: "a", dialogId: "one", change: "resolved" });
  expect(scene.shown).toHaveLength(2);
  // Seen: they are taken back, and what comes now is on the page.
  scene.page.hide(false);
  expect(scene.shown).toEqual([]);
  scene.asks("two");
  scene.ends("a", 7);
  expect(scene.shown).toEqual([]);
  scene.page.hide(true);
  expect(scene.shown).toEqual([]);
});

test("turned off, or signed out, nothing is shown, and the tab keeps nothing about it", async () => {
  const scene = await Scene.hidden();
  scene.ends("a", 5);
  expect(scene.shown).toHaveLength(1);
  const reloaded = await Scene.open(new Map(scene.page.kept));
  reloaded.page.notifier.permission = "granted";
  reloaded.page.hide(true);
  reloaded.ends("a", 6);
  expect([reloaded.state, reloaded.shown.length, reloaded.page.notifier.asked]).toEqual(["on", 1, 0]);
  await scene.workspace.notifications.turn(false);
  scene.ends("a", 6);
  expect([scene.state, scene.shown]).toEqual(["off", []]);
  reloaded.workspace.forget();
  reloaded.ends("a", 7);
  expect([reloaded.state, reloaded.shown, reloaded.page.kept.size]).toEqual(["off", [], 0]);
  const without = await Scene.open();
  without.page.notifier.permission = undefined;
  without.page.hide(true);
  expect(without.state).toBe("unsupported");
});

test("many are one that counts them", async () => {
  const scene = await Scene.hidden();
  for (let i = 0; i < 500; i += 1) scene.asks(`d${i}`);
  expect(scene.page.notifier.shown.size).toBe(9);
  expect(scene.shown.at(-1)).toBe("pi-rpcd: 492 more questions or ends of runs.");
  scene.page.hide(false);
  scene.page.hide(true);
  scene.asks("again");
  expect(scene.shown).toEqual(["Fix it asks: Run it?"]);
});

test.each(hostileTexts)("$name is a short line without hidden characters", async ({ text }) => {
  const scene = await Scene.hidden();
  scene.asks("one", { title: text, message: text });
  scene.ends("a", 5, "settled", text.slice(0, 200));
  scene.daemon.changeSession(sessionInfo("b", { name: `x${text}`, summary: { at: 5, outcome: "settled" } }));
  expect(scene.page.notifier.shown.size).toBe(3);
  for (const { title, body } of scene.page.notifier.shown.values()) {
    for (const line of [title, body])
      expect(line.replaceAll("\u200d", "").replaceAll("\ufe0f", "")).not.toMatch(/[^\P{C}]|[^\P{Z} ]/u);
    expect(title.length).toBeLessThanOrEqual(80);
    expect(body.length).toBeLessThanOrEqual(200);
  }
});
