import type { Static } from "typebox";
import { Timestamp } from "./ids.ts";
import { Type } from "./json-schema.ts";

/** Background work of an extension inside pi. For display only: programs must not depend on it. */
export const PendingItem = Type.Object(
  {
    id: Type.String({ minLength: 1, maxLength: 128 }),
    label: Type.String({ maxLength: 200, description: "A line of text for display." }),
    state: Type.Enum(["running", "delivering", "failed"], {
      description:
        "`delivering`: the work has ended, and its result is being delivered to the model. `failed`: the result could not be delivered; the item disappears soon.",
    }),
    startedAt: Timestamp,
    error: Type.Optional(Type.String({ maxLength: 1_024, description: "With `failed`." })),
  },
  { additionalProperties: false },
);
export type PendingItem = Static<typeof PendingItem>;
