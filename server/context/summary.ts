import type { ContextOption, ContextSummary } from "../../protocol/context-option.ts";
import { WireError } from "../../protocol/errors.ts";
import type { PreparedFacts } from "./work.ts";

/** Throws `context_mode_conflict`. */
export function modeOf({ mode = "auto" }: ContextOption, ephemeral: boolean): ContextSummary["mode"] {
  const own = ephemeral ? "ephemeral" : "session";
  if (mode === "auto" || mode === own) return own;
  const needs = mode === "ephemeral" ? "created with ephemeral: true" : "that has a file: one without ephemeral: true";
  throw new WireError("context_mode_conflict", `Mode "${mode}" needs a session ${needs}.`, { mode });
}

export function summaryOf(mode: ContextSummary["mode"], facts: PreparedFacts): ContextSummary {
  const { counts, tokens, dropped, warnings, hash, messages } = facts;
  const { pairs, repairs, notes, nodes, items } = counts;
  return {
    ...{ mode, nodes, items, messages, pairs, tokens, dropped, hash },
    repairs: repairs as ContextSummary["repairs"],
    ...(notes === undefined ? {} : { notes: notes as NonNullable<ContextSummary["notes"]> }),
    warnings: [...warnings],
  };
}
