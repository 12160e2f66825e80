import type { Static } from "typebox";
import { Type } from "./json-schema.ts";

/** What is done when another program has written to the session's file. */
export const OnForeignWrite = Type.Enum(["reload", "refuse", "fork", "allow"], {
  description:
    "When another program (a pi in a terminal) has written to the session's file: `reload` has pi load it again, and refuses where the session's own branch would be left by that; `refuse` refuses until `session/reload`; `fork` goes on with the session's own branch in a new session; `allow` goes on regardless.",
});
export type OnForeignWrite = Static<typeof OnForeignWrite>;

/** What another program has done to a session's file. */
export const ForeignWrite = Type.Object(
  {
    kind: Type.Enum(["grown", "rewritten", "removed"], {
      description: "`grown`: entries were added. `rewritten`: what stood there is another. `removed`: it is gone.",
    }),
    entries: Type.Integer({ minimum: 0, description: "How many entries are not the session's own." }),
    lastEntryId: Type.Optional(Type.String({ description: "The last entry of the file." })),
    divergent: Type.Boolean({
      description: "Whether the file's last entry does not follow the session's own last one: the branches part.",
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
