import type { Static } from "typebox";
import { Type } from "./json-schema.ts";

/** Policy for writes of another program to the session's file. */
export const OnForeignWrite = Type.Enum(["reload", "refuse", "fork", "allow"], {
  description:
    "When another program (a pi in a terminal) has written to the session's file: `reload` makes pi load it again, and refuses if that would leave the session's own branch; `refuse` refuses until `session/reload`; `fork` continues the session's own branch in a new session; `allow` continues regardless.",
});
export type OnForeignWrite = Static<typeof OnForeignWrite>;

/** A change of a session's file by another program. */
export const ForeignWrite = Type.Object(
  {
    kind: Type.Enum(["grown", "rewritten", "removed"], {
      description:
        "`grown`: entries were added. `rewritten`: existing content changed. `removed`: the file was deleted.",
    }),
    entries: Type.Integer({ minimum: 0, description: "Number of foreign entries." }),
    lastEntryId: Type.Optional(Type.String({ description: "The last entry of the file." })),
    divergent: Type.Boolean({
      description: "Whether the branches diverge: the file's last entry does not follow the session's own last one.",
    }),
    during: Type.Enum(["run", "idle", "asleep"], {
      description: "`run`: seen when the run had settled. `idle`: before a run. `asleep`: the session had no pi.",
    }),
  },
  { additionalProperties: false },
);
export type ForeignWrite = Static<typeof ForeignWrite>;

export const ForeignWriteAction = Type.Enum(["reloaded", "refused", "forked", "allowed", "noticed"], {
  description: "`noticed`: nothing was done yet; the session's policy is applied before the next run.",
});
export type ForeignWriteAction = Static<typeof ForeignWriteAction>;

/** `data.reason` of `session_file_unusable`. */
export const SessionFileReason = Type.Enum([
  "missing",
  "unreadable",
  "not_a_file",
  "not_absolute",
  "outside",
  "not_a_session",
  "header_damaged",
  "version_unknown",
  "entries_damaged",
  "too_large",
  "copied",
  "other_session",
  "symbolic_link",
  "hard_link",
  "foreign_owner",
  "directory_missing",
  "directory_unwritable",
  "disk_full",
  "name_too_long",
  "ephemeral",
]);
export type SessionFileReason = Static<typeof SessionFileReason>;
