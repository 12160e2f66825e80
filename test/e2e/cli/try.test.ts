import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import { runs } from "../../../cli/process-facts.ts";
import { HostProcess } from "../../../cli/try/host-process.ts";
import { connect } from "../../../client/index.ts";
import { piUnderTest } from "../../helpers/pi-versions.ts";

test("the tour of try: a tool, a push that is delivered into the run, a question and what follows from its answer", async () => {
  const host = new HostProcess({ pi: piUnderTest().cli, env: process.env });
  try {
    const stage = await host.open;
    const client = await connect({ stateDir: stage.stateDir });
    const session = client.session(stage.sessionId);
    const asked: string[] = [];
    session.onDialog(({ title, options = [] }) => {
      asked.push(title);
      return { value: options[0] ?? "" };
    });
    const first = await session.promptAndWait("Hello there");
    expect(first).toMatch(/You chose \*\*What does the receipt promise\?\*\*[\s\S]*`pi-rpcd pi`, then `\/login`/);
    expect(asked).toEqual(["What do you want to know?"]);
    const { deliveries } = await client.listDeliveries({ sessionId: stage.sessionId });
    expect(deliveries.map(({ state, customType }) => [customType, state])).toEqual([["script", "answered"]]);

    expect(await session.promptAndWait("What is 2 and 2?")).toMatch(/“What is 2 and 2\?”[\s\S]*cannot answer/);
    expect(await session.promptAndWait("Once again, please")).toMatch(/You chose/);
    await client.close();

    expect(stage.pids.filter(runs)).toHaveLength(2);
    await host.end();
    expect(stage.pids.filter(runs)).toEqual([]);
    expect(existsSync(stage.root)).toBe(false);
  } finally {
    await host.end();
  }
});

test("a pi that does not exist is reported, and nothing is left", async () => {
  const host = new HostProcess({ pi: "/no/such/pi.js", env: process.env });
  await expect(host.open).rejects.toThrow(/\/no\/such\/pi\.js/);
  await host.exited;
});
