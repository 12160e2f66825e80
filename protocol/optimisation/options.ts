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

/** Descriptions of the texts that these patterns match, for error messages. */
export const optimisationWords: Readonly<Record<string, string>> = {
  [toolNamePattern]: "a tool's name",
  [modelPattern]: "a model as provider/id",
  [pathPattern]: "an absolute path",
};

/** A part is on if this is true, or if it is absent and any other option of the part is set. */
const enabled = maybe(flag, "Whether the part is on. Default: true if any of its other options is set.");

/** How much of a tool's output is kept, in characters. */
export const ToolResultPolicy = params({
  keep: word(["none", "head", "tail", "headTail"]),
  head: maybe(integer(0, 1_000_000), "Characters kept at the beginning."),
  tail: maybe(integer(0, 1_000_000), "Characters kept at the end."),
  above: maybe(integer(200, 1_000_000), "Only longer outputs are cut."),
});
export type ToolResultPolicy = Static<typeof ToolResultPolicy>;

const EstimatorOptions = params({
  enabled,
  tokenizer: maybe(word(["chars", "bpe"]), "How tokens are counted."),
  cacheEntries: maybe(integer(100, 1_000_000), "Cached counts, by the content's hash."),
  window: maybe(integer(1, 1_000), "Number of responses from which the factors are learnt."),
  imageTokens: maybe(integer(0, 100_000), "Tokens counted for an image."),
});

const CostOptions = params({
  enabled,
  autoCheckpoint: maybe(word(["run", "turn", "off"]), "When a checkpoint is made automatically."),
  budgetUsd: maybe(
    orNull(Type.Number({ exclusiveMinimum: 0, maximum: 1_000_000 })),
    "Cost budget of the session, in USD.",
  ),
  onBudget: maybe(word(["warn", "stop"]), "What happens when the budget is spent. `stop` refuses the next prompt."),
  warnAt: maybe(share(0.1, 1), "The share of a budget at which subscribers are warned."),
});

const CacheOptions = params({
  enabled,
  audit: maybe(flag, "Reports the cause when the provider's cache is lost."),
  sortTools: maybe(flag, "Sorts tools by name."),
  warnVolatile: maybe(flag, "Reports text before a cache mark that varies from request to request."),
  noiseTokens: maybe(integer(0, 1_000_000), "Smaller losses are not reported."),
  minBatchTokens: maybe(
    integer(0, 10_000_000),
    "Changes to earlier context are delayed until they free this many tokens; at most 15 % of the window.",
  ),
});

const ToolResultsOptions = params({
  enabled,
  tools: maybe(
    Type.Record(Type.String(), ToolResultPolicy, {
      maxProperties: 256,
      propertyNames: { pattern: toolNamePattern },
    }),
    "By tool name; `*` matches all others.",
  ),
  errorTail: maybe(integer(0, 1_000_000), "Characters kept at the end of an error."),
  spillMaxMiB: maybe(integer(0, 102_400), "Maximum bytes on disk of one session's cut texts."),
});

const MaskingOptions = params({
  enabled,
  afterTurns: maybe(integer(1, 200), "Model turns after which an output may be masked."),
  afterUserTurns: maybe(
    orNull(integer(1, 200)),
    "User turns after which an output may be masked; if set, both conditions apply.",
  ),
  protectTokens: maybe(
    integer(0, 10_000_000),
    "The newest outputs, up to this many tokens, are never masked; at most 25 % of the window.",
  ),
  expectedRequests: maybe(
    Type.Union([Type.Enum(["auto"]), integer(1, 10_000)]),
    "Expected number of further requests, for the cache rule. auto: the session's average per prompt.",
  ),
  errors: maybe(word(["keep", "mask"]), "Handling of error results."),
  images: maybe(word(["keep", "mask"]), "Handling of images."),
  excludeTools: maybe(Type.Array(toolName, { maxItems: 256 }), "Tools whose outputs are never masked."),
});

const threshold = {
  thresholdPercent: maybe(
    Type.Union([Type.Enum(["auto"]), share(0.5, 0.95)]),
    "The share of the window at which the context is compacted. auto: 0.7; without `maxContextTokens` also at most 100,000 tokens, and a turn below the model's next dearer tier.",
  ),
  maxContextTokens: maybe(
    orNull(integer(1_000, 100_000_000)),
    "Number of tokens at which the context is compacted, if that is less.",
  ),
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
    "How: with pi's own settings in a configuration directory of the daemon, or with a draft entry at a boundary.",
  ),
  minFreeShare: maybe(share(0.05, 0.9), "A compaction that would free less is not started."),
  minTurnsBetween: maybe(integer(1, 1_000), "Minimum number of turns between two compactions."),
  prompt: maybe(orNull(path), "A file with the instructions for the summary."),
});

const ContextFilesOptions = params({
  enabled,
  dedupe: maybe(flag, "Includes paragraphs that occur in several files only once."),
  minParagraphChars: maybe(integer(20, 100_000), "Shorter paragraphs are not deduplicated."),
  budgetTokens: maybe(integer(100, 1_000_000), "Limit for all context files together."),
  sections: maybe(
    Type.Array(
      params({
        heading: Type.String({
          minLength: 1,
          maxLength: 256,
          description: "A heading without its #; `*` matches any suffix.",
        }),
        label: maybe(Type.String({ maxLength: 321 }), "Included if the session has this label: `name` or `name=text`."),
        path: maybe(
          Type.String({ minLength: 1, maxLength: 4_096 }),
          "Included if this path exists, relative to the working directory.",
        ),
      }),
      { maxItems: 256 },
    ),
    "Conditional sections.",
  ),
});

const SkillsOptions = params({
  enabled,
  mode: maybe(word(["pointer", "digest", "off"]), "Replacement of `/skill:x` when it is used repeatedly, or always."),
  digestTokens: maybe(integer(50, 10_000), "Maximum tokens of a digest."),
  inlineBelowTokens: maybe(integer(0, 100_000), "In the mode `digest`, shorter skills are complete."),
  prefetch: maybe(
    Type.Array(Type.String({ minLength: 1, maxLength: 128 }), { maxItems: 64 }),
    "Skills whose complete text is in the prompt from the start.",
  ),
});

const FormatOptions = params({
  enabled,
  report: maybe(flag, "Counts the tokens of the prompt's wrappers."),
  sections: maybe(word(["xml", "markdown"]), "How sections of the prompt are delimited."),
});

const DynamicToolsOptions = params({
  enabled,
  mode: maybe(word(["auto", "three", "off"]), "Replaces tools by three that find, describe and run all others."),
  minTools: maybe(integer(1, 10_000), "With fewer tools, all are declared."),
  keep: maybe(Type.Array(toolName, { maxItems: 256 }), "Tools that are always declared."),
  allowActivation: maybe(
    flag,
    "Whether the part also works on a pi that cannot run one tool for another, by activating tools on request. Each activation costs the provider's cache.",
  ),
  synonyms: maybe(orNull(path), "A JSON file that maps words to lists of synonyms."),
});

/** Options to use fewer tokens and to track costs. Parts that are not named are off. */
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

/** Options that name files, or test for their existence: they need the capability to read files. */
const optimisationPaths = [
  "optimisation.compaction.prompt",
  "optimisation.dynamicTools.synonyms",
  "optimisation.contextFiles.sections[].path",
] as const;

/** Options that need `admin`: those that name files, and those that affect all sessions. */
export const optimisationNeeds = [
  ...optimisationPaths.map((param) => ({ param, capability: "admin" }) as const),
  { param: "optimisation.compaction.route", value: "settings", capability: "admin" },
] as const;
