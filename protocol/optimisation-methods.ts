import { cachedFields } from "./cached.ts";
import { SessionId, Timestamp } from "./ids.ts";
import { Type } from "./json-schema.ts";
import type { MethodRow } from "./method-row.ts";
import { CacheBroken } from "./optimisation/notices.ts";
import { OptimisationOptions, optimisationNeeds } from "./optimisation/options.ts";
import { EditPrices, PartReport } from "./optimisation/report.ts";
import { cachedErrors, params, sessionIdAndCached } from "./params.ts";

const count = (description: string) => Type.Integer({ minimum: 0, description });

/** Rows of the method table about what makes a session's requests smaller. */
export const optimisationMethods = {
  "optimisation/inspect": {
    summary: "What each part does in this session: its state, what it has saved and what that has cost.",
    params: sessionIdAndCached,
    result: Type.Object(
      {
        configuration: { ...OptimisationOptions, description: "Every part with all its options, as they hold now." },
        parts: Type.Record(Type.String(), PartReport, { description: "By the part's name." }),
        estimatorError: Type.Optional(
          Type.Object(
            {
              median: Type.Number({
                description: "Of the estimates of whole requests, in percent of what was reported.",
              }),
              p95: Type.Number(),
              responses: count("Responses that this is made of."),
            },
            { additionalProperties: false },
          ),
        ),
        window: Type.Object(
          {
            tokens: Type.Union([Type.Null(), count("Tokens of the model's window.")], {
              description: "null: not known.",
            }),
            used: count(
              "Estimated tokens of the next request: the size that was reported last, and what has changed since.",
            ),
            byKind: Type.Record(Type.String(), count("Estimated tokens."), {
              description:
                "What fills it, with the sum `used`: `system`, `tools`, `context` (a conversation from elsewhere that is kept in memory), `user`, `assistant`, `thinking`, `toolResults`, `images`, `pushes`, `custom`, `summaries` of compactions and branches, `blocks` of pruning, `bash`. A provider reports only the size of a whole request, so these are estimates, multiplied by one factor.",
            }),
            largest: Type.Optional(
              Type.Array(
                Type.Object(
                  {
                    entryId: Type.String({ description: "Of the message, in the session's file." }),
                    kind: Type.String({ description: "As in `byKind`; its images and thinking are counted with it." }),
                    tool: Type.Optional(Type.String({ maxLength: 256, description: "Of a tool's result." })),
                    at: Type.Optional({ ...Timestamp, description: "When it was written." }),
                    tokens: count("Estimated tokens."),
                  },
                  { additionalProperties: false },
                ),
                {
                  maxItems: 20,
                  description:
                    "The largest messages of the next request, the largest first. Absent: an older pi answered.",
                },
              ),
            ),
            masked: Type.Array(
              Type.Object(
                {
                  recallId: Type.String(),
                  tool: Type.String(),
                  tokens: count("Estimated tokens that went."),
                  part: Type.String({ description: "`masking`, `toolResults`, or a strategy of pruning." }),
                },
                { additionalProperties: false },
              ),
              { maxItems: 1_000, description: "The newest 1,000." },
            ),
          },
          { additionalProperties: false },
        ),
        ...cachedFields,
      },
      { additionalProperties: false },
    ),
    scope: "none",
    asleep: "cached",
    capability: "observe",
    since: "0.1.0",
    http: { verb: "GET", path: "/v1/sessions/{sessionId}/optimisation" },
    errors: cachedErrors,
    retry: "safe",
  },
  "optimisation/configure": {
    summary:
      "Changes the session's configuration, by a layer on top of what it has. No pi is started for it. What the prompt is made of stays as it was decided when the session began.",
    params: params({ sessionId: SessionId, optimisation: OptimisationOptions }),
    result: Type.Object(
      {
        configuration: { ...OptimisationOptions, description: "Every part with all its options, as they hold now." },
        from: Type.Enum(["nextRequest", "nextPi"], {
          description:
            "From when on it holds. `nextPi`: the session has none now, or the one that it has was started with a list of `tools` that lacks those of a part.",
        }),
      },
      { additionalProperties: false },
    ),
    scope: "none",
    capability: "prompt",
    needs: optimisationNeeds,
    since: "0.1.0",
    http: { verb: "POST", path: "/v1/sessions/{sessionId}/optimisation" },
    errors: ["session_not_found", "session_closed", "path_invalid", "link_failed", "overloaded", "price_unknown"],
    // Another client may have configured the session since.
    retry: "never",
  },
  "cache/report": {
    summary:
      "How well the provider's cache is used, and what has broken it. Needs the part `cache`; without it, or without its `audit`, `unsupported_by_pi`.",
    params: sessionIdAndCached,
    result: Type.Object(
      {
        requests: count("Answered requests since the session's pi has the part."),
        hitRate: Type.Union([Type.Null(), Type.Number()], {
          description: "Read, of all input. null: nothing was reported.",
        }),
        input: count("Tokens."),
        cacheRead: count("Tokens."),
        cacheWrite: count("Tokens."),
        causes: Type.Record(
          Type.String(),
          Type.Object(
            { count: count("How often."), missedTokens: count("Tokens."), missedUsd: Type.Number() },
            { additionalProperties: false },
          ),
        ),
        recent: Type.Array(CacheBroken, { maxItems: 100, description: "The newest last." }),
        volatile: Type.Array(Type.String({ maxLength: 256 }), {
          maxItems: 64,
          description:
            "Sections of the prompt whose text varied between the session's first two requests, or in two in a row.",
        }),
        edits: Type.Optional(EditPrices),
        ...cachedFields,
      },
      { additionalProperties: false },
    ),
    scope: "none",
    asleep: "cached",
    capability: "observe",
    since: "0.1.0",
    http: { verb: "GET", path: "/v1/sessions/{sessionId}/cache" },
    errors: cachedErrors,
    part: "cacheAudit",
    retry: "safe",
  },
} as const satisfies Readonly<Record<string, MethodRow>>;
