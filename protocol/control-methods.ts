import { ClientId, ClientName } from "./client-identity.ts";
import { Control, ControlPolicy } from "./control.ts";
import { SessionId } from "./ids.ts";
import { Type } from "./json-schema.ts";
import type { MethodRow } from "./method-row.ts";
import { params } from "./params.ts";

/** Method rows for clients and control of sessions. */
export const controlMethods = {
  "daemon/hello": {
    summary: "Identifies this connection's client, for attribution of its calls and for control of sessions.",
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
    // It describes the client of one connection.
    retry: "never",
  },
  "session/acquireControl": {
    summary: "Makes this client the session's controller for a limited time, or renews the lease.",
    params: params({
      sessionId: SessionId,
      ttlMs: Type.Optional(
        Type.Integer({ minimum: 1_000, maximum: 3_600_000, default: 60_000, description: "How long the lease lasts." }),
      ),
      takeOver: Type.Optional(Type.Boolean({ default: false, description: "Take it from another client." })),
      policy: Type.Optional({
        ...ControlPolicy,
        description: "Sets the session's policy, which outlives the lease and the daemon. Default: unchanged.",
      }),
    }),
    result: Control,
    http: { none: "it is about a connection that stays open" },
    scope: "none",
    capability: "prompt",
    since: "0.1.0",
    errors: ["session_not_found", "invalid_request", "not_controller"],
    governed: false,
    // Another client may have the lease by then.
    retry: "never",
  },
  "session/releaseControl": {
    summary: "Releases control of a session, or hands it to another connected client for the remaining time.",
    params: params({
      sessionId: SessionId,
      to: Type.Optional({ ...ClientId, description: "The new controller. Default: none." }),
    }),
    result: Control,
    http: { none: "it is about a connection that stays open" },
    scope: "none",
    capability: "prompt",
    since: "0.1.0",
    errors: ["session_not_found", "invalid_request", "not_controller", "client_not_found"],
    governed: false,
    retry: "never",
  },
} as const satisfies Readonly<Record<string, MethodRow>>;
