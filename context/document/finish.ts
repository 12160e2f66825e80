import { createHash } from "node:crypto";
import { WireError } from "../../protocol/errors.ts";
import type { BuiltMessage } from "../../protocol/link-context.ts";
import { buildMessages } from "./build.ts";
import type { ContextWarning, PreparedContext } from "./built.ts";
import { requireSound } from "./built-check.ts";
import { capToolResults } from "./cap.ts";
import type { ContextItem, ContextSource, ContextTarget, Repair, RepairCode } from "./document.ts";
import { flattenedTokens } from "./estimate.ts";
import type { NoteCounts } from "./export-notes.ts";
import { fitContext } from "./fit.ts";
import { contextBudget, type PrepareOptions } from "./options.ts";

/** Facts about a repaired context, other than its items. */
export interface Repaired {
  readonly items: readonly ContextItem[];
  /** Number of nodes of the document. */
  readonly nodes: number;
  readonly repairs: RepairLog;
  /** Notes about entries of a pi tree left out before the repair. */
  readonly notes?: NoteCounts;
  readonly source?: ContextSource;
  readonly nodeId?: string;
}

export interface RepairLog {
  readonly listed: readonly Repair[];
  readonly counts: Readonly<Partial<Record<RepairCode, number>>>;
}

/** Caps tool results, fits the items into the budget, and builds the messages. */
export function finishContext(repaired: Repaired, options: PrepareOptions, target: ContextTarget): PreparedContext {
  const { nodes, repairs, notes = {}, source, nodeId } = repaired;
  const capped = capToolResults(repaired.items, options.toolResults ?? {});
  const budget = options.budget === undefined ? contextBudget(options.maxTokens, target) : options.budget;
  const {
    items,
    tokens: structured,
    dropped,
  } = fitContext(capped, { budget, onOverflow: options.onOverflow ?? "trim" });
  if (items.length === 0) {
    throw new WireError("context_invalid", "No item of the document is left for the model.", {
      code: "nothing_selected",
    });
  }
  const built = buildMessages(items, target);
  requireSound(built.messages);
  const flattened = flattenedTokens(items, structured);
  const warnings: readonly ContextWarning[] = [
    ...(budget !== null && structured > budget ? ["above_threshold" as const] : []),
    ...((repairs.counts.foreign_reasoning ?? 0) > 0 ? ["reasoning_dropped" as const] : []),
  ];
  return {
    items,
    ...built,
    counts: {
      nodes,
      items: items.length,
      pairs: items.filter(({ role }) => role === "toolResult").length,
      repairs: repairs.counts,
      ...(Object.keys(notes).length === 0 ? {} : { notes }),
    },
    repairs: repairs.listed,
    tokens: { structured, flattened, saved: flattened - structured },
    dropped,
    warnings,
    hash: contextHash(built.messages, built.instructions),
    ...(source === undefined ? {} : { source }),
    ...(nodeId === undefined ? {} : { nodeId }),
    budget,
  };
}

/** SHA-256 in hex of `JSON.stringify({ messages, instructions })`, without building that text. */
export function contextHash(messages: readonly BuiltMessage[], instructions?: string): string {
  const hash = createHash("sha256").update('{"messages":[');
  for (const [index, message] of messages.entries()) {
    if (index > 0) hash.update(",");
    hash.update(JSON.stringify(message));
  }
  hash.update("]");
  if (instructions !== undefined) hash.update(`,"instructions":${JSON.stringify(instructions)}`);
  return hash.update("}").digest("hex");
}
