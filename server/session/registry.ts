import { join } from "node:path";
import { LRUCache } from "lru-cache";
import { v7 as uuidv7 } from "uuid";
import { WireError } from "../../protocol/errors.ts";
import type { Params, Result } from "../../protocol/methods.ts";
import type { ChildExit } from "../../protocol/session.ts";
import type { KnownAnswers } from "../children/cached-answers.ts";
import { ChildSource, type ChildSourceOptions } from "../children/child-source.ts";
import { ModelCatalogue, modelList } from "../children/model-catalogue.ts";
import type { PiCallsOptions } from "../children/pi-calls.ts";
import type { ResponsivenessLimits } from "../children/responsiveness.ts";
import type { StartRateLimits } from "../children/start-rate-limit.ts";
import { type ContextConfiguration, Contexts, type ContextsOptions } from "../context/contexts.ts";
import type { SessionConfiguration } from "../context/part-layers.ts";
import type { ContextCaller } from "../context/read-path.ts";
import type { SessionScope } from "../core/session-scope.ts";
import { CreatedFiles, removeIfUnused, sumOf } from "../custody/created-files.ts";
import type { DeliveryTracker } from "../delivery/tracker.ts";
import type { DialogRegistry } from "../dialogs/dialog-registry.ts";
import { unlessAborted } from "../lib/deadline.ts";
import type { Logs } from "../log/logs.ts";
import type { LeaseTaker } from "../pi/lease.ts";
import { agentDirectoryOf, removeIfEmpty } from "../pi/session-file.ts";
import { realPathOf, requireOwnFile } from "../pi/session-paths.ts";
import { findSessionFile } from "../pi/session-search.ts";
import type { PromptStore, StoredPrompt } from "../store/prompts.ts";
import type { SessionStore } from "../store/sessions.ts";
import type { StoredSession } from "../store/stored-session.ts";
import { Session } from "./session.ts";
import type { SessionDirectory } from "./session-directory.ts";
import { type Beginning, requireWanted, SessionFactory } from "./session-factory.ts";
import { SessionFiles } from "./session-files.ts";
import { SessionWatch } from "./session-watch.ts";

export interface RegistryOptions extends Omit<ChildSourceOptions, "directory"> {
  readonly directory: SessionDirectory;
  readonly sessions: SessionStore;
  readonly configuration: SessionConfiguration;
  readonly prompts: PromptStore;
  readonly tracker: DeliveryTracker;
  /** The owner recorded in leases of session files. */
  readonly taker: LeaseTaker;
  readonly logs: Logs;
  readonly dialogs: DialogRegistry;
  readonly contexts: ContextConfiguration;
  readonly limits: ChildSourceOptions["limits"] & {
    readonly maxSessions: number;
    readonly maxRefillBytes: number;
    readonly maxSnapshotBytes: number;
    readonly maxCachedAnswersBytes: number;
    readonly maxCachedAnswerBytes: number;
    readonly maxProviderBodyBytes: number;
    readonly maxWaitingCalls: number;
    readonly keepModelsMs: number;
    readonly calls: Omit<PiCallsOptions, "runDirectory" | "settingsFile">;
    readonly context: ContextsOptions["limits"];
    readonly idleAfterMs: number;
    readonly drainMs: number;
    readonly responsiveness: ResponsivenessLimits;
    readonly rates: StartRateLimits;
  };
}

/** Cannot name files, and waits without limit. */
const nobody: ContextCaller = { mayReadAny: false, signal: new AbortController().signal };

/** Begins and ends sessions. */
export class Registry {
  readonly #options: RegistryOptions;
  readonly #directory: SessionDirectory;
  readonly children: ChildSource;
  /** Subscribers to every session. */
  readonly watch: SessionWatch;
  readonly #created: CreatedFiles;
  readonly #factory: SessionFactory;
  readonly #catalogue: ModelCatalogue;
  /** The last answers of sessions' pi, least recently used dropped first. */
  readonly #answers: LRUCache<string, KnownAnswers>;
  /** Imported and exported conversations. */
  readonly contexts: Contexts;
  /** Creations and closings in progress. */
  readonly #underWay = new Set<Promise<unknown>>();
  #shuttingDown: Promise<void> | undefined;
  /** Sessions of existing session files, and derived ones. */
  readonly files: SessionFiles;

  constructor(options: RegistryOptions) {
    this.#options = options;
    const { directory, env, taker, log } = options;
    this.#directory = directory;
    this.watch = new SessionWatch((sessionId) => directory.find(sessionId)?.info());
    this.#created = new CreatedFiles(taker, log);
    this.#answers = new LRUCache({
      maxSize: options.limits.maxCachedAnswersBytes,
      sizeCalculation: (answers) =>
        [...answers.values()].reduce((bytes, { text }) => bytes + 512 + 2 * text.length, 1_024),
    });
    this.children = new ChildSource(options);
    const program = async (): Promise<string> => JSON.stringify(await options.locate());
    this.#catalogue = new ModelCatalogue({
      env,
      cwd: options.runDirectory,
      program,
      ask: (signal) => this.children.ask({ type: "get_available_models" }, { cwd: options.runDirectory, signal }),
      keepMs: options.limits.keepModelsMs,
    });
    this.contexts = new Contexts({
      ...options,
      roots: options.roots,
      stateDir: taker.stateDir,
      configuration: options.contexts,
      limits: options.limits.context,
      session: (sessionId) => directory.get(sessionId),
      find: (sessionId) => directory.find(sessionId),
      models: async () => (await this.models(false)).models,
      probe: ({ cwd, options: pi }, signal) => this.children.ask({ type: "get_state" }, { cwd, pi, signal }),
      program,
    });
    this.#factory = new SessionFactory({
      ...options,
      ...{ created: this.#created, contexts: this.contexts },
      begin: (stored, how) => this.#begin(stored, how),
    });
    this.files = new SessionFiles({
      ...options,
      begin: (stored, how) => this.#make(stored.sessionId, () => this.#begin(stored, { ...(how && { how }) })),
      end: (session, how) => this.#track(this.#close(session, how)),
      requireRoom: () => this.#requireRoom(),
    });
    for (const { isBeginning, ...stored } of options.sessions.all()) {
      if (isBeginning === true) void options.sessions.put(stored);
      directory.add(this.#session(stored));
    }
  }

  /** Recovers from a killed daemon: its children ended with it, possibly during their work. */
  async recover(): Promise<void> {
    await Promise.all([this.#created, this.contexts].map((left) => left.sweep((id) => this.find(id) !== undefined)));
    await this.#separateFiles();
    await Promise.all(this.all().map((session) => session.recover()));
    await this.children.compaction.giveBack();
  }

  /** Earlier versions could store a second session for a file: the first one keeps it. */
  async #separateFiles(): Promise<void> {
    const owners = new Map<string, string>();
    for (const { sessionId, file } of this.all().toReversed()) {
      const owner = owners.get(realPathOf(file));
      if (owner === undefined) owners.set(realPathOf(file), sessionId);
      else {
        this.#options.log.error({ sessionId, owner, file }, "two sessions share one file; closing the later one");
        await this.close(sessionId);
      }
    }
  }

  /** Wakes the sessions with pushes that a former daemon had accepted, limited by the number of parallel starts. */
  async resume(): Promise<void> {
    const waiting = this.all().filter(({ pushing }) => pushing.wantsChild);
    await Promise.all(waiting.map(({ pushing }) => pushing.handOver()));
  }

  /**
   * `admit` throws where no session may be created. Throws errors of starting pi, `cwd_invalid`, `overloaded`,
   * `shutting_down`; then nothing remains. An existing session with the id is returned unchanged.
   */
  async create(
    params: Params<"session/create">,
    sessionId: string = uuidv7(),
    admit: (scope: SessionScope) => void = () => {},
    caller: ContextCaller = nobody,
  ): Promise<Session> {
    const isEnding = this.#directory.isEnding(sessionId);
    if (isEnding) await this.#directory.ended(sessionId);
    const existing = this.find(sessionId);
    if (existing !== undefined) return existing;
    // A second file with the same id would be a copy.
    if (isEnding && findSessionFile(sessionId, this.#options.env) !== undefined)
      return await this.files.open({ sessionId });
    return await this.#make(sessionId, () => this.#factory.create({ params, sessionId, admit, caller }));
  }

  /** Throws `session_not_found`. */
  get(sessionId: string): Session {
    return this.#directory.get(sessionId);
  }

  find(sessionId: string): Session | undefined {
    return this.#directory.find(sessionId);
  }

  /** A prompt of an open session. */
  findPrompt(promptId: string): StoredPrompt | undefined {
    const stored = this.#options.prompts.get(promptId);
    // It may be on its way to the disk.
    const session =
      stored === undefined
        ? this.all().find(({ prompts }) => prompts.ledger.isOpen(promptId))
        : this.find(stored.sessionId);
    return session?.prompts.ledger.find(promptId);
  }

  /** Newest first. */
  all(): readonly Session[] {
    return this.#directory.all();
  }

  /** The models that a session would have. Throws errors of starting pi. */
  async models(refresh: boolean): Promise<Result<"model/list">> {
    this.#refuseWhenEnding();
    return await this.#catalogue.list(refresh);
  }

  /** The models of a session. */
  async modelsOf(sessionId: string, signal: AbortSignal): Promise<Result<"model/list">> {
    const data = await this.get(sessionId).calls.send({ type: "get_available_models" }, signal);
    return await modelList(data, this.#options.env);
  }

  /** Checks every session's child; called periodically. */
  look(now?: number): Promise<void> {
    return this.children.occupancy.look(now);
  }

  /** Ends a session's child, removes the session, and deletes its file if it never got a message. */
  async close(sessionId: string): Promise<ChildExit | undefined> {
    return await this.#track(this.#close(this.get(sessionId)));
  }

  /**
   * Ends all children and keeps the sessions for the next daemon. Resolves when the children have been cleaned up.
   */
  shutdown(): Promise<void> {
    this.#shuttingDown ??= this.#shutDown();
    return this.#shuttingDown;
  }

  async #shutDown(): Promise<void> {
    this.#directory.refuseStarts();
    this.watch.close();
    const ending = this.#directory.withCreating().map((session) => session.shutDown(this.#options.limits.drainMs));
    await Promise.allSettled([
      ...ending,
      ...this.#underWay,
      this.children.close(),
      this.#catalogue.close(),
      this.contexts.close(),
    ]);
  }

  #track<T>(work: Promise<T>): Promise<T> {
    this.#underWay.add(work);
    return work.finally(() => this.#underWay.delete(work));
  }

  /** An id belongs to one session: a concurrent call for it gets the session being created. */
  #make(sessionId: string, work: () => Promise<Session>): Promise<Session> {
    const making = this.#directory.making(sessionId);
    if (making !== undefined) return making;
    this.#requireRoom();
    return this.#directory.make(sessionId, () => this.#track(work()));
  }

  #close(session: Session, how: "close" | "delete" = "close"): Promise<ChildExit | undefined> {
    const closed = this.#end(session, how);
    this.#directory.ending(session, closed);
    return closed;
  }

  async #end(session: Session, how: "close" | "delete"): Promise<ChildExit | undefined> {
    const { closed } = this.#options.sessions;
    const { sessionId } = session;
    const exit = await session.close(how);
    // A failed write is retried, and its content can be read in the meantime.
    void (how === "delete" ? closed.delete(sessionId) : closed.put(session.stored)).catch(() => {});
    if (this.#directory.remove(session)) this.watch.note(session.stored, "closed");
    await this.#forget(session);
    if (how === "delete") this.#options.spill?.wanted();
    await this.children.compaction.giveBack();
    return exit;
  }

  /** Deletes the data of a session that was closed, or whose creation failed. */
  async #forget(session: Session): Promise<void> {
    const { sessions, prompts, dialogs, logs } = this.#options;
    // The session has ended even if the store cannot record it now; failed writes are retried.
    session.forget();
    const { sessionId } = session;
    await Promise.allSettled([
      sessions.delete(sessionId),
      prompts.deleteOf(sessionId),
      dialogs.forget(sessionId),
      logs.delete(sessionId),
      this.contexts.forget(sessionId),
    ]);
  }

  async #begin(stored: StoredSession, { how = "awake", content, signal, ...wants }: Beginning = {}): Promise<Session> {
    const { sessionId, file } = stored;
    const directory = this.#directory;
    if (stored.ephemeral !== true) requireOwnFile(stored, directory.withCreating());
    const session = this.#session({ ...stored, isBeginning: true });
    directory.creating.add(session);
    try {
      const reserved = this.children.compaction.reserve(sessionId, stored.options.optimisation);
      try {
        if (how === "awake") await (signal === undefined ? session.awake() : unlessAborted(session.awake(), signal));
        else if (how !== "asleep") await how(session);
        await requireWanted(session, wants);
        await session.begun();
        this.#refuseWhenEnding();
        directory.add(session);
        this.watch.note(stored, "created");
        return session;
      } finally {
        reserved[Symbol.dispose]();
      }
    } catch (error) {
      await session.close();
      if (content !== undefined) await removeIfUnused(file, sumOf(content));
      else if (stored.isOpened !== true) await removeIfEmpty(file);
      await this.#forget(session);
      throw error;
    } finally {
      directory.creating.delete(session);
    }
  }

  #session(stored: StoredSession): Session {
    const { sessions, prompts, tracker, dialogs, taker, logs, limits, spillDirectory, roots, spill, configuration } =
      this.#options;
    const log = this.#options.log.child({ sessionId: stored.sessionId });
    const session = new Session({
      ...limits,
      stored,
      sessions,
      source: this.children,
      contexts: this.contexts,
      prompts,
      tracker,
      taker,
      branchOff: (from, leafId) => this.files.branchOff(from, leafId),
      logs,
      dialogs,
      answers: { cache: this.#answers, store: sessions.answers, maxBytes: limits.maxCachedAnswerBytes },
      parts: { spillDirectory, spill, roots, configuration, compaction: this.children.compaction },
      calls: {
        ...limits.calls,
        runDirectory: this.#options.runDirectory,
        settingsFile: join(agentDirectoryOf(this.#options.env), "settings.json"),
      },
      log,
    });
    session.events.on("changed", () => {
      this.children.occupancy.changed();
      if (this.find(stored.sessionId) !== undefined) this.watch.note(stored, "changed");
    });
    session.events.on("sessionSwitched", (child, hello, file) => this.files.succeed(session, child, hello, file));
    // The callers of the failed start get its reason first.
    session.events.on("contextLost", () => void session.startOver().then(() => this.#abandon(session)));
    return session;
  }

  #abandon(session: Session): void {
    if (this.find(session.sessionId) === session) void this.#track(this.#close(session)).catch(() => {});
  }

  #requireRoom(): void {
    this.#refuseWhenEnding();
    const { maxSessions } = this.#options.limits;
    if (this.#directory.size >= maxSessions) {
      throw new WireError("overloaded", `There are ${maxSessions} sessions, which is the limit. Close some.`, {
        retryAfterMs: 10_000,
      });
    }
  }

  #refuseWhenEnding(): void {
    const why = this.#directory.refusal;
    if (why !== undefined) throw why;
  }
}
