import type { Static } from "typebox";
import { Type } from "./json-schema.ts";
import type { MethodRow } from "./method-row.ts";
import { empty } from "./params.ts";

const labels = Type.Record(Type.String(), Type.String());

/** A metric, as in Prometheus. */
export const Metric = Type.Object(
  {
    name: Type.String({ pattern: "^[a-z_]+$" }),
    help: Type.String(),
    type: Type.Enum(["counter", "gauge", "histogram"]),
    samples: Type.Optional(
      Type.Array(
        Type.Object({ labels: Type.Optional(labels), value: Type.Number() }, { additionalProperties: false }),
        {
          description: "Of a counter or a gauge.",
        },
      ),
    ),
    buckets: Type.Optional(
      Type.Array(Type.Object({ le: Type.Number(), count: Type.Integer() }, { additionalProperties: false }), {
        description: "Of a histogram: how many were at most `le`.",
      }),
    ),
    count: Type.Optional(Type.Integer({ description: "Of a histogram." })),
    sum: Type.Optional(Type.Number({ description: "Of a histogram." })),
  },
  { additionalProperties: false },
);
export type Metric = Static<typeof Metric>;

/** Method rows for metrics. */
export const metricsMethods = {
  "daemon/metrics": {
    summary:
      "The daemon's metrics. `GET /metrics` returns them in Prometheus format. They cover all sessions: a token with limits is `forbidden`, and `data.limit` names the limit.",
    params: empty,
    result: Type.Object({ metrics: Type.Array(Metric) }, { additionalProperties: false }),
    http: { verb: "GET", path: "/v1/metrics" },
    scope: "none",
    capability: "observe",
    since: "0.1.0",
    errors: ["forbidden"],
    retry: "safe",
  },
} as const satisfies Readonly<Record<string, MethodRow>>;
