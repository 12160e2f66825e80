import type { ImagePart, Meta, TextPart } from "../../protocol/link-context.ts";

/**
 * The format in which a conversation comes from somewhere else, and in which one of pi's is given away: a tree of nodes,
 * or items that are in order already.
 */

export const CONTEXT_FORMAT = "pi-rpcd/context";
export const CONTEXT_VERSION = 1;

/** `customType` of the root entry of a session file that was written from a document. */
export const CONTEXT_ROOT_TYPE = "pi-rpcd.context";

/** `customType` of the messages that event items become. */
export const CONTEXT_EVENT_TYPE = "pi-rpcd.event";

/** Name of the prompt's section that `system` items become. */
export const INSTRUCTIONS_SECTION = "prior_instructions";

/** A model as pi names it in an assistant's message. */
export interface ModelName {
  /** Of the provider's interface, for example `anthropic-messages`. */
  readonly api: string;
  readonly provider: string;
  readonly id: string;
}

/** The model that a context is built for. */
export interface ContextTarget extends ModelName {
  /** In tokens. Absent: pi does not say. */
  readonly contextWindow?: number;
  readonly takesImages: boolean;
}

export interface ReasoningPart {
  readonly type: "reasoning";
  readonly text: string;
  readonly signature?: string;
  readonly redacted?: boolean;
}
export type ContextPart = TextPart | ImagePart | ReasoningPart;

export type ContextArguments = Readonly<Record<string, unknown>>;

export interface ContextCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: ContextArguments;
}

/** What nodes and items share. `timestamp` is Unix milliseconds; the order is that of the list. */
interface Common {
  readonly content: readonly ContextPart[];
  readonly timestamp: number;
  readonly toolCallId?: string;
  readonly toolName?: string;
  readonly isError?: boolean;
  /** Free text; `pi.…` is what an export makes of pi's own entries. */
  readonly eventType?: string;
  /** Whatever else was given, and what the format has no field for. */
  readonly meta?: Meta;
  readonly model?: ModelName;
  readonly stopReason?: string;
  readonly usage?: Meta;
  readonly details?: unknown;
  /** An assistant's content as pi itself has it: it goes before `content` and `toolCalls` where the model is the target. */
  readonly blocks?: readonly Meta[];
}

/** One node of a tree, as `readDocument` gives it: aliases are resolved, text is a part. */
export interface ContextNode extends Common {
  readonly id: string;
  readonly parentId: string | null;
  readonly role: "system" | "user" | "assistant" | "toolCall" | "toolResult" | "event";
  /** Of a `toolCall`. */
  readonly arguments?: ContextArguments;
  /** Of an `assistant`, where the tree has the calls in the message itself. */
  readonly toolCalls?: readonly ContextCall[];
}

/** One entry of the ordered list that is made from the path to a node. */
export interface ContextItem extends Common {
  readonly role: "system" | "user" | "assistant" | "toolResult" | "event";
  /** Of an `assistant`, in the order of the calls. */
  readonly toolCalls?: readonly ContextCall[];
  /** The node that it comes from. */
  readonly nodeId?: string;
}

export interface ContextSource {
  readonly kind: string;
  readonly id?: string;
  readonly exportedAt?: number;
  readonly [more: string]: unknown;
}

/** A document that has been read: exactly one of `nodes` and `items` is there. */
export interface ContextDocument {
  readonly format: typeof CONTEXT_FORMAT;
  readonly version: typeof CONTEXT_VERSION;
  readonly source?: ContextSource;
  /** The node that is meant where no other is named. */
  readonly leafId?: string;
  readonly nodes?: readonly ContextNode[];
  readonly items?: readonly ContextItem[];
}

/** What is mended in a conversation, each by one rule. */
export const repairCodes = [
  "orphan_result",
  "missing_result",
  "duplicate_result",
  "duplicate_call_id",
  "bad_call_id",
  "bad_tool_name",
  "late_result",
  "wrong_content",
  "empty_message",
  "leading_assistant",
  "interrupted_assistant",
  "foreign_reasoning",
  "bad_timestamp",
  "orphan_tool_node",
  "lone_surrogate",
  "image_left_out",
] as const;
export type RepairCode = (typeof repairCodes)[number];

/** Where a document cannot be mended; `data.code` of `context_invalid`, where it may also be a {@link RepairCode}. */
export type FatalCode =
  | "cycle"
  | "missing_parent"
  | "unknown_node"
  | "duplicate_node"
  | "unknown_role"
  | "bad_image"
  | "bad_arguments"
  | "nothing_selected";

export interface Repair {
  readonly code: RepairCode;
  readonly nodeId?: string;
  readonly detail: string;
}

/** Hears of each repair, in the order in which they are made. With `repair: false` it throws `context_invalid`. */
export type NoteRepair = (repair: Repair) => void;
