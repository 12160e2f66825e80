import type { Static } from "typebox";
import { Type } from "../json-schema.ts";

const figure = (description: string) => Type.Number({ description });

/** The report of one part in `optimisation/inspect`. */
export const PartReport = Type.Object(
  {
    enabled: Type.Boolean({ description: "Whether the configuration enables it." }),
    state: Type.Enum(["off", "on", "degraded"]),
    reason: Type.Optional(Type.String({ maxLength: 1_024, description: "Why it is degraded." })),
    savedTokens: figure("Estimated tokens saved in later requests of this session; each request counts."),
    savedUsd: figure("Their cost, by the model's prices."),
    spentTokens: figure("Tokens that it has used: summaries, and rewritten cache."),
    spentUsd: figure("The same in USD."),
    figures: Type.Record(Type.String(), Type.Union([Type.Number(), Type.String(), Type.Boolean(), Type.Null()]), {
      maxProperties: 128,
      description: "Further counters of the part, by name.",
    }),
  },
  { additionalProperties: false, description: "The state of one part." },
);
export type PartReport = Static<typeof PartReport>;

const forecast = {
  missedTokens: figure("Cached tokens after the edit, which the next request had to write again."),
  missedUsd: figure("Their price, less that of reading them."),
  requests: figure("Requests with the edit, until the next compaction."),
  savedUsd: figure("What reading the freed tokens in these requests would have cost."),
};
const EditForecast = Type.Object(forecast, { additionalProperties: false });
export type EditForecast = Static<typeof EditForecast>;

/** What edits of earlier context were expected to cost and to save, and what came. */
export const EditPrices = Type.Object(
  {
    count: Type.Integer({ minimum: 0, description: "Edits on the branch; one is a batch of changed entries." }),
    predicted: { ...EditForecast, description: "The sums of the forecasts." },
    actual: { ...EditForecast, description: "The sums of what came until now." },
    recent: Type.Array(
      Type.Object(
        {
          part: Type.String({ maxLength: 256, description: "`masking`, or a strategy of pruning." }),
          entryId: Type.String({ maxLength: 128, description: "The entry that records it." }),
          freedTokens: figure("Estimated tokens that each later request saves."),
          isOver: Type.Boolean({ description: "Whether a compaction followed, so that nothing more is saved." }),
          predicted: EditForecast,
          actual: EditForecast,
        },
        { additionalProperties: false },
      ),
      { maxItems: 100, description: "The newest last." },
    ),
  },
  { additionalProperties: false, description: "The price of edits of earlier context: predicted, and what came." },
);
export type EditPrices = Static<typeof EditPrices>;
