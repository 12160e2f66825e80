import { join } from "node:path";
import { expect, test } from "vitest";
import { startStage } from "../helpers/stage.ts";
import { ask, ConsoleBrowser, consoleAddress, type Visit } from "./console-browser.ts";

const asking = join(import.meta.dirname, "..", "fixtures", "extension", "asking.ts");

interface ShownNotification {
  readonly title: string;
  readonly body: string;
  readonly tag: string;
  isClosed: boolean;
  onclick?: () => void;
}

interface Stub {
  readonly notifications: ShownNotification[];
  permissionRequests: number;
  hide(isHidden: boolean): void;
}

/**
 * Loads the page again with a stub of the constructor: a headless browser shows no notifications, and its pages are always
 * visible.
 */
async function withStub(visit: Visit): Promise<void> {
  const { page } = visit;
  // Its address works once: only a page that has signed in can be loaded again.
  await visit.shows(/idle/, ".rail");
  await page.evaluateOnNewDocument(() => {
    const notifications: ShownNotification[] = [];
    let isHidden = false;
    class FakeNotification {
      static permission = "default";
      static async requestPermission(): Promise<string> {
        stub.permissionRequests += 1;
        FakeNotification.permission = "granted";
        return "granted";
      }
      isClosed = false;
      readonly title: string;
      readonly body: string;
      readonly tag: string;
      constructor(title: string, { body, tag }: { readonly body: string; readonly tag: string }) {
        this.title = title;
        this.body = body;
        this.tag = tag;
        notifications.push(this);
      }
      close(): void {
        this.isClosed = true;
      }
    }
    const stub = {
      notifications,
      permissionRequests: 0,
      hide: (to: boolean) => {
        isHidden = to;
        document.dispatchEvent(new Event("visibilitychange"));
      },
    };
    Object.defineProperty(document, "visibilityState", { get: () => (isHidden ? "hidden" : "visible") });
    Object.assign(globalThis, { Notification: FakeNotification, stub });
  });
  await page.reload();
}

function shown({ page }: Visit): Promise<readonly string[]> {
  return page.evaluate(() =>
    (globalThis as unknown as { stub: Stub }).stub.notifications
      .filter(({ isClosed }) => !isClosed)
      .map(({ title, body }) => `${title}: ${body}`),
  );
}

function hide({ page }: Visit, isHidden: boolean): Promise<void> {
  return page.evaluate((to) => (globalThis as unknown as { stub: Stub }).stub.hide(to), isHidden);
}

test("a row has the last words, the cost and how full the context is, and what has finished unseen survives a reload", async () => {
  const words = "It is \u202edone\u202c, <b>all</b> of it.\nAnd more.";
  await using stage = await startStage({ provider: { script: ["Seen words.", words] } });
  const [seen, unseen] = [await stage.session(), await stage.session()];
  await seen.promptAndWait("Say it");
  await using browser = await ConsoleBrowser.open();
  const visit = await browser.visit(await consoleAddress(stage.client));
  const row = (id: string): string => `[data-session="${id}"]`;
  await visit.shows(/idle · model-1\s+\$\d\.\d+ · \d+ %\s+of the context\s+Seen words\./, row(seen.id));
  await visit.hides(/\$/, row(unseen.id));
  await unseen.promptAndWait("Say it here");
  await visit.shows(/Finished, not seen yet\s+1/i, ".rail");
  await visit.shows(
    /finished · model-1\s+\$\d\.\d+[\s\S]*It is RLOdonePDF, <b>all<\/b> of it\. And more\./,
    row(unseen.id),
  );
  await visit.shot("rows-with-summaries");
  await visit.page.reload();
  await visit.shows(/Finished, not seen yet\s+1/i, ".rail");
  await visit.shows(/finished/, row(unseen.id));
  await visit.shows(/idle/, row(seen.id));
  await visit.clickOn(`${row(unseen.id)} .row-name`);
  // Rows keep their places under the pointer.
  await visit.page.mouse.move(900, 400);
  await visit.hides(/not seen yet/i, ".rail");
  await visit.page.reload();
  await visit.shows(/idle[\s\S]*It is/, row(unseen.id));
  await visit.hides(/not seen yet/i, ".rail");
  expect(await visit.faults()).toEqual([]);
});

test("a button turns notifications on and off; a question and the end of a run while the page is hidden lead to the session", async () => {
  await using stage = await startStage({
    agent: { settings: { extensions: [asking] } },
    provider: { script: ["All is well.", "Again.", "Unnoticed."] },
  });
  const session = await stage.client.createSession({ cwd: stage.cwd, model: "scripted/model-1", name: "Fix it" });
  await using browser = await ConsoleBrowser.open();
  const visit = await browser.visit(await consoleAddress(stage.client));
  await withStub(visit);
  await visit.shows(/idle · model-1/, ".rail");
  const asked = (): Promise<number> =>
    visit.page.evaluate(() => (globalThis as unknown as { stub: Stub }).stub.permissionRequests);
  expect(await asked()).toBe(0);
  await visit.click("This tab");
  await visit.click("Notifications");
  await expect.poll(asked).toBe(1);

  await hide(visit, true);
  await session.promptAndWait("Do it");
  await expect.poll(() => shown(visit)).toEqual(["Fix it: All is well."]);
  ask(session, [{ method: "confirm", title: "Run \u202ethis?", text: "echo now" }]);
  await expect.poll(() => shown(visit)).toEqual(["Fix it: All is well.", "Fix it asks: Run [RLO]this? echo now"]);

  await visit.page.evaluate(() => {
    const { stub } = globalThis as unknown as { stub: Stub };
    stub.notifications.at(-1)?.onclick?.();
    stub.hide(false);
  });
  await visit.shows(/Run RLOthis\?/, ".question-zone");
  await visit.shows(/Do it[\s\S]*All is well\./, ".log");
  expect(await shown(visit)).toEqual([]);
  const [dialog] = await session.dialogs();
  await stage.client.call("dialog/respond", { dialogId: dialog?.dialogId ?? "", answer: { cancelled: true } });
  await session.waitForIdle();

  await visit.click("This tab");
  await visit.click("Notifications");
  await hide(visit, true);
  await session.promptAndWait("Once more");
  await visit.shows(/Again\./, `[data-session="${session.id}"]`);
  expect(await shown(visit)).toEqual([]);
  expect(await visit.faults()).toEqual([]);
});
