import type { HelperContext, PreparedContext } from "../../../protocol/context/built.ts";
import { heldEntries, heldRoot } from "../../../protocol/context/held-entries.ts";
import type { SessionEntry } from "../../../protocol/context/session-entries.ts";

// What is kept of an ephemeral session's context: a line for its helper, and one with what no message has a field for.

type Rules = Pick<HelperContext, "budget" | "afterCompaction">;

export function helperLines(prepared: PreparedContext, { budget, afterCompaction }: Rules): Buffer {
  const { hash, messages, instructions } = prepared;
  const context: HelperContext = {
    hash,
    messages,
    ...(instructions === undefined ? {} : { instructions }),
    budget,
    afterCompaction,
  };
  return Buffer.from(`${JSON.stringify(context)}\n${JSON.stringify(heldRoot(prepared))}\n`);
}

/** The {@link HelperContext}, as JSON. */
export function helperLine(lines: Buffer): Buffer {
  return lines.subarray(0, lines.indexOf(10));
}

/** The entries that a session file would begin with. */
export function entriesOfLines(lines: Buffer): readonly SessionEntry[] {
  const first = helperLine(lines);
  const { messages, hash } = JSON.parse(first.toString("utf8")) as HelperContext;
  return [...heldEntries(messages, hash, JSON.parse(lines.toString("utf8", first.length + 1)))];
}
