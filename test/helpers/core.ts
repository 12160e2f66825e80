import { randomUUID } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { defaultContextLimits } from "../../protocol/context-limits.ts";
import type { OptimisationOptions } from "../../protocol/optimisation/options.ts";
import type { PruningOptions } from "../../protocol/pruning/options.ts";
import type { Profile } from "../../protocol/session-options.ts";
import { lifeLimits, limits } from "../../server/configuration/limits.ts";
import { noConfiguration } from "../../server/context/part-layers.ts";
import type { DeliveryTracker } from "../../server/delivery/tracker.ts";
import type { DialogRegistry } from "../../server/dialogs/dialog-registry.ts";
import type { Frame } from "../../server/frames/frame.ts";
import { ResourceStack } from "../../server/lib/resource-stack.ts";
import { Feed } from "../../server/log/feed.ts";
import { Logs } from "../../server/log/logs.ts";
import { openCore } from "../../server/open-core.ts";
import { locatePi } from "../../server/pi/locate.ts";
import type { Registry, RegistryOptions } from "../../server/session/registry.ts";
import { SessionDirectory } from "../../server/session/session-directory.ts";
import type { Connect } from "../../server/store/connection.ts";
import { Database } from "../../server/store/database.ts";
import { EventStore } from "../../server/store/events.ts";
import { type FeedLimits, FeedStore } from "../../server/store/feed.ts";
import { SessionStore } from "../../server/store/sessions.ts";
import type { StoredSession } from "../../server/store/stored-session.ts";
import type { Unchecked } from "./unchecked.ts";

const fakePi = join(import.meta.dirname, "..", "fixtures", "fake-pi.mjs");

/** The daemon's core without its edge, on a fake pi: how sessions and deliveries behave by themselves. */
export interface Core extends AsyncDisposable {
  readonly root: string;
  readonly cwd: string;
  readonly directory: SessionDirectory;
  readonly registry: Registry;
  readonly tracker: DeliveryTracker;
  readonly dialogs: DialogRegistry;
  readonly feed: Feed;
  /** Whether the store has a row of a session, including one that is being created. */
  stored(sessionId: string): boolean;
  /** Sets how children that start from now on misbehave. */
  behave(...behaviours: readonly string[]): void;
  /** Puts a session into the store that no daemon created; the next {@link restart} finds it. */
  store(session: StoredSession): Promise<void>;
  /** Like a killed daemon: its children die, and another starts on the same store. */
  restart(): Promise<void>;
  /** The same for a daemon that had no time to notice its children's end. */
  kill(): Promise<void>;
}

/** A subscriber that records every notification. */
export interface Recorder {
  readonly id: string;
  readonly gone: AbortSignal;
  send(frame: Frame): void;
  readonly heard: readonly Heard[];
  /** The first notification that fits, past or future. */
  until(fits: (heard: Heard) => boolean): Promise<Heard>;
}

export interface Heard {
  readonly method: string;
  readonly params: Unchecked;
}

export function recorder(id = "recorder"): Recorder {
  const heard: Heard[] = [];
  const waiting: { fits: (heard: Heard) => boolean; resolve: (heard: Heard) => void }[] = [];
  return {
    id,
    gone: new AbortController().signal,
    heard,
    send: (frame) => {
      const notification = JSON.parse(frame.bytes.toString("utf8")) as Heard;
      heard.push(notification);
      for (const { fits, resolve } of waiting) if (fits(notification)) resolve(notification);
    },
    until: (fits) => {
      const found = heard.find(fits);
      if (found !== undefined) return Promise.resolve(found);
      const { promise, resolve } = Promise.withResolvers<Heard>();
      waiting.push({ fits, resolve });
      return promise;
    },
  };
}

export interface CoreOptions {
  /** How the store opens its database. Default: as a daemon does. */
  readonly connect?: Connect;
  /** Other limits than a daemon's, which give runs no time to end by themselves. */
  readonly limits?: Partial<RegistryOptions["limits"]>;
  /** How much of the feed is kept. Default: as in a daemon. */
  readonly feed?: Partial<FeedLimits>;
  readonly contexts?: Partial<RegistryOptions["contexts"]>;
  readonly spill?: RegistryOptions["spill"];
  /** A configuration directory of pi that belongs to the daemon. */
  readonly ownAgentDirectory?: boolean;
  /** The configuration at the start of each life. Default: empty. */
  readonly roots?: () => readonly string[];
  /** The configuration for all sessions. Default: empty. */
  readonly optimisation?: OptimisationOptions;
  readonly pruning?: PruningOptions;
  readonly profiles?: Readonly<Record<string, Profile>>;
}

export async function startCore(options: CoreOptions = {}): Promise<Core> {
  const { connect, optimisation, pruning, profiles } = options;
  const root = mkdtempSync(join(tmpdir(), "core-"));
  const cwd = join(root, "cwd");
  const runDirectory = join(root, "run");
  for (const directory of [cwd, runDirectory]) mkdirSync(directory);
  const env: NodeJS.ProcessEnv = { ...process.env, PI_CODING_AGENT_DIR: join(root, "agent") };
  const log = pino({ level: "silent" });

  let life = 0;

  function open() {
    const resources = new ResourceStack();
    const path = join(root, `store-${life}.db`);
    const database = resources.add(new Database(path, () => {}, connect === undefined ? {} : { connect }), (open) =>
      open.close(),
    );
    const directory = new SessionDirectory();
    const feed = new Feed(new FeedStore(database, { ...limits.feed, ...options.feed }), log);
    const roots = options.roots?.();
    const core = openCore(
      {
        database,
        directory,
        locate: () => locatePi({ option: fakePi, env: {} }),
        helper: "unused",
        runDirectory,
        spillDirectory: join(root, "spill"),
        ...(options.spill && { spill: options.spill }),
        env,
        sessions: new SessionStore(database),
        configuration: {
          ...noConfiguration,
          roots,
          ...(optimisation && { optimisation }),
          ...(pruning && { pruning }),
          ...(profiles && { profiles }),
          ...(options.ownAgentDirectory === true && { agentDirectory: join(root, "agent") }),
        },
        roots,
        logs: new Logs(new EventStore(database, limits.storedEvents), {
          maxRetainedBytes: limits.maxRetainedEventBytes,
          ...limits.log,
        }),
        taker: { daemonId: randomUUID(), stateDir: root },
        contexts: { readRoots: [], ackTimeoutMs: 2_000, limits: defaultContextLimits, ...options.contexts },
        limits: { ...limits, ...lifeLimits({}), drainMs: 0, ...options.limits, warm: { ...limits.warm, perKind: 0 } },
        log,
      },
      resources,
    );
    return { ...core, database, directory, feed, resources };
  }

  let current = open();
  let restarting: Promise<void> = Promise.resolve();
  const restart = (): Promise<void> => {
    restarting = restarting.catch(() => {}).then(begin);
    return restarting;
  };
  const begin = async (): Promise<void> => {
    for (const { state } of current.registry.all()) {
      if (state.kind !== "idle" && state.kind !== "running") continue;
      process.kill(state.child.pid, "SIGKILL");
      await state.child.cleaned;
    }
    // A killed daemon starts no other child.
    await current.resources.release();
    current = open();
    await current.registry.recover();
  };
  return {
    root,
    cwd,
    get directory() {
      return current.directory;
    },
    get registry() {
      return current.registry;
    },
    get tracker() {
      return current.tracker;
    },
    get dialogs() {
      return current.dialogs;
    },
    get feed() {
      return current.feed;
    },
    stored: (sessionId) =>
      current.database.prepare("SELECT 1 FROM sessions WHERE session_id = ?").get(sessionId) !== undefined,
    behave: (...behaviours) => {
      env["FAKE_PI"] = behaviours.join(",");
    },
    store: (session) => new SessionStore(current.database).put(session),
    restart,
    kill: async () => {
      // The next daemon knows only what is on disk at this moment.
      for (const suffix of ["", "-wal"]) {
        const file = join(root, `store-${life}.db${suffix}`);
        if (existsSync(file)) copyFileSync(file, join(root, `store-${life + 1}.db${suffix}`));
      }
      life += 1;
      await restart();
    },
    [Symbol.asyncDispose]: async () => {
      // A core that is being restarted must also end its next life.
      await restarting.catch(() => {});
      await current.resources.release();
      rmSync(root, { recursive: true });
    },
  };
}
