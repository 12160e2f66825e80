import { SessionId } from "./ids.ts";
import { Type } from "./json-schema.ts";
import type { MethodRow } from "./method-row.ts";
import {
  cachedErrors,
  commandErrors,
  idempotencyKey,
  params,
  questionErrors,
  sessionIdAndCached,
  sessionIdOnly,
} from "./params.ts";
import { PruningOptions, pruningNeeds } from "./pruning/options.ts";
import {
  BlockId,
  configurationNow,
  PruningChange,
  PruningExport,
  PruningInspection,
  PruningMode,
  PruningStats,
} from "./pruning/report.ts";

const closed = { additionalProperties: false } as const;
const MessageOrBlockId = Type.String({
  minLength: 1,
  maxLength: 64,
  description: "`m012` or `b3`, as in the context.",
});
const path = "/v1/sessions/{sessionId}/pruning";
const reads = { scope: "none", capability: "observe", part: "pruning", retry: "safe", since: "0.1.0" } as const;
const changes = {
  scope: "none",
  asleep: "wake",
  capability: "prompt",
  part: "pruning",
  retry: "keyed",
  since: "0.1.0",
} as const;
const errors = [...commandErrors, "pruning_disabled"] as const;
const wait = Type.Optional(
  Type.Boolean({
    default: false,
    description:
      "What happens while the session runs. `true`: the call is answered at once, and acts at the run's next boundary; `pruning/changed` tells of it. It is lost with the session's pi. `false`: `session_busy`.",
  }),
);

/** Rows of the method table about the context that a session's model works with. */
export const pruningMethods = {
  "pruning/inspect": {
    summary: "What fills the model's context, which blocks stand in it, and what could be compressed.",
    params: sessionIdAndCached,
    result: PruningInspection,
    ...reads,
    asleep: "cached",
    http: { verb: "GET", path },
    errors: [...cachedErrors, "pruning_disabled"],
  },
  "pruning/stats": {
    summary: "What pruning has taken out of the context, each removal counted once, and what that has cost.",
    params: sessionIdOnly,
    result: PruningStats,
    ...reads,
    asleep: "cached",
    http: { verb: "GET", path: `${path}/stats` },
    errors: [...questionErrors, "pruning_disabled"],
  },
  "pruning/export": {
    summary:
      "The blocks of the session's active branch, with their texts, and the ids that its messages have. Starts a pi where the session has none.",
    params: sessionIdOnly,
    result: PruningExport,
    ...reads,
    asleep: "wake",
    http: { verb: "GET", path: `${path}/export` },
    errors,
  },
  "pruning/sweep": {
    summary: "Runs all strategies that are on, or prunes the outputs of the newest tool calls, whatever they are.",
    params: params({
      sessionId: SessionId,
      last: Type.Optional(
        Type.Integer({ minimum: 1, maximum: 1_000, description: "The outputs of so many of the newest tool calls." }),
      ),
      wait,
      idempotencyKey,
    }),
    result: PruningChange,
    ...changes,
    http: { verb: "POST", path: `${path}/sweep` },
    errors: [...errors, "session_busy"],
  },
  "pruning/setMode": {
    summary: "Who decides when the model compresses: the model, or the user. The mode stays with the session.",
    params: params({ sessionId: SessionId, mode: PruningMode, idempotencyKey }),
    result: Type.Object({ mode: PruningMode }, closed),
    ...changes,
    http: { verb: "PUT", path: `${path}/mode` },
    errors,
  },
  "pruning/compress": {
    summary:
      "Without `ranges`: grants the model one call of `compress`, and asks it for that; a session that runs gets the request when its run allows. With `ranges`: stores blocks without the model.",
    params: params({
      sessionId: SessionId,
      focus: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 2_000,
          description: "What the model is asked to compress. Not with `ranges`.",
        }),
      ),
      topic: Type.Optional(
        Type.String({ minLength: 1, maxLength: 80, description: "What the blocks are about. Needed with `ranges`." }),
      ),
      ranges: Type.Optional(
        Type.Array(
          Type.Object(
            {
              startId: MessageOrBlockId,
              endId: MessageOrBlockId,
              summary: Type.String({ minLength: 1, maxLength: 60_000, description: "Takes the range's place." }),
            },
            closed,
          ),
          { minItems: 1, maxItems: 16 },
        ),
      ),
      wait,
      idempotencyKey,
    }),
    result: PruningChange,
    ...changes,
    http: { verb: "POST", path: `${path}/blocks` },
    errors: [...errors, "session_busy", "block_not_found"],
    rate: "prompts",
  },
  "pruning/decompress": {
    summary:
      "Puts the messages of an active block back into the context; the blocks that it had taken in are as they were. While a run is on, at its next boundary.",
    params: params({ sessionId: SessionId, block: BlockId, idempotencyKey }),
    result: PruningChange,
    ...changes,
    http: { verb: "POST", path: `${path}/blocks/{block}/decompress` },
    errors: [...errors, "block_not_found", "block_not_restorable"],
  },
  "pruning/recompress": {
    summary:
      "Puts a block that was opened back into the place of its messages. While a run is on, at its next boundary.",
    params: params({ sessionId: SessionId, block: BlockId, idempotencyKey }),
    result: PruningChange,
    ...changes,
    http: { verb: "POST", path: `${path}/blocks/{block}/recompress` },
    errors: [...errors, "block_not_found", "block_not_restorable"],
  },
  "pruning/configure": {
    summary:
      "Changes the session's configuration of pruning, by a layer on top of what it has, or reads the layers below it again. No pi is started for it.",
    params: params({
      sessionId: SessionId,
      pruning: Type.Optional(PruningOptions),
      reload: Type.Optional(
        Type.Boolean({
          default: false,
          description:
            "Reads the layers below the session's own again: the daemon's configuration, the project's file, the profile.",
        }),
      ),
    }),
    result: Type.Object(
      {
        configuration: configurationNow,
        from: Type.Enum(["nextRequest", "nextPi"], {
          description:
            "From when on it holds. `nextPi`: the session has none now, or the one that it has was started with a list of `tools` that lacks `compress` or `recall`.",
        }),
      },
      closed,
    ),
    scope: "none",
    capability: "prompt",
    since: "0.1.0",
    needs: pruningNeeds,
    http: { verb: "POST", path },
    errors: ["session_not_found", "session_closed", "path_invalid", "link_failed", "overloaded"],
    // Another client may have configured the session since.
    retry: "never",
  },
} as const satisfies Readonly<Record<string, MethodRow>>;
