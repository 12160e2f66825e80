import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { connect, type Dialog } from "../../client/index.ts";
import { Scene } from "../e2e/cli/scene.ts";
import { ask, ConsoleBrowser, consoleAddress, type Visit } from "./console-browser.ts";

const asking = join(import.meta.dirname, "..", "fixtures", "extension", "asking.ts");

/** A user's machine whose pi has the extension that asks. */
async function machine(): Promise<Scene> {
  const scene = await Scene.open();
  const extensions = join(scene.env["PI_CODING_AGENT_DIR"] ?? "", "extensions");
  mkdirSync(extensions, { recursive: true });
  writeFileSync(join(extensions, "asking.ts"), `export { default } from ${JSON.stringify(asking)};\n`);
  await scene.json(["start"]);
  return scene;
}

/** Resolves when the question's answers work. */
async function isReady(visit: Visit): Promise<void> {
  await visit.holds(() => document.querySelector<HTMLElement>(".question-zone .question")?.dataset["ready"] === "true");
}

test("a question is answered once, by any of two pages and a terminal, and the others say by whom", async () => {
  await using scene = await machine();
  await using client = await connect({ stateDir: scene.stateDir, name: "the program that asks" });
  const session = await client.createSession({ cwd: scene.cwd, dialogPolicy: { kind: "wait" } });
  await using browser = await ConsoleBrowser.open();
  const one = await browser.visit(await consoleAddress(client));
  const two = await browser.visit(await consoleAddress(client));
  const opened = async (title: string): Promise<Dialog> => {
    ask(session, [{ method: "confirm", title, text: "echo now" }]);
    for (const visit of [one, two]) await visit.shows(new RegExp(title), ".question-zone");
    const [dialog] = await session.dialogs();
    if (dialog === undefined) throw new Error("It is not open.");
    return dialog;
  };
  for (const visit of [one, two]) {
    await visit.clickOn(".row-name");
    await visit.shows(/Nothing was said yet/, ".log");
  }

  // In Firefox a screen reader hears only of an alert that appears.
  expect(await one.page.$('.unseen > [role="alert"]')).toBeNull();
  const first = await opened("Answered in a page?");
  await isReady(one);
  await one.shows(/A question from .*: Answered in a page\?/, '.unseen > [role="alert"]');
  await one.click("Yes");
  await one.holds(() => document.activeElement?.className === "log");
  await two.shows(/Answered in a page\?[\s\S]*answered by/i, ".question-zone");
  const late = await scene.run(["dialog", "answer", first.dialogId, "--no"]);
  expect(late.code).not.toBe(0);

  const second = await opened("Answered in a terminal?");
  await scene.json(["dialog", "answer", second.dialogId, "--yes"]);
  for (const visit of [one, two]) await visit.shows(/Answered in a terminal\?[\s\S]*answered by/i, ".question-zone");
  expect(await session.dialogs()).toEqual([]);
  for (const visit of [one, two]) expect(await visit.faults()).toEqual([]);
});

test("answers work once the whole text was on screen, and not by a key that was already down", async () => {
  await using scene = await machine();
  await using client = await connect({ stateDir: scene.stateDir });
  const session = await client.createSession({ cwd: scene.cwd, dialogPolicy: { kind: "wait" } });
  await using browser = await ConsoleBrowser.open();
  const visit = await browser.visit(await consoleAddress(client));
  await visit.clickOn(".row-name");
  await visit.shows(/Nothing was said yet/, ".log");
  const text = Array.from({ length: 200 }, (_, index) => `line ${index}`).join("\n");
  ask(session, [{ method: "confirm", title: "Run it?", text }]);
  await visit.shows(/Run it\?[\s\S]*read to its end/, ".question-zone");
  const isOpen = async (): Promise<boolean> => (await session.dialogs()).length === 1;
  const scroll = async (top: number): Promise<void> => {
    await visit.page.evaluate((to) => {
      const box = document.querySelector(".question-zone .question-text");
      if (box !== null) box.scrollTop = to;
    }, top);
    await visit.isDrawn();
  };

  // It has no focus, Escape does nothing to it, and nothing answers before the end was read; a jump does not read it.
  expect(await visit.page.evaluate(() => document.activeElement?.closest(".row-of-buttons") ?? null)).toBeNull();
  await visit.press("Escape");
  await visit.click("Yes");
  await scroll(1_000_000);
  await visit.click("Yes");
  expect(await isOpen()).toBe(true);
  await visit.shows(/read to its end/, ".question-zone");
  for (let top = 0; top < 6_000; top += 100) await scroll(top);
  await isReady(visit);

  // Keys that were down before the button had the focus.
  const focusYes = (): Promise<void> =>
    visit.page.evaluate(() => document.querySelector<HTMLElement>(".question-zone .row-of-buttons button")?.focus());
  const focusLog = (): Promise<void> => visit.page.evaluate(() => document.querySelector<HTMLElement>(".log")?.focus());
  await focusLog();
  await visit.page.keyboard.down("Space");
  await focusYes();
  await visit.page.keyboard.up("Space");
  await focusLog();
  await visit.page.keyboard.down("Enter");
  await focusYes();
  await visit.page.keyboard.down("Enter");
  await visit.page.keyboard.up("Enter");
  expect(await isOpen()).toBe(true);
  await visit.press("Enter");
  await expect.poll(isOpen).toBe(false);
  expect(await visit.faults()).toEqual([]);
});
