import { OnForeignWrite } from "./custody.ts";
import { DeliveryEffects } from "./delivery.ts";
import { DialogPolicy } from "./dialog.ts";
import { SessionId, Viewer } from "./ids.ts";
import { Type } from "./json-schema.ts";
import { McpServers } from "./mcp-servers.ts";
import type { MethodRow } from "./method-row.ts";
import { childErrors, ifAlone, params, sessionIdOnly } from "./params.ts";
import { ChildExit, SessionInfo } from "./session.ts";
import { Environment, StartOptions, WhenLeft } from "./session-options.ts";

const abortRun = Type.Optional(
  Type.Boolean({
    default: false,
    description:
      "Aborts a run first, instead of `session_busy`, unless other connections follow the session: the run may be theirs.",
  }),
);

const newSession = Type.Object(
  { session: { ...SessionInfo, description: "The new session." } },
  { additionalProperties: false },
);

/** Rows of the method table about sessions as pi's session files. */
export const sessionFileMethods = {
  "session/open": {
    summary: "Adopts an existing pi session by its id or file, and starts its pi.",
    params: params({
      sessionId: Type.Optional(SessionId),
      file: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 4096,
          description: "Absolute path of a session file in one of pi's session directories. One of the two is given.",
        }),
      ),
      anywhere: Type.Optional(
        Type.Boolean({
          default: false,
          description: "Accepts a `file` outside pi's session directories too.",
        }),
      ),
      cwd: Type.Optional(
        Type.String({
          pattern: "^/[^\\u0000]{0,4095}$",
          description:
            "The directory that the session must have, by any of its paths. Otherwise nothing changes: `cwd_invalid`, whose `cwd` is the session's own. Default: any.",
        }),
      ),
      approve: Type.Optional(
        Type.Boolean({
          description:
            "Trust the project's own pi settings and extensions. Default: as before it was closed, at first false.",
        }),
      ),
      onForeignWrite: Type.Optional({
        ...OnForeignWrite,
        description:
          "What happens when another program has written to the session's file. Default: as before it was closed, at first `reload`.",
      }),
      dialogPolicy: Type.Optional(DialogPolicy),
      whenLeft: Type.Optional({
        ...WhenLeft,
        description: "As in `session/create`, for a session that is not open yet.",
      }),
      environment: Type.Optional({
        ...Environment,
        description:
          "The environment of the session's pi and its tools, as `environment` of `session/create`. For an open session with another one: if the session is idle and no other connection follows it, its pi is started again. Otherwise nothing changes, and the result has the environment in use.",
      }),
      mcpServers: Type.Optional({
        ...McpServers,
        description:
          "The MCP servers of the session's pi, as `mcpServers` of `session/create`, instead of those that it has. Default: they stay; a session that is not open has none. For an open session with other ones: if the session is idle and no other connection follows it, its pi is started again. Otherwise it is `session_busy`, whose `options` has `mcpServers`; without this param the session can be opened as it is.",
      }),
      from: Type.Optional({
        ...SessionId,
        description:
          "The session that the caller comes from. Its pi goes on to the opened session, as with pi's `switch_session`, where that is possible: no other connection follows it, the opened session has no pi, and both have the same directory, environment and options. A run of `from` is then aborted first. Otherwise a pi is started.",
      }),
      viewer: Type.Optional({
        ...Viewer,
        description:
          "If other connections follow an open session, and all of them gave this `viewer` to `session/subscribe`, they do not prevent that its pi is started again, and the pi of an idle session is. This is how an editor reloads a session.",
      }),
      options: Type.Optional({
        ...StartOptions,
        description:
          "What its pi is started with, as in `session/create`. Options that are not given stay as they are. For an open session with other ones: if the session is idle and no other connection follows it, its pi is started again. Otherwise it is `session_busy`, whose `options` names those that differ.",
      }),
    }),
    result: SessionInfo,
    http: { verb: "POST", path: "/v1/sessions/open" },
    scope: "none",
    capability: "prompt",
    needs: [
      { param: "approve", capability: "admin" },
      { param: "environment", capability: "admin", isLocal: true },
      { param: "mcpServers", capability: "admin" },
      { param: "anywhere", capability: "admin", isLocal: true },
      { param: "options", capability: "admin" },
    ],
    since: "0.1.0",
    errors: [...childErrors, "session_busy", "path_invalid", "refused_by_pi"],
    rate: "starts",
    // The opened session may be a stored one, which the method itself compares with the limits of the token.
    subjects: [{ kind: "session", param: "from" }],
    // For an open session the daemon returns that session.
    retry: "safe",
    pi: { command: "switch_session", asItIs: false },
  },
  "session/fork": {
    summary: "Makes a new session of the transcript before one of the user's messages. It takes over the pi.",
    params: params({
      sessionId: SessionId,
      entryId: Type.String({
        pattern: "^[!-~]{1,128}$",
        description: "The entry of a user's message, on any branch; `session/getForkMessages` lists them.",
      }),
      abortRun,
    }),
    result: Type.Object(
      {
        session: { ...SessionInfo, description: "The new session." },
        text: Type.Optional(Type.String({ description: "The text of the message that the new session is without." })),
      },
      { additionalProperties: false },
    ),
    http: { verb: "POST", path: "/v1/sessions/{sessionId}/fork" },
    scope: "session",
    capability: "prompt",
    since: "0.1.0",
    errors: [...childErrors, "session_busy", "refused_by_pi"],
    rate: "starts",
    retry: "never",
    pi: { command: "fork", asItIs: false },
  },
  "session/clone": {
    summary: "Makes a new session of the whole active branch. It takes over the pi.",
    params: params({ sessionId: SessionId, abortRun }),
    result: newSession,
    http: { verb: "POST", path: "/v1/sessions/{sessionId}/clone" },
    scope: "session",
    capability: "prompt",
    since: "0.1.0",
    errors: [...childErrors, "session_busy", "refused_by_pi"],
    rate: "starts",
    retry: "never",
    pi: { command: "clone", asItIs: false },
  },
  "session/startNew": {
    summary:
      "Makes a new session without messages, with the same options. It takes over the pi, unless other connections follow this session: then it is `session_busy`, and `session/create` makes one with a pi of its own.",
    params: params({
      sessionId: SessionId,
      parentSession: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 4096,
          pattern: "^[^\\u0000]*$",
          description: "What the new file's header names as its parent; usually a session's file.",
        }),
      ),
      abortRun,
    }),
    result: newSession,
    http: { verb: "POST", path: "/v1/sessions/{sessionId}/new" },
    scope: "session",
    capability: "prompt",
    since: "0.1.0",
    errors: [...childErrors, "session_busy", "refused_by_pi"],
    rate: "starts",
    retry: "never",
  },
  "session/reload": {
    summary:
      "Continues with the session's current file, including writes of other programs. Ends the pi, if there is one.",
    params: sessionIdOnly,
    result: SessionInfo,
    http: { verb: "POST", path: "/v1/sessions/{sessionId}/reload" },
    scope: "session",
    capability: "prompt",
    since: "0.1.0",
    errors: ["session_not_found", "session_busy", "session_closed", "session_file_unusable", "overloaded"],
    rate: "starts",
    retry: "never",
  },
  "session/delete": {
    summary: "Ends the session's pi, forgets the session, and deletes its file.",
    params: params({
      sessionId: SessionId,
      confirm: Type.Literal(true, { description: "The transcript is gone for good." }),
      ifAlone,
    }),
    result: Type.Object(
      { exit: Type.Optional(ChildExit), deliveries: DeliveryEffects },
      { additionalProperties: false },
    ),
    http: { verb: "DELETE", path: "/v1/sessions/{sessionId}" },
    scope: "none",
    capability: "prompt",
    since: "0.1.0",
    errors: ["session_not_found", "session_in_use", "session_file_unusable", "session_busy"],
    retry: "never",
  },
} as const satisfies Readonly<Record<string, MethodRow>>;
