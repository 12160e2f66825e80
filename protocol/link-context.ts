export interface TextPart {
  readonly type: "text";
  readonly text: string;
}

export interface ImagePart {
  readonly type: "image";
  /** In base64. */
  readonly data: string;
  readonly mimeType: string;
}

export type Meta = Readonly<Record<string, unknown>>;

/** pi messages, complete enough for pi and its statistics. Units are pi's. */
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

/** `customType` of the root entry of a session file that was written from a context. */
export const CONTEXT_ROOT_TYPE = "pi-rpcd.context";

/** Content of the frame `context`, sent to the helper in ephemeral mode. */
export interface HelperContext {
  readonly hash: string;
  readonly messages: readonly BuiltMessage[];
  readonly instructions?: string;
  /** The budget in tokens that the messages were fitted to; `null`: none. */
  readonly budget: number | null;
  readonly afterCompaction: "trim" | "keep" | "drop";
}
