import type { Static } from "typebox";
import { Timestamp } from "./ids.ts";
import { Type } from "./json-schema.ts";

/** Something that an extension inside pi has in the background. For display only: nothing may depend on it. */
export const PendingItem = Type.Object(
  {
    id: Type.String({ minLength: 1, maxLength: 128 }),
    label: Type.String({ maxLength: 200, description: "A line for people." }),
    state: Type.Enum(["running", "delivering", "failed"], {
      description:
        "`delivering`: it has ended, and its result is on its way to the model. `failed`: the result did not get there; the entry goes soon.",
    }),
    startedAt: Timestamp,
    error: Type.Optional(Type.String({ maxLength: 1_024, description: "With `failed`." })),
  },
  { additionalProperties: false },
);
export type PendingItem = Static<typeof PendingItem>;
