import type { SessionUpdate } from "@agentclientprotocol/sdk";
import type { Envelope } from "../../protocol/event.ts";
import type { NotificationParams } from "../../protocol/notifications.ts";
import { isRecord } from "../../protocol/objects.ts";

/** A session's cost and the size of its context, from the usage in pi's messages and entries. Usage is unchecked. */
export class UsageTally {
  #cost: number;
  #used: number | undefined;

  /** `cost`: US dollars until now. */
  constructor(cost = 0) {
    this.#cost = cost;
  }

  /** Adds the usage of any call of a model, also of a summary or a tool. */
  add(usage: unknown): void {
    const cost = isRecord(usage) && isRecord(usage["cost"]) ? usage["cost"]["total"] : undefined;
    if (typeof cost === "number" && Number.isFinite(cost)) this.#cost += cost;
  }

  /** The session's whole cost until now, in US dollars. */
  costs(cost: number): void {
    this.#cost = cost;
  }

  /** An answer of the model. The context has the size of its usage, unless it failed (`getContextUsage` of pi). */
  answered({ usage, stopReason }: Readonly<Record<string, unknown>>): void {
    this.add(usage);
    if (stopReason === "aborted" || stopReason === "error") return;
    const tokens = contextTokens(usage);
    if (tokens > 0) this.#used = tokens;
  }

  /** After a compaction pi does not know the size until the next answer. `estimate`: pi's own, in tokens. */
  compacted(usage: unknown, estimate?: unknown): void {
    this.add(usage);
    this.#used = isCount(estimate) ? Math.round(estimate) : undefined;
  }

  /** Undefined: pi does not know the size of the context, or of the model's window. */
  update(contextSize: number | undefined): SessionUpdate | undefined {
    if (this.#used === undefined || !isCount(contextSize) || contextSize === 0) return undefined;
    const cost = { amount: this.#cost, currency: "USD" };
    return { sessionUpdate: "usage_update", used: this.#used, size: Math.round(contextSize), cost };
  }
}

/** Prompts are answered soon after the end of their runs. */
const maxKeptRuns = 8;
const tokenKinds = ["input", "output", "cacheRead", "cacheWrite"] as const;

/** What the answers of a run have used: tokens by kind, and US dollars. */
export interface RunUsage {
  readonly usage: Readonly<Record<(typeof tokenKinds)[number], number>>;
  readonly cost: number;
}

const noUsage: RunUsage = { usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }, cost: 0 };

/**
 * The usage of a session's newest runs. The daemon reports the start and the end of a run when they are stored, which can be
 * after the first events of the next run: what belongs to which run follows from pi's own events.
 */
export class RunUsages {
  /** Of the runs that have ended by pi's events, with the clock times of that, and whose end the daemon has not reported. */
  readonly #unclaimed: { readonly usage: RunUsage; readonly endedAtMs: number }[] = [];
  readonly #ended = new Map<string, RunUsage>();
  #current = noUsage;
  /** The newest run by pi's events. */
  #run: "none" | "running" | "over" = "none";
  /** Of the pi whose events come. */
  #generation = 0;
  /** Whether pi's agent works. It can then report `agent_settled` for a run that did not begin (pi 0.87.1). */
  #isActive = false;
  #newestAtMs = 0;
  #endedAtMs = 0;

  /** The next event of pi. */
  event({ event: { type }, generation, at }: Pick<Envelope, "event" | "generation" | "at">): void {
    if (generation > this.#generation) {
      this.#generation = generation;
      this.#isActive = false;
      this.#over();
    }
    this.#newestAtMs = at;
    if (type === "agent_end") this.#isActive = false;
    else if (type === "agent_settled" && !this.#isActive) this.#over();
    else if (type === "agent_start") {
      this.#isActive = true;
      this.#begin();
    }
  }

  /** An answer of the model has this usage, which is unchecked. */
  answered(usage: unknown): void {
    this.#begin();
    this.#current = withAnswer(this.#current, usage);
  }

  /** The daemon reports the end of a run. */
  ended({ runId, startedAt }: Pick<NotificationParams<"run/ended">, "runId" | "startedAt">): void {
    // The end of an earlier run was lost.
    while ((this.#unclaimed[0]?.endedAtMs ?? startedAt) < startedAt) this.#unclaimed.shift();
    this.#ended.set(runId, this.of(runId));
    const [oldest] = this.#ended.keys();
    if (this.#ended.size > maxKeptRuns && oldest !== undefined) this.#ended.delete(oldest);
    if (this.#unclaimed.shift() !== undefined) return;
    this.#current = noUsage;
    this.#run = "none";
  }

  /** The usage of a run, if it is the one whose end is reported next, or one of the last that have ended. */
  of(runId: string): RunUsage {
    return this.#ended.get(runId) ?? this.#unclaimed[0]?.usage ?? this.#current;
  }

  #begin(): void {
    if (this.#run === "over") {
      this.#unclaimed.push({ usage: this.#current, endedAtMs: this.#endedAtMs });
      if (this.#unclaimed.length > maxKeptRuns) this.#unclaimed.shift();
      this.#current = noUsage;
    }
    this.#run = "running";
  }

  #over(): void {
    if (this.#run !== "running") return;
    this.#run = "over";
    this.#endedAtMs = this.#newestAtMs;
  }
}

/** With an answer's usage added. */
function withAnswer({ usage: former, cost: spent }: RunUsage, added: unknown): RunUsage {
  if (!isRecord(added)) return { usage: former, cost: spent };
  const total = isRecord(added["cost"]) ? added["cost"]["total"] : undefined;
  const tokens = tokenKinds.map((kind) => {
    const more = added[kind];
    return [kind, former[kind] + (isCount(more) ? more : 0)] as const;
  });
  return {
    usage: Object.fromEntries(tokens) as RunUsage["usage"],
    cost: spent + (typeof total === "number" && Number.isFinite(total) ? total : 0),
  };
}

function contextTokens(usage: unknown): number {
  if (!isRecord(usage)) return 0;
  const { totalTokens, input, output, cacheRead, cacheWrite } = usage;
  if (isCount(totalTokens) && totalTokens > 0) return Math.round(totalTokens);
  return [input, output, cacheRead, cacheWrite].filter(isCount).reduce((sum, tokens) => sum + tokens, 0);
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value <= Number.MAX_SAFE_INTEGER;
}
