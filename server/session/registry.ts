import type { Logger } from "pino";
import { v7 as uuidv7 } from "uuid";
import { WireError } from "../../protocol/errors.ts";
import type { Params } from "../../protocol/methods.ts";
import type { ChildExit } from "../../protocol/session.ts";
import type { DeliveryTracker } from "../delivery/tracker.ts";
import { type ChildLimits, startPi } from "../pi/child.ts";
import type { PiProgram } from "../pi/locate.ts";
import { createSessionFile, ensureSessionFile, removeIfEmpty } from "../pi/session-file.ts";
import type { PromptStore } from "../store/prompts.ts";
import type { SessionStore, StoredSession } from "../store/sessions.ts";
import { Session } from "./session.ts";
import type { ChildSinks, SessionOptions } from "./session-options.ts";
import { workingDirectory } from "./working-directory.ts";

export interface RegistryOptions {
  /** Looked for at each start, so that an updated pi is found. Throws `pi_not_found` or `pi_too_old`. */
  readonly locate: () => Promise<PiProgram>;
  readonly helper: string;
  readonly runDirectory: string;
  readonly env: NodeJS.ProcessEnv;
  readonly sessions: SessionStore;
  readonly prompts: PromptStore;
  readonly tracker: DeliveryTracker;
  readonly limits: {
    readonly child: ChildLimits;
    readonly maxSessions: number;
    readonly maxRetainedEventBytes: number;
  };
  readonly log: Logger;
}

/** All sessions that are not closed. */
export class Registry {
  readonly #options: RegistryOptions;
  readonly #sessions = new Map<string, Session>();
  #creating = 0;
  #shuttingDown: Promise<void> | undefined;

  constructor(options: RegistryOptions) {
    this.#options = options;
    for (const stored of options.sessions.all()) this.#add(stored);
  }

  /** After a daemon that ended without a word: its children ended with it, in the middle of what they did. */
  async recover(): Promise<void> {
    await Promise.all(this.all().map((session) => session.recover()));
  }

  /** Brings the pushes that a former daemon had accepted to their agents, which wakes those sessions. */
  resume(): void {
    for (const session of this.all())
      if (this.#options.tracker.wantsAgent(session.sessionId)) void session.pushing.handOver();
  }

  /** Throws what starting a pi can throw, `cwd_invalid`, `overloaded`, `shutting_down`. Nothing is left behind then. */
  async create(params: Params<"session/create">): Promise<Session> {
    this.#refuseWhenEnding();
    const { maxSessions } = this.#options.limits;
    if (this.#sessions.size + this.#creating >= maxSessions) {
      throw new WireError("overloaded", `There are ${maxSessions} sessions, which is the limit. Close some.`, {
        retryAfterMs: 10_000,
      });
    }
    this.#creating += 1;
    try {
      return await this.#create(params);
    } finally {
      this.#creating -= 1;
    }
  }

  /** Throws `session_not_found`. */
  get(sessionId: string): Session {
    const session = this.#sessions.get(sessionId);
    if (session === undefined)
      throw new WireError("session_not_found", `There is no session "${sessionId}".`, { sessionId });
    return session;
  }

  find(sessionId: string): Session | undefined {
    return this.#sessions.get(sessionId);
  }

  /** The newest first. */
  all(): readonly Session[] {
    return [...this.#sessions.values()].reverse();
  }

  /** Ends a session's child, forgets the session, and deletes its file if it never got a message. */
  async close(sessionId: string): Promise<ChildExit | undefined> {
    const session = this.get(sessionId);
    const exit = await session.close();
    this.#sessions.delete(sessionId);
    await removeIfEmpty(session.file);
    await Promise.all([this.#options.sessions.delete(sessionId), this.#options.prompts.deleteOf(sessionId)]);
    return exit;
  }

  /** Ends all children and keeps the sessions for the next daemon. */
  shutdown(): Promise<void> {
    this.#shuttingDown ??= Promise.all(this.all().map((session) => session.hibernate())).then(() => {});
    return this.#shuttingDown;
  }

  async #create(params: Params<"session/create">): Promise<Session> {
    const cwd = await workingDirectory(params.cwd);
    const now = new Date();
    const sessionId = uuidv7();
    const file = await createSessionFile({ sessionId, cwd, env: this.#options.env, now }).catch(
      (cause: NodeJS.ErrnoException) => {
        throw new WireError(
          "start_failed",
          `pi's session file could not be created (${cause.code}): ${cause.message}.`,
          {},
          { cause },
        );
      },
    );
    const { model, thinking, name, tools, excludeTools, approve } = params;
    const session = this.#session({
      sessionId,
      cwd,
      file,
      ...(name === undefined ? {} : { name }),
      generation: 0,
      reservedSeq: 0,
      options: defined({ model, thinking, name, tools, excludeTools, approve }),
      createdAt: now.getTime(),
      updatedAt: now.getTime(),
    });
    try {
      await session.awake();
      this.#refuseWhenEnding();
      this.#sessions.set(sessionId, session);
      return session;
    } catch (error) {
      await session.close();
      await removeIfEmpty(file);
      await this.#options.sessions.delete(sessionId);
      throw error;
    }
  }

  #add(stored: StoredSession): void {
    this.#sessions.set(stored.sessionId, this.#session(stored));
  }

  #session(stored: StoredSession): Session {
    const { sessions, prompts, tracker, limits } = this.#options;
    const log = this.#options.log.child({ sessionId: stored.sessionId });
    return new Session({
      stored,
      start: (current, sinks) => this.#start(current, sinks, log),
      save: (current) => sessions.put(current),
      flush: () => sessions.flush(),
      prompts,
      tracker,
      maxRetainedEventBytes: limits.maxRetainedEventBytes,
      log,
    });
  }

  async #start(stored: StoredSession, sinks: ChildSinks, log: Logger): ReturnType<SessionOptions["start"]> {
    this.#refuseWhenEnding();
    await workingDirectory(stored.cwd);
    const now = new Date(stored.createdAt);
    await ensureSessionFile(stored.file, { sessionId: stored.sessionId, cwd: stored.cwd, now });
    const { helper, runDirectory, env, limits } = this.#options;
    return await startPi({
      program: await this.#options.locate(),
      helper,
      runDirectory,
      sessionFile: stored.file,
      cwd: stored.cwd,
      // A later child takes its name from the session file.
      pi: stored.generation > 1 ? withoutName(stored.options) : stored.options,
      env,
      limits: limits.child,
      log: log.child({ generation: stored.generation }),
      ...sinks,
    });
  }

  #refuseWhenEnding(): void {
    if (this.#shuttingDown !== undefined) throw new WireError("shutting_down", "The daemon is about to end.");
  }
}

function withoutName({ name: _name, ...rest }: StoredSession["options"]): StoredSession["options"] {
  return rest;
}

function defined<T extends object>(value: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(value).filter(([, part]) => part !== undefined)) as never;
}
