import type { ContextOption, ContextSummary } from "../../../protocol/context-option.ts";
import { type ErrorName, WireError } from "../../../protocol/errors.ts";
import type { PreparedFacts } from "./work.ts";

// What is said of contexts: to which sessions they are for, what they have come to, and why there is none.

/** What of a context can be wrong: with `onError: "warn"` the session starts without it. */
const contextFailures: ReadonlySet<ErrorName> = new Set<ErrorName>([
  "invalid_params",
  "forbidden",
  "context_invalid",
  "context_too_large",
  "context_over_budget",
  "context_mode_conflict",
  "context_transport_failed",
  "entry_not_found",
  "session_not_found",
  "session_lost",
  "session_closed",
  "child_exited",
]);

/** Whether a session may start without its context, behind this error of it. */
export function mayStartWithout(option: ContextOption | undefined, error: unknown): error is WireError {
  return option?.onError === "warn" && error instanceof WireError && contextFailures.has(error.kind);
}

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

export function oneOf(method: string, ...names: readonly string[]): WireError {
  return new WireError("invalid_params", `${method} takes exactly one of ${names.join(" and ")}.`, {
    findings: [{ path: "", message: `must have exactly one of ${names.join(", ")}` }],
  });
}

export function onlyWithContext(name: string): WireError {
  return new WireError("invalid_params", `context/inspect takes ${name} with context alone, and not with sessionId.`, {
    findings: [{ path: `/${name}`, message: "is only for context" }],
  });
}

export function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
}
