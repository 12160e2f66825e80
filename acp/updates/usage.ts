import type { SessionUpdate } from "@agentclientprotocol/sdk";
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

const tokenKinds = ["input", "output", "cacheRead", "cacheWrite"] as const;

/** What the answers of a run have used: tokens by kind, and US dollars. */
export interface RunUsage {
  readonly usage: Readonly<Record<(typeof tokenKinds)[number], number>>;
  readonly cost: number;
}

export const noUsage: RunUsage = { usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }, cost: 0 };

/** With an answer's usage added. It is unchecked. */
export function withAnswer({ usage: former, cost: spent }: RunUsage, added: unknown): RunUsage {
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
