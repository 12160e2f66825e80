import type { Static } from "typebox";
import { Type } from "./json-schema.ts";

/** An entry of a session's file, as clients name it. */
export const EntryId = Type.String({
  pattern: "^[!-~]{1,128}$",
  description: "An entry of the session's file, on any branch; `session/getTree` and `session/getEntries` list them.",
});

export const leafIdOf = (description: string) =>
  Type.Union([Type.String({ maxLength: 128 }), Type.Null()], { description });
const closed = { additionalProperties: false } as const;

/** A move of the leaf of a session's tree. */
export const SessionNavigated = Type.Object(
  {
    from: leafIdOf("The previous last entry of the branch. `null`: before the first entry."),
    to: leafIdOf("The entry from which it continues."),
    summaryEntryId: Type.Optional(
      Type.String({ maxLength: 128, description: "The entry with the summary of the abandoned branch." }),
    ),
  },
  closed,
);

/** A label that was set or removed. */
export const SessionLabelled = Type.Object(
  {
    entryId: Type.String({ minLength: 1, maxLength: 128 }),
    label: Type.Union([Type.String(), Type.Null()], {
      description: "Its first 200 characters; an extension's label may be longer. `null`: it was removed.",
    }),
  },
  closed,
);

export const EntryLabel = Type.Object(
  {
    entryId: Type.String(),
    label: Type.String(),
    at: Type.Optional(Type.String({ description: "When it was set, from the session's file: ISO 8601." })),
  },
  closed,
);
export type EntryLabel = Static<typeof EntryLabel>;

/** The result of a move in the tree. */
export const Navigation = Type.Object(
  {
    outcome: Type.Enum(["moved", "unchanged", "cancelled"], {
      description:
        "`unchanged`: the branch already ends there. `cancelled`: an extension refused it, or the summary was aborted; nothing changed.",
    }),
    leafId: leafIdOf("The new last entry of the branch; the next message follows it."),
    text: Type.Optional(
      Type.String({
        description: "If `entryId` is a user message or a custom message: its text; the branch ends before it.",
      }),
    ),
    summaryEntryId: Type.Optional(Type.String({ description: "The entry with the summary of the abandoned branch." })),
  },
  closed,
);
