import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { makeTrace } from "../../../../bench/lib/traces/make.ts";
import { traceExtension, writeTraceProject, writeTraceSkills } from "../../../../bench/lib/traces/project.ts";
import { TraceScript } from "../../../../bench/lib/traces/script.ts";
import { billOf } from "../../../../bench/lib/traces/spending.ts";
import type { TraceName } from "../../../../bench/lib/traces/trace.ts";
import { ContextDaemon } from "../../../../cli/context-daemon.ts";
import { showContext } from "../../../../cli/context-show.ts";
import type { ScriptedName } from "../../../../provider/agent-dir.ts";
import { type Stage, startStage } from "../../../helpers/stage.ts";
import { memoryOutput } from "../../../unit/cli/memory-output.ts";

const prices = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 };

// Actions that break the cache by themselves: pauses longer than its lifetime, and pi's own compaction.
const cases: Readonly<Record<string, readonly [ScriptedName, TraceName, Readonly<Record<string, number>>]>> = {
  short: ["scripted-anthropic", "short", {}],
  autonomous: ["scripted-anthropic", "autonomous", {}],
  dialogue: ["scripted-anthropic", "dialogue", { expired: 4, compaction: 1 }],
  tools: ["scripted-anthropic", "tools", {}],
  "dialogue-openai": ["scripted", "dialogue", { expired: 4, compaction: 1 }],
};

test("the auditor names every cause of a trace's cache losses, the cost, and no other cause; and so does `context show`", async () => {
  const script = new TraceScript();
  await using stage = await startStage({
    provider: { otherwise: script.answer, cache: { now: script.now }, maxLogEntries: 8 },
    agent: { models: Object.keys(cases).map((id) => ({ id, cost: prices })) },
  });
  writeTraceSkills(stage.agentDir.path);
  const [, , longest = ""] = await Promise.all(Object.keys(cases).map((id) => check(id, script, stage)));
  // The figures shown to users come from the same session.
  const { output, stdout } = memoryOutput();
  await showContext(new ContextDaemon(stage.stateDir, new AbortController().signal), longest, output);
  expect(stdout()).toMatch(/^The next request has about [\d,]+ of 200,000 tokens \(\d+ %\):\n {2}\w+ +[\d,]+ +\d+ %\n/);
  expect(stdout()).toMatch(/^ {2}cache {2}on /m);
  expect(stdout()).toMatch(
    /^The provider read 9\d % of all input from its cache, in 120 requests. It was broken by:$/m,
  );
  expect(stdout()).toMatch(/^ {2}expired +4 x +[\d,]+ tokens {2}\$[\d.]+$/m);
});

async function check(id: string, script: TraceScript, stage: Stage): Promise<string> {
  const [provider, name, causes] = cases[id] ?? [];
  if (name === undefined || causes === undefined) throw new Error(`There is no case ${id}.`);
  const directory = join(stage.root, id);
  mkdirSync(directory);
  const trace = makeTrace(name);
  script.begin(id, trace);
  const session = await stage.client.createSession({
    cwd: writeTraceProject(trace, directory),
    model: `${provider}/${id}`,
    extensions: [traceExtension],
    optimisation: { cache: { enabled: true } },
  });
  for (const { text } of trace.prompts) {
    await session.prompt(text);
    await session.waitForIdle();
  }
  const report = await stage.client.call("cache/report", { sessionId: session.id });
  const spending = script.spending(id);
  expect(spending.leftOver, id).toBe(0);
  const told = Object.fromEntries(Object.entries(report.causes).map(([cause, { count }]) => [cause, count]));
  expect(told, id).toEqual(causes);
  expect(report.volatile, id).toEqual([]);
  // Its figures for requests and tokens match the provider's counts.
  const bill = billOf(spending, prices);
  expect(report.requests, id).toBe(bill.requests);
  expect(bill.breaks, id).toBe(Object.values(causes).reduce((sum, times) => sum + times, 0));
  const missed = Object.values(report.causes).reduce((sum, cause) => sum + cause.missedTokens, 0);
  expect(Math.abs(missed - bill.missedTokens), id).toBeLessThanOrEqual(0.1 * bill.missedTokens);
  return session.id;
}
