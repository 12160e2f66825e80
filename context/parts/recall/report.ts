import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { PartReport } from "../../../protocol/optimisation/report.ts";
import { cachePrices } from "../cache/prices.ts";
import type { Recall } from "./recall.ts";

const perMillion = 1_000_000;

/** The report of a part that removes content: the amount removed, and its savings and costs. */
export function recallReport(
  { recall }: { readonly recall: Recall },
  part: string,
  ctx: ExtensionContext,
): Omit<PartReport, "enabled" | "state" | "reason"> {
  const { sessionManager, model } = ctx;
  const gone = recall.masked(ctx).filter((one) => one.part === part);
  const savedTokens = gone.reduce((sum, { tokens, requests }) => sum + tokens * requests, 0);
  const batches = recall.registry.batches(sessionManager).filter((batch) => batch.part === part);
  const price = cachePrices(model?.cost, 0)?.read ?? model?.cost.input ?? 0;
  return {
    savedTokens,
    savedUsd: (savedTokens * price) / perMillion,
    spentTokens: batches.reduce((sum, { cost }) => sum + cost.tokens, 0),
    spentUsd: batches.reduce((sum, { cost }) => sum + cost.usd, 0),
    figures: {
      outputs: gone.length,
      tokens: gone.reduce((sum, { tokens }) => sum + tokens, 0),
      batches: batches.length,
      recalls: recall.asked(ctx),
    },
  };
}
