import { expect, test } from "vitest";
import { Gate } from "../../provider/gate.ts";
import { answer, hold } from "../../provider/reply.ts";
import { PiSession } from "../helpers/pi-session.ts";
import { startStage } from "../helpers/stage.ts";
import { ConsoleBrowser, consoleAddress } from "./console-browser.ts";
import { openStored } from "./stored-session.ts";

test("a conversation follows its end, and stays where a person has scrolled to while more comes", async () => {
  const gate = new Gate();
  const long = Array.from({ length: 80 }, (_, index) => `Paragraph ${index}.`).join("\n\n");
  await using stage = await startStage({
    provider: { script: [answer(long), answer(long, hold(gate), "\n\nThe end."), answer("Once more.")] },
  });
  const session = await stage.session();
  await session.prompt("First.").settled();
  await using browser = await ConsoleBrowser.open();
  const visit = await browser.visit(await consoleAddress(stage.client));
  await visit.clickOn(".row-name");
  await visit.shows(/Paragraph 79\./, ".log");
  const isAtEnd = (): Promise<void> =>
    visit.holds(() => {
      const log = document.querySelector(".log");
      return log !== null && log.scrollHeight - log.scrollTop - log.clientHeight < 2;
    });
  const top = (): Promise<number | undefined> => visit.page.evaluate(() => document.querySelector(".log")?.scrollTop);
  await isAtEnd();
  const run = session.prompt("Second.");
  await gate.reached;
  await visit.shows(/Second\.[\s\S]*Paragraph 79\./, ".log");
  await isAtEnd();

  await visit.page.hover(".log");
  await visit.page.mouse.wheel({ deltaY: -500 });
  await visit.shows(/To the end/, ".log-new");
  const before = await top();
  gate.open();
  await run.settled();
  await session.prompt("Third.").settled();
  await visit.shows(/Once more\./, ".log");
  await visit.shows(/[1-9]\d* new/, ".log-new");
  expect(await top()).toBe(before);
  await visit.clickOn(".log-new");
  await isAtEnd();
  await visit.hides(/new|end/, ".log-new");
  expect(await visit.faults()).toEqual([]);
});

test("rows of the list keep their places under the pointer, and take their new ones when it leaves", async () => {
  const gate = new Gate();
  await using stage = await startStage({
    provider: { script: [answer("one"), answer("two"), answer(hold(gate), "x")] },
  });
  const older = await stage.session();
  await older.prompt("Older.").settled();
  const newer = await stage.session();
  await newer.prompt("Newer.").settled();
  await using browser = await ConsoleBrowser.open();
  const visit = await browser.visit(await consoleAddress(stage.client));
  const order = (): Promise<readonly (string | undefined)[]> =>
    visit.page.evaluate(() =>
      Array.from(document.querySelectorAll<HTMLElement>(".row"), ({ dataset }) => dataset["session"]),
    );
  await expect.poll(order).toEqual([newer.id, older.id]);
  await visit.page.hover(`[data-session="${newer.id}"]`);
  const run = older.prompt("Go on.");
  await gate.reached;
  await visit.shows(/running/, `[data-session="${older.id}"]`);
  expect(await order()).toEqual([newer.id, older.id]);
  await visit.page.hover(".main");
  await expect.poll(order).toEqual([older.id, newer.id]);
  gate.open();
  await run.settled();
  expect(await visit.faults()).toEqual([]);
});

test("the composer sends nothing while an input method composes, and a dropped file does not replace the page", async () => {
  await using stage = await startStage();
  await stage.session();
  await using browser = await ConsoleBrowser.open();
  const visit = await browser.visit(await consoleAddress(stage.client));
  await visit.clickOn(".row-name");
  await visit.shows(/Nothing was said yet/, ".log");
  await visit.page.focus(".composer textarea");
  await visit.type("half a word");
  await visit.page.evaluate(() => {
    const options = { key: "Enter", bubbles: true, cancelable: true };
    const field = document.querySelector(".composer textarea");
    field?.dispatchEvent(new KeyboardEvent("keydown", { ...options, isComposing: true }));
    field?.dispatchEvent(new KeyboardEvent("keydown", { ...options, keyCode: 229 }));
  });
  const isKept = await visit.page.evaluate(() => {
    const data = new DataTransfer();
    data.items.add(new File(["<h1>not this page</h1>"], "page.html", { type: "text/html" }));
    const targets = [document.body, document.querySelector(".log"), document.querySelector(".composer textarea")];
    return targets.map((target) =>
      ["dragover", "drop"].map((type) =>
        target?.dispatchEvent(new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true })),
      ),
    );
  });
  expect(isKept.flat()).toEqual([false, false, false, false, false, false]);
  await visit.type(" and the rest");
  await visit.press("Enter");
  await visit.shows(/Echo: half a word and the rest/, ".log");
  expect(stage.provider.requests).toHaveLength(1);
  expect(await visit.faults()).toEqual([]);
});

test.each([
  { program: "chromium", top: 0 },
  { program: "chromium", top: 2_000 },
  { program: "firefox-esr", top: 0 },
  { program: "firefox-esr", top: 2_000 },
] as const)(
  "what is in view at $top px stays in its place while older messages come before it, in $program",
  async ({ program, top }) => {
    await using stage = await startStage();
    const stored = new PiSession();
    for (let n = 1; n <= 1_000; n += 1) stored.user(`Message ${n} ${"with some words ".repeat(n % 9)}`);
    stored.append("session_info", { name: "Old" });
    await openStored(stage, stored);
    await using browser = await ConsoleBrowser.open(program);
    const visit = await browser.visit(await consoleAddress(stage.client));
    await visit.shows(/Old/, ".rail-list");
    await visit.tabTo(/^Old/);
    await visit.press("Enter");
    await visit.shows(/Message 1000/, ".log");
    // What is still built while the view follows the end takes it back there.
    const leaveEnd = (): Promise<boolean> =>
      visit.page.evaluate(() => {
        document.querySelector(".log")?.scrollBy(0, -50);
        return document.querySelector(".log-new") !== null;
      });
    await expect.poll(leaveEnd, { timeout: 300_000 }).toBe(true);
    let pages = 1;
    for (; (await visit.text(".log-content")).startsWith("Reading what is before"); pages += 1) {
      const before = await visit.page.evaluate((to) => {
        const log = document.querySelector(".log") as HTMLElement;
        log.scrollTop = to;
        const view = log.getBoundingClientRect();
        const groups = Array.from(log.querySelectorAll<HTMLElement>("[data-part]"));
        const inView = groups.find((group) => group.getBoundingClientRect().bottom > (view.top + view.bottom) / 2);
        const part = inView?.dataset["part"];
        return { part, top: inView?.getBoundingClientRect().top, count: groups.length };
      }, top);
      const now = (): Promise<{ top: number | undefined; count: number }> =>
        visit.page.evaluate((part) => {
          const group = document.querySelector(`[data-part="${part}"]`);
          return { top: group?.getBoundingClientRect().top, count: document.querySelectorAll("[data-part]").length };
        }, before.part);
      await expect.poll(async () => (await now()).count, { timeout: 300_000 }).toBeGreaterThan(before.count);
      await visit.isDrawn();
      expect(Math.abs(Number((await now()).top) - Number(before.top))).toBeLessThan(5);
    }
    expect(pages).toBeGreaterThan(9);
    expect(await visit.faults()).toEqual([]);
  },
);
