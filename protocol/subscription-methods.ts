import { Gap } from "./event.ts";
import { Seq, SessionId } from "./ids.ts";
import { Type } from "./json-schema.ts";
import type { MethodRow } from "./method-row.ts";
import { params, sessionIdOnly } from "./params.ts";
import { ProviderLevel } from "./provider.ts";

/** Rows of the method table about following a session. */
export const subscriptionMethods = {
  "session/subscribe": {
    summary: "Sends the session's notifications to this connection: first those after the cursor, then live ones.",
    params: params({
      sessionId: SessionId,
      after: Type.Optional({
        ...Seq,
        description: "The last seq that the client has. Default: the session's present cursor (nothing is replayed).",
      }),
      provider: Type.Optional(ProviderLevel),
    }),
    result: Type.Object(
      {
        cursor: { ...Seq, description: "The newest seq at the moment of the call. All later ones follow live." },
        gap: Type.Optional(Gap),
      },
      { additionalProperties: false },
    ),
    scope: "none",
    capability: "observe",
    since: "0.1.0",
    errors: ["session_not_found", "invalid_request"],
  },
  "session/unsubscribe": {
    summary: "Ends this connection's subscription. Not being subscribed is no error.",
    params: sessionIdOnly,
    result: Type.Object({ wasSubscribed: Type.Boolean() }, { additionalProperties: false }),
    scope: "none",
    capability: "observe",
    since: "0.1.0",
    errors: ["invalid_request"],
  },
} as const satisfies Readonly<Record<string, MethodRow>>;
