import type { Result } from "../protocol/methods.ts";
import { count, percent, usd } from "../protocol/number-text.ts";
import { type Bar, bars } from "./cost-bars.ts";
import { exitCodes } from "./exit-codes.ts";
import { duration } from "./format.ts";
import type { Invocation } from "./invocation.ts";
import { type Savings, savingsLines, savingsOf } from "./savings.ts";
import { findSession } from "./session-argument.ts";
import { withClient } from "./with-client.ts";

type Report = Result<"cost/report">;
type Usage = Report["total"];

/** Shows the cost of a session. */
export async function cost(invocation: Invocation<"cost">): Promise<number> {
  const { output, signal } = invocation;
  const [word = ""] = invocation.arguments;
  return await withClient(invocation, async (client) => {
    const { id: sessionId } = await findSession(client, word, signal);
    const report = await client.call("cost/report", { sessionId }, { signal });
    const saved = await savingsOf((method, params) => client.call(method, params, { signal }), sessionId);
    if (output.json) output.document({ ...report, saved: saved ?? null });
    else print(report, saved, invocation);
    return exitCodes.done;
  });
}

function print(report: Report, saved: Savings | undefined, { output }: Invocation<"cost">): void {
  const { total, budget, byModel, bySource, phases } = report;
  for (const line of sumLines(report, (text) => output.paint("bold", text))) output.print(line);
  if (budget !== undefined) {
    const end = budget.onBudget === "stop" ? "; when it is spent, the next prompt is refused" : "";
    output.print(`${percent(budget.spentUsd / budget.usd)} of the budget of ${usd(budget.usd)}${end}.`);
  }
  if (saved !== undefined) for (const line of savingsLines(saved)) output.print(line);
  const whole = total;
  const section = (title: string, lines: readonly Bar[]): void => {
    if (lines.length === 0) return;
    output.print("");
    output.print(output.paint("dim", title));
    for (const line of bars(lines, output.columns)) output.print(line);
  };
  section(
    "PHASES",
    phases.map((phase) => phaseBar(phase, whole)),
  );
  section(
    "MODELS",
    sorted(byModel).map(([name, usage]) => bar(name, usage, whole)),
  );
  section(
    "SPENT ON",
    sorted(bySource).map(([name, usage]) => sourceBar(name, usage, whole)),
  );
}

/** The whole cost and usage. */
export function sumLines(
  { total, requests, estimated }: Report,
  paint: (text: string) => string = (text) => text,
): readonly string[] {
  const parts = `${count(total.input)} in, ${count(total.output)} out, ${count(total.cacheRead)} read from the cache, ${count(total.cacheWrite)} written to it`;
  return [
    `${paint(usd(total.cost.total))} for ${tokens(total)} in ${counted(requests, "request")} (${parts})`,
    ...(estimated ? ["Some usage has no known price, so the real cost may be higher."] : []),
  ];
}

function phaseBar(
  { label, path, isOpen, usage, requests, wallMs, budget }: Report["phases"][number],
  whole: Usage,
): Bar {
  const limit = budget === undefined ? "" : ` of ${usd(budget.usd)}`;
  const state = isOpen ? ", open" : "";
  return {
    ...bar(`${"  ".repeat(Math.max(0, path.length - 1))}${label}`, usage, whole),
    more: `${tokens(usage)}, ${counted(requests, "request")}, ${duration(wallMs)}${state}${limit}`,
  };
}

const sources: Readonly<Record<string, string>> = {
  assistant: "answers",
  tool: "tools",
  compaction: "compactions",
  branch_summary: "summaries of branches",
  cache_warm: "cache warming",
  discarded: "failed attempts",
  compaction_failed: "unused summaries (not in the sums)",
};

function sourceBar(name: string, usage: Usage, whole: Usage): Bar {
  const line = bar(sources[name] ?? name, usage, whole);
  return name === "compaction_failed" ? { ...line, share: 0 } : line;
}

function bar(name: string, usage: Usage, whole: Usage): Bar {
  // If nothing has a price, the share is that of tokens.
  const share = whole.cost.total > 0 ? usage.cost.total / whole.cost.total : usage.totalTokens / whole.totalTokens;
  return { name, amount: usd(usage.cost.total), share: Number.isFinite(share) ? share : 0, more: tokens(usage) };
}

function sorted(byName: Readonly<Record<string, Usage>>): readonly [string, Usage][] {
  return Object.entries(byName).sort(([, a], [, b]) => b.cost.total - a.cost.total || b.totalTokens - a.totalTokens);
}

function tokens({ totalTokens }: Usage): string {
  return counted(totalTokens, "token");
}

function counted(value: number, what: string): string {
  return `${count(value)} ${what}${value === 1 ? "" : "s"}`;
}
