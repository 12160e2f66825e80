import { cachedFields, cachedParam } from "./cached.ts";
import { SessionId, Timestamp } from "./ids.ts";
import { Type } from "./json-schema.ts";
import type { MethodRow } from "./method-row.ts";
import { commandErrors, params } from "./params.ts";
import { PiModel } from "./pi-data.ts";

const ProviderLogin = Type.Object(
  {
    id: Type.String({ description: "As in a model's `provider`." }),
    models: Type.Integer({ minimum: 0, description: "How many of the models are its." }),
    login: Type.Enum(["oauth", "api_key", "other"], {
      description:
        "What pi has stored for it; `other`: its credentials come from the environment or from models.json. One without models has a login that pi cannot use now.",
    }),
  },
  { additionalProperties: false },
);

/** Rows of the method table about the models that pi can use. */
export const modelMethods = {
  "model/list": {
    summary:
      "The models that pi has credentials for, and how it is logged in at their providers. Needs no session: a pi is started for it, unless the answer is known.",
    params: params({
      sessionId: Type.Optional({
        ...SessionId,
        description: "Asks this session's pi, whose extensions may have brought further models.",
      }),
      ...cachedParam,
      refresh: Type.Optional(
        Type.Boolean({
          default: false,
          description: "Asks pi, whatever is known. With `cached` and without a session: `invalid_params`.",
        }),
      ),
    }),
    result: Type.Object(
      {
        models: Type.Array(PiModel),
        providers: Type.Array(ProviderLogin),
        asOf: { ...Timestamp, description: "When pi was asked, in Unix milliseconds." },
        ...cachedFields,
      },
      { additionalProperties: false },
    ),
    http: { verb: "GET", path: "/v1/models" },
    scope: "none",
    asleep: "wake",
    capability: "observe",
    since: "0.1.0",
    errors: [...commandErrors, "answer_unknown"],
    startsWith: "refresh",
    retry: "safe",
    pi: { command: "get_available_models", asItIs: true },
  },
} as const satisfies Readonly<Record<string, MethodRow>>;
