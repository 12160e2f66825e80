import type { Static } from "typebox";
import { Timestamp } from "./ids.ts";
import { Type } from "./json-schema.ts";

/** What differs between the versions of pi that are supported, as far as a client can notice it. */
export const PiCapabilities = Type.Object(
  {
    promptDisposition: Type.Boolean({
      description: "pi says itself what became of a prompt. Without it the daemon finds it out.",
    }),
    settledAborted: Type.Boolean({ description: "`agent_settled` says whether the run was aborted." }),
  },
  { additionalProperties: false },
);
export type PiCapabilities = Static<typeof PiCapabilities>;

export const PiInfo = Type.Object(
  {
    path: Type.String({ description: "The cli.js or executable that is started." }),
    version: Type.String(),
    source: Type.Enum(["option", "environment", "path", "bundled"], {
      description: "Where it was found: `--pi`, `PI_RPCD_PI`, PATH, or the package's own dependency.",
    }),
    capabilities: PiCapabilities,
  },
  { additionalProperties: false },
);
export type PiInfo = Static<typeof PiInfo>;

export const DaemonInfo = Type.Object(
  {
    pid: Type.Integer(),
    version: Type.String(),
    protocol: Type.Integer(),
    startedAt: Timestamp,
    stateDir: Type.String(),
    pi: PiInfo,
    sessions: Type.Record(Type.String(), Type.Integer(), { description: "How many sessions are in each state." }),
    connections: Type.Integer(),
    residentBytes: Type.Integer({ description: "The daemon's own resident memory, without its children." }),
  },
  { additionalProperties: false },
);
export type DaemonInfo = Static<typeof DaemonInfo>;
