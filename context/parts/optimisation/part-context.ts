import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { Places } from "../../../extension/engine-port.ts";
import { defaultOptimisation, type OptimisationConfig } from "../../../protocol/optimisation/config.ts";
import type { PartReport } from "../../../protocol/optimisation/report.ts";
import type { CacheRule } from "../cache/cache-rule.ts";
import type { CompactionAdviser } from "../compaction/advice.ts";
import type { TokenEstimator } from "../estimator/estimator.ts";
import type { RequestEntries } from "../map/request-entries.ts";
import type { Recall } from "../recall/recall.ts";

export type PartName = keyof OptimisationConfig;
type Reporter = (ctx: ExtensionContext) => Omit<PartReport, "enabled" | "state" | "reason">;

/** What the parts of the optimisation share. */
export interface PartContext extends Places {
  /** As it is now: it may change between two requests. */
  readonly config: () => OptimisationConfig;
  readonly estimator: TokenEstimator;
  readonly cacheRule: CacheRule;
  /** The way back to what has left the context. */
  readonly recall: Recall;
  /** Which entries the messages of a request come from. */
  readonly entries: RequestEntries;
  /** Where it is said that less is shown of a context than stands on the branch. */
  readonly compactionAdvice: CompactionAdviser;
  /** What a part says of itself in `optimisation/inspect`. */
  inspect(part: PartName, report: Reporter): void;
  /** Tells, once for each reason, that a part does less than it should. */
  degraded(part: PartName, reason: string, figures?: Readonly<Record<string, number>>): void;
  /** It does what it should again: the next reason is told again. */
  restored(part: PartName): void;
}

/** The configuration by which a session's parts go now. */
export function configOf({ memory }: Pick<Places, "memory">): OptimisationConfig {
  return memory.parts?.optimisation ?? defaultOptimisation;
}

/** Reasons of one part that are told. */
const maxReasons = 32;

/** What parts say of themselves, and that they are degraded. */
export class PartStates {
  readonly #places: Places;
  readonly #reporters = new Map<PartName, Reporter>();
  /** Those of a part that were told since it was restored, the newest last. */
  readonly #reasons = new Map<PartName, Set<string>>();

  constructor(places: Places) {
    this.#places = places;
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
    this.#places.notify("optimisation/degraded", { part, reason, ...(figures === undefined ? {} : { figures }) });
  }

  restored(part: PartName): void {
    this.#reasons.delete(part);
  }

  report(part: PartName, ctx: ExtensionContext): PartReport {
    const { enabled } = configOf(this.#places)[part];
    const reason = [...(this.#reasons.get(part) ?? [])].at(-1);
    if (!enabled) return { enabled, state: "off", ...nothing };
    const state = reason === undefined ? "on" : "degraded";
    return { enabled, state, ...(reason === undefined ? {} : { reason }), ...this.#said(part, ctx) };
  }

  /** What a part counts, whether it is on or not. */
  figures(part: PartName, ctx: ExtensionContext): PartReport["figures"] {
    return this.#said(part, ctx).figures;
  }

  #said(part: PartName, ctx: ExtensionContext): ReturnType<Reporter> {
    try {
      return this.#reporters.get(part)?.(ctx) ?? nothing;
    } catch (thrown) {
      this.#places.fault(`inspect/${part}`, thrown, part);
      return nothing;
    }
  }
}

const nothing = { savedTokens: 0, savedUsd: 0, spentTokens: 0, spentUsd: 0, figures: {} } as const;
