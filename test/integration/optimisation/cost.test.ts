import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { Checkpoint } from "../../../context/cost/fold.ts";
import { CostFold } from "../../../context/cost/fold.ts";
import { resolveOptimisation } from "../../../protocol/optimisation/resolve.ts";
import { Gate } from "../../../provider/gate.ts";
import { answer, call, delayed, errorEvent, hold, type Reply, reset, status } from "../../../provider/reply.ts";
import { type ScriptedProvider, startProvider } from "../../../provider/server.ts";
import { type Pi, startPi } from "../extension/driver.ts";

const seeds = [2026];
const acts = 24;

interface Stats {
  readonly tokens: { input: number; output: number; cacheRead: number; cacheWrite: number; total: number };
  readonly cost: number;
}

/** A run of random acts from a seed, in one pi. */
class RandomRun {
  readonly #pi: Pi;
  readonly #provider: ScriptedProvider;
  readonly #random: () => number;
  #settled = 0;

  constructor(pi: Pi, provider: ScriptedProvider, seed: number) {
    this.#pi = pi;
    this.#provider = provider;
    this.#random = generator(seed);
  }

  async run(): Promise<void> {
    await this.#answered();
    await this.#warmed();
    for (let at = 0; at < acts; at++) {
      const all = [this.#answered, this.#delegated, this.#retried, this.#aborted, this.#truncated, this.#compacted];
      const act = all[Math.floor(this.#random() * (all.length + 2))] ?? (at % 2 === 0 ? this.#branched : this.#marked);
      await act.call(this);
    }
    for (const act of [
      this.#delegated,
      this.#retried,
      this.#aborted,
      this.#truncated,
      this.#compacted,
      this.#branched,
    ]) {
      await act.call(this);
    }
  }

  #usage() {
    const number = (max: number): number => Math.floor(this.#random() * max);
    return {
      inputTokens: 10 + number(5_000),
      outputTokens: 1 + number(900),
      cacheReadTokens: number(40_000),
      cacheWriteTokens: number(3_000),
      reasoningTokens: 0,
    };
  }

  #spent(reply: Reply): Reply {
    return reply.kind === "answer" ? { ...reply, usage: this.#usage() } : reply;
  }

  async #prompt(...replies: readonly Reply[]): Promise<void> {
    this.#provider.add(...replies.map((reply) => this.#spent(reply)));
    await this.#pi.rpc({ type: "prompt", message: "Go on, and tell me more of it. ".repeat(20) });
  }

  async #answered(): Promise<void> {
    await this.#prompt(answer("A long answer. ".repeat(30)));
    await this.#pi.settled(++this.#settled);
  }

  async #delegated(): Promise<void> {
    await this.#prompt(answer(call("delegate"), call("delegate")), answer(call("delegate")), answer("All done."));
    await this.#pi.settled(++this.#settled);
  }

  async #retried(): Promise<void> {
    await this.#prompt(answer("Fi", errorEvent()), status(529), answer("Fi", reset()), answer("Fine."));
    await this.#pi.settled(++this.#settled);
  }

  async #aborted(): Promise<void> {
    const gate = new Gate();
    const isEarly = this.#random() < 0.3;
    await this.#prompt(isEarly ? delayed(hold(gate), answer("Never.")) : answer("Under way", hold(gate), "."));
    await gate.reached;
    await this.#pi.rpc({ type: "abort" });
    await this.#pi.settled(++this.#settled);
    gate.open();
  }

  /** pi removes an answer that was cut off, compacts and tries again. */
  async #truncated(): Promise<void> {
    await this.#prompt({ ...answer("Cut o"), stop: "length" });
    await this.#pi.settled(++this.#settled);
  }

  async #compacted(): Promise<void> {
    await this.#pi.rpc({ type: "compact" }).catch(() => {});
  }

  async #branched(): Promise<void> {
    await this.#pi.rpc({ type: "prompt", message: "/test-branch" });
  }

  async #warmed(): Promise<void> {
    const gate = new Gate();
    await this.#prompt(answer("Under", hold(gate), "stood."));
    await this.#provider.waitForRequest(({ isWarming }) => isWarming);
    await this.#pi.event("entry_appended", ({ entry }) => (entry as { type?: unknown }).type === "usage");
    gate.open();
    await this.#pi.settled(++this.#settled);
  }

  async #marked(): Promise<void> {
    const label = `phase ${Math.floor(this.#random() * 3)}`;
    const abouts = ["cost/startPhase", "cost/endPhase", "cost/checkpoint"];
    await this.#pi.send({ kind: "ask", about: abouts[Math.floor(this.#random() * 3)], params: { label } });
  }
}

const parts = {
  optimisation: resolveOptimisation({ cost: { autoCheckpoint: "turn" } }),
  spillDirectory: "/nowhere",
  labels: {},
};
const settings = {
  cacheWarming: "streaming",
  compaction: { enabled: true, reserveTokens: 1_000, keepRecentTokens: 10 },
  retry: { enabled: true, maxRetries: 3, baseDelayMs: 1, maxAgentDelayMs: 2, provider: { maxRetries: 0 } },
};

test.for(seeds)(
  "the deltas add up to pi's own statistics after retries, aborts, warming, compaction and branches (seed %i)",
  async (seed) => {
    await using provider = await startProvider();
    await using pi = await startPi({
      provider,
      api: "scripted-anthropic",
      models: [
        {
          id: "model-1",
          promptCache: { short: 11, long: 11 },
          cost: { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 },
        },
      ],
      settings,
      parts,
      after: ["spending", "always-warm"],
    });
    await new RandomRun(pi, provider, seed).run();
    await pi.send({ kind: "ask", about: "cost/checkpoint", params: { label: "the end" } });
    const stats = (await pi.rpc({ type: "get_session_stats" }))["data"] as Stats;
    const told = pi
      .frames("notice")
      .flatMap(({ name, data }) => (name === "cost/checkpointed" ? [data as Checkpoint] : []));
    expect(sumOf(told)).toEqual(stats.tokens);
    const usd = told.reduce((sum, { event }) => sum + event.deltaTokens.cost.total, 0);
    expect(Math.abs(usd - stats.cost)).toBeLessThan(1e-9);
    expect(told.at(-1)?.event).toMatchObject({ label: "the end", cumulativeCost: stats.cost });

    // Other extensions get it on pi's event bus.
    const heard = pi.log.records.filter(({ statusKey }) => statusKey === "tell:cost");
    expect(JSON.parse(String(heard.at(-1)?.["statusText"]))).toEqual(told.at(-1)?.event);

    const entries = readFileSync(pi.sessionFile, "utf8")
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as FileEntry);
    const fold = new CostFold();
    for (const entry of entries) fold.add(entry);
    expect(fold.whole.total.cost.total).toBe(stats.cost);
    const bySource = fold.whole.bySource();
    const sources = ["assistant", "branch_summary", "cache_warm", "compaction", "discarded", "tool"];
    expect(Object.keys(bySource).sort()).toEqual(sources);
    // pi removes attempts that it repeats, whether failed or cut off.
    const takenOut = new Set(
      entries.flatMap(({ type, targetId, replacement }) =>
        type === "context_edit" && replacement === null ? [targetId] : [],
      ),
    );
    const attempts = entries.filter(({ message }) => message?.role === "assistant");
    const lost = attempts.filter(
      ({ id, message }) => takenOut.has(id) || message?.stopReason === "error" || message?.stopReason === "aborted",
    );
    expect(lost.map(({ message }) => message?.stopReason)).toEqual(
      expect.arrayContaining(["error", "aborted", "length"]),
    );
    const output = lost.reduce((sum, { message }) => sum + (message?.usage.output ?? 0), 0);
    expect(bySource["discarded"]?.output).toBe(output);
  },
);

interface FileEntry {
  readonly type: string;
  readonly id?: string;
  readonly targetId?: string;
  readonly replacement?: unknown;
  readonly message?: {
    readonly role: string;
    readonly stopReason?: string;
    readonly usage: { readonly output: number };
  };
}

function sumOf(checkpoints: readonly Checkpoint[]): Stats["tokens"] {
  const sum = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
  for (const { event } of checkpoints) {
    const { input, output, cacheRead, cacheWrite, totalTokens } = event.deltaTokens;
    sum.input += input;
    sum.output += output;
    sum.cacheRead += cacheRead;
    sum.cacheWrite += cacheWrite;
    sum.total += totalTokens;
  }
  return sum;
}

/** Numbers from 0 to 1 that follow from the seed (mulberry32). */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}
