import type { Static } from "typebox";
import { Timestamp } from "./ids.ts";
import { Type } from "./json-schema.ts";
import type { MethodRow } from "./method-row.ts";
import { params } from "./params.ts";

/** The message of a line that a part inside pi has sent, because its configuration asks for it. */
export const PART_REPORT = "report of a helper part";

/** Levels of the daemon's log, the lowest first. */
export const logLevels = ["trace", "debug", "info", "warn", "error", "fatal"] as const;
export type LogLevel = (typeof logLevels)[number];

/** The most lines that one call returns. */
const maxLines = 500;

const Place = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });

/** A line of the daemon's log. */
export const LogLine = Type.Object(
  {
    seq: { ...Place, description: "Its place: one more than that of the line before it." },
    time: Timestamp,
    level: Type.Enum([...logLevels]),
    message: Type.String(),
    fields: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), {
        description:
          "What else the line has, such as `sessionId`, `generation`, `connectionId` or `err`. Default: nothing.",
      }),
    ),
    isCut: Type.Optional(
      Type.Literal(true, { description: "The line is longer than 8 KiB in the log, and shortened here." }),
    ),
  },
  { additionalProperties: false },
);
export type LogLine = Static<typeof LogLine>;

/** Method rows for the daemon's log. */
export const logMethods = {
  "daemon/log": {
    summary:
      "The newest lines of the daemon's own log, as long as the daemon runs; without `after` and `before` the last ones. It covers all sessions: a token with limits is `forbidden`, and `data.limit` names the limit.",
    params: params({
      after: Type.Optional({
        ...Place,
        description: "Only lines after this place, the oldest first: the `cursor` of an earlier answer.",
      }),
      before: Type.Optional({ ...Place, description: "Only lines before this place, the newest of them." }),
      level: Type.Optional(
        Type.Enum([...logLevels], { description: "Only lines of this level and higher ones. Default: all." }),
      ),
      limit: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: maxLines,
          default: 100,
          description: "The most lines. An answer has fewer if they are long.",
        }),
      ),
    }),
    result: Type.Object(
      {
        lines: Type.Array(LogLine, { description: "In the order of the log." }),
        cursor: { ...Place, description: "The place from which to go on with `after`." },
        hasMore: Type.Boolean({
          description:
            "With `after`: whether later lines follow at once. Otherwise: whether the daemon has older ones.",
        }),
        missed: Type.Optional(
          Type.Object(
            {
              reason: Type.Enum(["dropped", "other_daemon"], {
                description:
                  "`dropped`: lines are no longer kept. Reports of the parts inside pi have a smaller place of their own, so that they push no other line out. `other_daemon`: this daemon did not write `after`, so that the lines begin with its own first ones.",
              }),
              lines: Type.Optional(Type.Integer({ description: "How many were dropped." })),
            },
            { additionalProperties: false, description: "What is missing between `after` and `cursor`." },
          ),
        ),
      },
      { additionalProperties: false },
    ),
    http: { verb: "GET", path: "/v1/log" },
    scope: "none",
    capability: "observe",
    since: "0.1.0",
    errors: ["forbidden"],
    retry: "safe",
  },
} as const satisfies Readonly<Record<string, MethodRow>>;

export type DaemonLogQuery = Static<(typeof logMethods)["daemon/log"]["params"]>;
export type DaemonLog = Static<(typeof logMethods)["daemon/log"]["result"]>;
