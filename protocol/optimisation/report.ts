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
