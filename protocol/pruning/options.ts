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

/** What texts of these patterns are, for who has written another. */
export const pruningWords: Readonly<Record<string, string>> = {
  [toolNamePattern]: "a tool's name",
  [percentPattern]: 'a percentage such as "80%"',
  [globPattern]: "a glob",
  [pathPattern]: "an absolute path",
  [modelPattern]: "a model as provider/id",
};

const enabled = (description: string) => maybe(flag, description);

/** How the model and the strategies of the extension keep a session's context small. Absent: not at all. */
export const PruningOptions = params({
  enabled: enabled("Whether the model has the tool `compress`, and the strategies run."),
  debug: maybe(flag, "Whether decisions are written to the daemon's log."),
  maxContext: maybe(limitOrAuto, "From here on the model is told to compress."),
  minContext: maybe(limitOrAuto, "Below it the model is not reminded."),
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
    "For single models, by `provider/id`.",
  ),
  nudgeFrequency: maybe(integer(1, most), "Requests between two reminders."),
  iterationNudgeThreshold: maybe(integer(1, most), "Tool results behind a user's message from which on it reminds."),
  nudgeDebounceTurns: maybe(integer(1, most), "User messages between two reminders of a turn."),
  nudgeForce: maybe(word(["soft", "strong"]), "How the model is told that the limit is reached."),
  nudges: maybe(
    params({
      maxFailures: maybe(integer(1, most), "Failed compressions in a row that stop reminders."),
      backoffMax: maybe(integer(1, most), "By how much at most the wait for the next reminder grows."),
      breakerCooldown: maybe(integer(1, most), "Requests until reminders begin again."),
    }),
    "What stops reminders.",
  ),
  manualMode: maybe(
    params({
      enabled: enabled("Whether the model waits for the user, or for the limit."),
      automaticStrategies: maybe(flag, "Whether the strategies run nevertheless."),
      strict: maybe(flag, "Whether the tool is refused until the user grants a call."),
    }),
    "The mode in which the user decides.",
  ),
  compress: maybe(
    params({
      permission: maybe(word(["allow", "ask", "deny"]), "Whether the tool runs; `ask`: by a dialog, 60 s, then no."),
      placeholderMode: maybe(word(["strict", "lenient", "adaptive"]), "What happens to wrong placeholders of blocks."),
      minRangeTokens: maybe(integer(0, 100_000), "Smaller ranges are refused."),
      minSavings: maybe(Type.Number({ minimum: 0, maximum: 0.9 }), "The share of a range that has to go."),
      protectUserMessages: maybe(flag, "Whether the user's own texts are kept in a block."),
      protectedTools: maybe(globs, "Tools whose outputs are kept in a block."),
    }),
    "The tool.",
  ),
  protectedFilePatterns: maybe(globs, "Files whose outputs stay, by a tool's path argument."),
  protectRecentTurns: maybe(integer(1, 50), "The newest turns, which stay as they are."),
  tagAssistant: maybe(flag, "Whether the model's own messages have ids too."),
  blocks: maybe(
    params({
      maxTokens: maybe(limit, "What all blocks together may take; older ones are shortened. 1,000 tokens to 50 %."),
    }),
    "How blocks are shown.",
  ),
  strategies: maybe(
    params({
      deduplication: maybe(
        params({ enabled: enabled("On or off."), protectedTools: maybe(globs, "Tools whose outputs stay.") }),
        "Of equal calls only the newest output stays.",
      ),
      purgeErrors: maybe(
        params({
          enabled: enabled("On or off."),
          turns: maybe(integer(1, most), "Turns behind a failed call."),
          mode: maybe(word(["inputs", "both"]), "Its arguments alone, or the error's text too."),
          protectedTools: maybe(globs, "Tools whose calls stay."),
        }),
        "Long arguments of failed calls go.",
      ),
      supersedeWrites: maybe(
        params({ enabled: enabled("On or off.") }),
        "What was written to a file that was written again goes.",
      ),
      staleReads: maybe(
        params({ enabled: enabled("On or off.") }),
        "What was read of a file that was written later goes.",
      ),
      sizeDecay: maybe(
        params({
          enabled: enabled("On or off."),
          turns: maybe(integer(1, most), "Older outputs are shortened."),
          minTokens: maybe(integer(1, 10_000_000), "Longer ones are."),
          head: maybe(integer(0, 1_000_000), "Characters of the beginning that stay."),
          tail: maybe(integer(0, 1_000_000), "Characters of the end that stay."),
        }),
        "Old large outputs are shortened.",
      ),
    }),
    "What goes without the model.",
  ),
  nativeCompaction: maybe(
    params({
      fromBlocks: maybe(flag, "Whether a compaction takes its summary from blocks, where they cover what goes."),
      minPrefixShare: maybe(Type.Number({ minimum: 0, maximum: 1 }), "The share of the context that they must cover."),
      guard: maybe(flag, "Whether a compaction is called off that pruning has made needless."),
    }),
    "pi's own compaction.",
  ),
  notification: maybe(word(["off", "minimal", "detailed"]), "What the user is told."),
  childSessions: maybe(flag, "Whether delegated sessions prune too."),
  prompts: maybe(
    params({
      dir: maybe(Type.Union([Type.String({ pattern: pathPattern }), Type.Null()]), "A directory with own texts."),
    }),
    "What the model is told.",
  ),
});
export type PruningOptions = Static<typeof PruningOptions>;

/** What of it only who administers the daemon may give: what names files. */
export const pruningNeeds = [{ param: "pruning.prompts.dir", capability: "admin" }] as const;
