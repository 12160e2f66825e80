import { randomUUID } from "node:crypto";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import type { Logger } from "pino";
import { certificateProblem, type DaemonFile } from "../protocol/daemon-file.ts";
import { WireError } from "../protocol/errors.ts";
import { keyVariablesIn } from "../protocol/key-variables.ts";
import { createValidator } from "../protocol/validation.ts";
import { PROTOCOL_VERSION } from "../protocol/wire.ts";
import { Survival } from "./children/survival.ts";
import { configure, contextConfiguration, type Sources } from "./configuration/configuration.ts";
import { lifeLimits, limits, stateDirectory } from "./configuration/limits.ts";
import type { Values } from "./configuration/settings.ts";
import { hasPartOptions } from "./context/parts-config.ts";
import { Spill } from "./context/spill.ts";
import { KeptChildren, type LiveRestoreFacts, liveRestoreFacts } from "./core/live-restore-facts.ts";
import { createEdge } from "./edge/app.ts";
import { EdgeLoad } from "./edge/edge-load.ts";
import type { EdgeLimits } from "./edge/limits.ts";
import { tlsListener } from "./edge/tls.ts";
import { WebPage } from "./edge/web-page.ts";
import { ResourceStack } from "./lib/resource-stack.ts";
import { StartError } from "./lib/start-error.ts";
import { Feed } from "./log/feed.ts";
import { Logs } from "./log/logs.ts";
import { lostLines, recentLines } from "./log.ts";
import { Metrics } from "./metrics.ts";
import { openCore } from "./open-core.ts";
import { packageVersion } from "./package-version.ts";
import type { KeptOptions } from "./pi/child.ts";
import { ChildRegistry } from "./pi/child-registry.ts";
import { locatePi } from "./pi/locate.ts";
import { sessionRoot } from "./pi/session-file.ts";
import { removeHelperConfigs } from "./pi/start-pi.ts";
import type { Handlers } from "./rpc/call.ts";
import { Clients } from "./rpc/clients.ts";
import { createDispatcher, type Dispatcher } from "./rpc/dispatcher.ts";
import { commandHandlers } from "./rpc/handlers/command.ts";
import { contextHandlers } from "./rpc/handlers/context.ts";
import { controlHandlers } from "./rpc/handlers/control.ts";
import { costHandlers } from "./rpc/handlers/cost.ts";
import { daemonHandlers } from "./rpc/handlers/daemon.ts";
import { deliveryHandlers } from "./rpc/handlers/delivery.ts";
import { dialogHandlers } from "./rpc/handlers/dialog.ts";
import { modelHandlers } from "./rpc/handlers/model.ts";
import { optimisationHandlers } from "./rpc/handlers/optimisation.ts";
import { promptHandlers } from "./rpc/handlers/prompt.ts";
import { pruningHandlers } from "./rpc/handlers/pruning.ts";
import { requestHandlers } from "./rpc/handlers/request.ts";
import { sessionHandlers } from "./rpc/handlers/session.ts";
import { sessionFileHandlers } from "./rpc/handlers/session-file.ts";
import { settingsHandlers } from "./rpc/handlers/settings.ts";
import { subscriptionHandlers } from "./rpc/handlers/subscription.ts";
import { tokenHandlers } from "./rpc/handlers/token.ts";
import { transcriptHandlers } from "./rpc/handlers/transcript.ts";
import { webHandlers } from "./rpc/handlers/web.ts";
import { policies } from "./rpc/policies.ts";
import { Tokens } from "./rpc/tokens.ts";
import type { Session } from "./session/session.ts";
import { SessionDirectory } from "./session/session-directory.ts";
import { namedStartError, requireOwnAgentDirectory, storeOf } from "./start-errors.ts";
import { StateDirectory } from "./state-directory.ts";
import { ChildStore } from "./store/children.ts";
import { EventTail } from "./store/event-tail.ts";
import { EventStore } from "./store/events.ts";
import { FeedStore } from "./store/feed.ts";
import { IdempotencyStore } from "./store/idempotency.ts";
import type { OpenStore } from "./store/open-store.ts";
import { Retention } from "./store/retention.ts";
import { retentionClock } from "./store/retention-clock.ts";

export interface DaemonOptions {
  /** Default: as {@link stateDirectory} says. */
  readonly stateDir?: string | undefined;
  /** TCP port on loopback; 0 (the default) lets the system choose. */
  readonly port?: number | undefined;
  /** Path of pi's cli.js or executable. Default: `PI_RPCD_PI`, `pi` on PATH, the bundled one. */
  readonly pi?: string | undefined;
  /** The configuration file. Default: `$XDG_CONFIG_HOME/pi-rpcd/config.json` or `~/.config/pi-rpcd/config.json`, if there is one. */
  readonly config?: string | undefined;
  /** Web origins that may connect: scheme, host and port, compared exactly. Default: none. */
  readonly allowedOrigins?: readonly string[] | undefined;
  /** What else of the configuration is known better here: goes before the environment and the file. */
  readonly settings?: Sources["options"];
  /** The helper extension that is loaded into each pi. Default: this package's own. */
  readonly helper?: string | undefined;
  /** How long runs may go on when the daemon is told to end. Default: 5 s. */
  readonly drainMs?: number | undefined;
  /** What children inherit. */
  readonly env: NodeJS.ProcessEnv;
  /** The directory of the web console's files. Default: this package's own. */
  readonly webFiles?: string | undefined;
  /** Other bounds of the edge than its own. */
  readonly edgeLimits?: Partial<EdgeLimits> | undefined;
  readonly log: Logger;
  /** Gets a line for each call that has changed something. Default: `log`. */
  readonly calls?: Logger | undefined;
}

/** `stopped`: by {@link Daemon.stop}; `restarting`: by {@link Daemon.restart}. */
export type DaemonEnd = "stopped" | "restarting" | "state_directory_lost";

/** A running daemon. */
export interface Daemon {
  /** The content of `daemon.json`: the token changes when it is rotated. */
  readonly file: DaemonFile;
  readonly stateDir: string;
  /** Resolves with the reason when everything has ended. */
  readonly closed: Promise<DaemonEnd>;
  /** As {@link OpenDaemon.drain}. Always returns the same promise. */
  stop(): Promise<void>;
  /**
   * Ends the daemon for another one that follows at once: closes WebSockets with 1012 and, where live restore is
   * available, leaves the children to it. Otherwise as {@link stop}. Always returns the same promise as that.
   */
  restart(): Promise<void>;
}

/** Opens and serves a daemon. Throws as {@link openDaemon} and {@link OpenDaemon.serve} do. */
export async function startDaemon(options: DaemonOptions): Promise<Daemon> {
  return await (await openDaemon(options)).serve();
}

/**
 * Opens everything durable: the state directory, the store, the sessions. Nothing listens yet. Throws a StartError,
 * `pi_not_found` or `pi_too_old`; then everything is closed again.
 */
export async function openDaemon(options: DaemonOptions): Promise<OpenDaemon> {
  if (process.platform === "win32") {
    throw new StartError("platform_unsupported", "pi-rpcd does not run on Windows. Use WSL.");
  }
  const resources = new ResourceStack();
  try {
    return new OpenDaemon(await openParts(options, resources), options, resources);
  } catch (error) {
    await resources.release();
    throw namedStartError(error, stateDirectory(options.stateDir, options.env));
  }
}

/** A daemon without listeners. */
export class OpenDaemon {
  readonly #parts: OpenParts;
  readonly #options: DaemonOptions;
  readonly #resources: ResourceStack;
  #serving: Promise<Daemon> | undefined;

  constructor(parts: OpenParts, options: DaemonOptions, resources: ResourceStack) {
    this.#parts = parts;
    this.#options = options;
    this.#resources = resources;
  }

  get stateDir(): string {
    return this.#parts.state.path;
  }

  /** The open sessions. */
  get sessions(): readonly Session[] {
    return this.#parts.registry.all();
  }

  /**
   * Listens, and writes the address where clients find it. Throws a StartError, and `shutting_down` after
   * {@link drain}; then the daemon is drained. Always returns the same promise.
   */
  serve(): Promise<Daemon> {
    this.#serving ??= this.#serve();
    return this.#serving;
  }

  /**
   * Ends the children in order, then the connections, then the store. If {@link serve} is in progress, it ends first.
   */
  async drain(): Promise<void> {
    await this.#serving?.catch(() => {});
    await this.#resources.release();
  }

  async #serve(): Promise<Daemon> {
    try {
      if (this.#resources.isReleased) throw new WireError("shutting_down", "The daemon was drained.");
      return await listen(this.#parts, this.#options, this.#resources);
    } catch (error) {
      await this.#resources.release();
      throw namedStartError(error, this.stateDir);
    }
  }
}

type OpenParts = Awaited<ReturnType<typeof openParts>>;

async function openParts(options: DaemonOptions, resources: ResourceStack) {
  const { env: inherited, log } = options;
  const state = resources.add(StateDirectory.acquire(stateDirectory(options.stateDir, inherited)), (held) =>
    held.release(),
  );
  // Before anything that can be wrong in the configuration: leftovers end also if this start fails.
  const childRegistry = resources.add(await ChildRegistry.open(state.path, log, () => state.isHeld), (open) => {
    open.close();
    if (open.isEmpty) state.endRun();
  });
  const validator = createValidator();
  const { port, allowedOrigins, drainMs, settings } = options;
  const {
    values: configured,
    origins,
    file,
  } = configure(
    { file: options.config, env: inherited, options: { port, allowedOrigins, drainMs, ...settings } },
    validator,
  );
  const { agentDirectory: agent } = configured;
  if (agent !== undefined) requireOwnAgentDirectory(agent, inherited);
  const env = agent === undefined ? inherited : { ...inherited, PI_CODING_AGENT_DIR: agent };
  const tls = tlsListener(configured);
  const inFile = origins.pi.kind === "file" ? configured.pi : undefined;
  const locate = () => locatePi({ option: options.pi, configured: inFile, env });
  const pi = await locate();

  const liveRestore = liveRestoreFacts(configured.liveRestore);
  const endChildren = async (): Promise<void> => {
    liveRestore.lost += await childRegistry.endSurvivors(new Set());
  };
  const store = resources.add(await storeOf(state, env, endChildren, log), (open) => open.close());
  const { database } = store;
  const survival = await findSurvivors(state, store, liveRestore, log);
  await childRegistry.endSurvivors(survival.childIds);
  removeHelperConfigs(childRegistry.leftovers, inherited);
  state.clearRun(survival.childIds);
  const now = retentionClock(database);
  const events = new EventStore(database, limits.storedEvents, now);
  const idempotency = new IdempotencyStore(database, now);
  const logs = await openLogs(state, store, events, log);
  resources.defer(() => logs.close());
  const feed = new Feed(new FeedStore(database, limits.feed), log);
  const directory = new SessionDirectory();
  const metrics = resources.add(new Metrics(), (open) => open.close());
  const spill = resources.add(spillOf(state, env, directory, log), (open) => open.close());
  const { deliveries, prompts, dialogs, tracker, registry } = openCore(
    {
      database,
      directory,
      locate,
      helper: options.helper ?? extensionPath("index"),
      runDirectory: state.runDirectory,
      spillDirectory: state.spillDirectory,
      spill,
      env,
      childRegistry,
      survival,
      kept: configured.liveRestore ? keptOptions(state, configured, liveRestore) : undefined,
      sessions: store.sessions,
      configuration: { ...configured, file: file.path },
      roots: configured.roots,
      taker: { daemonId: randomUUID(), stateDir: state.path },
      logs,
      dialogDelayMs: configured.dialogDelayMs,
      onDetach: configured.onDetach,
      now,
      onDelivery: (delivery) => metrics.deliveryChanged(delivery),
      contexts: contextConfiguration(configured),
      limits: {
        ...limits,
        ...lifeLimits(configured),
        drainMs: configured.drainMs,
        maxParallelStarts: configured.maxParallelStarts,
        warm: { ...limits.warm, perKind: configured.warmChildren },
      },
      log,
    },
    resources,
  );
  await registry.recover();
  const { sweepStoreEveryMs: everyMs, maxShrinkPages: shrinkPages } = limits;
  const kept = { ...limits, everyMs, shrinkPages, now };
  resources.add(new Retention({ ...kept, database, deliveries, prompts, events, idempotency, log }), (on) =>
    on.close(),
  );
  const tokens = new Tokens({
    main: state.token(),
    setMain: (token) => state.replaceToken(token),
    file: state.tokensFile,
    maxTokens: limits.maxTokens,
    web: limits.web,
  });
  return {
    ...{ state, configured, env, validator, tls, pi, store, idempotency, liveRestore },
    ...{ logs, feed, dialogs, metrics, tracker, spill, registry, tokens },
  };
}

/** Connects to the children that survived a former daemon. */
async function findSurvivors(
  { path, runDirectory, keeperDirectory }: StateDirectory,
  { database, sessions }: OpenStore,
  facts: LiveRestoreFacts,
  log: Logger,
) {
  const { maxStderrBytes } = limits.child;
  const directories = { stateDir: path, runDirectory, socketDirectory: keeperDirectory };
  const survival = new Survival({
    ...{ store: new ChildStore(database), facts, maxStderrBytes, log },
    ...directories,
  });
  const known = new Set(sessions.all().map(({ sessionId }) => sessionId));
  await survival.find((sessionId) => known.has(sessionId));
  return survival;
}

/** How children are started so that they survive the daemon. */
function keptOptions(
  { keeperDirectory: socketDirectory }: StateDirectory,
  { orphanIdleMs, orphanRunMs }: Pick<Values, "orphanIdleMs" | "orphanRunMs">,
  facts: LiveRestoreFacts,
): KeptOptions {
  const { listenWithinMs, ...keeper } = limits.keeper;
  return {
    keeper: extensionPath("keeper"),
    socketDirectory,
    limits: { ...keeper, orphanIdleMs, orphanRunMs },
    listenWithinMs,
    status: new KeptChildren(facts),
  };
}

/** The logs, with the events that a killed daemon had sent but not stored. */
async function openLogs(state: StateDirectory, store: OpenStore, events: EventStore, log: Logger): Promise<Logs> {
  const recorded = new Map(
    store.sessions.all().map(({ sessionId, logEpoch: epoch, reservedSeq }) => [sessionId, { epoch, reservedSeq }]),
  );
  const isRecovered = await Logs.recover(events, state.path, recorded).then(
    () => true,
    (error: unknown) => {
      log.error({ err: error }, "cannot store the events of a killed daemon; a later daemon retries");
      return false;
    },
  );
  const onTailFailure = (error: unknown) => log.warn({ err: error }, "cannot write the tail of the logs");
  const tail = new EventTail(state.path, onTailFailure, limits.log.maxTailBytes);
  const logLimits = { maxRetainedBytes: limits.maxRetainedEventBytes, ...limits.log };
  return new Logs(events, logLimits, tail, isRecovered);
}

async function listen(parts: OpenParts, options: DaemonOptions, resources: ResourceStack): Promise<Daemon> {
  const { state, configured, tls, pi, registry, tokens, spill } = parts;
  const { log } = options;
  const version = packageVersion();
  const load = new EdgeLoad(options.edgeLimits);
  const instance = randomUUID();
  const web = new WebPage({
    dispatcher: () => dispatcher,
    tokens: tokens.web,
    files: options.webFiles ?? webFiles(),
    limits: limits.web,
    stateDir: state.path,
    letterKeys: configured["web.letterKeys"],
    ...{ load, version, instance, log },
  });
  const dispatcher = dispatcherOf(parts, options, { version, instance, load, web });
  const { allowedOrigins, allowedHosts } = configured;
  let end: DaemonEnd = "stopped";
  const edge = resources.add(
    createEdge({ dispatcher, tokens, version, log, load, allowedOrigins, allowedHosts, tls }),
    (listening) => listening.close({ isRestart: end === "restarting" }),
  );
  resources.defer(() => web.stop(end === "restarting" ? "restarting" : "stopped"));
  let isServing = false;
  // Clients are told of the children's end before their connections close. Without clients it was no daemon.
  resources.defer(() => (isServing && end !== "restarting" ? registry.shutdown() : registry.leave()));
  const { url, tlsUrl } = await edge.listen({ socketPath: state.socketPath, port: configured.port });
  const file: DaemonFile = {
    pid: process.pid,
    version,
    protocol: PROTOCOL_VERSION,
    url,
    socketPath: state.socketPath,
    ...(tls !== undefined &&
      tlsUrl !== undefined && { tlsUrl, tlsNotBefore: tls.notBefore, tlsNotAfter: tls.notAfter }),
    token: state.token(),
  };
  state.announce(file);
  isServing = true;
  const watch = setInterval(() => {
    if (state.isHeld) return;
    clearInterval(watch);
    end = "state_directory_lost";
    log.error({ stateDir: state.path }, "the state directory was removed or replaced by another; the daemon ends");
    void resources.release().catch(() => {});
  }, limits.lookAtStateDirectoryEveryMs).unref();
  resources.defer(() => clearInterval(watch));
  void registry.resume();
  void spill.sweep();
  const invalid = certificateProblem(file);
  if (invalid !== undefined) log.warn({ tlsUrl }, invalid);
  const closed = resources.released.then(() => end);
  closed.catch(() => {});
  log.info({ url, tlsUrl, socketPath: state.socketPath, stateDir: state.path, pi }, "listening");
  return {
    get file() {
      return state.announced ?? file;
    },
    stateDir: state.path,
    closed,
    stop: () => resources.release(),
    restart: () => {
      if (!resources.isReleased) end = "restarting";
      return resources.release();
    },
  };
}

interface EdgeFacts {
  readonly version: string;
  readonly instance: string;
  readonly load: EdgeLoad;
  readonly web: WebPage;
}

/** The methods and the policies before them. */
function dispatcherOf(
  parts: OpenParts,
  options: DaemonOptions,
  { version, instance, load, web }: EdgeFacts,
): Dispatcher {
  const { state, env, validator, pi, store, idempotency, logs, feed, dialogs, metrics, tracker, registry, tokens } =
    parts;
  const { liveRestore } = parts;
  const { log } = options;
  const { database } = store;
  const facts = {
    version,
    startedAt: Date.now(),
    instance,
    stateDir: state.path,
    pi,
    keyVariables: keyVariablesIn(env),
    connections: () => load.connections,
    store: () => store.info(),
    feed,
    liveRestore,
    lostLogLines: () => lostLines(log, ...(options.calls === undefined ? [] : [options.calls])),
  };
  const lines = recentLines(log);
  const measured = { ...facts, registry, tracker, dialogs, logs, database, load };
  const clients = new Clients({
    limits: limits.clients,
    onLeft: (clientId) => {
      for (const { control } of registry.all()) control.left(clientId);
    },
    onConnected: (clientId, peerId) => {
      for (const session of registry.all()) {
        session.control.returned(clientId);
        session.subscriberNamed(peerId, clientId);
      }
      dialogs.answerers.named(peerId, clientId);
    },
  });
  const handlers: Handlers = {
    ...daemonHandlers(facts, registry, dialogs),
    "daemon/metrics": (_params, { grant }) => {
      grant?.requireUnlimited();
      return { metrics: [...metrics.collect(measured)] };
    },
    "daemon/log": (query, { grant }) => {
      grant?.requireUnlimited();
      return lines.read(query);
    },
    ...sessionHandlers(registry, tracker),
    ...sessionFileHandlers(registry, tracker),
    ...subscriptionHandlers(registry, limits.subscriptions),
    ...promptHandlers(registry, tracker),
    ...commandHandlers(registry, tracker, validator),
    ...transcriptHandlers(registry),
    ...settingsHandlers(registry),
    ...modelHandlers(registry),
    ...deliveryHandlers(registry, tracker),
    ...controlHandlers(registry, clients),
    ...dialogHandlers(registry, dialogs),
    ...tokenHandlers(tokens),
    ...webHandlers(web),
    ...contextHandlers(registry),
    ...optimisationHandlers(registry),
    ...costHandlers(registry),
    ...requestHandlers(registry, tracker),
    ...pruningHandlers(registry),
  };
  const calls = options.calls ?? log;
  return createDispatcher({
    handlers,
    policies: policies({ clients, registry, tracker, dialogs, keys: idempotency, limits, calls, log }),
    validator,
    onViolation: env["PI_RPCD_VALIDATE"] === "1" ? failOnViolation : undefined,
    log,
  });
}

/** A daemon that checks its own results ends at a violation, so that a test cannot miss it. */
function failOnViolation(violation: Error): void {
  setImmediate(() => {
    throw violation;
  });
}

/** Removes texts that no session refers to. */
function spillOf(state: StateDirectory, env: NodeJS.ProcessEnv, sessions: SessionDirectory, log: Logger): Spill {
  return new Spill({
    directory: state.spillDirectory,
    notes: state.spillNotes,
    sessionRoot: sessionRoot(env),
    isAnyUnwritten: () => sessions.isAnyUnwritten,
    sessions: () =>
      sessions
        .all()
        .filter(({ stored }) => stored.ephemeral !== true)
        .map(({ stored: { file, options } }) => ({
          directory: dirname(file),
          hasParts: hasPartOptions(options),
        })),
    limits: limits.spill,
    log,
  });
}

/** A module of this package that pi loads: TypeScript in a checkout, JavaScript in the published package. */
function extensionPath(name: "index" | "keeper"): string {
  const extension = import.meta.filename.endsWith(".ts") ? "ts" : "js";
  return fileURLToPath(new URL(`../extension/${name}.${extension}`, import.meta.url));
}

/** The built files of the web console, beside the checkout's folders or in the published package. */
function webFiles(): string {
  const isBuilt = import.meta.filename.endsWith(".js");
  return fileURLToPath(new URL(isBuilt ? "../web" : "../dist/web", import.meta.url));
}
