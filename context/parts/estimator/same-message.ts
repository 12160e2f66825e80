import type { AgentMessage } from "../../../extension/pi-types.ts";
import { isRecord } from "../../../protocol/objects.ts";

/** Sent fields of messages other than their content. */
const sentFields: Readonly<Partial<Record<AgentMessage["role"], readonly string[]>>> = {
  system: ["sections", "toolsAdded"],
  compactionSummary: ["summary"],
  branchSummary: ["summary"],
  bashExecution: ["command", "output", "fullOutputPath", "excludeFromContext"],
};

/** Deeper values count as different. */
const maxDepth = 64;

type Fields = Readonly<Record<string, unknown>>;

/**
 * Replaces messages by equal known ones at the same index, because pi copies the whole context for each request and
 * counts are cached per object.
 */
export function withKnown(messages: readonly AgentMessage[], known: readonly AgentMessage[]): readonly AgentMessage[] {
  return messages.map((message, at) => {
    const before = known[at];
    return before !== undefined && saysTheSame(before, message) ? before : message;
  });
}

/** Messages that are not the same object at the same index of the other list. */
export function unpaired(
  before: readonly AgentMessage[],
  after: readonly AgentMessage[],
): { readonly gone: readonly AgentMessage[]; readonly come: readonly AgentMessage[] } {
  return {
    gone: before.filter((message, at) => message !== after[at]),
    come: after.filter((message, at) => message !== before[at]),
  };
}

function saysTheSame(a: AgentMessage, b: AgentMessage): boolean {
  if (a === b) return true;
  if (a.role !== b.role || !isSameContent((a as unknown as Fields)["content"], (b as unknown as Fields)["content"]))
    return false;
  const more = sentFields[a.role];
  return (
    more === undefined ||
    more.every((name) => isSame((a as unknown as Fields)[name], (b as unknown as Fields)[name], 0))
  );
}

/** Compares texts directly, because most blocks are texts. */
function isSameContent(a: unknown, b: unknown): boolean {
  if (!Array.isArray(a) || !Array.isArray(b)) return isSame(a, b, 0);
  if (a.length !== b.length) return false;
  for (let at = 0; at < a.length; at += 1) {
    const [one, other]: readonly [unknown, unknown] = [a[at], b[at]];
    if (isRecord(one) && isRecord(other) && one["type"] === "text" && other["type"] === "text") {
      if (one["text"] !== other["text"]) return false;
    } else if (!isSame(one, other, 0)) return false;
  }
  return true;
}

function isSame(a: unknown, b: unknown, depth: number): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null || depth > maxDepth) return false;
  if (Array.isArray(a)) {
    if (!Array.isArray(b) || a.length !== b.length) return false;
    for (let at = 0; at < a.length; at += 1) if (!isSame(a[at], b[at], depth + 1)) return false;
    return true;
  }
  if (Array.isArray(b)) return false;
  let fields = 0;
  for (const key in a) {
    if (!isSame((a as Fields)[key], (b as Fields)[key], depth + 1)) return false;
    fields += 1;
  }
  for (const _key in b) fields -= 1;
  return fields === 0;
}
