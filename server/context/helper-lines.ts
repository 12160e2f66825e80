import type { PreparedContext } from "../../context/document/built.ts";
import type { ContextRoot } from "../../context/document/context-root.ts";
import { heldEntries, heldRoot, leftAt } from "../../context/document/held-entries.ts";
import type { HelperContext } from "../../protocol/link-context.ts";
import { isRecord } from "../../protocol/objects.ts";

// The stored context of an ephemeral session: a line for its helper, and a line with the data that messages have no
// field for.

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

/** The entries of an ephemeral session. */
export interface WithHeld {
  readonly entries: readonly unknown[];
  /** The last entry of its past, as an export option. */
  readonly heldThrough?: string;
}

/**
 * The entries that a session file would have: the past that the model still sees where pi is at `leafId` of its `own`
 * entries, followed by those.
 */
export function withHeld(lines: Buffer, own: readonly unknown[], leafId: string | undefined): WithHeld {
  const first = helperLine(lines);
  const held = JSON.parse(first.toString("utf8")) as HelperContext;
  const root = JSON.parse(lines.toString("utf8", first.length + 1)) as ContextRoot;
  const before = [...heldEntries(held.messages, held.hash, root, leftAt(held, own, leafId))];
  const last = before.at(-1)?.["id"];
  if (typeof last !== "string") return { entries: own };
  const later = own.map((entry) =>
    isRecord(entry) && entry["parentId"] === null ? { ...entry, parentId: last } : entry,
  );
  return { entries: [...before, ...later], heldThrough: last };
}
