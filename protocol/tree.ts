import type { Static } from "typebox";
import { Type } from "./json-schema.ts";

/** An entry of a session's file, as clients name it. */
export const EntryId = Type.String({
  pattern: "^[!-~]{1,128}$",
  description: "An entry of the session's file, on any branch; `session/getTree` and `session/getEntries` list them.",
});

const leaf = (description: string) => Type.Union([Type.String({ maxLength: 128 }), Type.Null()], { description });
const closed = { additionalProperties: false } as const;

/** What is told when the leaf of a session's tree was moved. */
export const SessionNavigated = Type.Object(
  {
    from: leaf("Where the branch ended. `null`: before the first entry."),
    to: leaf("Where it goes on."),
    summaryEntryId: Type.Optional(
      Type.String({ maxLength: 128, description: "The entry with the summary of what was left." }),
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
    at: Type.Optional(Type.String({ description: "When it was set, as the session's file has it: ISO 8601." })),
  },
  closed,
);
export type EntryLabel = Static<typeof EntryLabel>;

/** What came of moving in the tree. */
export const Navigation = Type.Object(
  {
    outcome: Type.Enum(["moved", "unchanged", "cancelled"], {
      description:
        "`unchanged`: the branch ends there already. `cancelled`: an extension did not allow it, or the summary was aborted; all is as before.",
    }),
    leafId: leaf("Where the branch ends now; the next message follows it."),
    text: Type.Optional(
      Type.String({
        description:
          "Where `entryId` is a user's or a custom message: the branch ends before it, and this is its text.",
      }),
    ),
    summaryEntryId: Type.Optional(Type.String({ description: "The entry with the summary of what was left." })),
  },
  closed,
);
