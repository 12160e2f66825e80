import type { ImagePart, Meta, TextPart } from "../../protocol/link-context.ts";

/** Format of imported and exported conversations: a tree of nodes, or an ordered list of items. */

export const CONTEXT_FORMAT = "pi-rpcd/context";
export const CONTEXT_VERSION = 1;

/** `customType` of the messages made from event items. */
export const CONTEXT_EVENT_TYPE = "pi-rpcd.event";

/** Name of the prompt's section made from `system` items. */
export const INSTRUCTIONS_SECTION = "prior_instructions";

/** A model as pi names it in an assistant's message. */
export interface ModelName {
  /** Name of the provider's API, for example `anthropic-messages`. */
  readonly api: string;
  readonly provider: string;
  readonly id: string;
}

/** The model that a context is built for. */
export interface ContextTarget extends ModelName {
  /** Tokens. Absent if unknown to pi. */
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

/** Fields shared by nodes and items. `timestamp` is in Unix milliseconds; the list determines the order. */
interface Common {
  readonly content: readonly ContextPart[];
  readonly timestamp: number;
  readonly toolCallId?: string;
  readonly toolName?: string;
  readonly isError?: boolean;
  /** Free text; an export uses `pi.…` for pi's own entries. */
  readonly eventType?: string;
  /** All other given fields, and data without a field in the format. */
  readonly meta?: Meta;
  readonly model?: ModelName;
  readonly stopReason?: string;
  readonly usage?: Meta;
  readonly details?: unknown;
  /** An assistant's content in pi's own form. Overrides `content` and `toolCalls` if the model is the target. */
  readonly blocks?: readonly Meta[];
}

/** A node of a tree as returned by `readDocument`: aliases are resolved, text is a part. */
export interface ContextNode extends Common {
  readonly id: string;
  readonly parentId: string | null;
  readonly role: "system" | "user" | "assistant" | "toolCall" | "toolResult" | "event";
  /** Of a `toolCall`. */
  readonly arguments?: ContextArguments;
  /** Of an `assistant` whose calls are in the message. */
  readonly toolCalls?: readonly ContextCall[];
}

/** An entry of the ordered list made from the path to a node. */
export interface ContextItem extends Common {
  readonly role: "system" | "user" | "assistant" | "toolResult" | "event";
  /** Of an `assistant`, in the order of the calls. */
  readonly toolCalls?: readonly ContextCall[];
  /** Id of the original node. */
  readonly nodeId?: string;
}

export interface ContextSource {
  readonly kind: string;
  readonly id?: string;
  readonly exportedAt?: number;
  readonly [more: string]: unknown;
}

/** A parsed document: it has either `nodes` or `items`. */
export interface ContextDocument {
  readonly format: typeof CONTEXT_FORMAT;
  readonly version: typeof CONTEXT_VERSION;
  readonly source?: ContextSource;
  /** Default node. */
  readonly leafId?: string;
  readonly nodes?: readonly ContextNode[];
  readonly items?: readonly ContextItem[];
}

/** Codes of the repairs, one for each rule. */
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

/** Faults that cannot be repaired: `data.code` of `context_invalid`, which can also be a {@link RepairCode}. */
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

/** Called for each repair, in order. Throws `context_invalid` with `repair: false`. */
export type NoteRepair = (repair: Repair) => void;
