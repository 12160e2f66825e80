import type { Static } from "typebox";
import { Timestamp } from "./ids.ts";
import { Type } from "./json-schema.ts";

/** Why a query about a session without a pi has no answer: `data.reason` of `session_asleep`. */
export const AsleepReason = Type.Enum(["not_known", "file_too_large", "file_older_form"]);
export type AsleepReason = Static<typeof AsleepReason>;

/** Fields of a result that is available without the session's pi. Absent if pi itself answered. */
export const cachedFields = {
  cached: Type.Optional(
    Type.Boolean({
      description:
        "`true`: the session has no pi, and none was started; the result comes from the session's file or pi's last answer.",
    }),
  ),
  cachedAt: Type.Optional({
    ...Timestamp,
    description: "With `cached`: when the file was last written, or when pi answered.",
  }),
  outdated: Type.Optional(
    Type.Boolean({
      description:
        "`true`: the session's file or the configuration of its parts has changed since pi answered, so a new pi may answer differently.",
    }),
  ),
};
