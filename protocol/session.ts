import type { Static } from "typebox";
import { Control } from "./control.ts";
import { DialogSummary } from "./dialog.ts";
import { Epoch } from "./event.ts";
import { PromptId, RunId, Seq, SessionId, Timestamp } from "./ids.ts";
import { Type } from "./json-schema.ts";
import { RunOutcome } from "./prompt.ts";

export const SessionState = Type.Enum(["starting", "idle", "running", "hibernated", "crashed", "closing", "closed"], {
  description: "`hibernated` and `crashed` sessions have no child; the next prompt or push starts one.",
});
export type SessionState = Static<typeof SessionState>;

/** How a child ended. */
export const ChildExit = Type.Object(
  {
    at: Timestamp,
    code: Type.Union([Type.Integer(), Type.Null()]),
    signal: Type.Union([Type.String(), Type.Null()]),
    expected: Type.Boolean({ description: "Whether the daemon ended it." }),
    stderrTail: Type.String({ description: "The end of pi's stderr, at most 8 KiB." }),
  },
  { additionalProperties: false },
);
export type ChildExit = Static<typeof ChildExit>;

/**
 * A prompt that pi had accepted and lost when it ended: it is not in the transcript, and is not resent automatically.
 */
export const LostPrompt = Type.Object(
  {
    promptId: PromptId,
    text: Type.String({ description: "Its first 1,000 characters. `prompt/get` returns the complete text." }),
    length: Type.Integer({ minimum: 0, description: "Characters of the complete text." }),
    at: Timestamp,
  },
  { additionalProperties: false },
);
export type LostPrompt = Static<typeof LostPrompt>;

export const ModelRef = Type.Object(
  { provider: Type.String(), id: Type.String() },
  { additionalProperties: false, description: "A model as pi names it." },
);
export type ModelRef = Static<typeof ModelRef>;

/** What a list of sessions shows of a conversation. It is made at the end of each run, without asking pi. */
export const SessionSummary = Type.Object(
  {
    at: { ...Timestamp, description: "When the newest ended run ended." },
    outcome: { ...RunOutcome, description: "How that run ended." },
    lastText: Type.Optional(
      Type.Object(
        {
          text: Type.String({ maxLength: 200, description: "Its first 200 characters, as the model wrote them." }),
          at: { ...Timestamp, description: "When pi began that message." },
        },
        {
          additionalProperties: false,
          description: "The assistant's newest text. Absent: it has written none in a run of this session.",
        },
      ),
    ),
    usage: Type.Optional(
      Type.Object(
        {
          totalTokens: Type.Number({ description: "Tokens of all requests, read from caches included." }),
          costUsd: Type.Optional(
            Type.Number({ description: "US dollars. Absent if pi knows no price for a part of the tokens." }),
          ),
        },
        {
          additionalProperties: false,
          description:
            "All that the session's file says about requests, at the end of that run, as `total` of `cost/report`. Absent without a file, and for a long file that was not read in full yet: each end of a run reads up to 16 MiB more of it.",
        },
      ),
    ),
    contextUsage: Type.Optional(
      Type.Object(
        {
          tokens: Type.Integer({
            minimum: 0,
            description: "Tokens of the newest answer and of all that was sent for it, as its provider counted.",
          }),
          contextWindow: Type.Optional(
            Type.Integer({ minimum: 1, description: "Tokens. Absent if pi has not told it for its model." }),
          ),
          percent: Type.Optional(Type.Number({ minimum: 0, description: "`tokens` of `contextWindow`." })),
        },
        {
          additionalProperties: false,
          description:
            "How full the model's context was. Absent after a compaction, until the model has answered again, and if no answer was complete.",
        },
      ),
    ),
  },
  {
    additionalProperties: false,
    description:
      "The conversation at the end of its newest run. It survives restarts of the daemon. Absent until a run has ended, and after the store was lost.",
  },
);
export type SessionSummary = Static<typeof SessionSummary>;

export const SessionInfo = Type.Object(
  {
    sessionId: SessionId,
    state: SessionState,
    cwd: Type.String(),
    name: Type.Optional(Type.String()),
    firstMessage: Type.Optional(
      Type.String({
        description: "The first 200 characters of the user's first message; only in a list with `stored`.",
      }),
    ),
    file: Type.String({
      description:
        "pi's session file. A terminal pi can open it while no child is running. Empty if the session is ephemeral.",
    }),
    ephemeral: Type.Optional(
      Type.Enum(["living", "lost"], {
        description:
          "Present for a session that exists only in pi's memory. `lost`: its pi has ended, and the conversation with it; calls that need a pi fail with `session_lost`.",
      }),
    ),
    profile: Type.Optional(Type.String({ description: "The profile of its creation." })),
    labels: Type.Optional(Type.Record(Type.String(), Type.String())),
    generation: Type.Integer({ minimum: 0, description: "How many children the session has had." }),
    pid: Type.Optional(Type.Integer({ description: "The child's process id." })),
    restoredAt: Type.Optional({
      ...Timestamp,
      description: "When this daemon continued the child of a former daemon. Absent: it started the child.",
    }),
    model: Type.Optional(ModelRef),
    thinkingLevel: Type.Optional(Type.String()),
    environment: Type.Optional(
      Type.Object(
        {
          from: Type.Enum(["client", "daemon"]),
          fingerprint: Type.String({
            description:
              "Equal for equal environments, apart from variables of a terminal or a login session, while the same daemon runs. It does not reveal the values.",
          }),
        },
        {
          additionalProperties: false,
          description:
            "The environment of the session's pi, or of the next one. Absent: the pi was started by a former daemon, so its environment is unknown.",
        },
      ),
    ),
    mcpServers: Type.Optional(
      Type.Array(Type.String(), {
        maxItems: 32,
        description:
          "The names of the MCP servers that a client gave for the session's pi, or for the next one. Absent: there are none, or a former daemon knew them.",
      }),
    ),
    projectTrust: Type.Enum(["approved", "not_approved"], {
      description: "Whether pi may load the project's own settings and extensions. RPC mode never asks.",
    }),
    runId: Type.Optional(RunId),
    cursor: Seq,
    epoch: Epoch,
    pendingDeliveries: Type.Integer({ minimum: 0, description: "Deliveries that have not reached the model yet." }),
    control: Type.Optional({ ...Control, description: "Absent: every client may act, and no client has control." }),
    pendingDialogs: Type.Array(DialogSummary, {
      maxItems: 64,
      description: "The oldest open dialogs, oldest first; `dialog/list` has all of them.",
    }),
    lostPrompts: Type.Array(LostPrompt, { description: "At most the 16 newest." }),
    exit: Type.Optional(ChildExit),
    summary: Type.Optional(SessionSummary),
    idleAfterMs: Type.Integer({
      minimum: 0,
      description:
        "How long a child may be idle before it is stopped. It is started again when needed. 0: never stopped.",
    }),
    restarts: Type.Optional(
      Type.Object(
        {
          failures: Type.Integer({ minimum: 0, description: "Crashes and failed starts within the last 10 minutes." }),
          nextAt: Type.Optional({
            ...Timestamp,
            description: "When the daemon retries automatically. Absent: the next prompt or push triggers a retry.",
          }),
        },
        { additionalProperties: false, description: "Absent if nothing has failed recently." },
      ),
    ),
    unresponsive: Type.Optional(
      Type.Object(
        { since: Timestamp },
        {
          additionalProperties: false,
          description:
            "pi is alive but does not answer. The daemon does not stop it; the field disappears when pi answers again.",
        },
      ),
    ),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  },
  { additionalProperties: false },
);
export type SessionInfo = Static<typeof SessionInfo>;

export const ThinkingLevel = Type.Enum(["off", "minimal", "low", "medium", "high", "xhigh", "max"]);
