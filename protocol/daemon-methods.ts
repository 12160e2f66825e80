import { DaemonInfo, Readiness } from "./daemon.ts";
import { FeedEpoch, FeedSeq } from "./feed.ts";
import { Type } from "./json-schema.ts";
import type { MethodRow } from "./method-row.ts";
import { empty, params } from "./params.ts";

/** Rows of the method table about the daemon and its protocol. */
export const daemonMethods = {
  "daemon/info": {
    summary: "The daemon: versions, the pi in use, number of sessions.",
    params: empty,
    result: DaemonInfo,
    http: { verb: "GET", path: "/v1/daemon" },
    scope: "none",
    capability: "any",
    since: "0.1.0",
    errors: [],
    retry: "safe",
  },
  "daemon/ready": {
    summary: "Whether the daemon is ready: its store accepts writes, pi exists, its event loop is responsive.",
    params: empty,
    result: Readiness,
    http: { verb: "GET", path: "/readyz" },
    scope: "none",
    capability: "observe",
    since: "0.1.0",
    errors: ["not_ready"],
    retry: "safe",
  },
  "daemon/subscribe": {
    summary:
      "Notifies this connection of every session that is created, changed or closed from now on. Subscribe first, then list, so that no change is missed. With `after`, follows the feed of all sessions instead: the events after the cursor, then live ones.",
    params: params({
      after: Type.Optional({
        ...FeedSeq,
        description:
          "The last seq of the feed that the client has. Default: not the feed, but `daemon/sessionChanged` from now on.",
      }),
      epoch: Type.Optional({
        ...FeedEpoch,
        description: "The feed to which `after` belongs, as `daemon/info` or an earlier answer named it.",
      }),
      deliveries: Type.Optional(
        Type.Boolean({
          description:
            "Also `daemon/deliveryUpdated`: each change of a delivery of any session. Default: as it was; at first false.",
        }),
      ),
      dialogs: Type.Optional(
        Type.Enum(["off", "observe", "answer"], {
          description:
            "`observe`: also `daemon/dialogChanged`, for the dialogs of all sessions. `answer`: this connection can answer them, too, and they wait for it. Default: as it was; at first `off`.",
        }),
      ),
    }),
    result: Type.Object(
      {
        cursor: Type.Optional({
          ...FeedSeq,
          description: "With `after`: the newest seq at the moment of the call. All later ones follow.",
        }),
        epoch: Type.Optional({ ...FeedEpoch, description: "With `after`: the name of the feed." }),
      },
      { additionalProperties: false },
    ),
    http: { verb: "GET", path: "/v1/events", stream: true },
    scope: "none",
    capability: "observe",
    needs: [{ param: "dialogs", value: "answer", capability: "prompt" }],
    since: "0.1.0",
    errors: ["invalid_request"],
    // A subscription belongs to one connection: a client that connects again renews it.
    retry: "never",
  },
  "daemon/unsubscribe": {
    summary: "Ends all of these notifications, and the feed. Succeeds also without a subscription.",
    params: empty,
    result: Type.Object({ wasSubscribed: Type.Boolean() }, { additionalProperties: false }),
    http: { none: "a stream is ended by closing it" },
    scope: "none",
    capability: "observe",
    since: "0.1.0",
    errors: ["invalid_request"],
    retry: "never",
  },
  "rpc.discover": {
    summary: "This protocol as an OpenRPC document.",
    params: empty,
    result: Type.Object({ openrpc: Type.String() }, { additionalProperties: true }),
    http: { verb: "GET", path: "/openrpc.json" },
    scope: "none",
    capability: "any",
    since: "0.1.0",
    errors: [],
    retry: "safe",
  },
} as const satisfies Readonly<Record<string, MethodRow>>;
