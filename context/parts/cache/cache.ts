import { AskRefused } from "../../../extension/engine-port.ts";
import type { PartContext } from "../optimisation/part-context.ts";
import { Auditor, keptAudit } from "./auditor.ts";
import { CacheLedger } from "./cache-ledger.ts";
import { withSoundMarks } from "./marks.ts";
import { withSortedTools } from "./sort-tools.ts";

const part = "cache";

/**
 * Reports why the provider's cache is lost, and keeps payloads stable: sorts tools by name, and places cache marks where
 * the next request can use them.
 */
export function addCache(host: PartContext): void {
  const { pipeline, memory, cacheRule } = host;
  const { changes } = cacheRule;
  const audit = keptAudit(memory);
  const config = () => host.config().cache;
  const isAuditing = (): boolean => config().enabled && config().audit;
  // Without auditing, only pruning's cache losses are measured, for its statistics; nothing is reported.
  const isMeasuring = (): boolean => isAuditing() || memory.parts?.pruning?.enabled === true;
  const auditor = new Auditor({
    audit,
    changes,
    noiseTokens: () => config().noiseTokens,
    broken: (broken) => {
      if (isAuditing()) host.notify("cache/broken", broken);
    },
    varies: (section) => {
      if (!isAuditing() || !config().warnVolatile || audit.value?.ledger.varies(section) !== true) return;
      host.degraded(part, `The section "${section.slice(0, 128)}" of the prompt varies from request to request.`);
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

  host.answer("cache/report", () => {
    if (!isAuditing()) throw new AskRefused("unsupported_by_pi", `The part "${part}" is off in this session.`);
    return (audit.value?.ledger ?? new CacheLedger()).report();
  });
  host.inspect(part, () => {
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
