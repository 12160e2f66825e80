import type { BuiltMessage } from "../../protocol/link-context.ts";
import type { ContextItem, ContextSource, Repair, RepairCode } from "./document.ts";
import type { NoteCounts } from "./export-notes.ts";

export interface ContextCounts {
  readonly nodes: number;
  readonly items: number;
  /** Calls with their results. */
  readonly pairs: number;
  /** Number of applications of each rule, without zeros. */
  readonly repairs: Readonly<Partial<Record<RepairCode, number>>>;
  /** Differences from the document or its original session: {@link ExportNote}. Absent if there are none. */
  readonly notes?: NoteCounts;
}

export type ContextWarning = "duplicate_prompt" | "above_threshold" | "reasoning_dropped";

/** A context ready for pi, prepared from a document, options and a target. */
export interface PreparedContext {
  /** After selection, repair, caps and budget. */
  readonly items: readonly ContextItem[];
  /** One for each item that is not of the role `system`, in order. */
  readonly messages: readonly BuiltMessage[];
  /** Text of the prompt's section of prior instructions. */
  readonly instructions?: string;
  readonly counts: ContextCounts;
  /** The first 1,000. */
  readonly repairs: readonly Repair[];
  /** Estimated tokens. `flattened`: as one text with role tags. `saved`: the difference, which can be negative. */
  readonly tokens: { readonly structured: number; readonly flattened: number; readonly saved: number };
  /** Messages and tokens left out by the budget. */
  readonly dropped: { readonly messages: number; readonly tokens: number };
  readonly warnings: readonly ContextWarning[];
  /** SHA-256 in hex of the messages and instructions, which identifies the context. */
  readonly hash: string;
  /** Source of the document. */
  readonly source?: ContextSource;
  /** The last node of the conversation, if one was named. */
  readonly nodeId?: string;
  /** Budget in tokens that the messages were fitted to; `null`: none. */
  readonly budget: number | null;
}
