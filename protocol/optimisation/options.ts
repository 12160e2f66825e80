import type { Static, TSchema } from "typebox";
import { Type } from "../json-schema.ts";
import { params } from "../params.ts";

const maybe = <T extends TSchema>(schema: T, description: string) => Type.Optional({ ...schema, description });
const orNull = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
const integer = (minimum: number, maximum: number) => Type.Integer({ minimum, maximum });
const share = (minimum: number, maximum: number) => Type.Number({ minimum, maximum });
const word = <const W extends string>(words: readonly W[]) => Type.Enum([...words]);
const flag = Type.Boolean();
export const toolNamePattern = "^[A-Za-z_*][A-Za-z0-9_.*:-]{0,127}$";
const toolName = Type.String({ pattern: toolNamePattern });
const modelPattern = "^[^/\\s]{1,128}/[^\\s]{1,256}$";
const pathPattern = "^/[^\\u0000]{0,4095}$";
const path = Type.String({ pattern: pathPattern });

/** What texts of these patterns are, for who has written another. */
export const optimisationWords: Readonly<Record<string, string>> = {
  [toolNamePattern]: "a tool's name",
  [modelPattern]: "a model as provider/id",
  [pathPattern]: "an absolute path",
};

/** A part is on when this is true, or when it is absent and anything else of the part is given. */
const enabled = maybe(flag, "Whether the part is on. Default: whether any of its other options is given.");

/** How much of a tool's output is kept. Characters. */
export const ToolResultPolicy = params({
  keep: word(["none", "head", "tail", "headTail"]),
  head: maybe(integer(0, 1_000_000), "Characters of the beginning."),
  tail: maybe(integer(0, 1_000_000), "Characters of the end."),
  above: maybe(integer(200, 1_000_000), "Only what is longer is cut."),
});
export type ToolResultPolicy = Static<typeof ToolResultPolicy>;

const EstimatorOptions = params({
  enabled,
  tokenizer: maybe(word(["chars", "bpe"]), "How tokens are counted."),
  cacheEntries: maybe(integer(100, 1_000_000), "Counts that are kept, by the content's hash."),
  window: maybe(integer(1, 1_000), "Responses that the factors are learnt from."),
  imageTokens: maybe(integer(0, 100_000), "Tokens of an image."),
});

const CostOptions = params({
  enabled,
  autoCheckpoint: maybe(word(["run", "turn", "off"]), "When a checkpoint is made by itself."),
  budgetUsd: maybe(
    orNull(Type.Number({ exclusiveMinimum: 0, maximum: 1_000_000 })),
    "What the session may cost, in USD.",
  ),
  onBudget: maybe(word(["warn", "stop"]), "What happens when it is spent. `stop` refuses the next prompt."),
  warnAt: maybe(share(0.1, 1), "The share of a budget at which it is told of."),
});

const CacheOptions = params({
  enabled,
  audit: maybe(flag, "Names the cause where the provider's cache is lost."),
  sortTools: maybe(flag, "Tools in the order of their names."),
  warnVolatile: maybe(flag, "Reports text before a cache mark that varies from request to request."),
  noiseTokens: maybe(integer(0, 1_000_000), "Losses below it are not told."),
  minBatchTokens: maybe(
    integer(0, 10_000_000),
    "Changes to earlier context wait until they free so much; at most 15 % of the window.",
  ),
});

const ToolResultsOptions = params({
  enabled,
  tools: maybe(
    Type.Record(Type.String(), ToolResultPolicy, {
      maxProperties: 256,
      propertyNames: { pattern: toolNamePattern },
    }),
    "By the tool's name; `*` stands for every other one.",
  ),
  errorTail: maybe(integer(0, 1_000_000), "Characters of the end that an error keeps."),
  spillMaxMiB: maybe(integer(0, 102_400), "What is kept on disk of the cut texts of one session."),
});

const MaskingOptions = params({
  enabled,
  afterTurns: maybe(integer(1, 200), "Model turns after which an output may be masked."),
  afterUserTurns: maybe(orNull(integer(1, 200)), "User turns after which it may; if set, both must hold."),
  protectTokens: maybe(
    integer(0, 10_000_000),
    "The newest outputs of so many tokens are never masked; at most 25 % of the window.",
  ),
  expectedRequests: maybe(
    Type.Union([Type.Enum(["auto"]), integer(1, 10_000)]),
    "Requests that are still to come, for the cache rule. auto: the session's mean of a prompt.",
  ),
  errors: maybe(word(["keep", "mask"]), "What becomes of results that are errors."),
  images: maybe(word(["keep", "mask"]), "What becomes of images."),
  excludeTools: maybe(Type.Array(toolName, { maxItems: 256 }), "Tools whose outputs stay."),
});

const threshold = {
  thresholdPercent: maybe(share(0.5, 0.95), "The share of the window at which the context is compacted."),
  maxContextTokens: maybe(orNull(integer(1_000, 100_000_000)), "Tokens at which it is, if that is less."),
};

const CompactionOptions = params({
  enabled,
  ...threshold,
  models: maybe(
    Type.Record(Type.String(), params(threshold), {
      maxProperties: 256,
      propertyNames: { pattern: modelPattern },
    }),
    "The same for single models, by `provider/id`.",
  ),
  route: maybe(
    word(["auto", "settings", "draft", "off"]),
    "By pi's own settings in a configuration directory of the daemon, or by a draft at a boundary.",
  ),
  minFreeShare: maybe(share(0.05, 0.9), "A compaction that could free less is not started."),
  minTurnsBetween: maybe(integer(1, 1_000), "Turns between two compactions."),
  prompt: maybe(orNull(path), "A file with the words by which the summary is asked for."),
});

const ContextFilesOptions = params({
  enabled,
  dedupe: maybe(flag, "Paragraphs that several files have occur once."),
  minParagraphChars: maybe(integer(20, 100_000), "Shorter paragraphs are left alone."),
  budgetTokens: maybe(integer(100, 1_000_000), "Of all context files together."),
  sections: maybe(
    Type.Array(
      params({
        heading: Type.String({
          minLength: 1,
          maxLength: 256,
          description: "A heading, without its #; `*` for any rest.",
        }),
        label: maybe(
          Type.String({ maxLength: 321 }),
          "Included where the session has this label: `name` or `name=text`.",
        ),
        path: maybe(
          Type.String({ minLength: 1, maxLength: 4_096 }),
          "Included where this path exists, from the working directory.",
        ),
      }),
      { maxItems: 256 },
    ),
    "Sections that are included on a condition only.",
  ),
});

const SkillsOptions = params({
  enabled,
  mode: maybe(word(["pointer", "digest", "off"]), "What `/skill:x` becomes when it is used again, or at all."),
  digestTokens: maybe(integer(50, 10_000), "Tokens of a digest."),
  inlineBelowTokens: maybe(integer(0, 100_000), "In the mode `digest`, shorter skills are given whole."),
  prefetch: maybe(
    Type.Array(Type.String({ minLength: 1, maxLength: 128 }), { maxItems: 64 }),
    "Skills that the prompt has whole from the start.",
  ),
});

const FormatOptions = params({
  enabled,
  report: maybe(flag, "Counts what the prompt's wrappers take."),
  sections: maybe(word(["xml", "markdown"]), "How sections of the prompt are set off."),
});

const DynamicToolsOptions = params({
  enabled,
  mode: maybe(word(["auto", "three", "off"]), "Three tools that find, describe and run all others."),
  minTools: maybe(integer(1, 10_000), "With fewer tools all are declared."),
  keep: maybe(Type.Array(toolName, { maxItems: 256 }), "Tools that are always declared."),
  allowActivation: maybe(flag, "Whether tools that cannot be run for the model are activated when it asks."),
  synonyms: maybe(orNull(path), "A JSON file: words, each with a list of others that mean the same."),
});

/** How a session spends fewer tokens, and knows what it costs. A part of it that is not named is off. */
export const OptimisationOptions = params({
  estimator: Type.Optional(EstimatorOptions),
  cost: Type.Optional(CostOptions),
  cache: Type.Optional(CacheOptions),
  toolResults: Type.Optional(ToolResultsOptions),
  masking: Type.Optional(MaskingOptions),
  compaction: Type.Optional(CompactionOptions),
  contextFiles: Type.Optional(ContextFilesOptions),
  skills: Type.Optional(SkillsOptions),
  format: Type.Optional(FormatOptions),
  dynamicTools: Type.Optional(DynamicToolsOptions),
});
export type OptimisationOptions = Static<typeof OptimisationOptions>;

/** What names files, or asks whether there are some: it needs what reading files needs. */
const optimisationPaths = [
  "optimisation.compaction.prompt",
  "optimisation.dynamicTools.synonyms",
  "optimisation.contextFiles.sections[].path",
] as const;

/** What of the options only who administers the daemon may give: what names files, and what holds for all sessions. */
export const optimisationNeeds = [
  ...optimisationPaths.map((param) => ({ param, capability: "admin" }) as const),
  { param: "optimisation.compaction.route", value: "settings", capability: "admin" },
] as const;
