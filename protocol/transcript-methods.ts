import type { Static } from "typebox";
import { Epoch } from "./event.ts";
import { Seq, SessionId, Timestamp } from "./ids.ts";
import { Type } from "./json-schema.ts";
import type { MethodRow } from "./method-row.ts";
import { params } from "./params.ts";
import { PiEntry } from "./pi-data.ts";
import { EntryId, leafIdOf } from "./tree.ts";

const closed = { additionalProperties: false } as const;

const Place = Type.String({ pattern: "^[!-~]{1,1024}$" });

/** A JSON pointer (RFC 6901) into an entry. */
const Path = Type.String({ pattern: "^(/[\\s\\S]{0,2047})?$" });

const TranscriptCut = Type.Object(
  {
    entryId: Type.String(),
    path: { ...Path, description: "A JSON pointer (RFC 6901) to the value. An empty one means the whole entry." },
    bytes: Type.Integer({
      minimum: 1,
      description:
        "Its size as UTF-8 JSON; of a string without the quotes. An image's `data` has as many bytes as characters.",
    }),
    shown: Type.Integer({
      minimum: 0,
      description: "How many of them the entry has: the `offset` of the rest. 0 where the value is not a string.",
    }),
    place: Type.Optional({ ...Place, description: "For `transcript/entry`." }),
  },
  closed,
);
export type TranscriptCut = Static<typeof TranscriptCut>;

const BranchPoint = Type.Object(
  {
    entryId: Type.String({ description: "An entry of this page." }),
    children: Type.Array(
      Type.Object(
        {
          entryId: Type.String(),
          leafId: Type.String({ description: "The last entry that was written after it on its branch." }),
        },
        closed,
      ),
      { minItems: 1, description: "Its children on other branches." },
    ),
  },
  closed,
);
export type BranchPoint = Static<typeof BranchPoint>;

const OutlineEntry = Type.Object(
  {
    entryId: Type.String(),
    parentId: Type.Union([Type.String(), Type.Null()]),
    type: Type.String({ maxLength: 64, description: "pi's type of the entry." }),
    at: Type.Optional({ ...Timestamp, description: "When it was written." }),
    role: Type.Optional(Type.String({ maxLength: 64, description: "Of a message." })),
    text: Type.Optional(
      Type.String({
        maxLength: 200,
        description:
          "The first 200 characters of its text: of a message, summary, label or name; the error of a failed answer; of a change of the model `provider/id`, of the thinking level the level; of what an extension stores, its type.",
      }),
    ),
    tools: Type.Optional(
      Type.Array(Type.String({ maxLength: 64 }), {
        maxItems: 4,
        description: "The first tools that an answer calls, or the tool of a result.",
      }),
    ),
    targetId: Type.Optional(Type.String({ maxLength: 128, description: "Of a label: the entry that has it." })),
  },
  closed,
);
export type OutlineEntry = Static<typeof OutlineEntry>;

const SearchHit = Type.Object(
  {
    sessionId: SessionId,
    entryId: Type.String(),
    kind: Type.Enum(["user", "assistant", "thinking", "toolCall", "toolResult", "bash", "custom", "summary", "name"], {
      description:
        "What the text is: `toolCall` a string of a call's arguments, `bash` a command of a user or its output, `custom` a push or a message of an extension, `summary` that of a compaction or a branch, `name` a name of the session, also a former one.",
    }),
    at: Type.Optional({ ...Timestamp, description: "When the entry was written, in Unix milliseconds." }),
    excerpt: Type.String({
      description:
        "The text around the first match of the entry: at most 80 UTF-16 units before it and 160 after it, not cut within a pair.",
    }),
    matchStart: Type.Integer({ minimum: 0, description: "Where the match begins in `excerpt`, in UTF-16 units." }),
    matchLength: Type.Integer({ minimum: 1, description: "In UTF-16 units." }),
    isCutAtStart: Type.Optional(Type.Boolean({ description: "The text has more before the excerpt." })),
    isCutAtEnd: Type.Optional(Type.Boolean({ description: "The text has more after the excerpt." })),
    isOnOtherBranch: Type.Optional(
      Type.Boolean({ description: "The entry is not on the branch that ends with the last entry of the file." }),
    ),
  },
  closed,
);
export type SearchHit = Static<typeof SearchHit>;

const Unsearched = Type.Object(
  {
    sessionId: SessionId,
    entryId: Type.Optional(Type.String({ description: "Only this entry." })),
    why: Type.Enum(["ephemeral", "file_older_form", "file_unusable", "file_rewritten", "entry_too_large"], {
      description:
        "`ephemeral`: it has no file. `file_older_form`: only pi reads the file. `file_unusable`: it is missing, unreadable, or of another session. `file_rewritten`: since the answer with this `before`; search again for the rest of this session. `entry_too_large`: of over 14 MiB, or 5 million parts.",
    }),
  },
  closed,
);
export type Unsearched = Static<typeof Unsearched>;

const errors = [
  "session_not_found",
  "session_closed",
  "session_lost",
  "session_asleep",
  "session_file_unusable",
  "child_exited",
  "unsupported_by_pi",
  "entry_not_found",
  "transcript_changed",
  "overloaded",
] as const;

/** Rows of the method table about reading a session's entries in parts. */
export const transcriptMethods = {
  "transcript/page": {
    summary:
      "Entries of one branch of the session, from its end backwards. It starts no pi, and reads at most 16 MiB of the session's file: a page can have fewer entries than asked for, or none.",
    params: params({
      sessionId: SessionId,
      leafId: Type.Optional({
        ...EntryId,
        description: "The last entry of the branch. Default: that of the active branch. Without effect with `before`.",
      }),
      before: Type.Optional({
        ...Place,
        description: "`before` of the page after it. Default: the end of the branch.",
      }),
      limit: Type.Optional(
        Type.Integer({ minimum: 1, maximum: 1_000, default: 50, description: "At most so many entries." }),
      ),
      maxBytes: Type.Optional(
        Type.Integer({
          minimum: 65_536,
          maximum: 8_388_608,
          default: 1_048_576,
          description: "At most so many bytes of entries as JSON. One entry is always there, with at most 256 KiB.",
        }),
      ),
    }),
    result: Type.Object(
      {
        entries: Type.Array(PiEntry, { description: "In the order of the branch." }),
        cuts: Type.Optional(
          Type.Array(TranscriptCut, {
            description:
              "Values that are not whole here. A string over 64 KiB ends after 8 KiB, or is empty where it is the `data` of an image. In an entry that is then still over 256 KiB, more is left out. An entry of over 14 MiB has only its `type`, `id` and `parentId`.",
          }),
        ),
        branchPoints: Type.Optional(
          Type.Array(BranchPoint, {
            description:
              "Entries of this page with children on other branches; at most 1,000 children. Absent where the daemon has not read all that follows this page, which is possible in files of over 16 MiB.",
          }),
        ),
        before: Type.Optional({
          ...Place,
          description:
            "For the page before this one. Absent at the beginning of the branch: an entry without a parent, or whose parent is missing.",
        }),
        leafId: leafIdOf("The last entry of this branch. `null`: the branch has no entries."),
        cursor: Type.Optional({
          ...Seq,
          description:
            "Without `before`: the place in the session's log up to which its messages are entries. With `leafId` too.",
        }),
        epoch: Type.Optional(Epoch),
        openAfter: Type.Optional({
          ...Seq,
          description:
            "During a run: the place in the log before the message and tools that are open. Events between it and `cursor` include messages that are entries already.",
        }),
      },
      closed,
    ),
    http: { verb: "GET", path: "/v1/sessions/{sessionId}/transcript" },
    scope: "none",
    capability: "observe",
    since: "0.1.0",
    errors,
    retry: "safe",
  },
  "transcript/outline": {
    summary:
      "The entries of all branches, each with its parent and its first words, from the end of the session's file backwards. It starts no pi, and reads at most 16 MiB of the file: a page can have fewer entries than asked for, or none.",
    params: params({
      sessionId: SessionId,
      before: Type.Optional({
        ...Place,
        description: "`before` of the page after it. Default: the end of the file, and what its pi has not written.",
      }),
      limit: Type.Optional(
        Type.Integer({ minimum: 1, maximum: 2_000, default: 500, description: "At most so many entries." }),
      ),
    }),
    result: Type.Object(
      {
        entries: Type.Array(OutlineEntry, {
          description:
            "In the order in which they were written. A parent can be on an earlier page, or missing. Of entries with the same id the last counts.",
        }),
        before: Type.Optional({ ...Place, description: "For the page before this one. Absent at the first entry." }),
        leafId: Type.Optional(
          leafIdOf("Without `before`: the last entry of the active branch. `null`: there are no entries."),
        ),
        parent: Type.Optional(
          Type.Object(
            {
              sessionId: Type.Optional({
                ...SessionId,
                description: "Absent if the daemon does not have it, or the token may not read it.",
              }),
            },
            { ...closed, description: "Without `before`: the session from which this one was made." },
          ),
        ),
      },
      closed,
    ),
    http: { verb: "GET", path: "/v1/sessions/{sessionId}/outline" },
    scope: "none",
    capability: "observe",
    since: "0.1.0",
    errors,
    retry: "safe",
  },
  "transcript/entry": {
    summary: "A piece of a value of an entry, such as a long text that a page has cut. It starts no pi.",
    params: params({
      sessionId: SessionId,
      entryId: EntryId,
      place: Type.Optional({
        ...Place,
        description:
          "As the page has it. Without it, the entry is found only in the last 16 MiB of the session's file.",
      }),
      path: Type.Optional({ ...Path, default: "", description: "As the page has it. Default: the whole entry." }),
      offset: Type.Optional(
        Type.Integer({ minimum: 0, maximum: 1_073_741_824, default: 0, description: "`next` of the piece before." }),
      ),
      length: Type.Optional(
        Type.Integer({ minimum: 1_024, maximum: 4_194_304, default: 262_144, description: "At most so many bytes." }),
      ),
    }),
    result: Type.Object(
      {
        text: Type.String({ description: "A part of the string; of another value, a part of its JSON." }),
        bytes: Type.Integer({ minimum: 0, description: "The size of the whole, as the page counts it." }),
        next: Type.Optional(
          Type.Integer({ description: "The `offset` of the piece after this one; absent at the end." }),
        ),
      },
      closed,
    ),
    http: { verb: "GET", path: "/v1/sessions/{sessionId}/transcript/{entryId}" },
    scope: "none",
    capability: "observe",
    since: "0.1.0",
    errors: [...errors, "too_large"],
    retry: "safe",
  },
  "transcript/search": {
    summary:
      "Entries that contain a text, of one session or of all, the newest session first and each from its end backwards. It starts no pi: it reads the sessions' files, at most 128 MiB and two seconds long; go on with `before`. Names of tools, keys of arguments, images and data of extensions are not searched.",
    params: params({
      query: Type.String({
        minLength: 1,
        maxLength: 256,
        description:
          "The text, literally. Letters of any case match, by simple case folding (CaseFolding.txt of Unicode, as `/iu` in ECMAScript): `É` is `é`, `ß` is `ẞ` but not `ss`. Composed and decomposed characters differ.",
      }),
      sessionId: Type.Optional({ ...SessionId, description: "Default: all sessions that the token may see." }),
      before: Type.Optional({ ...Place, description: "`before` of the answer that this one continues." }),
      limit: Type.Optional(
        Type.Integer({ minimum: 1, maximum: 200, default: 50, description: "At most so many hits, one per entry." }),
      ),
    }),
    result: Type.Object(
      {
        hits: Type.Array(SearchHit, { description: "In the order of the search. Entries of all branches." }),
        before: Type.Optional({ ...Place, description: "For the next call. Absent: everything was searched." }),
        sessions: Type.Integer({ minimum: 0, description: "How many sessions the search is about." }),
        sessionsLeft: Type.Integer({
          minimum: 0,
          description: "How many of them are not searched to their beginning yet.",
        }),
        bytes: Type.Integer({ minimum: 0, description: "How much this call has read." }),
        unsearched: Type.Optional(
          Type.Array(Unsearched, { description: "What this call has left out. At most 100; then it ends early." }),
        ),
      },
      closed,
    ),
    http: { verb: "GET", path: "/v1/search" },
    scope: "none",
    capability: "observe",
    since: "0.1.0",
    errors: ["session_not_found", "session_closed", "overloaded"],
    retry: "safe",
  },
} as const satisfies Readonly<Record<string, MethodRow>>;
