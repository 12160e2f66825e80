import type { Static } from "typebox";
import { Type } from "../json-schema.ts";

const tokens = (description: string) => Type.Integer({ minimum: 0, description });
const closed = { additionalProperties: false } as const;

export const PruningChanged = Type.Object(
  {
    cause: Type.Enum(["compress", "decompress", "recompress", "strategies", "compaction", "mode"]),
    blocks: Type.Array(Type.String({ pattern: "^b[0-9]{1,9}$" }), {
      maxItems: 1_000,
      description: "That have changed.",
    }),
    pruned: Type.Array(Type.String({ pattern: "^[mr][0-9]{3,9}$" }), {
      maxItems: 1_000,
      description: "Messages, or the ids by which outputs are recalled, that have left the context.",
    }),
    tokens: Type.Integer({ description: "Estimated tokens that the next request has less; below 0: more." }),
    mode: Type.Optional(Type.Enum(["automatic", "manual"])),
  },
  closed,
);
export type PruningChanged = Static<typeof PruningChanged>;

export const PruningNudged = Type.Object(
  {
    kind: Type.Enum(["turn", "iteration", "limit-soft", "limit-strong"]),
    usage: Type.Number({ minimum: 0, description: "Of the window, by estimate: 1 is all of it." }),
    tokens: tokens("Estimated tokens of the request."),
  },
  closed,
);
export type PruningNudged = Static<typeof PruningNudged>;

export const PruningDegraded = Type.Object(
  {
    reason: Type.Enum(["mapping", "breaker", "tool_conflict", "foreign_edit", "prompts"]),
    message: Type.String({ minLength: 1, maxLength: 1_024 }),
  },
  closed,
);
export type PruningDegraded = Static<typeof PruningDegraded>;

/** What pruning tells subscribers, by the notification's name. */
export const pruningNotices = {
  "pruning/changed": PruningChanged,
  "pruning/nudged": PruningNudged,
  "pruning/degraded": PruningDegraded,
} as const;
