import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { Kept } from "../../extension/memory.ts";
import { isRecord } from "../../protocol/objects.ts";
import { EntryFold } from "../folds.ts";
import type { AuditMemory } from "../parts/cache/auditor.ts";
import type { CacheLedger } from "../parts/cache/cache-ledger.ts";
import type { PruningServices } from "./pruning-services.ts";
import { strategyNames } from "./strategies/removal.ts";
import { blocksPart } from "./strategies/strategies.ts";

/** Provider cache losses caused by pruning. */
export interface CacheLosses {
  readonly misses: number;
  readonly tokens: number;
  readonly usd: number;
}

/** `customType` of the entries that persist the measurements across processes. */
const LOSSES_MARK = "pi-rpcd.pruning-losses";

const part = "pruning-losses";
/** Tokens or dollars. A larger hand-edited value could overflow sums. */
const maxAmount = 1_000_000_000;
const maxLives = 100_000;
const parts: readonly string[] = [...strategyNames, blocksPart];

/** Writes measurements at boundaries. Returns a function that sums the measurements of all processes. */
export function createCacheLosses(
  host: Pick<PruningServices, "boundary" | "recall">,
  audit: Kept<AuditMemory>,
): (ctx: ExtensionContext) => CacheLosses | undefined {
  const written = new EntryFold<Map<string, CacheLosses>>(
    () => new Map(),
    (sum, entry) => {
      if (entry.type !== "custom" || entry.customType !== LOSSES_MARK || sum.size >= maxLives) return;
      const { data } = entry;
      if (!isRecord(data) || data["v"] !== 1 || typeof data["life"] !== "string" || data["life"].length > 64) return;
      const { misses, tokens, usd } = data;
      sum.set(data["life"], { misses: Math.floor(amount(misses)), tokens: amount(tokens), usd: amount(usd) });
    },
  );
  // Each ledger covers one process. Its entries contain running sums, so the newest entry counts.
  // The previous session's ledger stays in memory until the first request of this session.
  const ledgerOf = ({ sessionManager }: ExtensionContext): CacheLedger | undefined => {
    const { value } = audit;
    return value?.sessionId === sessionManager.getSessionId() ? value.ledger : undefined;
  };
  const hasPruned = ({ sessionManager }: ExtensionContext): boolean =>
    host.recall.registry.batches(sessionManager).some((batch) => parts.includes(batch.part));
  host.boundary.contribute(part, ({ ctx }) => {
    const ledger = ledgerOf(ctx);
    if (ledger === undefined) return undefined;
    const { id } = ledger;
    const measured = measuredLosses(ledger);
    // A zero is worth recording only if pruning has changed something.
    if (measured.misses === 0 && !hasPruned(ctx)) return undefined;
    if (written.of(ctx.sessionManager).get(id)?.misses === measured.misses) return undefined;
    return { drafts: [{ type: "custom", customType: LOSSES_MARK, data: { v: 1, life: id, ...measured } }] };
  });
  return (ctx) => {
    const all = new Map(written.of(ctx.sessionManager));
    const ledger = ledgerOf(ctx);
    if (ledger !== undefined) all.set(ledger.id, measuredLosses(ledger));
    if (all.size === 0) return undefined;
    const sum = { misses: 0, tokens: 0, usd: 0 };
    for (const { misses, tokens, usd } of all.values()) {
      sum.misses += misses;
      sum.tokens += tokens;
      sum.usd += usd;
    }
    return sum;
  };
}

/** Losses measured by the auditor of this process. */
function measuredLosses(ledger: CacheLedger): CacheLosses {
  const { causes } = ledger.report();
  const sum = { misses: 0, tokens: 0, usd: 0 };
  for (const name of parts) {
    const { count = 0, missedTokens = 0, missedUsd = 0 } = causes[`edit:${name}`] ?? {};
    sum.misses += count;
    sum.tokens += missedTokens;
    sum.usd += missedUsd;
  }
  return sum;
}

function amount(value: unknown): number {
  return typeof value === "number" && value > 0 && value <= maxAmount ? value : 0;
}
