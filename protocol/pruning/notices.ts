import type { Static } from "typebox";
import { Type } from "../json-schema.ts";

const tokens = (description: string) => Type.Integer({ minimum: 0, description });
const closed = { additionalProperties: false } as const;

export const PruningChanged = Type.Object(
  {
    cause: Type.Enum(["compress", "decompress", "recompress", "strategies", "compaction", "mode"]),
    blocks: Type.Array(Type.String({ pattern: "^b[0-9]{1,9}$" }), {
      maxItems: 1_000,
      description: "The changed blocks.",
    }),
    pruned: Type.Array(Type.String({ pattern: "^[mr][0-9]{3,9}$" }), {
      maxItems: 1_000,
      description: "Messages that left the context, or the ids to recall their outputs.",
    }),
    tokens: Type.Integer({ description: "Estimated tokens saved in the next request; below 0: added." }),
    mode: Type.Optional(Type.Enum(["automatic", "manual"])),
  },
  closed,
);
export type PruningChanged = Static<typeof PruningChanged>;

export const PruningNudged = Type.Object(
  {
    kind: Type.Enum(["turn", "iteration", "limit-soft", "limit-strong"]),
    usage: Type.Number({ minimum: 0, description: "Estimated share of the window; 1 is the complete window." }),
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

/** Pruning's notifications to subscribers, by name. */
export const pruningNotices = {
  "pruning/changed": PruningChanged,
  "pruning/nudged": PruningNudged,
  "pruning/degraded": PruningDegraded,
} as const;
