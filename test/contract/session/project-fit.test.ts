import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import type { OptimisationOptions } from "../../../protocol/optimisation/options.ts";
import type { Session } from "../../../server/session/session.ts";
import { type Core, recorder, startCore } from "../../helpers/core.ts";

/**
 * Writes the configuration of the sessions' project. The fake pi's model has no prices, and the core has no pi
 * directory of its own.
 */
function projectSays({ cwd }: Core, optimisation: OptimisationOptions): string {
  mkdirSync(join(cwd, ".pi"), { recursive: true });
  const file = join(cwd, ".pi", "pi-rpcd.jsonc");
  writeFileSync(file, JSON.stringify({ optimisation }));
  return file;
}

/** Closes a session and returns its file. A file without entries is deleted with its session, so it is put back. */
async function closed({ registry }: Core, { sessionId, stored }: Session): Promise<string> {
  const header = readFileSync(stored.file);
  await registry.close(sessionId);
  writeFileSync(stored.file, header);
  return stored.file;
}

const route: OptimisationOptions = { compaction: { route: "settings" } };
const budget: OptimisationOptions = { cost: { budgetUsd: 5 } };

test("a project's compaction route that the daemon does not support does not prevent a session from starting", async () => {
  await using core = await startCore();
  const file = projectSays(core, route);
  const optimisation = { masking: { afterTurns: 3 } };
  const session = await core.registry.create({ cwd: core.cwd, approve: true, optimisation });
  expect(session.stored.options.optimisation).toEqual(optimisation);
  const heard = recorder();
  session.subscribe(heard, { after: 0 });
  const { params } = await heard.until(({ method }) => method === "optimisation/degraded");
  expect(params.part).toBe("project");
  expect(params.reason).toBe(`${file} has the route "settings" of compaction, which applies to all sessions.`);
  const opened = await core.registry.files.open({ file: await closed(core, session), approve: true });
  expect(opened.stored.options).not.toHaveProperty("optimisation");
  // A route in the call itself is refused, and leaves no file.
  const files = () => readdirSync(dirname(opened.stored.file)).filter((name) => name.endsWith(".jsonl"));
  const before = files();
  await expect(core.registry.create({ cwd: core.cwd, optimisation: route })).rejects.toMatchObject({
    kind: "invalid_params",
  });
  expect(files()).toEqual(before);
});

test("a budget that the call does not set itself does not prevent a start when the model has no prices", async () => {
  await using core = await startCore({ optimisation: { cost: { budgetUsd: 7 } } });
  projectSays(core, budget);
  const session = await core.registry.create({ cwd: core.cwd, approve: true });
  expect(session.stored.options.optimisation).toEqual(budget);
  const opened = await core.registry.files.open({ file: await closed(core, session) });
  expect(opened.stored.options.optimisation).toEqual({ cost: { budgetUsd: 7 } });
  await expect(core.registry.create({ cwd: core.cwd, optimisation: budget })).rejects.toMatchObject({
    kind: "price_unknown",
  });
});
