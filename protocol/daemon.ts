import type { Static } from "typebox";
import { capabilities } from "./capability.ts";
import { FeedPlace } from "./feed.ts";
import { Timestamp } from "./ids.ts";
import { Type } from "./json-schema.ts";

/** Differences between supported versions of pi that clients can notice. */
export const PiCapabilities = Type.Object(
  {
    promptDisposition: Type.Boolean({
      description: "pi reports the outcome of a prompt. Otherwise the daemon infers it.",
    }),
    builtinExtensions: Type.Optional(Type.Boolean({ description: "`extensions` takes `builtin:NAME`." })),
    noMcp: Type.Optional(Type.Boolean({ description: "`session/create` takes `noMcp`." })),
    mcpServers: Type.Optional(Type.Boolean({ description: "`session/create` and `session/open` take `mcpServers`." })),
    settledAborted: Type.Boolean({ description: "`agent_settled` says whether the run was aborted." }),
  },
  { additionalProperties: false },
);
export type PiCapabilities = Static<typeof PiCapabilities>;

export const PiInfo = Type.Object(
  {
    path: Type.String({ description: "The cli.js or executable that is started." }),
    version: Type.String(),
    source: Type.Enum(["option", "environment", "configuration", "path", "bundled"], {
      description:
        "Where it was found: `--pi`, `PI_RPCD_PI`, the configuration file, PATH, or the package's own dependency.",
    }),
    capabilities: PiCapabilities,
  },
  { additionalProperties: false },
);
export type PiInfo = Static<typeof PiInfo>;

export const StoreDamage = Type.Object(
  {
    path: Type.String({ description: "The path of the unchanged damaged database." }),
    at: Timestamp,
    why: Type.String({ description: "What was damaged, as a sentence." }),
    kept: Type.Object(
      {
        sessions: Type.Integer(),
        sessionsFromList: Type.Integer({
          description: "Sessions restored from the list of sessions, because their rows were lost.",
        }),
        sessionsFromFiles: Type.Integer({ description: "Restored from pi's session file only." }),
        prompts: Type.Integer(),
        deliveries: Type.Integer(),
      },
      { additionalProperties: false, description: "Number of rows restored to the new store." },
    ),
    lost: Type.Object(
      {
        transactions: Type.Integer({
          description: "Transactions that neither the copy nor the log of the store has; their content is unknown.",
        }),
        sessionIds: Type.Array(Type.String(), {
          description: "Sessions of restored prompts and deliveries that were not found; at most 1,000.",
        }),
      },
      { additionalProperties: false },
    ),
  },
  { additionalProperties: false },
);
export type StoreDamage = Static<typeof StoreDamage>;

export const StoreInfo = Type.Object(
  {
    state: Type.Enum(["open", "failing"], {
      description:
        "`failing`: writes fail or are refused with `store_failed`, and are retried automatically. Reads continue.",
    }),
    since: Type.Optional({ ...Timestamp, description: "Since when it is failing." }),
    why: Type.Optional(Type.String({ description: "Why it is failing." })),
    unwritten: Type.Integer({ description: "Changes waiting to be written." }),
    bytes: Type.Integer({ description: "The database's files." }),
    copyFailure: Type.Optional(
      Type.String({
        description:
          "Why the newest copy of the store, or the log of later changes, could not be written: if the store is damaged, changes may be lost.",
      }),
    ),
    damaged: Type.Array(StoreDamage, {
      description: "Damaged databases that were set aside and still exist, newest first; at most 3.",
    }),
  },
  { additionalProperties: false },
);
export type StoreInfo = Static<typeof StoreInfo>;

export const LiveRestore = Type.Object(
  {
    available: Type.Boolean({
      description: "Whether pi processes survive a crash and a restart of the daemon, with their runs.",
    }),
    why: Type.Optional(Type.String({ description: "Why it is not available, as a sentence." })),
    restored: Type.Integer({
      minimum: 0,
      description: "pi processes of a former daemon that this daemon continued.",
    }),
    lost: Type.Integer({
      minimum: 0,
      description: "pi processes of a former daemon that were to survive it, but could not be continued.",
    }),
  },
  { additionalProperties: false },
);
export type LiveRestore = Static<typeof LiveRestore>;

export const DaemonInfo = Type.Object(
  {
    pid: Type.Integer(),
    version: Type.String(),
    protocol: Type.Integer(),
    startedAt: Timestamp,
    stateDir: Type.String(),
    pi: PiInfo,
    sessions: Type.Record(Type.String(), Type.Integer(), { description: "How many sessions are in each state." }),
    warmChildren: Type.Integer({
      minimum: 0,
      description: "Started children not yet assigned to a session; each uses the resources of an idle pi.",
    }),
    connections: Type.Integer(),
    residentBytes: Type.Integer({ description: "The daemon's own resident memory, without its children." }),
    store: Type.Optional(StoreInfo),
    capabilities: Type.Array(Type.Enum([...capabilities]), {
      description: "What the caller's token allows: `admin` allows everything.",
    }),
    instance: Type.Optional(
      Type.String({
        description:
          "Names this process of the daemon: random, new at each start. A client that connects again compares it.",
      }),
    ),
    keyVariables: Type.Optional(
      Type.Array(Type.String(), {
        description:
          "Names of the variables in the daemon's environment from which pi takes the keys of providers. Only for the daemon's own token.",
      }),
    ),
    liveRestore: Type.Optional(LiveRestore),
    feed: Type.Optional({
      ...FeedPlace,
      description: "Position of the feed of all sessions: list the sessions, then call `daemon/subscribe` from it.",
    }),
  },
  { additionalProperties: false },
);
export type DaemonInfo = Static<typeof DaemonInfo>;

/** State of the daemon's requirements. */
export const Readiness = Type.Object(
  {
    ready: Type.Boolean(),
    store: Type.Enum(["open", "failing"], { description: "Whether the store accepts writes." }),
    pi: Type.Enum(["found", "missing"], { description: "Whether the configured pi still exists." }),
    eventLoopDelayMs: Type.Integer({ minimum: 0, description: "Current delay of a timer in the daemon." }),
    lostLogLines: Type.Integer({
      minimum: 0,
      description:
        "Lines that could not be written to the daemon's log file, for example on a full disk. Does not affect readiness.",
    }),
  },
  { additionalProperties: false },
);
export type Readiness = Static<typeof Readiness>;
