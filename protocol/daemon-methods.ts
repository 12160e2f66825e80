import { DaemonInfo, Readiness } from "./daemon.ts";
import { FeedEpoch, FeedSeq } from "./feed.ts";
import { Type } from "./json-schema.ts";
import type { MethodRow } from "./method-row.ts";
import { empty, params } from "./params.ts";

/** Rows of the method table about the daemon and its protocol. */
export const daemonMethods = {
  "daemon/info": {
    summary: "What runs here: versions, which pi, how many sessions.",
    params: empty,
    result: DaemonInfo,
    http: { verb: "GET", path: "/v1/daemon" },
    scope: "none",
    capability: "any",
    since: "0.1.0",
    errors: [],
  },
  "daemon/ready": {
    summary: "Whether the daemon can do its work: its store takes writes, pi is there, its event loop turns.",
    params: empty,
    result: Readiness,
    http: { verb: "GET", path: "/readyz" },
    scope: "none",
    capability: "observe",
    since: "0.1.0",
    errors: ["not_ready"],
  },
  "daemon/subscribe": {
    summary:
      "Tells this connection of every session that is created, changes or is closed, from now on. Subscribe first and list then: what lies between is told. With `after` it is the feed of all sessions instead: the events after the cursor, then live ones.",
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
    since: "0.1.0",
    errors: ["invalid_request"],
  },
  "daemon/unsubscribe": {
    summary: "Ends that, and the feed. Not being subscribed is no error.",
    params: empty,
    result: Type.Object({ wasSubscribed: Type.Boolean() }, { additionalProperties: false }),
    http: { none: "a stream is ended by closing it" },
    scope: "none",
    capability: "observe",
    since: "0.1.0",
    errors: ["invalid_request"],
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
  },
} as const satisfies Readonly<Record<string, MethodRow>>;
