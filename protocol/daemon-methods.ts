import { DaemonInfo } from "./daemon.ts";
import { Type } from "./json-schema.ts";
import type { MethodRow } from "./method-row.ts";
import { empty } from "./params.ts";

/** Rows of the method table about the daemon and its protocol. */
export const daemonMethods = {
  "daemon/info": {
    summary: "What runs here: versions, which pi, how many sessions.",
    params: empty,
    result: DaemonInfo,
    scope: "none",
    capability: "observe",
    since: "0.1.0",
    errors: [],
  },
  "rpc.discover": {
    summary: "This protocol as an OpenRPC document.",
    params: empty,
    result: Type.Object({ openrpc: Type.String() }, { additionalProperties: true }),
    scope: "none",
    capability: "observe",
    since: "0.1.0",
    errors: [],
  },
} as const satisfies Readonly<Record<string, MethodRow>>;
