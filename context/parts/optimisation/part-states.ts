import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { HostPort } from "../../../extension/engine-port.ts";
import type { Memory } from "../../../extension/memory.ts";
import { defaultOptimisation, type OptimisationConfig } from "../../../protocol/optimisation/config.ts";
import type { PartReport } from "../../../protocol/optimisation/report.ts";

export type PartName = keyof OptimisationConfig;
export type Reporter = (ctx: ExtensionContext) => Omit<PartReport, "enabled" | "state" | "reason">;

/** A part's report about itself. */
export interface PartStatus {
  /** Registers the report for `optimisation/inspect`. */
  inspect(report: Reporter): void;
  /** Notifies, once for each reason, that the part is degraded. */
  degraded(reason: string, figures?: Readonly<Record<string, number>>): void;
  /** Marks the part as working again, so that the next reason is reported again. */
  restored(): void;
}

/** The current configuration of a session's parts. */
export function configOf({ parts }: Pick<Memory, "parts">): OptimisationConfig {
  return parts?.optimisation ?? defaultOptimisation;
}

/** Reported reasons of one part. */
const maxReasons = 32;

interface PartStatesOptions {
  readonly config: () => OptimisationConfig;
  readonly notify: HostPort["notify"];
  readonly fault: HostPort["fault"];
}

/** The reports and degradations of the parts. */
export class PartStates {
  readonly #options: PartStatesOptions;
  readonly #reporters = new Map<PartName, Reporter>();
  /** Reasons of each part since it was restored, newest last. */
  readonly #reasons = new Map<PartName, Set<string>>();

  constructor(options: PartStatesOptions) {
    this.#options = options;
  }

  /** The status of one part. */
  of(part: PartName): PartStatus {
    return {
      inspect: (report) => void this.#reporters.set(part, report),
      degraded: (reason, figures) => this.#degraded(part, reason, figures),
      restored: () => void this.#reasons.delete(part),
    };
  }

  #degraded(part: PartName, reason: string, figures: Readonly<Record<string, number>> | undefined): void {
    const reasons = this.#reasons.get(part) ?? new Set();
    this.#reasons.set(part, reasons);
    const isTold = reasons.delete(reason);
    if (!isTold && reasons.size >= maxReasons) return;
    reasons.add(reason);
    if (isTold) return;
    this.#options.notify("optimisation/degraded", { part, reason, ...(figures === undefined ? {} : { figures }) });
  }

  report(part: PartName, ctx: ExtensionContext): PartReport {
    const { enabled } = this.#options.config()[part];
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
      this.#options.fault(`inspect/${part}`, thrown, part);
      return nothing;
    }
  }
}

const nothing = { savedTokens: 0, savedUsd: 0, spentTokens: 0, spentUsd: 0, figures: {} } as const;
