import type { Static } from "typebox";
import { DialogUnsupported } from "../dialog.ts";
import { Type } from "../json-schema.ts";
import { pruningNotices } from "../pruning/notices.ts";
import { SessionLabelled, SessionNavigated } from "../tree.ts";

const tokens = (description: string) => Type.Integer({ minimum: 0, description });
/** As reported: some providers say numbers below 0, and pi adds them. */
const counted = (description: string) => Type.Number({ description });
const usd = (description: string) => Type.Number({ description: `${description} USD.` });
const label = Type.String({ minLength: 1, maxLength: 120 });
const closed = { additionalProperties: false } as const;

/** pi's own counts, as an assistant's message has them. */
export const CostUsage = Type.Object(
  {
    input: counted("Neither read from the provider's cache nor written to it."),
    output: counted("What the model wrote."),
    cacheRead: counted("Read from the cache."),
    cacheWrite: counted("Written to it."),
    totalTokens: counted("The four before together, as pi's own statistics have it."),
    cost: Type.Object(
      {
        input: usd("For input."),
        output: usd("For output."),
        cacheRead: usd("For what was read from the cache."),
        cacheWrite: usd("For what was written to it."),
        total: usd("What all of it cost; a provider may say another sum than that of the four."),
      },
      closed,
    ),
  },
  { ...closed, description: "Tokens and USD, in the shape of a message's `usage` in pi." },
);
export type CostUsage = Static<typeof CostUsage>;

const byName = (description: string) => Type.Record(Type.String(), CostUsage, { maxProperties: 256, description });

export const CostCheckpointEvent = Type.Object(
  {
    type: Type.Literal("cost_checkpoint"),
    label,
    deltaTokens: { ...CostUsage, description: "Since the last checkpoint." },
    cumulativeTokens: CostUsage,
    cumulativeCost: usd("Since the session began."),
  },
  closed,
);
export type CostCheckpointEvent = Static<typeof CostCheckpointEvent>;

export const CostCheckpointDetail = Type.Object(
  {
    deltaCost: usd("Since the last checkpoint."),
    byModel: byName("Of the delta, by `provider/id`."),
    bySource: byName("Of the delta, by source."),
    requests: Type.Integer({ minimum: 0, description: "Requests of the delta whose usage was reported." }),
    wallMs: Type.Integer({ minimum: 0, description: "Since the last checkpoint." }),
    phasePath: Type.Array(label, { maxItems: 32, description: "The phases that are open, the outermost first." }),
    estimated: Type.Boolean({ description: "A price was missing, so that the USD are too low." }),
  },
  closed,
);
export type CostCheckpointDetail = Static<typeof CostCheckpointDetail>;

/** Where a request begins to differ from the one before, or why its cache was not there. */
const CacheCause = Type.String({
  maxLength: 128,
  pattern: "^(?:tool_set|tool_order|section:.+|edit:.+|compaction|branch|model|expired|service)$",
  description:
    "`tool_set`, `tool_order`, `section:<name>` of the prompt, `edit:<part>` of ours or `edit:foreign`, `compaction`, `branch`, `model` (or how it is to think), `expired`, or `service`: the request was the same as before, and the provider read nothing of it or less than it had.",
});

export const CacheBroken = Type.Object(
  {
    cause: CacheCause,
    position: Type.String({
      maxLength: 256,
      description:
        "The first place that differs: `tools`, `system`, `message 12` behind the prompt, `settings`, `model`; `none` where the request itself has not lost it.",
    }),
    predictedTokens: tokens(
      "What the provider could have read from its cache, by what it reported of the request before.",
    ),
    readTokens: tokens("What it says it has read."),
    missedTokens: tokens("The difference."),
    missedUsd: usd("What that cost more than reading it."),
    model: Type.String({ maxLength: 512 }),
  },
  closed,
);
export type CacheBroken = Static<typeof CacheBroken>;

export const BudgetReached = Type.Object(
  {
    scope: Type.Enum(["session", "phase"]),
    label: Type.Optional({ ...label, description: "Of the phase." }),
    budgetUsd: usd("The budget."),
    spentUsd: usd("What is spent of it."),
    level: Type.Enum(["warning", "spent"]),
    action: Type.Enum(["warn", "stop"], { description: "`stop`: the next prompt is refused." }),
  },
  closed,
);
export type BudgetReached = Static<typeof BudgetReached>;

export const Degraded = Type.Object(
  {
    part: Type.String({ minLength: 1, maxLength: 64 }),
    reason: Type.String({ minLength: 1, maxLength: 1_024 }),
    figures: Type.Optional(Type.Record(Type.String(), Type.Number(), { maxProperties: 16 })),
  },
  closed,
);
export type Degraded = Static<typeof Degraded>;

export const CostCheckpointed = Type.Object({ event: CostCheckpointEvent, detail: CostCheckpointDetail }, closed);
export type CostCheckpointed = Static<typeof CostCheckpointed>;

/** What parts inside pi tell subscribers, by the notification's name. */
export const notices = {
  "dialog/unsupported": DialogUnsupported,
  "session/navigated": SessionNavigated,
  "session/labelled": SessionLabelled,
  "cache/broken": CacheBroken,
  "cost/checkpointed": CostCheckpointed,
  "cost/budgetReached": BudgetReached,
  "optimisation/degraded": Degraded,
  ...pruningNotices,
} as const;
export type NoticeName = keyof typeof notices;
export type NoticeData = { readonly [N in NoticeName]: Static<(typeof notices)[N]> };
