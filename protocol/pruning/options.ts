import type { Static, TSchema } from "typebox";
import { Type } from "../json-schema.ts";
import { toolNamePattern } from "../optimisation/options.ts";
import { params } from "../params.ts";

const maybe = <T extends TSchema>(schema: T, description: string) => Type.Optional({ ...schema, description });
const integer = (minimum: number, maximum: number) => Type.Integer({ minimum, maximum });
const word = <const W extends string>(words: readonly W[]) => Type.Enum([...words]);
const flag = Type.Boolean();
const most = 1_000;

const percentPattern = "^(?:100|[0-9]{1,2})(?:\\.[0-9]{1,3})?%$";
/** A share of the window as a fraction or in percent, or tokens. */
const limit = Type.Union([
  Type.Number({ minimum: 0, maximum: 1 }),
  Type.Integer({ minimum: 1_000, maximum: 100_000_000 }),
  Type.String({ pattern: percentPattern }),
]);
const limitOrAuto = Type.Union([Type.Enum(["auto"]), limit]);
export type PruningLimit = Static<typeof limit>;

const globPattern = "^[^\\u0000]{1,512}$";
const globs = Type.Array(Type.String({ pattern: globPattern }), { maxItems: 256 });
const pathPattern = "^/[^\\u0000]{0,4095}$";
const modelPattern = "^[^/\\s]{1,128}/[^\\s]{1,256}$";

/** Descriptions of the texts that these patterns match, for error messages. */
export const pruningWords: Readonly<Record<string, string>> = {
  [toolNamePattern]: "a tool's name",
  [percentPattern]: 'a percentage such as "80%"',
  [globPattern]: "a glob",
  [pathPattern]: "an absolute path",
  [modelPattern]: "a model as provider/id",
};

const enabled = (description: string) => maybe(flag, description);

/** How the model and the extension's strategies keep a session's context small. Absent: off. */
export const PruningOptions = params({
  enabled: enabled("Whether the model has the tool `compress`, and the strategies run."),
  debug: maybe(flag, "Whether decisions are written to the daemon's log."),
  maxContext: maybe(limitOrAuto, "From this size on the model is told to compress."),
  minContext: maybe(limitOrAuto, "Below this size the model is not reminded."),
  models: maybe(
    Type.Record(
      Type.String(),
      params({
        enabled: enabled("Whether pruning is on for this model."),
        maxContext: maybe(limitOrAuto, "For this model."),
        minContext: maybe(limitOrAuto, "For this model."),
      }),
      { maxProperties: 256, propertyNames: { pattern: modelPattern } },
    ),
    "Per model, by `provider/id`.",
  ),
  nudgeFrequency: maybe(integer(1, most), "Requests between two reminders."),
  iterationNudgeThreshold: maybe(integer(1, most), "Tool results after a user message before the first reminder."),
  nudgeDebounceTurns: maybe(integer(1, most), "User messages between two reminders of a turn."),
  nudgeForce: maybe(word(["soft", "strong"]), "How the model is told that it reached the limit."),
  nudges: maybe(
    params({
      maxFailures: maybe(integer(1, most), "Failed compressions in a row that stop reminders."),
      backoffMax: maybe(integer(1, most), "Maximum factor by which the wait for the next reminder grows."),
      breakerCooldown: maybe(integer(1, most), "Requests until reminders begin again."),
    }),
    "What stops reminders.",
  ),
  manualMode: maybe(
    params({
      enabled: enabled("Whether the model waits for the user, or for the limit."),
      automaticStrategies: maybe(flag, "Whether the strategies run anyway."),
      strict: maybe(flag, "Whether the tool is refused until the user allows a call."),
    }),
    "The mode in which the user decides.",
  ),
  compress: maybe(
    params({
      permission: maybe(word(["allow", "ask", "deny"]), "Whether the tool runs; `ask`: by a dialog, 60 s, then no."),
      placeholderMode: maybe(word(["strict", "lenient", "adaptive"]), "How wrong block placeholders are handled."),
      minRangeTokens: maybe(integer(0, 100_000), "Smaller ranges are refused."),
      minSavings: maybe(
        Type.Number({ minimum: 0, maximum: 0.9 }),
        "The minimum share of a range that must be removed.",
      ),
      protectUserMessages: maybe(flag, "Whether the user's own texts are kept in a block."),
      protectedTools: maybe(globs, "Tools whose outputs are kept in a block."),
    }),
    "The tool.",
  ),
  protectedFilePatterns: maybe(globs, "Files whose outputs are never removed, by a tool's path argument."),
  protectRecentTurns: maybe(integer(1, 50), "Number of newest turns that are not changed."),
  tagAssistant: maybe(flag, "Whether the model's own messages also have ids."),
  blocks: maybe(
    params({
      maxTokens: maybe(limit, "Limit for all blocks together; older ones are shortened. 1,000 tokens to 50 %."),
    }),
    "How blocks are shown.",
  ),
  strategies: maybe(
    params({
      deduplication: maybe(
        params({
          enabled: enabled("Whether the strategy is on."),
          protectedTools: maybe(globs, "Tools whose outputs are never removed."),
        }),
        "Keeps only the newest output of equal calls.",
      ),
      purgeErrors: maybe(
        params({
          enabled: enabled("Whether the strategy is on."),
          turns: maybe(integer(1, most), "Turns after a failed call."),
          mode: maybe(word(["inputs", "both"]), "Only its arguments, or also the error's text."),
          protectedTools: maybe(globs, "Tools whose calls are never removed."),
        }),
        "Removes long arguments of failed calls.",
      ),
      supersedeWrites: maybe(
        params({ enabled: enabled("Whether the strategy is on.") }),
        "Removes writes to files that were written again later.",
      ),
      staleReads: maybe(
        params({ enabled: enabled("Whether the strategy is on.") }),
        "Removes reads of files that were written later.",
      ),
      sizeDecay: maybe(
        params({
          enabled: enabled("Whether the strategy is on."),
          turns: maybe(integer(1, most), "The age in turns from which outputs are shortened."),
          minTokens: maybe(integer(1, 10_000_000), "The size in estimated tokens from which outputs are shortened."),
          head: maybe(integer(0, 1_000_000), "Characters kept at the beginning."),
          tail: maybe(integer(0, 1_000_000), "Characters kept at the end."),
        }),
        "Shortens old large outputs.",
      ),
    }),
    "Strategies that remove content without the model.",
  ),
  nativeCompaction: maybe(
    params({
      fromBlocks: maybe(
        flag,
        "Whether a compaction builds its summary from blocks, if they cover the compacted messages.",
      ),
      minPrefixShare: maybe(
        Type.Number({ minimum: 0, maximum: 1 }),
        "The share of the context that blocks must cover.",
      ),
      guard: maybe(flag, "Whether a compaction is cancelled when pruning has made it unnecessary."),
    }),
    "pi's own compaction.",
  ),
  notification: maybe(word(["off", "minimal", "detailed"]), "Notifications to the user."),
  childSessions: maybe(flag, "Whether delegated sessions are pruned, too."),
  prompts: maybe(
    params({
      dir: maybe(
        Type.Union([Type.String({ pattern: pathPattern }), Type.Null()]),
        "A directory with replacement texts.",
      ),
    }),
    "Texts for the model.",
  ),
});
export type PruningOptions = Static<typeof PruningOptions>;

/** Options that need `admin`: those that name files. */
export const pruningNeeds = [{ param: "pruning.prompts.dir", capability: "admin" }] as const;
