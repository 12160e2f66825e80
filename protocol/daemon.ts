import { type Static, Type } from "typebox";
import { Timestamp } from "./ids.ts";

export const PiInfo = Type.Object(
  {
    path: Type.String({ description: "The cli.js or executable that is started." }),
    version: Type.String(),
    source: Type.Enum(["option", "environment", "path", "bundled"], {
      description: "Where it was found: `--pi`, `PI_RPCD_PI`, PATH, or the package's own dependency.",
    }),
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

/** What `daemon.json` in the state directory says. The file is 0600 and is removed when the daemon ends. */
export interface DaemonFile {
  readonly pid: number;
  readonly version: string;
  /** {@link PROTOCOL_VERSION} of the daemon. */
  readonly protocol: number;
  /** `http://127.0.0.1:<port>`. */
  readonly url: string;
  readonly socketPath: string;
  readonly token: string;
}

/** Name of the {@link DaemonFile} in the state directory. */
export const DAEMON_FILE_NAME = "daemon.json";
