import type { Static } from "typebox";
import { Type } from "../json-schema.ts";

const figure = (description: string) => Type.Number({ description });

/** What a part of the optimisation says of itself in `optimisation/inspect`. */
export const PartReport = Type.Object(
  {
    enabled: Type.Boolean({ description: "Whether the configuration has it on." }),
    state: Type.Enum(["off", "on", "degraded"]),
    reason: Type.Optional(Type.String({ maxLength: 1_024, description: "Why it is degraded." })),
    savedTokens: figure("Estimated tokens that later requests of this session had less for it, each time counted."),
    savedUsd: figure("What these would have cost, by the model's prices."),
    spentTokens: figure("Tokens that it has cost: summaries, and cache that was written anew for it."),
    spentUsd: figure("The same in USD."),
    figures: Type.Record(Type.String(), Type.Union([Type.Number(), Type.String(), Type.Boolean(), Type.Null()]), {
      maxProperties: 128,
      description: "What else the part counts, by names of its own.",
    }),
  },
  { additionalProperties: false, description: "What one part is doing." },
);
export type PartReport = Static<typeof PartReport>;
