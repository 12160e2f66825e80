import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { HostPort } from "../../../extension/engine-port.ts";
import { defaultOptimisation, type OptimisationConfig } from "../../../protocol/optimisation/config.ts";
import type { PartReport } from "../../../protocol/optimisation/report.ts";
import type { CacheRule } from "../cache/cache-rule.ts";
import type { CompactionAdviser } from "../compaction/advice.ts";
import type { TokenEstimator } from "../estimator/estimator.ts";
import type { RequestEntries } from "../map/request-entries.ts";
import type { Recall } from "../recall/recall.ts";

export type PartName = keyof OptimisationConfig;
type Reporter = (ctx: ExtensionContext) => Omit<PartReport, "enabled" | "state" | "reason">;

/** The services that the parts of the optimisation share. */
export interface PartContext extends HostPort {
  /** The current configuration; it can change between two requests. */
  readonly config: () => OptimisationConfig;
  readonly estimator: TokenEstimator;
  readonly cacheRule: CacheRule;
  /** Access to content that was removed from the context. */
  readonly recall: Recall;
  /** Maps the messages of a request to entries. */
  readonly entries: RequestEntries;
  /** Rendered sizes, if a part shows less than the branch contains. */
  readonly compactionAdvice: CompactionAdviser;
  /** Registers a part's report for `optimisation/inspect`. */
  inspect(part: PartName, report: Reporter): void;
  /** Notifies, once for each reason, that a part is degraded. */
  degraded(part: PartName, reason: string, figures?: Readonly<Record<string, number>>): void;
  /** Marks a part as working again, so that the next reason is reported again. */
  restored(part: PartName): void;
}

/** The current configuration of a session's parts. */
export function configOf({ memory }: Pick<HostPort, "memory">): OptimisationConfig {
  return memory.parts?.optimisation ?? defaultOptimisation;
}

/** Reported reasons of one part. */
const maxReasons = 32;

/** The reports and degradations of the parts. */
export class PartStates {
  readonly #host: HostPort;
  readonly #reporters = new Map<PartName, Reporter>();
  /** Those of a part that were told since it was restored, the newest last. */
  readonly #reasons = new Map<PartName, Set<string>>();

  constructor(host: HostPort) {
    this.#host = host;
  }

  inspect(part: PartName, report: Reporter): void {
    this.#reporters.set(part, report);
  }

  degraded(part: PartName, reason: string, figures?: Readonly<Record<string, number>>): void {
    const reasons = this.#reasons.get(part) ?? new Set();
    this.#reasons.set(part, reasons);
    const isTold = reasons.delete(reason);
    if (!isTold && reasons.size >= maxReasons) return;
    reasons.add(reason);
    if (isTold) return;
    this.#host.notify("optimisation/degraded", { part, reason, ...(figures === undefined ? {} : { figures }) });
  }

  restored(part: PartName): void {
    this.#reasons.delete(part);
  }

  report(part: PartName, ctx: ExtensionContext): PartReport {
    const { enabled } = configOf(this.#host)[part];
    const reason = [...(this.#reasons.get(part) ?? [])].at(-1);
    if (!enabled) return { enabled, state: "off", ...nothing };
    const state = reason === undefined ? "on" : "degraded";
    return { enabled, state, ...(reason === undefined ? {} : { reason }), ...this.#said(part, ctx) };
  }

  /** The figures of a part, on or off. */
  figures(part: PartName, ctx: ExtensionContext): PartReport["figures"] {
    return this.#said(part, ctx).figures;
  }

  #said(part: PartName, ctx: ExtensionContext): ReturnType<Reporter> {
    try {
      return this.#reporters.get(part)?.(ctx) ?? nothing;
    } catch (thrown) {
      this.#host.fault(`inspect/${part}`, thrown, part);
      return nothing;
    }
  }
}

const nothing = { savedTokens: 0, savedUsd: 0, spentTokens: 0, spentUsd: 0, figures: {} } as const;
