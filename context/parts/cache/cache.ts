import { AskRefused, type HostPort } from "../../../extension/engine-port.ts";
import type { Kept } from "../../../extension/memory.ts";
import type { OptimisationConfig } from "../../../protocol/optimisation/config.ts";
import type { PartStatus } from "../optimisation/part-states.ts";
import { type AuditMemory, Auditor } from "./auditor.ts";
import { CacheLedger } from "./cache-ledger.ts";
import type { CacheRule } from "./cache-rule.ts";
import { editPrices } from "./edit-history.ts";
import { withSoundMarks } from "./marks.ts";
import { withSortedTools } from "./sort-tools.ts";

const part = "cache";

export interface CacheNeeds {
  readonly config: () => OptimisationConfig["cache"];
  /** Whether pruning needs measurements for its statistics. */
  readonly isPruning: () => boolean;
  readonly audit: Kept<AuditMemory>;
  readonly changes: CacheRule["changes"];
  readonly notify: HostPort["notify"];
  readonly status: PartStatus;
}

/**
 * Reports why the provider's cache is lost, and keeps payloads stable: sorts tools by name, and places cache marks where
 * the next request can use them.
 */
export function addCache({ pipeline, answer }: Pick<HostPort, "pipeline" | "answer">, needs: CacheNeeds): void {
  const { config, audit, changes, status } = needs;
  const isAuditing = (): boolean => config().enabled && config().audit;
  // Without auditing, only pruning's cache losses are measured, for its statistics; nothing is reported.
  const isMeasuring = (): boolean => isAuditing() || needs.isPruning();
  const auditor = new Auditor({
    audit,
    changes,
    noiseTokens: () => config().noiseTokens,
    broken: (broken) => {
      if (isAuditing()) needs.notify("cache/broken", broken);
    },
    varies: (section) => {
      if (!isAuditing() || !config().warnVolatile || audit.value?.ledger.varies(section) !== true) return;
      status.degraded(`The section "${section.slice(0, 128)}" of the prompt varies from request to request.`);
    },
  });

  pipeline.use(
    "context_with_system",
    "audit",
    (messages, ctx) => (isMeasuring() ? auditor.listed(messages, ctx) : auditor.forget()),
    part,
  );
  pipeline.use(
    "before_provider_request",
    "tools",
    (payload) => (config().enabled && config().sortTools ? withSortedTools(payload) : undefined),
    part,
  );
  pipeline.use(
    "before_provider_request",
    "marks",
    (payload) =>
      config().enabled ? withSoundMarks(payload, (message) => changes.isPassingMessage(message)) : undefined,
    part,
  );
  pipeline.use(
    "before_provider_request",
    "audit",
    (payload, ctx) => (isMeasuring() ? auditor.sent(payload, ctx) : undefined),
    part,
  );
  pipeline.use(
    "message_end",
    "learn",
    (message, ctx) => (isMeasuring() ? auditor.answered(message, ctx) : undefined),
    part,
  );

  answer("cache/report", (_params, ctx) => {
    if (!isAuditing()) throw new AskRefused("unsupported_by_pi", `The part "${part}" is off in this session.`);
    return { ...(audit.value?.ledger ?? new CacheLedger()).report(), edits: editPrices(ctx) };
  });
  status.inspect(() => {
    const { causes, recent: _recent, volatile, ...figures } = (audit.value?.ledger ?? new CacheLedger()).report();
    const losses = Object.values(causes);
    return {
      savedTokens: 0,
      savedUsd: 0,
      spentTokens: 0,
      spentUsd: 0,
      figures: {
        ...figures,
        broken: losses.reduce((sum, { count }) => sum + count, 0),
        missedTokens: losses.reduce((sum, { missedTokens }) => sum + missedTokens, 0),
        missedUsd: losses.reduce((sum, { missedUsd }) => sum + missedUsd, 0),
        volatileSections: volatile.length,
      },
    };
  });
}
