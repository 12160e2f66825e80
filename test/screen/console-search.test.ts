import { expect, test } from "vitest";
import type { Client } from "../../client/index.ts";
import { answer, call } from "../../provider/reply.ts";
import { fallAsleep } from "../helpers/asleep.ts";
import { mark } from "../helpers/hostile-texts.ts";
import { PiSession, call as storedCall, text as storedText } from "../helpers/pi-session.ts";
import { type Stage, startStage } from "../helpers/stage.ts";
import { problems } from "./console-axe.ts";
import { ConsoleBrowser, consoleAddress, type Visit } from "./console-browser.ts";
import { openStored } from "./stored-session.ts";

const boxes = "html, body, .page, .main, dialog, .search-hits";

const hostile = `<img src=x onerror="globalThis.${mark}=1"><script>globalThis.${mark}=1</script> \u202etxt.exe \u0007`;

/** A session that sleeps, with words in its oldest part, long before what a page loads. */
async function longSession(stage: Stage): Promise<string> {
  const stored = new PiSession();
  const first = stored.user("Hello.");
  stored.user(`A Quokka on another branch.`);
  stored.branch(first);
  stored.user(`Where is the QUOKKA? ${hostile}`);
  stored.assistant([storedText("I look."), storedCall("call_1", { command: "find . -name 'quokka*'" })]);
  stored.result("call_1", "./quokka.txt\n");
  stored.assistant([storedText(`It is here: **Quokka**. ${"More words. ".repeat(40)}`)]);
  for (let n = 1; n <= 700; n += 1) stored.user(`Message ${n}`);
  stored.append("session_info", { name: `Old ${hostile}` });
  const id = await openStored(stage, stored);
  await fallAsleep(stage.client, id);
  return id;
}

async function states(client: Client): Promise<unknown> {
  const all = await client.listSessions();
  return all.map(({ sessionId, generation, state, cursor }) => [sessionId, generation, state, cursor]);
}

async function find(visit: Visit): Promise<void> {
  await visit.page.keyboard.down("Control");
  await visit.press("f");
  await visit.page.keyboard.up("Control");
}

/** Whether the page keeps the browser's own key from the browser. */
async function isTaken(visit: Visit): Promise<boolean> {
  const taken = await visit.page.evaluateHandle(() => ({
    taken: new Promise<boolean>((resolve) => {
      const onKey = (event: KeyboardEvent): void => {
        if (event.key === "f") setTimeout(() => resolve(event.defaultPrevented));
      };
      addEventListener("keydown", onKey, { capture: true });
    }),
  }));
  await find(visit);
  return await taken.evaluate((handle) => handle.taken);
}

/** The words that are marked in the conversation. */
function marked(visit: Visit): Promise<readonly string[]> {
  return visit.page.evaluate(() => Array.from(CSS.highlights.get("found") ?? [], (range) => `${range}`));
}

const focused = (visit: Visit): Promise<string> =>
  visit.page.evaluate(() => (document.activeElement as HTMLElement | null)?.innerText ?? "");

test.each(["chromium", "firefox-esr"] as const)(
  "by keyboard alone in %s: what is old and not loaded is found and opens there, and no pi starts",
  async (program) => {
    await using stage = await startStage({ provider: { script: [answer("The newest quokka.")] } });
    const { client } = stage;
    await longSession(stage);
    const other = await stage.session();
    await other.prompt("Another quokka?").settled();
    await fallAsleep(client, other.id);
    const before = await states(client);
    await using browser = await ConsoleBrowser.open(program);
    const visit = await browser.visit(await consoleAddress(client));
    await visit.shows(/Old /, ".rail-list");
    await visit.tabTo(/^Old /);
    await visit.press("Enter");
    await visit.shows(/Message 700/, ".log");
    await visit.hides(/Hello\./, ".log");

    await find(visit);
    await visit.holds(() => document.activeElement?.matches(".search input[type=search]"));
    await visit.type("quokka");
    await visit.shows(/5 found\./, ".search-state");
    await visit.shows(/Answer[\s\S]*Tool output[\s\S]*Tool call[\s\S]*Message[\s\S]*on another branch/, ".search-hits");
    expect(await isTaken(visit)).toBe(false);
    await visit.press("Enter", "j", "ArrowDown", "k");
    expect(await focused(visit)).toMatch(/Tool output[\s\S]*quokka\.txt/);
    await visit.press("Enter");
    await visit.hides(/Search/, "dialog");
    await visit.holds(() => document.activeElement?.matches(".log .item.tool"));
    await visit.shows(/Output\s+\.\/quokka\.txt/, ".item.tool");
    await expect.poll(() => marked(visit)).toContain("quokka");

    await visit.press("/");
    await visit.holds(() => document.activeElement?.matches(".search input[type=search]"));
    await visit.shows(/5 found\./, ".search-state");
    await visit.shows(/on another branch/, ".search-hits");
    await visit.press("ArrowDown", "Enter");
    await visit.holds(() => document.activeElement?.matches(".log .item.text"));
    await expect.poll(() => marked(visit)).toEqual(["Quokka"]);

    // Escape leads back to where one was.
    await visit.press("/");
    await visit.holds(() => document.activeElement?.matches(".search input[type=search]"));
    await visit.press("Escape");
    await visit.hides(/Search/, "dialog");
    await visit.holds(() => document.activeElement?.matches(".log .item.text"));

    // An entry of another branch opens in the tab Tree.
    await visit.press("/");
    await visit.holds(() => document.activeElement?.matches(".search input[type=search]"));
    await visit.shows(/5 found\./, ".search-state");
    await visit.shows(/on another branch/, ".search-hits");
    await visit.press("ArrowDown", "j", "j", "j", "j");
    expect(await focused(visit)).toMatch(/on another branch/);
    await visit.press("Enter");
    await visit.hides(/Search/, "dialog");
    await visit.shows(/Hello\.[\s\S]*A Quokka on another branch\./, ".tree-branch .log");
    await expect.poll(() => marked(visit)).toEqual(["Quokka"]);
    await visit.press("1");
    await visit.shows(/Where is the QUOKKA/, ".log");

    // From any other place.
    await visit.press("g", "p");
    await visit.shows(/There are no pushes/, ".main");
    await visit.press("/");
    await visit.tabTo(/^This session$/);
    await visit.press("ArrowRight");
    await visit.shows(/7 found\./, ".search-state");
    await visit.shows(/The newest quokka\.[\s\S]*Another quokka\?[\s\S]*Old /, ".search-hits");
    await visit.page.focus(".search input[type=search]");
    await visit.press("ArrowDown", "Enter");
    await visit.shows(/Another quokka\?[\s\S]*The newest quokka\./, ".log");
    await visit.holds(() => document.activeElement?.matches(".log .item.text"));
    await expect.poll(() => marked(visit)).toEqual(["quokka"]);

    expect(await states(client)).toEqual(before);
    expect(await visit.page.evaluate((name) => name in globalThis, mark)).toBe(false);
    expect(await visit.faults()).toEqual([]);
  },
);

test("what is loaded is found at once, and what is found, hostile or not, looks right in every width", async () => {
  await using stage = await startStage({
    provider: { script: [answer("I say wombat.", call("bash", { command: "echo Wombat" })), answer("Done.")] },
  });
  const old = await longSession(stage);
  const session = await stage.session();
  await using browser = await ConsoleBrowser.open();
  const visit = await browser.visit(await consoleAddress(stage.client));
  await visit.clickOn(`[data-session="${session.id}"] .row-name`);
  await session.prompt("What is a wombat?").settled();
  await visit.shows(/Done\./, ".log");
  await visit.click("Search");
  await visit.shows(/in any case/, ".search-state");
  await visit.type("WOMBAT");
  await visit.shows(/4 found\./, ".search-state");
  await visit.page.keyboard.press("Escape");
  await visit.hides(/Search/, "dialog");

  await visit.clickOn(`[data-session="${old}"] .row-name`);
  await visit.shows(/Message 700/, ".log");
  const found: string[] = [];
  const look = async (view: string): Promise<void> => {
    for (const width of [390, 1_440]) {
      await visit.page.setViewport({ width, height: 900 });
      for (const value of ["light", "dark"]) {
        await visit.page.emulateMediaFeatures([{ name: "prefers-color-scheme", value }]);
        await visit.isDrawn();
        await visit.shot(`${view}-${width}-${value}`);
        for (const problem of await problems(visit, { boxes })) found.push(`${view} ${width} ${value}: ${problem}`);
      }
    }
  };
  await visit.click("Search");
  await visit.shows(/Nothing found\./, ".search-state");
  await look("search-nothing");
  await visit.clickOn(".search-scopes label:last-child");
  await visit.page.focus(".search input[type=search]");
  await visit.page.evaluate(() => document.querySelector<HTMLInputElement>(".search input[type=search]")?.select());
  await visit.type("e");
  await visit.shows(/found in the newest/, ".search-state");
  await look("search-cut");
  await visit.page.evaluate(() => document.querySelector<HTMLInputElement>(".search input[type=search]")?.select());
  await visit.type("quokka");
  await visit.shows(/5 found\./, ".search-state");
  await visit.shows(/<img src=x[\s\S]*RLO/, ".search-hits");
  await look("search-all");
  await visit.press("ArrowDown", "Enter");
  await visit.holds(() => document.activeElement?.matches(".log .item.text"));
  await look("search-opened");
  expect(found).toEqual([]);
  expect(await visit.page.evaluate((name) => name in globalThis, mark)).toBe(false);
  expect(await visit.faults()).toEqual([]);
});
