import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterEach, beforeEach, expect, test } from "vitest";
import { methods } from "../../../../protocol/methods.ts";
import type { OptimisationOptions } from "../../../../protocol/optimisation/options.ts";
import { CompactionSettings } from "../../../../server/context/compaction-settings.ts";
import { layered } from "../../../../server/context/part-layers.ts";
import { paramNeeds } from "../../../../server/rpc/params.ts";
import { requireOwnAgentDirectory } from "../../../../server/start-errors.ts";
import type { StoredSession } from "../../../../server/store/stored-session.ts";

let root = "";
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "compaction-"));
});
afterEach(() => rmSync(root, { recursive: true }));

const route = "settings";
const half: OptimisationOptions = { compaction: { route, thresholdPercent: 0.5 } };
const most: OptimisationOptions = { compaction: { route, thresholdPercent: 0.8 } };
const models = ["a", "b"].map((id) => ({ provider: "p", id, contextWindow: 100_000 }));
const settings = () => JSON.parse(readFileSync(join(root, "settings.json"), "utf8"));

function start(wants: Record<string, OptimisationOptions>, answer: unknown = { models }) {
  return new CompactionSettings({
    directory: root,
    sessions: () =>
      Object.entries(wants).map(([sessionId, optimisation]) => ({
        stored: { sessionId, options: { optimisation } } as unknown as StoredSession,
      })),
    models: () => Promise.resolve(answer),
    log: pino({ level: "silent" }),
  });
}

test("other programs' settings stay, and ours are removed with the last session that wants them, also in a later daemon", async () => {
  const own = { reserveTokens: 1, keepRecentTokens: 2 };
  const before = { theme: "dark", compaction: { enabled: true, modelOverrides: { "p/a": own, "q/z": own } } };
  writeFileSync(join(root, "settings.json"), JSON.stringify(before));
  const wants: Record<string, OptimisationOptions> = { s: half };
  await start(wants).write(half);
  expect(settings().compaction.modelOverrides).toEqual({
    "p/a": own,
    "q/z": own,
    "p/b": { reserveTokens: 50_000, keepRecentTokens: 12_500 },
  });
  const later = start(wants);
  await later.giveBack();
  expect(Object.keys(settings().compaction.modelOverrides)).toContain("p/b");
  wants["s"] = most;
  await later.write(most);
  expect(settings().compaction.modelOverrides["p/b"].reserveTokens).toBe(20_000);
  delete wants["s"];
  await later.giveBack();
  expect(settings()).toEqual(before);
  expect(existsSync(join(root, "pi-rpcd-compaction.json"))).toBe(false);
});

test("if pi names no models nothing is written", async () => {
  writeFileSync(join(root, "settings.json"), '{"compaction":{"modelOverrides":{"p/a":{"reserveTokens":1}}}}');
  await start({ s: half }, { models: [] }).write(half);
  expect(settings()).toEqual({ compaction: { modelOverrides: { "p/a": { reserveTokens: 1 } } } });
});

test("sessions that are created at the same time share one value", () => {
  const wants: Record<string, OptimisationOptions> = {};
  const compaction = start(wants);
  {
    using _first = compaction.reserve("1", half);
    expect(() => compaction.reserve("2", most)).toThrow("needs one value for all sessions");
    expect(() => compaction.require("3", most)).toThrow("needs one value for all sessions");
    using _same = compaction.reserve("4", half);
  }
  compaction.reserve("2", most)[Symbol.dispose]();
});

test("the route needs admin, by its name and by every option that changes what it writes", async () => {
  for (const method of ["session/create", "optimisation/configure"] as const) {
    expect(paramNeeds(methods[method], { optimisation: half })).toEqual(["admin"]);
    expect(paramNeeds(methods[method], { optimisation: { compaction: { route: "draft" } } })).toEqual([]);
  }
  const unnamed = layered(
    { configured: { optimisation: half }, given: { optimisation: { compaction: { thresholdPercent: 0.9 } } } },
    {},
    [],
  );
  await expect(unnamed).rejects.toThrow('Route "settings" applies to all sessions; name it in the call');
  const { optimisation } = await layered({ configured: { optimisation: half }, given: { optimisation: most } }, {}, []);
  expect(optimisation?.compaction?.thresholdPercent).toBe(0.8);
});

test("a project's file cannot choose the route, or change what it writes: its layer alone is ignored", async () => {
  const file = "/x/.pi/pi-rpcd.jsonc";
  const named = await layered({ project: { file, optimisation: half } }, {}, []);
  expect(named).toEqual({ projectProblem: expect.stringContaining('the route "settings"') });
  const changed = await layered(
    { configured: { optimisation: half }, project: { file, optimisation: { compaction: { thresholdPercent: 0.9 } } } },
    {},
    [],
  );
  expect(changed).toEqual({ optimisation: half, projectProblem: expect.stringContaining('the route "settings"') });
});

test("the daemon's own configuration directory differs from the user's, with links resolved", () => {
  symlinkSync(root, join(root, "link"));
  for (const directory of [root, join(root, "link")]) {
    expect(() => requireOwnAgentDirectory(directory, { PI_CODING_AGENT_DIR: root })).toThrow("never writes");
  }
  expect(() => requireOwnAgentDirectory(join(root, ".pi", "agent"), { HOME: root, PI_CODING_AGENT_DIR: "/x" })).toThrow(
    "never writes",
  );
  requireOwnAgentDirectory(join(root, "own"), { HOME: root });
});

test("pi compacts below a dearer tier, and at 100,000 tokens whatever else a price says", async () => {
  const priced = (id: string, cost: unknown) => ({ provider: "p", id, contextWindow: 200_000, cost });
  const tiers = [{ inputTokensAbove: 72_000, input: 6 }];
  const answer = { models: [priced("a", { input: 3, tiers }), priced("b", { tiers: [null, {}] }), priced("c", 1)] };
  await start({}, answer).write({ compaction: { route } });
  const { modelOverrides } = settings().compaction;
  const reserves = ["p/a", "p/b", "p/c"].map((id) => modelOverrides[id].reserveTokens);
  expect(reserves).toEqual([132_000, 100_000, 100_000]);
});
