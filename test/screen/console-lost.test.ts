import { expect, test } from "vitest";
import { Gate } from "../../provider/gate.ts";
import { answer, call, hold } from "../../provider/reply.ts";
import { CuttingProxy } from "../helpers/cutting-proxy.ts";
import { startKillableStage } from "../helpers/killable-stage.ts";
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
