import type { LogNotification } from "../client/index.ts";
import { wildcardOf } from "../protocol/glob.ts";

/** The wanted notifications of a session's log; undefined: all except the high-rate events. */
export interface Wanted {
  /** Names of notifications, or prefixes of names. */
  readonly names: readonly string[];
  /** Types of pi's events. */
  readonly events: ReadonlySet<string>;
}

const highRate: ReadonlySet<string> = new Set(["message_update", "tool_execution_update", "bash_execution_update"]);

export function isHighRate(type: string): boolean {
  return highRate.has(type);
}

/** Parses --filter: names with a slash are notifications, others are events. */
export function wantedOf(items: readonly string[]): Wanted {
  const isName = (item: string): boolean => item.includes("/");
  return {
    names: items.filter(isName),
    events: new Set(items.filter((item) => !isName(item))),
  };
}

/** A gap is always shown; otherwise the missing part would go unnoticed. */
export function allows(wanted: Wanted | undefined, { name, params }: LogNotification): boolean {
  const type = name === "session/event" ? params.event.type : undefined;
  if (name === "session/gap") return params.onlyDeltas !== true || wanted?.events.has("message_update") === true;
  if (wanted === undefined) return type === undefined || !isHighRate(type);
  if (type !== undefined && wanted.events.has(type)) return true;
  const named = wanted.names.some((item) => wildcardOf(item)(name));
  return named && (type === undefined || !isHighRate(type));
}
