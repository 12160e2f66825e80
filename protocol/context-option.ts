import type { Static } from "typebox";
import { SessionId } from "./ids.ts";
import { Type } from "./json-schema.ts";
import { params } from "./params.ts";

/** An entry of a session file. */
export const EntryId = Type.String({ pattern: "^[!-~]{1,128}$", description: "The id of an entry of a session file." });

/** An absolute path of the daemon's machine. */
export const contextPath = Type.String({ pattern: "^/[^\\u0000]{0,4095}$" });

const caps = Type.Union([Type.Integer({ minimum: 200, maximum: 1_000_000 }), Type.Null()], {
  description: "Maximum characters of one tool result; the middle of longer ones is cut. null: no limit.",
});

/** Source and handling of an imported conversation: the option `context` of `session/create`. */
export const ContextOption = params({
  document: Type.Optional(
    Type.Unknown({ description: "The document itself. Exactly one of the three sources is required." }),
  ),
  path: Type.Optional({
    ...contextPath,
    description:
      "A file with the document, on the daemon's machine: any file of its user with `admin` on the Unix socket, otherwise inside `context.readRoots`.",
  }),
  fromSession: Type.Optional(
    Type.Object(
      { sessionId: SessionId, leafId: Type.Optional(EntryId) },
      { additionalProperties: false, description: "Another session, as `context/export` returns it." },
    ),
  ),
  nodeId: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 1024,
      description: "The node of the tree where the conversation ends. Default: the document's `leafId`.",
    }),
  ),
  until: Type.Optional(
    Type.Enum(["before", "through"], {
      description:
        "Whether that node is excluded or included. Default: `before` for a user's node, otherwise `through`.",
    }),
  ),
  mode: Type.Optional(
    Type.Enum(["auto", "session", "ephemeral"], {
      default: "auto",
      description:
        "`session`: messages of pi's session file. `ephemeral`: added to each request, only for an ephemeral session. `auto`: the same as the session.",
    }),
  ),
  maxTokens: Type.Optional(
    Type.Union([Type.Integer({ minimum: 1, maximum: 1_000_000_000 }), Type.Enum(["auto"]), Type.Null()], {
      default: "auto",
      description: "Estimated tokens. `auto`: 80 % of the free part of the model's window. null: no limit.",
    }),
  ),
  onOverflow: Type.Optional(
    Type.Enum(["trim", "error", "keep"], {
      default: "trim",
      description:
        "If the context exceeds the budget: `trim` drops the oldest messages, `error` refuses it, `keep` keeps everything.",
    }),
  ),
  repair: Type.Optional(
    Type.Boolean({
      default: true,
      description: "Repairs faults that providers would refuse, instead of refusing the context.",
    }),
  ),
  onError: Type.Optional(
    Type.Enum(["fail", "warn"], {
      default: "fail",
      description:
        "`warn`: the session starts without the context, and `context/failed` says why. `fail`: there is no session.",
    }),
  ),
  systemNodes: Type.Optional(
    Type.Enum(["section", "drop"], {
      default: "section",
      description: "Of system nodes: a section of the prompt, or nothing.",
    }),
  ),
  events: Type.Optional(
    Type.Enum(["include", "drop"], { default: "include", description: "Of event nodes: messages, or nothing." }),
  ),
  toolResults: Type.Optional(
    Type.Object(
      {
        maxChars: Type.Optional(caps),
        perTool: Type.Optional(
          Type.Record(Type.String(), caps, {
            maxProperties: 256,
            propertyNames: { pattern: "^[^\\u0000]{1,256}$" },
            description: "The same for single tools, by their names.",
          }),
        ),
      },
      { additionalProperties: false },
    ),
  ),
  ephemeralAfterCompaction: Type.Optional(
    Type.Enum(["trim", "keep", "drop"], {
      default: "trim",
      description:
        "In ephemeral mode, how much of the context's budget is kept after pi has compacted its own messages: half, all, or nothing.",
    }),
  ),
});
export type ContextOption = Static<typeof ContextOption>;

const count = (description: string) => Type.Integer({ minimum: 0, description });

/** Content left out by the budget. */
export const ContextDropped = Type.Object(
  { messages: count("Messages."), tokens: count("Estimated tokens.") },
  { additionalProperties: false, description: "Content left out by the budget." },
);

export const ContextTokens = Type.Object(
  {
    structured: count("Estimated tokens of the messages as sent."),
    flattened: count("Estimated tokens of the same content as one text with role tags."),
    saved: Type.Integer({ description: "The difference." }),
  },
  { additionalProperties: false, description: "Estimates." },
);

export const ContextRepair = Type.Object(
  {
    code: Type.String({ description: "The rule of the repair." }),
    nodeId: Type.Optional(Type.String()),
    detail: Type.String(),
  },
  { additionalProperties: false },
);

export const ContextRepairCounts = Type.Record(Type.String(), Type.Integer({ minimum: 1 }), {
  description: "Number of applications of each rule, without zeros.",
});

export const ContextNotes = Type.Record(Type.String(), Type.Integer({ minimum: 1 }), {
  description:
    "Number of differences from the document or its original session, by the kinds of `context/export`. Absent if there are none.",
});

export const ContextWarnings = Type.Array(Type.Enum(["duplicate_prompt", "above_threshold", "reasoning_dropped"]), {
  maxItems: 3,
  description: "Warnings that do not prevent the context.",
});

export const ContextHash = Type.String({
  pattern: "^[0-9a-f]{64}$",
  description: "SHA-256 of the content for the model, which identifies the context.",
});

/** Summary of a session's context, in the result of `session/create`. */
export const ContextSummary = Type.Object(
  {
    mode: Type.Enum(["session", "ephemeral"]),
    nodes: count("Nodes of the document, or its items."),
    items: count("Items after selection, repair and budget."),
    messages: count("Messages that precede the session's own."),
    pairs: count("Tool calls with their results."),
    tokens: ContextTokens,
    dropped: ContextDropped,
    repairs: ContextRepairCounts,
    notes: Type.Optional(ContextNotes),
    warnings: ContextWarnings,
    hash: ContextHash,
  },
  { additionalProperties: false, description: "The session's context." },
);
export type ContextSummary = Static<typeof ContextSummary>;

/** Why a session has no context: the error that the call would otherwise have returned. */
export const ContextError = Type.Object(
  {
    code: Type.Integer(),
    message: Type.String(),
    data: Type.Record(Type.String(), Type.Unknown(), { description: "As in the error itself; `name` is its name." }),
  },
  { additionalProperties: false },
);
export type ContextError = Static<typeof ContextError>;
