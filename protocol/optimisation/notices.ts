import type { Static } from "typebox";
import { DialogUnsupported } from "../dialog.ts";
import { Type } from "../json-schema.ts";
import { pruningNotices } from "../pruning/notices.ts";
import { SessionLabelled, SessionNavigated } from "../tree.ts";

const tokens = (description: string) => Type.Integer({ minimum: 0, description });
/** As reported: some providers report negative numbers, and pi adds them. */
const counted = (description: string) => Type.Number({ description });
const usd = (description: string) => Type.Number({ description: `${description} USD.` });
const label = Type.String({ minLength: 1, maxLength: 120 });
const closed = { additionalProperties: false } as const;

/** pi's own counts, as in an assistant's message. */
export const CostUsage = Type.Object(
  {
    input: counted("Input tokens that were neither read from the provider's cache nor written to it."),
    output: counted("Output tokens."),
    cacheRead: counted("Tokens read from the cache."),
    cacheWrite: counted("Tokens written to the cache."),
    totalTokens: counted("The sum of the four, as in pi's own statistics."),
    cost: Type.Object(
      {
        input: usd("For input."),
        output: usd("For output."),
        cacheRead: usd("For tokens read from the cache."),
        cacheWrite: usd("For tokens written to the cache."),
        total: usd("The total; a provider may report another total than the sum of the four."),
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
    byModel: byName("The delta by model, as `provider/id`."),
    bySource: byName("The delta by source."),
    requests: Type.Integer({ minimum: 0, description: "Requests in the delta with reported usage." }),
    wallMs: Type.Integer({ minimum: 0, description: "Since the last checkpoint." }),
    phasePath: Type.Array(label, { maxItems: 32, description: "The open phases, outermost first." }),
    estimated: Type.Boolean({ description: "A price was missing, so the amount in USD is too low." }),
  },
  closed,
);
export type CostCheckpointDetail = Static<typeof CostCheckpointDetail>;

/** Where a request first differs from the previous one, or why its cache was missing. */
const CacheCause = Type.String({
  maxLength: 128,
  pattern: "^(?:tool_set|tool_order|section:.+|edit:.+|compaction|branch|model|expired|service)$",
  description:
    "`tool_set`, `tool_order`, `section:<name>` of the prompt, `edit:<part>` of ours or `edit:foreign`, `compaction`, `branch`, `model` (or its thinking level), `expired`, or `service`: the request began like the previous one, but the provider read less of its cache than expected.",
});

export const CacheBroken = Type.Object(
  {
    cause: CacheCause,
    position: Type.String({
      maxLength: 256,
      description:
        "The first difference: `tools`, `system`, `message 12` after the prompt, `settings`, `model`; `none` if the request itself did not cause the loss.",
    }),
    predictedTokens: tokens(
      "Tokens that the provider could have read from its cache, according to its report on the previous request.",
    ),
    readTokens: tokens("Tokens that it reported as read."),
    missedTokens: tokens("The difference."),
    missedUsd: usd("The additional cost compared with reading them."),
    model: Type.String({ maxLength: 512 }),
  },
  closed,
);
export type CacheBroken = Static<typeof CacheBroken>;

export const BudgetReached = Type.Object(
  {
    scope: Type.Enum(["session", "phase"]),
    label: Type.Optional({ ...label, description: "The phase's label." }),
    budgetUsd: usd("The budget."),
    spentUsd: usd("The amount spent."),
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

/** Notifications of parts inside pi to subscribers, by the notification's name. */
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
