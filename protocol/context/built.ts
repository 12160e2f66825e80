import type { ContextItem, ContextSource, ImagePart, Meta, Repair, RepairCode, TextPart } from "./document.ts";
import type { NoteCounts } from "./export-notes.ts";

/** Messages as pi has them: complete, so that neither pi nor its statistics stumble over them. Units are pi's. */
export type BuiltMessage =
  | { readonly role: "user"; readonly content: readonly (TextPart | ImagePart)[]; readonly timestamp: number }
  | {
      readonly role: "assistant";
      readonly content: readonly Meta[];
      readonly api: string;
      readonly provider: string;
      readonly model: string;
      readonly usage: Meta;
      readonly stopReason: "stop" | "toolUse";
      readonly timestamp: number;
    }
  | {
      readonly role: "toolResult";
      readonly toolCallId: string;
      readonly toolName: string;
      readonly content: readonly (TextPart | ImagePart)[];
      readonly details?: unknown;
      readonly isError: boolean;
      readonly timestamp: number;
    }
  | {
      readonly role: "custom";
      readonly customType: string;
      readonly content: string | readonly (TextPart | ImagePart)[];
      readonly display: boolean;
      readonly details?: unknown;
      readonly timestamp: number;
    }
  | {
      readonly role: "compactionSummary";
      readonly summary: string;
      readonly tokensBefore: number;
      readonly timestamp: number;
    }
  | {
      readonly role: "branchSummary";
      readonly summary: string;
      readonly fromId: string;
      readonly timestamp: number;
    }
  | {
      readonly role: "bashExecution";
      readonly command: string;
      readonly output: string;
      readonly exitCode: number | undefined;
      readonly cancelled: boolean;
      readonly truncated: boolean;
      readonly fullOutputPath?: string;
      readonly excludeFromContext?: boolean;
      readonly timestamp: number;
    };

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

/** What goes over the link to the helper in ephemeral mode, as the frame `context`. */
export interface HelperContext {
  readonly hash: string;
  readonly messages: readonly BuiltMessage[];
  readonly instructions?: string;
  /** The budget in tokens that the messages were fitted to; `null`: none. */
  readonly budget: number | null;
  readonly afterCompaction: "trim" | "keep" | "drop";
}
