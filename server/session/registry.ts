import { dirname } from "node:path";
import { v7 as uuidv7 } from "uuid";
import { WireError } from "../../protocol/errors.ts";
import type { Params, Result } from "../../protocol/methods.ts";
import type { ChildExit } from "../../protocol/session.ts";
import { ChildSource, type ChildSourceOptions } from "../children/child-source.ts";
import { ModelCatalogue, modelList } from "../children/model-catalogue.ts";
import { type ContextConfiguration, Contexts, type ContextsOptions } from "../context/contexts.ts";
import type { SessionConfiguration } from "../context/part-layers.ts";
import type { ContextCaller } from "../context/read-path.ts";
import type { SessionScope } from "../core/session-scope.ts";
import { CreatedFiles } from "../custody/created-files.ts";
import { realPathOf } from "../pi/session-paths.ts";
import { findSessionFile } from "../pi/session-search.ts";
import type { StoredPrompt } from "../store/prompts.ts";
import { LeftSessions, type OnDetach } from "./left-sessions.ts";
import type { Session } from "./session.ts";
import type { SessionDirectory } from "./session-directory.ts";
import { type GivenSecrets, SessionFactory } from "./session-factory.ts";
import { SessionFiles } from "./session-files.ts";
import { SessionLifecycle, type SessionLifecycleOptions } from "./session-lifecycle.ts";
import { SessionWatch } from "./session-watch.ts";

export interface RegistryOptions extends SessionLifecycleOptions, ChildSourceOptions {
  readonly directory: SessionDirectory;
  readonly configuration: SessionConfiguration;
  readonly contexts: ContextConfiguration;
  /** Default: `keep`. */
  readonly onDetach?: OnDetach | undefined;
  readonly limits: SessionLifecycleOptions["limits"] & {
    readonly keepModelsMs: number;
    readonly leftSessionMs: number;
    readonly context: ContextsOptions["limits"];
    readonly drainMs: number;
  };
}

/** The caller of {@link Registry.create}. */
interface Creator extends ContextCaller {
  /** Whether an earlier attempt of the same call may have made the session. */
  readonly isRepeated?: boolean;
}

/** Cannot name files, and waits without limit. */
const nobody: Creator = { mayReadAny: false, signal: new AbortController().signal };

/** All sessions of the daemon. */
export class Registry {
  readonly children: ChildSource;
  /** Subscribers to every session. */
  readonly watch: SessionWatch;
  /** Imported and exported conversations. */
  readonly contexts: Contexts;
  /** Sessions of existing session files, and derived ones. */
  readonly files: SessionFiles;
  /** Begins and ends sessions. */
  readonly lifecycle: SessionLifecycle;
  readonly #options: RegistryOptions;
  readonly #directory: SessionDirectory;
  readonly #created: CreatedFiles;
  readonly #factory: SessionFactory;
  readonly #catalogue: ModelCatalogue;
  #shuttingDown: Promise<void> | undefined;

  constructor(options: RegistryOptions) {
    const { directory, env, taker, runDirectory, limits, log } = options;
    const children = new ChildSource(options);
    const program = async (): Promise<string> => JSON.stringify(await options.locate());
    const catalogue = new ModelCatalogue({
      env,
      cwd: runDirectory,
      program,
      ask: (signal) => children.ask({ type: "get_available_models" }, { cwd: runDirectory, signal }),
      keepMs: limits.keepModelsMs,
    });
    const contexts = new Contexts({
      ...options,
      roots: options.roots,
      stateDir: taker.stateDir,
      configuration: options.contexts,
      limits: limits.context,
      session: (sessionId) => directory.get(sessionId),
      find: (sessionId) => directory.find(sessionId),
      models: async () => {
        directory.refuseWhenEnding();
        return (await catalogue.list(false)).models;
      },
      probe: ({ cwd, options: pi }, signal) => children.ask({ type: "get_state" }, { cwd, pi, signal }),
      program,
    });
    const watch = new SessionWatch((sessionId) => directory.find(sessionId)?.info());
    const created = new CreatedFiles(taker, log);
    const lifecycle = new SessionLifecycle(options, { children, contexts, watch });
    options.dialogs.answerers.onChanged(() => {
      for (const session of directory.withCreating()) session.dialogs.respondersChanged();
    });
    this.children = children;
    this.watch = watch;
    this.contexts = contexts;
    const left = new LeftSessions({
      close: (session) => lifecycle.end(session),
      graceMs: limits.leftSessionMs,
      onDetach: options.onDetach,
      onFault: (err, sessionId) => log.error({ err, sessionId }, "cannot close a session that was left"),
    });
    this.files = new SessionFiles({ ...options, created, left, lifecycle });
    this.#options = options;
    this.#directory = directory;
    this.lifecycle = lifecycle;
    this.#created = created;
    const { environments } = children;
    this.#factory = new SessionFactory({ ...options, created, left, contexts, lifecycle, environments });
    this.#catalogue = catalogue;
    lifecycle.load();
  }

  /** Recovers from a killed daemon: its children ended with it, possibly during their work. */
  async recover(): Promise<void> {
    const isOpen = (id: string): boolean => this.find(id) !== undefined;
    const { closed } = this.#options.sessions;
    // The note of a creation can outlive its session. A closed session's file stays.
    const isKnown = (id: string): boolean => isOpen(id) || closed.get(id) !== undefined;
    await Promise.all([this.#created.sweep(isKnown), this.contexts.sweep(isOpen)]);
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
   * `shutting_down`; then nothing remains. An existing session with the id is returned unchanged, unless the call itself
   * chose the id: then it is a `conflict`.
   */
  async create(
    params: Params<"session/create">,
    sessionId: string = uuidv7(),
    admit: (scope: SessionScope) => void = () => {},
    caller: Creator = nobody,
  ): Promise<Session> {
    const isEnding = this.#directory.isEnding(sessionId);
    if (isEnding) await this.#directory.ended(sessionId);
    if (params.sessionId !== undefined && caller.isRepeated !== true) this.#requireNewId(sessionId, params);
    const existing = this.find(sessionId);
    if (existing !== undefined) return existing;
    // A second file with the same id would be a copy.
    if (isEnding && findSessionFile(sessionId, this.#options.env) !== undefined)
      return await this.files.open({ sessionId }, this.#factory.secretsOf(params));
    return await this.lifecycle.make(sessionId, () => this.#factory.create({ params, sessionId, admit, caller }));
  }

  /** As {@link SessionFactory.secretsOf}. */
  secretsOf(given: GivenSecrets): ReturnType<SessionFactory["secretsOf"]> {
    return this.#factory.secretsOf(given);
  }

  /** Synchronous, so that of two calls with one id only the first makes a session. Throws `conflict`. */
  #requireNewId(sessionId: string, { sessionDir, file }: Params<"session/create">): void {
    const { env, sessions } = this.#options;
    const further = [sessionDir, file === undefined ? undefined : dirname(file)].filter((path) => path !== undefined);
    const isKnown =
      this.find(sessionId) !== undefined ||
      this.#directory.making(sessionId) !== undefined ||
      sessions.closed.get(sessionId) !== undefined ||
      findSessionFile(sessionId, env, further) !== undefined;
    if (!isKnown) return;
    throw new WireError("conflict", `There is a session "${sessionId}" already.`, { sessionId });
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
    this.#directory.refuseWhenEnding();
    return await this.#catalogue.list(refresh);
  }

  /** The last known models without a session. Starts no pi. */
  knownModels(): Result<"model/list"> | undefined {
    return this.#catalogue.known();
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
    return await this.lifecycle.end(this.get(sessionId));
  }

  /**
   * Ends all children and keeps the sessions for the next daemon. Resolves when the children have been cleaned up.
   */
  shutdown(): Promise<void> {
    this.#shuttingDown ??= this.#shutDown();
    return this.#shuttingDown;
  }

  /**
   * Leaves the children of sessions to the next daemon, and ends the others. Resolves when nothing of this daemon needs
   * the store any more. A later {@link shutdown} returns the same promise.
   */
  leave(): Promise<void> {
    this.#shuttingDown ??= this.#leave();
    return this.#shuttingDown;
  }

  async #leave(): Promise<void> {
    this.#directory.refuseStarts();
    this.watch.close();
    const leaving = this.#directory.withCreating().map((session) => session.leave(this.#options.limits.drainMs));
    await Promise.allSettled([
      ...leaving,
      this.lifecycle.settled(),
      this.children.close(),
      this.#catalogue.close(),
      this.contexts.close(),
    ]);
  }

  async #shutDown(): Promise<void> {
    this.#directory.refuseStarts();
    this.watch.close();
    const ending = this.#directory.withCreating().map((session) => session.shutDown(this.#options.limits.drainMs));
    await Promise.allSettled([
      ...ending,
      this.lifecycle.settled(),
      this.children.close(),
      this.#catalogue.close(),
      this.contexts.close(),
    ]);
  }
}
