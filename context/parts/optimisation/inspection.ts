import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { HostPort } from "../../../extension/engine-port.ts";
import type { Result } from "../../../protocol/methods.ts";
import { defaultOptimisation } from "../../../protocol/optimisation/config.ts";
import type { PartReport } from "../../../protocol/optimisation/report.ts";
import { Counter } from "../estimator/counts.ts";
import type { TokenEstimator } from "../estimator/estimator.ts";
import { dot, Factors } from "../estimator/factors.ts";
import { configOf, type PartName } from "./part-states.ts";
import { type WindowSources, windowContent } from "./window.ts";

type Inspected = Result<"optimisation/inspect">;
type InspectedHost = Pick<HostPort, "pi" | "memory">;
type Masked = Inspected["window"]["masked"][number];

/** The sources of the report on the window and the parts. */
export interface InspectionSources extends WindowSources {
  /** The report of a part. */
  report(part: PartName, ctx: ExtensionContext): PartReport;
  /** The figures of a part, on or off. */
  figures(part: PartName, ctx: ExtensionContext): PartReport["figures"];
  /** Removed content that can be recalled, oldest first. */
  masked?(ctx: ExtensionContext): readonly Masked[];
}

const maxMasked = 1_000;
const maxLargest = 20;

/** The answer to `optimisation/inspect`. */
export function inspection(host: InspectedHost, sources: InspectionSources, ctx: ExtensionContext): Inspected {
  const parts = Object.keys(defaultOptimisation) as PartName[];
  const { errorMedian, errorP95, predictions } = sources.figures("estimator", ctx);
  const isKnown = typeof errorMedian === "number" && typeof errorP95 === "number" && typeof predictions === "number";
  return {
    // The cast is safe: it is only serialized as JSON.
    configuration: configOf(host.memory) as Inspected["configuration"],
    parts: Object.fromEntries(parts.map((part) => [part, sources.report(part, ctx)])),
    ...(isKnown && {
      estimatorError: { median: errorMedian * 100, p95: errorP95 * 100, responses: predictions },
    }),
    window: windowOf(host, sources, ctx),
  };
}

/** The answer in a pi without enabled parts; registers none. */
export function bareInspection(host: InspectedHost, ctx: ExtensionContext): Inspected {
  const off = { enabled: false, state: "off", savedTokens: 0, savedUsd: 0, spentTokens: 0, spentUsd: 0 } as const;
  const estimator = unlearntEstimator();
  return inspection(host, { estimator, report: () => ({ ...off, figures: {} }), figures: () => ({}) }, ctx);
}

function windowOf(host: InspectedHost, sources: InspectionSources, ctx: ExtensionContext): Inspected["window"] {
  const content = windowContent(host, sources, ctx);
  const masked = (sources.masked?.(ctx) ?? []).slice(-maxMasked);
  // If pi does not know the window of a model, it is 0.
  const { contextWindow = 0 } = ctx.model ?? {};
  return {
    tokens: contextWindow > 0 ? contextWindow : null,
    used: content.used,
    byKind: content.byKind(),
    largest: content.largest(maxLargest),
    masked: masked.map(({ recallId, tool, tokens, part }) => ({ recallId, tool, tokens: Math.ceil(tokens), part })),
  };
}

const remembered = 256;

/** An estimator with the factors of an unknown model, for inspection without a running part. */
function unlearntEstimator(): Pick<TokenEstimator, "text" | "message"> {
  const counter = new Counter(remembered);
  const factors = new Factors(() => 1).of("");
  const { imageTokens } = defaultOptimisation.estimator;
  return {
    text: (text) => Math.ceil(dot(counter.text(text), factors)),
    message: (given) => {
      const { counts, images } = counter.message(given);
      return Math.ceil(dot(counts, factors) + images * imageTokens);
    },
  };
}
