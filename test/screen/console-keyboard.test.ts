import { join } from "node:path";
import { expect, test } from "vitest";
import { Gate } from "../../provider/gate.ts";
import { answer, hang, hold } from "../../provider/reply.ts";
import { startStage } from "../helpers/stage.ts";
import { ConsoleBrowser, consoleAddress } from "./console-browser.ts";

const asking = join(import.meta.dirname, "..", "fixtures", "extension", "asking.ts");

test.each(["chromium", "firefox-esr"] as const)(
  "by keyboard alone in %s: a new session, a prompt, steering, queueing, stopping, an answer",
  async (program) => {
    const gate = new Gate();
    await using stage = await startStage({
      agent: { settings: { extensions: [asking] } },
      provider: {
        script: [
          answer("Working", hold(gate), "."),
          answer("Steered."),
          answer("Queued."),
          answer("This never ends.", hang()),
        ],
      },
    });
    await using browser = await ConsoleBrowser.open(program);
    const visit = await browser.visit(await consoleAddress(stage.client));
    await visit.shows(/There are no sessions yet/);
    await visit.tabTo(/^New$/);
    await visit.press("Enter");
    await visit.shows(/New session/, ".main");
    await visit.tabTo(/^Directory/);
    await visit.type(stage.cwd);
    await visit.press("Tab");
    await visit.type("Begin.");
    await visit.tabTo(/^Start$/);
    await visit.press("Enter");
    await gate.reached;
    await visit.shows(/Begin\.[\s\S]*Working/, ".log");

    await visit.press("Escape", "i");
    await visit.type("Into the run.");
    await visit.press("Enter");
    await visit.shows(/Into the run\./, ".waits");
    await visit.type("After the run.");
    await visit.page.keyboard.down("Alt");
    await visit.press("Enter");
    await visit.page.keyboard.up("Alt");
    await visit.shows(/Into the run\.[\s\S]*enters this run[\s\S]*After the run\.[\s\S]*after this run/, ".waits");
    gate.open();
    await visit.shows(/Into the run\.[\s\S]*Steered\.[\s\S]*After the run\.[\s\S]*Queued\./, ".log");

    await visit.type("Never end.");
    await visit.press("Enter");
    await visit.shows(/This never ends\./, ".log");
    await visit.tabTo(/^Stop$/);
    await visit.press("Enter");
    await visit.hides(/running/, ".head");

    await visit.press("i");
    const question = { method: "confirm", title: "May I?", text: "echo it" };
    await visit.type(`/ask ${JSON.stringify([question])}`);
    await visit.press("Enter");
    await visit.shows(/May I\?/, ".question-zone");
    await visit.press("Escape", "a");
    await visit.holds(() => document.activeElement?.matches(".question"));
    await visit.holds(
      () => document.querySelector<HTMLElement>(".question-zone .question")?.dataset["ready"] === "true",
    );
    await visit.tabTo(/^Yes$/);
    await visit.press("Enter");
    const { client } = stage;
    const [session] = await client.listSessions();
    await expect.poll(() => client.session(session?.sessionId ?? "").dialogs()).toEqual([]);
    expect(await visit.faults()).toEqual([]);
  },
);

test("letters do nothing where the configuration says so, until a person turns them on", async () => {
  await using stage = await startStage({ config: JSON.stringify({ web: { letterKeys: false } }) });
  await stage.session();
  await using browser = await ConsoleBrowser.open();
  const visit = await browser.visit(await consoleAddress(stage.client));
  await visit.shows(/Awake/, ".rail");
  await visit.press("g", "d", "?");
  await visit.clickOn(".row-name");
  await visit.shows(/Nothing was said yet/, ".main");
  expect(await visit.text("body")).not.toMatch(/Close/);
  await visit.clickOn(".bar .menu > .square");
  await visit.click("Letter keys");
  await visit.press("g", "d");
  await visit.shows(/Ready/, ".main");
});
