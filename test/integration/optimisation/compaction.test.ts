import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { CompactionDetails } from "../../../context/parts/compaction/history.ts";
import { leanOptimisation } from "../../../protocol/optimisation/config.ts";
import type { OptimisationOptions } from "../../../protocol/optimisation/options.ts";
import { resolveOptimisation } from "../../../protocol/optimisation/resolve.ts";
import { Gate } from "../../../provider/gate.ts";
import type { LogEntry } from "../../../provider/log.ts";
import { answer, call, hold, type Reply, status } from "../../../provider/reply.ts";
import { type Responder, when } from "../../../provider/script.ts";
import { startProvider } from "../../../provider/server.ts";
import { unchecked } from "../../helpers/partial.ts";
import { type Pi, push, startPi } from "../extension/driver.ts";

interface Entry {
  readonly type: string;
  readonly id: string;
  readonly [field: string]: unknown;
}

const isSummary = (request: LogEntry): boolean => request.hasText("<conversation>");

function parts(compaction: NonNullable<OptimisationOptions["compaction"]>) {
  return { optimisation: resolveOptimisation({ compaction }), spillDirectory: "/nowhere", labels: {} };
}

function entriesOf(pi: Pi): readonly Entry[] {
  return readFileSync(pi.sessionFile, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Entry);
}

function compactionsOf(pi: Pi): readonly (Entry & { readonly details: { readonly "pi-rpcd": CompactionDetails } })[] {
  return unchecked(entriesOf(pi).filter(({ type }) => type === "compaction"));
}

/** A run of this many turns, each of which prints this many characters; the last one only answers. */
function working(turns: number, chars: number): Responder {
  let turn = 0;
  return () => {
    turn += 1;
    if (turn > turns) return answer("All done.");
    return answer(
      `Turn ${turn}.`,
      call("bash", { command: `head -c ${chars} /dev/zero | tr '\\0' 'x' | fold -w 7 | tr '\\n' ' '` }),
    );
  };
}

describe("in a window of 200,000 tokens", () => {
  const text = "The committee met on Thursday and decided to postpone it. ".repeat(8_000);

  test("a run is compacted above 140,000 tokens, between two of its turns and without ending it, and the usage is counted", async () => {
    await using provider = await startProvider({ otherwise: working(4, 45_000) });
    await using pi = await startPi({ provider, parts: parts({ thresholdPercent: 0.7 }) });
    provider.add(
      when(isSummary, { ...answer("## Goal\nThe library."), usage: { inputTokens: 7_777, outputTokens: 88 } }),
    );
    await pi.rpc({ type: "prompt", message: text });
    await pi.settled();
    const [compaction, ...more] = compactionsOf(pi);
    expect(more).toEqual([]);
    const { tokensBefore, tokensAfter, threshold } = (compaction?.details["pi-rpcd"] ?? {}) as CompactionDetails;
    expect(threshold).toBe(140_000);
    expect(tokensBefore).toBeGreaterThan(140_000);
    expect(tokensBefore).toBeLessThan(160_000);
    expect(tokensAfter).toBeLessThan(0.75 * tokensBefore);

    const summaryAt = provider.requests.findIndex(isSummary);
    const later = provider.requests.slice(summaryAt + 1);
    expect(later.length).toBeGreaterThan(0);
    expect(later.every((request) => request.hasText("The library.") && !request.hasText("met on Thursday"))).toBe(true);
    expect(provider.requests[summaryAt]?.toolNames).toEqual([]);
    // One run, which continued to its end.
    expect(pi.frames("settled")).toHaveLength(1);
    expect(later.at(-1)?.countText("Turn ")).toBeGreaterThan(0);
    expect(entriesOf(pi).findLast(({ type }) => type === "message")).toMatchObject({ message: { stopReason: "stop" } });

    const { data } = (await pi.rpc({ type: "get_session_stats" })) as { data: { tokens: { input: number } } };
    const answers = entriesOf(pi).map(
      ({ message }) => (message as { usage?: { input: number } } | undefined)?.usage?.input ?? 0,
    );
    expect(data.tokens.input).toBe(answers.reduce((sum, input) => sum + input, 7_777));
  });

  test("an overloaded service does not affect the run, and is asked again only after some turns", async () => {
    await using provider = await startProvider({ otherwise: working(7, 20_000) });
    await using pi = await startPi({ provider, parts: parts({ thresholdPercent: 0.7, minTurnsBetween: 3 }) });
    provider.add(when(isSummary, status(529)), when(isSummary, answer("Second try.")));
    await pi.rpc({ type: "prompt", message: text.repeat(1.2) });
    await pi.settled();
    expect(pi.frames("settled")).toHaveLength(1);
    expect(entriesOf(pi).findLast(({ type }) => type === "message")).toMatchObject({ message: { stopReason: "stop" } });
    const kinds = provider.requests.map((request) => (isSummary(request) ? "summary" : "turn"));
    const first = kinds.indexOf("summary");
    const second = kinds.lastIndexOf("summary");
    expect(second - first).toBeGreaterThanOrEqual(4);
    expect(compactionsOf(pi)).toHaveLength(1);
    expect(entriesOf(pi).filter(({ customType }) => customType === "pi-rpcd.compaction")).toHaveLength(1);
  });

  test("the cost of an aborted summary is reported separately from pi's totals", async () => {
    const gate = new Gate();
    await using provider = await startProvider({ otherwise: working(4, 45_000) });
    await using pi = await startPi({
      provider,
      api: "scripted-anthropic",
      parts: { ...parts({ thresholdPercent: 0.5 }) },
    });
    provider.add(when(isSummary, { ...answer("## Goal", hold(gate)), usage: { inputTokens: 4_321 } }));
    await pi.rpc({ type: "prompt", message: text });
    await gate.reached;
    await pi.rpc({ type: "abort" });
    await pi.settled();
    gate.open();
    expect(compactionsOf(pi)).toEqual([]);
    const mark = entriesOf(pi).find(({ customType }) => customType === "pi-rpcd.cost");
    expect(mark).toMatchObject({ data: { kind: "failedSummary", usage: { input: 4_321 } } });
    // The next prompt continues from there.
    await pi.rpc({ type: "prompt", message: "Go on." });
    await pi.settled(2);
    expect(provider.requests.at(-1)?.hasText("Go on.")).toBe(true);
  });

  test("a push that is handed over at the same boundary follows the compaction, and is delivered", async () => {
    await using provider = await startProvider({ otherwise: working(3, 45_000) });
    await using pi = await startPi({ provider, parts: parts({ thresholdPercent: 0.6 }) });
    provider.add(when(isSummary, answer("They met.")));
    const gate = new Gate();
    provider.add(answer("At once.", hold(gate), call("bash", { command: "head -c 45000 /dev/zero | tr '\\0' 'y'" })));
    await pi.rpc({ type: "prompt", message: text });
    await gate.reached;
    await pi.hold(push("d1", "Do not forget me."));
    gate.open();
    await pi.settled();
    expect(pi.receiptsOf("d1").at(-1)).toBe("answered");
    const types = entriesOf(pi).map(({ type }) => type);
    expect(types.indexOf("compaction")).toBeGreaterThan(0);
    expect(types.indexOf("custom_message")).toBeGreaterThan(types.indexOf("compaction"));
    const after = provider.requests.slice(provider.requests.findIndex(isSummary) + 1);
    expect(after[0]?.countText("Do not forget me.")).toBe(1);
  });
});

describe("in a window of 8,000 tokens", () => {
  const models = [{ id: "model-1", contextWindow: 8_000, maxTokens: 1_000 }];

  test("no compaction comes within three turns of another, and each frees a quarter", async () => {
    await using provider = await startProvider({ otherwise: working(30, 1_600) });
    await using pi = await startPi({ provider, models, parts: parts({ thresholdPercent: 0.7 }) });
    const summary: Reply = answer("## Goal\nTo print. ", "Much was printed. ".repeat(20));
    provider.add(...Array.from({ length: 12 }, () => when(isSummary, summary)));
    await pi.rpc({ type: "prompt", message: "Print." });
    await pi.settled();
    const entries = entriesOf(pi);
    const turns = entries.flatMap(({ type, message }, at) =>
      type === "compaction" || (message as { role?: string } | undefined)?.role === "assistant" ? [{ type, at }] : [],
    );
    const places = turns.flatMap(({ type }, at) => (type === "compaction" ? [at] : []));
    expect(places.length).toBeGreaterThan(2);
    for (const [at, place] of places.entries()) if (at > 0) expect(place - (places[at - 1] ?? 0)).toBeGreaterThan(3);
    for (const { details } of compactionsOf(pi)) {
      const { tokensBefore, tokensAfter } = details["pi-rpcd"];
      expect(tokensAfter).toBeLessThanOrEqual(0.75 * tokensBefore);
    }
    // The service's counts agree: the request after a compaction is smaller by a quarter.
    const inputs = provider.requests.map((request) => ({
      isSummary: isSummary(request),
      input: request.usage?.inputTokens ?? 0,
    }));
    for (const [at, one] of inputs.entries()) {
      if (!one.isSummary) continue;
      expect(inputs[at + 1]?.input ?? 0).toBeLessThan(0.85 * (inputs[at - 1]?.input ?? 0));
    }
    provider.add(answer("Rest."));
  });

  test("without room for a compaction the part is off, and gives the reason with the three numbers", async () => {
    await using provider = await startProvider({ otherwise: working(3, 4_000) });
    await using pi = await startPi({
      provider,
      models,
      settings: { compaction: { enabled: true, reserveTokens: 100, keepRecentTokens: 1_000 } },
      parts: parts({ thresholdPercent: 0.5, minFreeShare: 0.9 }),
    });
    await pi.rpc({ type: "prompt", message: "Print." });
    await pi.settled();
    const notices = pi.frames("notice").filter(({ name }) => name === "optimisation/degraded");
    expect(notices).toHaveLength(1);
    expect(notices[0]?.data).toMatchObject({
      part: "compaction",
      figures: { window: 8_000, thresholdTokens: 4_000, fixedTokens: expect.any(Number) },
    });
    expect(provider.requests.some(isSummary)).toBe(false);
  });
});

describe("with the profile lean", () => {
  const rates = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 };
  const twice = { input: 6, output: 30, cacheRead: 0.6, cacheWrite: 7.5 };
  const sentence = "The committee met on Thursday and decided to postpone it. ";

  test.for([
    ["at 100,000 tokens of a window of a million", [], 100_000, 100_000],
    ["at 100,000 tokens if requests are dearer only above 128,000", [128_000], 100_000, 100_000],
    ["below a price tier that begins at 80,000 tokens", [80_000], 72_000, 79_999],
  ] as const)("the context is compacted %s", async ([, above, least, most]) => {
    await using provider = await startProvider({ otherwise: () => answer("Fine."), cache: {} });
    const tiers = above.map((inputTokensAbove) => ({ inputTokensAbove, ...twice }));
    await using pi = await startPi({
      provider,
      api: "scripted-anthropic",
      models: [{ id: "model-1", contextWindow: 1_000_000, cost: { ...rates, tiers } }],
      parts: { optimisation: resolveOptimisation(leanOptimisation), spillDirectory: "/nowhere", labels: {} },
    });
    for (const [at, sentences] of [2_500, 1_500, 6_500].entries()) {
      provider.add(answer("I look.", call("bash", { command: "echo 1" })));
      await pi.rpc({ type: "prompt", message: sentence.repeat(sentences) });
      await pi.settled(at + 1);
    }
    const [compaction, ...more] = compactionsOf(pi);
    expect(more).toEqual([]);
    const { threshold, window, tokensBefore } = (compaction?.details["pi-rpcd"] ?? {}) as CompactionDetails;
    expect(window).toBe(1_000_000);
    expect(threshold).toBeGreaterThanOrEqual(least);
    expect(threshold).toBeLessThanOrEqual(most);
    expect(tokensBefore).toBeGreaterThan(threshold);
  });
});
