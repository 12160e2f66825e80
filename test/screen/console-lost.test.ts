import { expect, test } from "vitest";
import { Gate } from "../../provider/gate.ts";
import { answer, call, hold } from "../../provider/reply.ts";
import { CuttingProxy } from "../helpers/cutting-proxy.ts";
import { startKillableStage } from "../helpers/killable-stage.ts";
import { startStage } from "../helpers/stage.ts";
import { ConsoleBrowser, consoleAddress, type Visit } from "./console-browser.ts";

/** How often each of the texts is in the conversation. */
async function counts(visit: Visit, texts: readonly string[]): Promise<readonly number[]> {
  const shown = await visit.text(".log");
  return texts.map((text) => shown.split(text).length - 1);
}

test("each message is shown once if the page loads in a run, its connection is cut, and the daemon is killed", async () => {
  const [first, second, third] = [new Gate(), new Gate(), new Gate()];
  await using stage = await startKillableStage({
    provider: {
      script: [
        answer("Before.", call("bash", { command: "echo tool-output" })),
        answer("Alpha ", hold(first), "beta ", hold(second), "gamma."),
        answer("Delta ", hold(third), "epsilon."),
      ],
    },
  });
  const session = await stage.session();
  const run = session.prompt("First message.");
  await first.reached;
  const address = await consoleAddress(stage.client);
  const { port } = new URL(address);
  await using proxy = await CuttingProxy.start(0, Number(port));
  // The page keeps the daemon's address, but its connections go through the proxy.
  await using browser = await ConsoleBrowser.open("chromium", `MAP 127.0.0.1:${port} 127.0.0.1:${proxy.port}`);
  const visit = await browser.visit(address);
  await visit.clickOn(".row-name");
  await visit.shows(/First message\.[\s\S]*Before\.[\s\S]*Alpha/, ".log");

  proxy.reset();
  first.open();
  await visit.shows(/Alpha beta/, ".log");
  await second.reached;
  proxy.reset();
  second.open();
  await run.settled();
  await visit.shows(/Alpha beta gamma\./, ".log");
  await visit.shows(/Live/, ".bar");
  expect(await counts(visit, ["First message.", "Before.", "Alpha beta gamma.", "Alpha", "echo tool-output"])).toEqual([
    1, 1, 1, 1, 1,
  ]);

  await session.prompt("Second message.");
  await third.reached;
  await visit.shows(/Second message\.[\s\S]*Delta/, ".log");
  await stage.restart();
  await visit.shows(/The connection was lost|run pi-rpcd web/, ".news");
  expect(await counts(visit, ["First message.", "Alpha beta gamma.", "Second message.", "Delta"])).toEqual([
    1, 1, 1, 1,
  ]);

  // The new daemon has another address, and the browser another window.
  await using after = await ConsoleBrowser.open();
  const anew = await after.visit(await consoleAddress(stage.client));
  await anew.clickOn(".row-name");
  await anew.shows(/Second message\.[\s\S]*Delta/, ".log");
  third.open();
  await stage.client.session(session.id).waitForIdle();
  await anew.shows(/Delta epsilon\./, ".log");
  expect(
    await counts(anew, ["First message.", "Before.", "Alpha beta gamma.", "Second message.", "Delta epsilon."]),
  ).toEqual([1, 1, 1, 1, 1]);
  expect(await anew.faults()).toEqual([]);
});

test("a page that was frozen, and whose connection was lost meanwhile, shows each message once, or what is missing", async () => {
  const gate = new Gate();
  // More than the buffers between daemon and page hold, and than the log keeps.
  const long = Array.from({ length: 300 }, (_, n) => `Part ${n} begins. ${"Many words. ".repeat(2_500)}\n\n`);
  await using stage = await startStage({
    agent: { settings: { compaction: { enabled: false } } },
    provider: { script: ["Before.", answer("Alpha ", hold(gate), ...long, "Omega."), "After."] },
  });
  const session = await stage.session();
  await session.prompt("First message.").settled();
  const address = await consoleAddress(stage.client);
  const { port } = new URL(address);
  await using proxy = await CuttingProxy.start(0, Number(port));
  await using browser = await ConsoleBrowser.open("chromium", `MAP 127.0.0.1:${port} 127.0.0.1:${proxy.port}`);
  const visit = await browser.visit(address);
  await visit.clickOn(".row-name");
  await visit.shows(/Before\./, ".log");
  const cdp = await visit.page.createCDPSession();
  const run = session.prompt("Second message.");
  await visit.shows(/Alpha/, ".log");
  await cdp.send("Page.setWebLifecycleState", { state: "frozen" });
  gate.open();
  await run.settled();
  await session.prompt("Third message.").settled();
  proxy.reset();
  expect(await visit.text(".log")).not.toMatch(/Third message/);
  await cdp.send("Page.setWebLifecycleState", { state: "active" });
  const short = ["First message.", "Before.", "Second message.", "Third message.", "After."];
  await visit.shows(/Second message\.[\s\S]*Something is missing here[\s\S]*Third message\.[\s\S]*After\./, ".log");
  expect(await counts(visit, short)).toEqual([1, 1, 1, 1, 1]);
  // A thawed page of a headless browser draws no frames, for which a real click waits.
  await visit.page.evaluate(() => document.querySelector<HTMLElement>(".note-line .link")?.click());
  await visit.shows(/Second message\.[\s\S]*Part 0 begins[\s\S]*Third message\.[\s\S]*After\./, ".log");
  expect(await counts(visit, [...short, "Alpha", "Part 0 begins", "Something is missing"])).toEqual([
    1, 1, 1, 1, 1, 1, 1, 0,
  ]);
  expect(await visit.faults()).toEqual([]);
});
