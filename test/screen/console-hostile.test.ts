import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { answer, call, thinking } from "../../provider/reply.ts";
import { hostileTexts, mark } from "../helpers/hostile-texts.ts";
import {
  PiSession,
  call as storedCall,
  text as storedText,
  thinking as storedThinking,
} from "../helpers/pi-session.ts";
import { startStage } from "../helpers/stage.ts";
import { ask, ConsoleBrowser, consoleAddress, type Visit } from "./console-browser.ts";
import { openStored } from "./stored-session.ts";

const asking = join(import.meta.dirname, "..", "fixtures", "extension", "asking.ts");

/** Texts that can come letter by letter within a test. */
const short = hostileTexts.filter(({ text }) => text.length < 600);
// The provider refuses halves of characters.
const markup = short.map(({ text }) => text.toWellFormed()).join("\n\n");

/** Whether a script of the corpus ran. */
function isMarked(visit: Visit): Promise<boolean> {
  return visit.page.evaluate((name) => name in globalThis, mark);
}

/** Builds each row of the conversation and opens it. */
async function lookAtAll(visit: Visit): Promise<void> {
  await visit.holds(() => {
    const log = document.querySelector(".log");
    if (log === null) return false;
    // The beginning loads what is before it.
    log.scrollTop = 0;
    return log.querySelector(".log-edge") === null;
  });
  const groups = await visit.page.evaluate(() => document.querySelectorAll(".group").length);
  for (let place = groups - 1; place >= 0; place -= 1) {
    const isBuilt = (): Promise<boolean> =>
      visit.page.evaluate((at) => {
        const group = document.querySelectorAll(".group")[at];
        group?.scrollIntoView();
        return group !== undefined && group.children.length > 0;
      }, place);
    await expect.poll(isBuilt, { timeout: 300_000 }).toBe(true);
    const links = await visit.page.evaluate((at) => {
      const group = document.querySelectorAll(".group")[at];
      const folded = group?.querySelectorAll<HTMLElement>("summary, .whole");
      for (const button of folded ?? []) button.click();
      const all = Array.from(group?.querySelectorAll<HTMLAnchorElement>("a") ?? []);
      return all.filter(({ protocol, rel }) => !/^(?:https?|mailto):$/.test(protocol) || !rel.includes("noopener"))
        .length;
    }, place);
    expect(links).toBe(0);
    await visit.isDrawn();
  }
}

/** Builds each row of the tree. */
async function lookAtTree(visit: Visit): Promise<void> {
  await visit.shows(/pi is here/, ".tree-rows");
  await visit.holds(() => {
    const box = document.querySelector(".tree-box");
    document.querySelector<HTMLElement>('.tree-row[aria-expanded="false"]')?.click();
    box?.scrollBy(0, 300);
    return box !== null && box.scrollTop + box.clientHeight >= box.scrollHeight;
  });
}

test("hostile texts are shown wherever foreign text is: no script, no request, no report, and the page answers", async () => {
  const directoryName = "<img src=x onerror=hostileMark=1> \u202etxt.exe\u2066";
  await using stage = await startStage({
    agent: { settings: { extensions: [asking] } },
    provider: {
      script: [
        answer(thinking(markup), ...Array.from(markup), call("bash", { command: `: '${directoryName}'` })),
        answer("It is over."),
      ],
    },
  });
  const { client } = stage;
  const cwd = join(stage.cwd, directoryName);
  mkdirSync(cwd);

  // All texts, as pi has stored them: of users, of the model, in thoughts, arguments and outputs.
  const stored = new PiSession();
  for (const [index, { text, name }] of hostileTexts.entries()) {
    stored.user(text);
    const id = `call_${index}`;
    stored.assistant([storedThinking(text), storedText(text), storedCall(id, { command: text, [name]: text })]);
    stored.result(id, text);
    stored.append("custom_message", { customType: "note", content: text, display: true });
  }
  stored.append("session_info", { name: `${directoryName}<script>globalThis.${mark}=1</script>` });
  const id = await openStored(stage, stored);
  await client.call("session/hibernate", { sessionId: id, force: true });

  await using browser = await ConsoleBrowser.open();
  const visit = await browser.visit(await consoleAddress(client));
  await visit.clickOn(`[data-session="${id}"] .row-name`);
  await visit.shows(/names of an object|__proto__/, ".log");
  await lookAtAll(visit);
  await visit.clickOn("#tab-tree");
  await lookAtTree(visit);
  await visit.press("1");
  expect(await isMarked(visit)).toBe(false);
  expect(await visit.faults()).toEqual([]);

  // As it comes: letter by letter, in a tool, a push and a question.
  const session = await client.createSession({ cwd, model: "scripted/model-1", dialogPolicy: { kind: "wait" } });
  await visit.clickOn(`[data-session="${session.id}"] .row-name`);
  await visit.shows(/Nothing was said yet/, ".log");
  await session.prompt(markup).settled();
  await session.push({ customType: "hostile", content: markup, triggerTurn: false }).accepted;
  await visit.shows(/It is over\./, ".log");
  await lookAtAll(visit);
  const titles = short.map(({ text }) => text.replaceAll("\u0000", ""));
  const questions = titles.slice(0, 20).map((text) => ({ method: "select", title: text, options: [text, "plain"] }));
  ask(session, questions);
  await visit.shows(/1 of 20 questions/, ".question-zone");
  for (const { dialogId } of await session.dialogs()) {
    await visit.holds(() => document.querySelector(".question-zone .question-title") !== null);
    await session.respond(dialogId, { cancelled: true });
  }
  await visit.holds(() => document.querySelector(".question-zone .question-title") === null);

  // The page goes on.
  await visit.click("Daemon");
  await visit.shows(/State directory/, ".main");
  expect(await isMarked(visit)).toBe(false);
  expect(
    await visit.page.evaluate(() => document.querySelectorAll("iframe, object, embed, base, form[action]").length),
  ).toBe(0);
  expect(await visit.faults()).toEqual([]);
});
