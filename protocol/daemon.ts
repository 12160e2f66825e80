import type { Static } from "typebox";
import { FeedPlace } from "./feed.ts";
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
    path: Type.String({ description: "The damaged database, set aside as it was found." }),
    at: Timestamp,
    why: Type.String({ description: "What was found, as a sentence." }),
    kept: Type.Object(
      {
        sessions: Type.Integer(),
        sessionsFromList: Type.Integer({ description: "Their rows were lost; the list of sessions has them." }),
        sessionsFromFiles: Type.Integer({ description: "Only pi's own session file was left of them." }),
        prompts: Type.Integer(),
        deliveries: Type.Integer(),
      },
      { additionalProperties: false, description: "How much the new store was begun with." },
    ),
    lost: Type.Object(
      {
        sessionIds: Type.Array(Type.String()),
        promptIds: Type.Array(Type.String()),
        deliveryIds: Type.Array(Type.String()),
      },
      {
        additionalProperties: false,
        description:
          "What is known to be lost, as far as something readable names it; at most 1,000 of each. Transactions that are missing as a whole are counted in `why`.",
      },
    ),
  },
  { additionalProperties: false },
);
export type StoreDamage = Static<typeof StoreDamage>;

export const StoreInfo = Type.Object(
  {
    state: Type.Enum(["open", "failing"], {
      description:
        "`failing`: writes fail or are refused with `store_failed`, and are tried again by themselves. Reads go on.",
    }),
    since: Type.Optional({ ...Timestamp, description: "Since when it is failing." }),
    why: Type.Optional(Type.String({ description: "Why it is failing." })),
    unwritten: Type.Integer({ description: "Changes that have happened and wait to be written." }),
    bytes: Type.Integer({ description: "The database's files." }),
    damaged: Type.Array(StoreDamage, {
      description: "Damaged databases that were set aside and still lie there, the newest first; at most 3.",
    }),
  },
  { additionalProperties: false },
);
export type StoreInfo = Static<typeof StoreInfo>;

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
      description: "Children that are ready and that no session has yet; each costs what an idle pi costs.",
    }),
    connections: Type.Integer(),
    residentBytes: Type.Integer({ description: "The daemon's own resident memory, without its children." }),
    store: Type.Optional(StoreInfo),
    feed: Type.Optional({
      ...FeedPlace,
      description: "Where the feed of all sessions is: list then, and `daemon/subscribe` from there.",
    }),
  },
  { additionalProperties: false },
);
export type DaemonInfo = Static<typeof DaemonInfo>;

/** What the daemon's work needs, and how that is. */
export const Readiness = Type.Object(
  {
    ready: Type.Boolean(),
    store: Type.Enum(["open", "failing"], { description: "Whether the store takes writes." }),
    pi: Type.Enum(["found", "missing"], { description: "Whether the pi that the daemon was started with is there." }),
    eventLoopDelayMs: Type.Integer({ minimum: 0, description: "How late a timer of the daemon's was just now." }),
    lostLogLines: Type.Integer({
      minimum: 0,
      description: "Lines that the daemon's log file has not taken, such as on a full disk; no reason not to be ready.",
    }),
  },
  { additionalProperties: false },
);
export type Readiness = Static<typeof Readiness>;
