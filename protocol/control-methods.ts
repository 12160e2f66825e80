import { ClientId, ClientName } from "./client-identity.ts";
import { Control, ControlPolicy } from "./control.ts";
import { SessionId } from "./ids.ts";
import { Type } from "./json-schema.ts";
import type { MethodRow } from "./method-row.ts";
import { params } from "./params.ts";

/** Rows of the method table about who acts in a session. */
export const controlMethods = {
  "daemon/hello": {
    summary: "Says who this connection's client is: for what is told of its calls, and for control of sessions.",
    params: params({
      client: Type.Object(
        {
          id: Type.Optional({
            ...ClientId,
            description:
              "The client's own id, the same on all its connections. Default: a new one for this connection.",
          }),
          name: Type.Optional(ClientName),
          version: Type.Optional(Type.String({ maxLength: 64, description: "The client's version, for the log." })),
        },
        { additionalProperties: false },
      ),
    }),
    result: Type.Object({ clientId: ClientId, name: Type.Optional(ClientName) }, { additionalProperties: false }),
    http: { none: "it is about a connection that stays open" },
    scope: "none",
    capability: "any",
    since: "0.1.0",
    errors: ["invalid_request", "conflict"],
  },
  "session/acquireControl": {
    summary: "Makes this client the session's controller for a while, or renews that.",
    params: params({
      sessionId: SessionId,
      ttlMs: Type.Optional(
        Type.Integer({ minimum: 1_000, maximum: 3_600_000, default: 60_000, description: "How long the lease lasts." }),
      ),
      takeOver: Type.Optional(Type.Boolean({ default: false, description: "Take it from another client." })),
      policy: Type.Optional({
        ...ControlPolicy,
        description: "Set the session's policy, which outlives the lease and the daemon. Default: as it is.",
      }),
    }),
    result: Control,
    http: { none: "it is about a connection that stays open" },
    scope: "none",
    capability: "prompt",
    since: "0.1.0",
    errors: ["session_not_found", "invalid_request", "not_controller"],
  },
  "session/releaseControl": {
    summary:
      "Gives the control of a session up, or hands it over to another connected client for the time that is left.",
    params: params({
      sessionId: SessionId,
      to: Type.Optional({ ...ClientId, description: "Who is to have it. Default: nobody." }),
    }),
    result: Control,
    http: { none: "it is about a connection that stays open" },
    scope: "none",
    capability: "prompt",
    since: "0.1.0",
    errors: ["session_not_found", "invalid_request", "not_controller", "client_not_found"],
  },
} as const satisfies Readonly<Record<string, MethodRow>>;
