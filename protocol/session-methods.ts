import { contextErrors } from "./context-methods.ts";
import { ContextError, ContextOption, ContextSummary } from "./context-option.ts";
import { OnForeignWrite } from "./custody.ts";
import { DeliveryEffects } from "./delivery.ts";
import { DialogPolicy } from "./dialog.ts";
import { SessionId } from "./ids.ts";
import { Type } from "./json-schema.ts";
import { McpServers } from "./mcp-servers.ts";
import type { MethodRow } from "./method-row.ts";
import { optimisationNeeds } from "./optimisation/options.ts";
import { idempotencyKey, params, sessionIdOnly } from "./params.ts";
import { pruningNeeds } from "./pruning/options.ts";
import { ChildExit, SessionInfo, SessionState } from "./session.ts";
import { Environment, sessionOptions, WhenLeft } from "./session-options.ts";
import { StoredSessionInfo } from "./stored-session.ts";

/** A session that was just created. */
const CreatedSession = Type.Object(
  {
    ...SessionInfo.properties,
    context: Type.Optional(ContextSummary),
    contextError: Type.Optional({
      ...ContextError,
      description: "Why the session has no context, where `context.onError` is `warn`.",
    }),
  },
  { additionalProperties: false },
);

/** Rows of the method table about the life of sessions. */
export const sessionMethods = {
  "session/create": {
    summary: "Creates a session and starts its pi. Returns when pi and the helper extension are ready.",
    params: params({
      cwd: Type.String({ minLength: 1, description: "Absolute path of an existing directory." }),
      profile: Type.Optional(
        Type.String({
          pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$",
          description:
            "A set of options in the daemon's configuration, or `lean`. Those that are given here go before it.",
        }),
      ),
      ...sessionOptions,
      sessionId: Type.Optional({
        ...SessionId,
        description:
          "The id of the new session. It is a `conflict` if a session with this id exists, also a closed or a stored one. Default: a UUIDv7.",
      }),
      file: Type.Optional(
        Type.String({
          pattern: "^/[^\\u0000]{0,4089}\\.jsonl$",
          description:
            "Absolute path of the session's file. It is a `conflict` if the file exists. A missing directory is created, with mode 0700. Default: a file in `sessionDir`.",
        }),
      ),
      forkFrom: Type.Optional(
        Type.String({
          pattern: "^/[^\\u0000]{0,4095}$",
          description:
            "Absolute path of a session file. The new session begins with all its entries, as with pi's `--fork`: its header names this path as `parentSession`, and the file stays as it is, also while another session writes to it. Not together with `ephemeral` or `context`.",
        }),
      ),
      environment: Type.Optional(Environment),
      mcpServers: Type.Optional(McpServers),
      onForeignWrite: Type.Optional({ ...OnForeignWrite, default: "reload" }),
      dialogPolicy: Type.Optional(DialogPolicy),
      idleAfterMs: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: 2_592_000_000,
          description:
            "How long the session's pi may be idle before it is ended until it is needed again. 0: for ever. Default: as the daemon has it.",
        }),
      ),
      context: Type.Optional({ ...ContextOption, description: "A conversation that the session goes on with." }),
      whenLeft: Type.Optional(WhenLeft),
      delegatedBy: Type.Optional({
        ...SessionId,
        description:
          "The session on whose behalf this one works. It is not looked for. A session that has it is not pruned, unless `pruning.childSessions` is true.",
      }),
      idempotencyKey,
    }),
    result: CreatedSession,
    http: { verb: "POST", path: "/v1/sessions" },
    scope: "none",
    capability: "prompt",
    needs: [
      ...(["extensions", "noExtensions", "flags", "skills", "approve", "env", "sessionDir", "file"] as const).map(
        (param) => ({ param, capability: "admin" }) as const,
      ),
      { param: "forkFrom", capability: "admin", isLocal: true },
      { param: "environment", capability: "admin", isLocal: true },
      { param: "mcpServers", capability: "admin" },
      ...optimisationNeeds,
      ...pruningNeeds,
    ],
    // `sessionId` names a new session, which the method itself compares with the existing ones.
    subjects: [],
    since: "0.1.0",
    errors: [
      "cwd_invalid",
      "path_invalid",
      "profile_not_found",
      "forbidden",
      "model_not_found",
      "price_unknown",
      "pi_not_found",
      "pi_too_old",
      "start_failed",
      "startup_dialog",
      "unsupported_by_pi",
      "link_failed",
      ...contextErrors,
      "child_exited",
      "session_not_found",
      "session_closed",
      "session_lost",
      "session_file_unusable",
      "overloaded",
      "shutting_down",
    ],
    rate: "starts",
    retry: "keyed",
    effect: "session",
    effectId: "sessionId",
    unstored: ["environment", "mcpServers"],
    pi: { command: "new_session", asItIs: false },
  },
  "session/list": {
    summary: "All sessions that are not closed, the newest first.",
    params: params({
      cwd: Type.Optional(Type.String({ minLength: 1, description: "Only sessions of this directory." })),
      state: Type.Optional(SessionState),
      label: Type.Optional(
        Type.String({
          pattern: "^[A-Za-z0-9][A-Za-z0-9._/-]{0,63}(=[\\s\\S]{0,256})?$",
          description: "`name` or `name=text`: only sessions with this label.",
        }),
      ),
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000, default: 1_000 })),
      after: Type.Optional(
        Type.String({ pattern: "^[0-9]{1,16}/[0-9A-Za-z._-]{1,128}$", description: "`next` of the page before." }),
      ),
      stored: Type.Optional(
        Type.Boolean({ default: false, description: "List pi's stored sessions too, which `session/open` takes." }),
      ),
      storedAfter: Type.Optional(
        Type.String({ maxLength: 8192, description: "`next` of an earlier page of stored sessions." }),
      ),
      storedLimit: Type.Optional(
        Type.Integer({ minimum: 1, maximum: 500, default: 100, description: "Stored sessions in one page." }),
      ),
    }),
    result: Type.Object(
      {
        sessions: Type.Array(SessionInfo),
        next: Type.Optional(Type.String({ description: "For `after`, where there are more." })),
        stored: Type.Optional(
          Type.Object(
            {
              sessions: Type.Array(StoredSessionInfo, { description: "The last written first." }),
              next: Type.Optional(Type.String({ description: "Where the next page begins; absent on the last one." })),
            },
            { additionalProperties: false },
          ),
        ),
      },
      { additionalProperties: false },
    ),
    http: { verb: "GET", path: "/v1/sessions" },
    scope: "none",
    capability: "observe",
    since: "0.1.0",
    errors: [],
    retry: "safe",
  },
  "session/get": {
    summary: "One session as it is now.",
    params: sessionIdOnly,
    result: SessionInfo,
    http: { verb: "GET", path: "/v1/sessions/{sessionId}" },
    scope: "none",
    capability: "observe",
    since: "0.1.0",
    errors: ["session_not_found"],
    retry: "safe",
  },
  "session/hibernate": {
    summary: "Ends the session's pi and keeps the session: the next prompt, push or command starts another.",
    params: params({
      sessionId: SessionId,
      force: Type.Optional(
        Type.Boolean({
          default: false,
          description: "Also in the middle of a run, which is then interrupted, and though something is under way.",
        }),
      ),
    }),
    result: SessionInfo,
    http: { verb: "POST", path: "/v1/sessions/{sessionId}/hibernate" },
    scope: "session",
    capability: "prompt",
    since: "0.1.0",
    errors: ["session_not_found", "session_busy", "session_closed", "overloaded", "shutting_down"],
    // The session may have been woken since.
    retry: "never",
  },
  "session/close": {
    summary: "Ends the session's pi and forgets the session. Its file stays, unless no message was ever written to it.",
    params: sessionIdOnly,
    result: Type.Object(
      { exit: Type.Optional(ChildExit), deliveries: DeliveryEffects },
      { additionalProperties: false },
    ),
    http: { verb: "POST", path: "/v1/sessions/{sessionId}/close" },
    scope: "none",
    capability: "prompt",
    since: "0.1.0",
    errors: ["session_not_found"],
    retry: "never",
  },
} as const satisfies Readonly<Record<string, MethodRow>>;
