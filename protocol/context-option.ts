import type { Static } from "typebox";
import { SessionId } from "./ids.ts";
import { Type } from "./json-schema.ts";
import { params } from "./params.ts";

/** An entry of a session file. */
export const EntryId = Type.String({ pattern: "^[!-~]{1,128}$", description: "The id of an entry of a session file." });

/** An absolute path of the daemon's machine. */
export const contextPath = Type.String({ pattern: "^/[^\\u0000]{0,4095}$" });

const caps = Type.Union([Type.Integer({ minimum: 200, maximum: 1_000_000 }), Type.Null()], {
  description: "Characters of one tool result; what is longer keeps its head and its tail. null: all of it.",
});

/** Source and handling of an imported conversation: the option `context` of `session/create`. */
export const ContextOption = params({
  document: Type.Optional(Type.Unknown({ description: "The document itself. One of the three sources is given." })),
  path: Type.Optional({
    ...contextPath,
    description:
      "A file with the document, on the daemon's machine: any of its user's with `admin` over the Unix socket, else below `context.readRoots`.",
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
        "In ephemeral mode, when pi has compacted its own messages: half of the context's budget, all of it, or nothing is kept.",
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
    structured: count("Of the messages as they are sent."),
    flattened: count("Of the same as one text with tags for the roles."),
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
    messages: count("Messages that were put before the session's own."),
    pairs: count("Tool calls with their results."),
    tokens: ContextTokens,
    dropped: ContextDropped,
    repairs: ContextRepairCounts,
    notes: Type.Optional(ContextNotes),
    warnings: ContextWarnings,
    hash: ContextHash,
  },
  { additionalProperties: false, description: "The context that the session was given." },
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
