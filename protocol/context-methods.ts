import {
  ContextDropped,
  ContextHash,
  ContextNotes,
  ContextOption,
  ContextRepair,
  ContextRepairCounts,
  ContextTokens,
  ContextWarnings,
  contextPath,
  EntryId,
} from "./context-option.ts";
import { SessionId } from "./ids.ts";
import { Type } from "./json-schema.ts";
import type { MethodRow } from "./method-row.ts";
import { childErrors, params } from "./params.ts";
import { sessionOptions } from "./session-options.ts";

/** Errors of a refused context, other than invalid params. */
export const contextErrors = [
  "context_invalid",
  "context_too_large",
  "context_over_budget",
  "context_mode_conflict",
  "context_transport_failed",
  "entry_not_found",
] as const;

const Diagnostics = Type.Object(
  {
    entries: Type.Integer({ minimum: 0, description: "Entries of the session file that were read." }),
    nodes: Type.Integer({ minimum: 0, description: "Nodes, or items, of the document." }),
    pairs: Type.Integer({ minimum: 0, description: "Tool calls with their results." }),
    notes: Type.Record(Type.String(), Type.Integer({ minimum: 1 }), {
      description: "Number of differences between the document and the session, by kind.",
    }),
  },
  { additionalProperties: false },
);

/** Method rows for importing and exporting conversations. */
export const contextMethods = {
  "context/inspect": {
    summary:
      "Inspects a context: of a session that was created with one, or of an option `context` without creating a session.",
    params: params({
      sessionId: Type.Optional(SessionId),
      context: Type.Optional({ ...ContextOption, description: "As in `session/create`. One of the two is given." }),
      model: Type.Optional({
        ...sessionOptions.model,
        description: "The target model, as in `session/create`. Only with `context`.",
      }),
      items: Type.Optional(
        Type.Boolean({ default: false, description: "Returns the items too. Only with `context`." }),
      ),
    }),
    result: Type.Object(
      {
        mode: Type.Enum(["session", "ephemeral"]),
        items: Type.Optional(
          Type.Array(Type.Unknown(), { description: "As in the document, in order, at most 8 MiB." }),
        ),
        counts: Type.Object(
          {
            nodes: Type.Integer({ minimum: 0 }),
            items: Type.Integer({ minimum: 0 }),
            pairs: Type.Integer({ minimum: 0, description: "Tool calls with their results." }),
            repairs: ContextRepairCounts,
            notes: Type.Optional(ContextNotes),
          },
          { additionalProperties: false },
        ),
        repairs: Type.Array(ContextRepair, { maxItems: 1_000, description: "The first 1,000; `counts` has all." }),
        tokens: ContextTokens,
        dropped: ContextDropped,
        warnings: ContextWarnings,
        hash: ContextHash,
      },
      { additionalProperties: false },
    ),
    http: { verb: "POST", path: "/v1/context/inspect" },
    scope: "none",
    capability: "observe",
    since: "0.1.0",
    errors: [...contextErrors, ...childErrors, "forbidden", "too_large"],
    rate: "starts",
    retry: "safe",
  },
  "context/export": {
    summary: "A session, or a session file of pi's, as a document that `session/create` takes.",
    params: params({
      sessionId: Type.Optional(SessionId),
      path: Type.Optional({
        ...contextPath,
        description: "A session file on the daemon's machine. One of the two is given.",
      }),
      leafId: Type.Optional({ ...EntryId, description: "The last entry of the branch. Default: that of the file." }),
      view: Type.Optional(
        Type.Enum(["projected", "full"], {
          default: "projected",
          description: "`projected`: what the model sees, as items. `full`: the whole tree with all branches.",
        }),
      ),
      includeSystem: Type.Optional(Type.Boolean({ default: false, description: "System messages too." })),
      includeReasoning: Type.Optional(Type.Boolean({ default: false, description: "Reasoning too." })),
      includeImages: Type.Optional(Type.Boolean({ default: true, description: "Images too." })),
      output: Type.Optional(
        Type.Enum(["inline", "file"], {
          default: "inline",
          description:
            "`inline`: in the answer, up to 8 MiB. `file`: in a file of the daemon's state directory, for its user on its machine, which it keeps for an hour unless 32 newer ones come before.",
        }),
      ),
    }),
    result: Type.Object(
      {
        document: Type.Optional(Type.Unknown({ description: "With `inline`." })),
        path: Type.Optional(Type.String({ description: "With `file`, as the two that follow." })),
        bytes: Type.Optional(Type.Integer({ minimum: 0 })),
        sha256: Type.Optional(Type.String({ pattern: "^[0-9a-f]{64}$" })),
        diagnostics: Diagnostics,
      },
      { additionalProperties: false },
    ),
    http: { verb: "POST", path: "/v1/context/export" },
    scope: "none",
    capability: "observe",
    since: "0.1.0",
    errors: [
      "session_not_found",
      "session_closed",
      "session_lost",
      "session_file_unusable",
      "entry_not_found",
      "context_invalid",
      "context_too_large",
      "context_transport_failed",
      "forbidden",
      "child_exited",
      "too_large",
      "overloaded",
      "shutting_down",
    ],
    rate: "starts",
    retry: "safe",
  },
} as const satisfies Readonly<Record<string, MethodRow>>;
