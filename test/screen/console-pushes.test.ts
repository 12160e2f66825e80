import { expect, test } from "vitest";
import type { Client, Delivery } from "../../client/index.ts";
import { answer, status } from "../../provider/reply.ts";
import { mark } from "../helpers/hostile-texts.ts";
import { PiSession } from "../helpers/pi-session.ts";
import { type Stage, startStage } from "../helpers/stage.ts";
import { problems } from "./console-axe.ts";
import { ConsoleBrowser, consoleAddress, type Visit } from "./console-browser.ts";
import { openStored } from "./stored-session.ts";

const boxes = "html, body, .page, .main, .push-rows, .push-details, .sheet-page";

/** Opens the push from the list. */
async function openPush(visit: Visit, deliveryId: string): Promise<void> {
  await visit.click("Pushes");
  await visit.clickOn(`[data-delivery-row="${deliveryId}"] .row-name`);
  await visit.shows(/What happened/, ".push-details");
}

interface ShownTimeline {
  readonly steps: readonly { readonly state: string; readonly at: string; readonly tags: readonly string[] }[];
  readonly requests: readonly string[];
}

/** The timeline that the page shows. */
function shownTimeline(visit: Visit): Promise<ShownTimeline> {
  return visit.page.evaluate(() => {
    const words = (root: Element, selector: string): string[] =>
      Array.from(root.querySelectorAll(selector), ({ textContent }) => textContent ?? "");
    return {
      steps: Array.from(document.querySelectorAll(".timeline li"), (step) => ({
        state: step.querySelector("strong")?.textContent ?? "",
        at: step.querySelector("time")?.dateTime ?? "",
        tags: words(step, ".tag"),
      })),
      requests: Array.from(document.querySelectorAll(".push-requests li"), (request) =>
        [...words(request, "strong"), ...words(request, "dd")].join(" | "),
      ),
    };
  });
}

/** What the page must show of a delivery, from `delivery/get`. */
function expectTimeline(shown: ShownTimeline, { history, attempts }: Delivery): void {
  const numbers = new Map(attempts.map(({ requestId, n }) => [requestId, n]));
  expect(shown.steps).toEqual(
    history.map(({ state, at, requestId, evidence }) => ({
      state,
      at: new Date(at).toISOString(),
      tags: [
        ...(requestId === undefined ? [] : [`request ${numbers.get(requestId)}`]),
        ...(evidence === undefined ? [] : [`evidence: ${evidence}`]),
      ],
    })),
  );
  expect(shown.requests).toHaveLength(attempts.length);
  for (const [index, { n, requestId, status: code, evidence, error }] of attempts.entries()) {
    const words = shown.requests[index] ?? "";
    for (const part of [`Request ${n}`, requestId, code, evidence && `${evidence}: `, error])
      if (part !== undefined) expect(words).toContain(String(part));
  }
}

test("the timeline of a push equals what the daemon says of it, also after a restart of the daemon", async () => {
  await using stage = await startStage({ provider: { script: [status(529), answer("It is.")] } });
  const session = await stage.session();
  const push = session.push({ customType: "build", content: "Build 318 is green." });
  await push.answered;
  const { deliveryId } = await push.get();
  await using browser = await ConsoleBrowser.open();
  const look = async (client: Client): Promise<void> => {
    const visit = await browser.visit(await consoleAddress(client));
    await openPush(visit, deliveryId);
    const delivery = await client.call("delivery/get", { deliveryId });
    expect(delivery.attempts.map(({ outcome }) => outcome)).toEqual(["failed", "delivered"]);
    expectTimeline(await shownTimeline(visit), delivery);
    expect(await visit.faults()).toEqual([]);
  };
  await look(stage.client);
  await stage.restart();
  await look(stage.client);
});

test("by keyboard: the list follows the pushes, a card leads to its timeline and back, a push is cancelled and sent again", async () => {
  await using stage = await startStage({
    provider: { script: [answer("Seen."), status(400), answer("Now."), answer("And now.")] },
  });
  const session = await stage.session();
  const first = session.push({ customType: "lint", content: "One warning." });
  await first.answered;
  const { deliveryId: firstId } = await first.get();
  await using browser = await ConsoleBrowser.open();
  const visit = await browser.visit(await consoleAddress(stage.client));
  await visit.shows(/idle/, ".rail");
  await visit.press("g", "p");
  await visit.shows(/Answered[\s\S]*lint[\s\S]*One warning\./, ".push-list");

  // It comes while the list is shown.
  await session.push({ customType: "later", content: "Not yet.", deliverAs: "nextTurn" }).accepted;
  await visit.shows(/Wait for their moment[\s\S]*later[\s\S]*Answered[\s\S]*lint/, ".push-list");
  await visit.page.evaluate(() => document.getElementById("main")?.focus());
  await visit.press("j");
  await visit.holds(() => document.activeElement?.textContent?.includes("later"));
  await visit.press("j");
  await visit.holds(() => document.activeElement?.textContent?.includes("lint"));
  await visit.press("k", "Enter");
  await visit.shows(/Only a push that is parked can be sent again/, ".push-details");
  await visit.tabTo(/^Cancel it$/);
  await visit.press("Enter");
  await visit.shows(/It was withdrawn/, ".push-details");
  await visit.shows(/Withdrawn or expired[\s\S]*later/, ".push-list");
  expect((await stage.client.listDeliveries({ states: ["cancelled"] })).deliveries).toHaveLength(1);
  await visit.press("Escape");
  await visit.holds(() => document.querySelector(".push-details") === null);
  await visit.holds(() => document.activeElement?.textContent?.includes("later"));

  // A refused request leaves it parked.
  const parked = session.push({ customType: "parked", content: "Carry me." });
  await expect(parked.delivered).rejects.toMatchObject({ delivery: { state: "parked" } });
  await visit.shows(/Wait for the next run[\s\S]*parked/, ".push-list");
  await openPush(visit, (await parked.get()).deliveryId);
  await visit.click("Send again");
  await visit.shows(/the model has answered it/, ".push-details");
  await visit.press("Escape", "Escape");

  await visit.clickOn(".rail .row-name");
  await visit.clickOn(`.item[data-delivery="${firstId}"] .to-timeline`);
  await visit.shows(/One warning\./, ".push-details");
  await visit.press("Escape");
  await visit.holds(() => document.activeElement?.matches(".item.push"));
  expect(await visit.page.evaluate(() => document.activeElement?.getAttribute("data-delivery"))).toBe(firstId);
  expect(await visit.faults()).toEqual([]);
});

test("a page that may only look says why a push cannot be cancelled", async () => {
  await using stage = await startStage();
  const session = await stage.session();
  const push = session.push({ customType: "later", content: "Not yet.", deliverAs: "nextTurn" });
  const { deliveryId } = await push.accepted;
  const { url, code } = await stage.client.call("web/open", { print: true, readOnly: true });
  await using browser = await ConsoleBrowser.open();
  const visit = await browser.visit(`${url}#${code}`);
  await openPush(visit, deliveryId);
  await visit.click("Cancel it");
  await visit.shows(/Open the page again without --read-only/, ".push-details");
  expect((await push.get()).state).toMatch(/accepted|held/);
});

test("the way back from a timeline leads to the card, also when it is far from the end of a long conversation", async () => {
  await using stage = await startStage();
  const { client } = stage;
  const stored = new PiSession();
  const deliveryId = "a-push-of-long-ago";
  stored.user("Hello.");
  const details = { "pi-rpcd": { deliveryId } };
  stored.append("custom_message", { customType: "old", content: "From long ago.", display: true, details });
  for (let n = 1; n <= 180; n += 1) stored.user(`Message ${n}`);
  const id = await openStored(stage, stored);
  await using browser = await ConsoleBrowser.open();
  const visit = await browser.visit(await consoleAddress(client));
  await visit.clickOn(`[data-session="${id}"] .row-name`);
  await visit.shows(/Message 180/, ".log");
  await visit.holds(() => {
    const log = document.querySelector(".log");
    if (log !== null) log.scrollTop = 0;
    return document.querySelector(".item.push") !== null;
  });
  await visit.clickOn(".item.push .to-timeline");
  // The daemon keeps no delivery for ever.
  await visit.shows(/There is no delivery "a-push-of-long-ago"/, ".push-details .is-bad");
  await visit.press("Escape");
  await visit.holds(() => document.activeElement?.matches(".item.push"));
  await visit.shows(/From long ago/, ".item.push");
  expect(await visit.faults()).toEqual([]);
});

/** Pushes of every kind that is easily made, with hostile and long texts. */
async function manyPushes(stage: Stage): Promise<readonly string[]> {
  const session = await stage.session();
  const hostile = `<img src=x onerror="globalThis.${mark}=1"><script>globalThis.${mark}=1</script> \u202etxt.exe \u0007\u200b`;
  await stage.client.call("session/rename", {
    sessionId: session.id,
    name: `<script>globalThis.${mark}=1</script> ${"long ".repeat(20)}`,
  });
  const first = session.push({ customType: "hostile", content: `${hostile}\n${"x".repeat(3_000)}\n${hostile}` });
  await first.answered;
  const long = session.push({
    customType: "a/very-long.type:".repeat(7),
    content: "\u0645\u0631\u062d\u0628\u0627 ".repeat(60),
    deliverAs: "nextTurn",
  });
  await long.accepted;
  return [(await first.get()).deliveryId, (await long.get()).deliveryId];
}

test("a hostile push runs nothing and its hidden characters have names; axe finds nothing, nothing scrolls sideways", async () => {
  await using stage = await startStage();
  const pushes = await manyPushes(stage);
  await using browser = await ConsoleBrowser.open();
  const visit = await browser.visit(await consoleAddress(stage.client));
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
  await visit.click("Pushes");
  await visit.shows(/hostile[\s\S]*RLO/, ".push-list");
  await look("pushes");
  for (const [index, deliveryId] of pushes.entries()) {
    await visit.page.setViewport({ width: 1_440, height: 900 });
    await visit.clickOn(`[data-delivery-row="${deliveryId}"] .row-name`);
    await visit.click("Show all of it");
    await visit.holds(() => document.querySelector(".push-content .copy") !== null);
    if (index === 0) await visit.shows(/RLOtxt\.exe BEL\s*ZWSP[\s\S]*xxx[\s\S]*RLOtxt\.exe/, ".push-content");
    await look(`push ${index}`);
  }
  await visit.page.setViewport({ width: 1_440, height: 900 });
  await visit.click("Daemon");
  await visit.shows(/Ready[\s\S]*State directory[\s\S]*pi processes/, ".main");
  await visit.click("Read the counters");
  await visit.shows(/WebSocket connections/, ".main");
  await look("daemon");
  expect(await visit.page.evaluate((name) => name in globalThis, mark)).toBe(false);
  expect(found).toEqual([]);
  expect(await visit.faults()).toEqual([]);
});
