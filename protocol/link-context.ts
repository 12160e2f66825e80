import type { Static, TUnsafe } from "typebox";
import { readonlyArray, Type } from "./json-schema.ts";

export const TextPart = Type.Object({ type: Type.Literal("text"), text: Type.String() });
export type TextPart = Static<typeof TextPart>;

export const ImagePart = Type.Object({
  type: Type.Literal("image"),
  /** In base64. */
  data: Type.String(),
  mimeType: Type.String({ pattern: "^image/[a-z0-9.+-]{1,64}$" }),
});
export type ImagePart = Static<typeof ImagePart>;

export type Meta = Readonly<Record<string, unknown>>;

const meta = Type.Record(Type.String(), Type.Unknown()) as unknown as TUnsafe<Meta>;
const parts = readonlyArray(Type.Union([TextPart, ImagePart]));
const timestamp = Type.Number();

/** pi's own blocks, with any additional fields. */
const assistantBlocks = readonlyArray(
  Type.Union([
    TextPart,
    Type.Object({ type: Type.Literal("thinking"), thinking: Type.String() }),
    Type.Object({ type: Type.Literal("toolCall"), id: Type.String(), name: Type.String(), arguments: meta }),
  ]) as unknown as TUnsafe<Meta>,
);

/** pi messages, complete enough for pi and its statistics. Units are pi's. */
export const BuiltMessage = Type.Union([
  Type.Object({ role: Type.Literal("user"), content: parts, timestamp }),
  Type.Object({
    role: Type.Literal("assistant"),
    content: assistantBlocks,
    api: Type.String(),
    provider: Type.String(),
    model: Type.String(),
    usage: meta,
    stopReason: Type.Enum(["stop", "toolUse"]),
    timestamp,
  }),
  Type.Object({
    role: Type.Literal("toolResult"),
    toolCallId: Type.String(),
    toolName: Type.String(),
    content: parts,
    details: Type.Optional(Type.Unknown()),
    isError: Type.Boolean(),
    timestamp,
  }),
  Type.Object({
    role: Type.Literal("custom"),
    customType: Type.String(),
    content: Type.Union([Type.String(), parts]),
    display: Type.Boolean(),
    details: Type.Optional(Type.Unknown()),
    timestamp,
  }),
  Type.Object({
    role: Type.Literal("compactionSummary"),
    summary: Type.String(),
    tokensBefore: Type.Number(),
    timestamp,
  }),
  Type.Object({ role: Type.Literal("branchSummary"), summary: Type.String(), fromId: Type.String(), timestamp }),
  Type.Object({
    role: Type.Literal("bashExecution"),
    command: Type.String(),
    output: Type.String(),
    /** pi's type has this key always; JSON leaves out an undefined one. */
    exitCode: Type.Optional(Type.Number()) as unknown as TUnsafe<number | undefined>,
    cancelled: Type.Boolean(),
    truncated: Type.Boolean(),
    fullOutputPath: Type.Optional(Type.String()),
    excludeFromContext: Type.Optional(Type.Boolean()),
    timestamp,
  }),
]);
export type BuiltMessage = Static<typeof BuiltMessage>;

/** Content of the frame `context`, sent to the helper in ephemeral mode. */
export const HelperContext = Type.Object({
  hash: Type.String({ pattern: "^[0-9a-f]{64}$" }),
  messages: readonlyArray(BuiltMessage),
  instructions: Type.Optional(Type.String()),
  /** The budget in tokens that the messages were fitted to; `null`: none. */
  budget: Type.Union([Type.Null(), Type.Number({ exclusiveMinimum: 0 })]),
  afterCompaction: Type.Enum(["trim", "keep", "drop"]),
});
export type HelperContext = Static<typeof HelperContext>;
