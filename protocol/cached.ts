import type { Static } from "typebox";
import { Timestamp } from "./ids.ts";
import { Type } from "./json-schema.ts";

/** Why a query about a session without a pi has no answer: `data.reason` of `session_asleep`. */
export const AsleepReason = Type.Enum(["not_known", "file_too_large", "file_older_form"]);
export type AsleepReason = Static<typeof AsleepReason>;

/** The param by which a call asks for what is known, whatever the state of the session. */
export const cachedParam = {
  cached: Type.Optional(
    Type.Boolean({
      default: false,
      description:
        "`true`: the last known answer, with its time. pi is not asked, started or waited for, also where it runs; `answer_unknown` if none is known. That is pi's last answer to any client or, except for models, to the daemon before it ended an idle pi, if it has at most 256 KiB. A daemon that is killed loses those of running pis.",
    }),
  ),
};

/** Fields of a result that is available without the session's pi. Absent if pi itself answered. */
export const cachedFields = {
  cached: Type.Optional(
    Type.Boolean({
      description:
        "`true`: pi was not asked, because the session has none or because of the param `cached`; the result comes from the session's file or pi's last answer.",
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
