import type { BuiltMessage } from "../../protocol/link-context.ts";
import type { ContextItem, ContextSource, Repair, RepairCode } from "./document.ts";
import type { NoteCounts } from "./export-notes.ts";

export interface ContextCounts {
  readonly nodes: number;
  readonly items: number;
  /** Calls with their results. */
  readonly pairs: number;
  /** How often each rule was applied; those of 0 are left out. */
  readonly repairs: Readonly<Partial<Record<RepairCode, number>>>;
  /** What is not given as the document, or the session that it was made of, has it: {@link ExportNote}. Absent: nothing. */
  readonly notes?: NoteCounts;
}

export type ContextWarning = "duplicate_prompt" | "above_threshold" | "reasoning_dropped";

/** A context that is ready to be given to pi: what a document, the options and the target have come to. */
export interface PreparedContext {
  /** Behind selection, repair, caps and budget. */
  readonly items: readonly ContextItem[];
  /** One for each item that is not of the role `system`, in order. */
  readonly messages: readonly BuiltMessage[];
  /** For the prompt's section of prior instructions. */
  readonly instructions?: string;
  readonly counts: ContextCounts;
  /** The first 1,000. */
  readonly repairs: readonly Repair[];
  /** Estimates. `flattened`: the same as one text with role tags. `saved`: the difference, which may be negative. */
  readonly tokens: { readonly structured: number; readonly flattened: number; readonly saved: number };
  /** What the budget left out. */
  readonly dropped: { readonly messages: number; readonly tokens: number };
  readonly warnings: readonly ContextWarning[];
  /** SHA-256 in hex, of the messages and instructions: the identity of what the model is given. */
  readonly hash: string;
  /** The document's own. */
  readonly source?: ContextSource;
  /** The node that the conversation goes up to, where one was named. */
  readonly nodeId?: string;
  /** In tokens, as the messages were fitted to; `null`: none. */
  readonly budget: number | null;
}
