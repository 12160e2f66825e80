import { SessionId } from "./ids.ts";
import { Type } from "./json-schema.ts";
import type { MethodRow } from "./method-row.ts";
import { CostCheckpointed, CostUsage } from "./optimisation/notices.ts";
import { commandErrors, idempotencyKey, params } from "./params.ts";

const label = Type.String({
  minLength: 1,
  maxLength: 120,
  pattern: "\\S",
  description: "At most 120 characters, not only white space.",
});
const budgetUsd = Type.Number({ exclusiveMinimum: 0, maximum: 1_000_000 });
const onBudget = Type.Enum(["warn", "stop"], {
  description: "`stop` refuses the next prompt; the current run continues.",
});
const byName = (description: string) => Type.Record(Type.String(), CostUsage, { description });

/** What may be spent, and what is. */
export const Budget = Type.Object(
  {
    usd: { ...budgetUsd, description: "What may be spent." },
    onBudget,
    spentUsd: Type.Number({ description: "What is." }),
    warnAt: Type.Number({ description: "Share of the budget at which `cost/budgetReached` is first sent." }),
  },
  { additionalProperties: false, description: "The budget in USD, and the amount spent." },
);

export const CostPhase = Type.Object(
  {
    label,
    path: Type.Array(Type.String(), { description: "Labels of the enclosing phases, outermost first, and its own." }),
    isOpen: Type.Boolean(),
    usage: CostUsage,
    requests: Type.Integer({ minimum: 0 }),
    wallMs: Type.Integer({ minimum: 0 }),
    budget: Type.Optional(Budget),
  },
  { additionalProperties: false, description: "Cost of a phase, including nested phases." },
);

const changes = { scope: "none", asleep: "wake", capability: "prompt", retry: "keyed", since: "0.1.0" } as const;

/** Method rows for the cost of a session. */
export const costMethods = {
  "cost/report": {
    summary:
      "The cost of the session: total, and by model, source and phase. The sums equal those of `session/getStats`. Read from the session's file without starting a pi; the part `cost` need not be on.",
    params: params({ sessionId: SessionId }),
    result: Type.Object(
      {
        total: CostUsage,
        byModel: byName("By `provider/id`; `unknown` are tools and summaries, `other` all models after the first 255."),
        bySource: byName("By source; `compaction_failed` is excluded from all sums."),
        phases: Type.Array(CostPhase, {
          maxItems: 1_000,
          description: "In the order in which they began; the newest 1,000.",
        }),
        requests: Type.Integer({ minimum: 0, description: "Requests whose usage was reported." }),
        estimated: Type.Boolean({ description: "A price was missing, so the USD are too low." }),
        budget: Type.Optional(Budget),
        checkpoints: Type.Array(CostCheckpointed, { maxItems: 100, description: "The newest last." }),
      },
      { additionalProperties: false },
    ),
    scope: "none",
    capability: "observe",
    since: "0.1.0",
    http: { verb: "GET", path: "/v1/sessions/{sessionId}/cost" },
    errors: commandErrors,
    retry: "safe",
  },
  "cost/checkpoint": {
    summary:
      "Sets a checkpoint: costs are summed from checkpoint to checkpoint. Turns the part `cost` on for the session.",
    params: params({ sessionId: SessionId, label, idempotencyKey }),
    result: CostCheckpointed,
    ...changes,
    http: { verb: "POST", path: "/v1/sessions/{sessionId}/cost/checkpoints" },
    errors: commandErrors,
  },
  "cost/startPhase": {
    summary:
      "Begins a phase. Phases nest, and survive the session's pi and the daemon. Turns the part `cost` on for the session.",
    params: params({
      sessionId: SessionId,
      label,
      budgetUsd: Type.Optional({ ...budgetUsd, description: "What the phase may cost, in USD." }),
      onBudget: Type.Optional(onBudget),
      idempotencyKey,
    }),
    result: Type.Object({ phase: CostPhase }, { additionalProperties: false }),
    ...changes,
    http: { verb: "POST", path: "/v1/sessions/{sessionId}/cost/phases" },
    errors: [...commandErrors, "price_unknown"],
  },
  "cost/endPhase": {
    summary:
      "Ends the innermost open phase of this label, and those inside it, with a checkpoint of its label. Without a label, ends the innermost phase. Turns the part `cost` on for the session if a phase is open.",
    params: params({ sessionId: SessionId, label: Type.Optional(label), idempotencyKey }),
    result: Type.Object({ phase: CostPhase }, { additionalProperties: false }),
    ...changes,
    http: { verb: "DELETE", path: "/v1/sessions/{sessionId}/cost/phases" },
    errors: [...commandErrors, "phase_not_open"],
  },
  "cost/setBudget": {
    summary:
      "Sets the budget of the session, counted from its start. null: unlimited. Overrides the configured budget. Turns the part `cost` on for the session.",
    params: params({
      sessionId: SessionId,
      budgetUsd: Type.Union([Type.Null(), budgetUsd]),
      onBudget: Type.Optional(onBudget),
      idempotencyKey,
    }),
    result: Type.Object({ budget: Type.Union([Type.Null(), Budget]) }, { additionalProperties: false }),
    ...changes,
    http: { verb: "PUT", path: "/v1/sessions/{sessionId}/cost/budget" },
    errors: [...commandErrors, "price_unknown"],
  },
} as const satisfies Readonly<Record<string, MethodRow>>;
