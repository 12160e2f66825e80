import { EventEmitter } from "node:events";
import { unlink } from "node:fs/promises";
import { join } from "node:path";
import { LRUCache } from "lru-cache";
import type { Logger } from "pino";
import { v7 as uuidv7 } from "uuid";
import { WireError } from "../../protocol/errors.ts";
import type { OptimisationOptions } from "../../protocol/optimisation/options.ts";
import type { ChildExit } from "../../protocol/session.ts";
import type { KnownAnswers } from "../children/cached-answers.ts";
import type { ChildSource, ChildSourceOptions } from "../children/child-source.ts";
import type { PiCallsOptions } from "../children/pi-calls.ts";
import type { ResponsivenessLimits } from "../children/responsiveness.ts";
import type { StartRateLimits } from "../children/start-rate-limit.ts";
import type { LeftChild, Survival } from "../children/survival.ts";
import type { Contexts } from "../context/contexts.ts";
import type { SessionConfiguration } from "../context/part-layers.ts";
import type { Spill } from "../context/spill.ts";
import type { Roots } from "../core/roots.ts";
import { type ContentSum, removeIfUnused } from "../custody/created-files.ts";
import type { DeliveryTracker } from "../delivery/tracker.ts";
import type { DialogRegistry } from "../dialogs/dialog-registry.ts";
import { unlessAborted } from "../lib/deadline.ts";
import type { Logs } from "../log/logs.ts";
import { writeBranch } from "../pi/branch-file.ts";
import type { Child } from "../pi/child.ts";
import type { ChildEnvironment } from "../pi/child-environment.ts";
import type { ChildMcpServers } from "../pi/child-mcp-servers.ts";
import type { LeaseTaker } from "../pi/lease.ts";
import type { Hello } from "../pi/link.ts";
import { agentDirectoryOf, removeIfEmpty } from "../pi/session-file.ts";
import { requireOwnFile } from "../pi/session-paths.ts";
import { closedSession } from "../store/closed-sessions.ts";
import type { PromptStore } from "../store/prompts.ts";
import type { SessionStore } from "../store/sessions.ts";
import type { StoredSession } from "../store/stored-session.ts";
import { Session } from "./session.ts";
import type { SessionDirectory } from "./session-directory.ts";
import type { SessionWatch } from "./session-watch.ts";

export interface SessionLifecycleOptions {
  readonly directory: SessionDirectory;
  readonly sessions: SessionStore;
  readonly prompts: PromptStore;
  readonly tracker: DeliveryTracker;
  readonly dialogs: DialogRegistry;
  readonly logs: Logs;
  /** The owner recorded in leases of session files. */
  readonly taker: LeaseTaker;
  readonly configuration: SessionConfiguration;
  readonly roots?: Roots;
  readonly env: NodeJS.ProcessEnv;
  /** Default: children end with the daemon. */
  readonly survival?: Survival | undefined;
  readonly runDirectory: string;
  readonly spillDirectory: string;
  readonly spill?: Pick<Spill, "note" | "wanted">;
  readonly limits: ChildSourceOptions["limits"] & {
    readonly maxSessions: number;
    readonly maxRefillBytes: number;
    readonly maxSnapshotBytes: number;
    readonly maxCachedAnswersBytes: number;
    readonly maxCachedAnswerBytes: number;
    readonly maxProviderBodyBytes: number;
    readonly maxWaitingCalls: number;
    readonly calls: Omit<PiCallsOptions, "runDirectory" | "settingsFile">;
    readonly idleAfterMs: number;
    readonly responsiveness: ResponsivenessLimits;
    readonly rates: StartRateLimits;
  };
  readonly log: Logger;
}

/** The parts that all sessions share. */
export interface SharedParts {
  readonly children: ChildSource;
  readonly contexts: Contexts;
  readonly watch: SessionWatch;
}

export interface LifecycleEvents {
  /**
   * pi has switched to another session. Listeners are called synchronously, because the records that follow belong to
   * that session.
   */
  switched: [from: Session, child: Child, hello: Hello, file: string];
}

/** How a session begins. */
export interface Beginning {
  /** With a child that it starts (the default), without one, or with the child that this function provides. */
  readonly how?: "awake" | "asleep" | ((session: Session) => Promise<void>) | undefined;
  /** The environment of its children. Default: the daemon's own. */
  readonly environment?: ChildEnvironment | undefined;
  /** The MCP servers of its children. Default: none. */
  readonly mcpServers?: ChildMcpServers | undefined;
  /** The messages with which its file was created. */
  readonly content?: ContentSum | undefined;
  /** Aborted when the caller goes away. */
  readonly signal?: AbortSignal | undefined;
  /**
   * The caller's optimisation: requirements that pi turns out to lack refuse the session. For other layers the parts
   * report them.
   */
  readonly ownOptimisation?: OptimisationOptions | undefined;
}

/** Begins and ends sessions, and keeps them in the directory meanwhile. */
export class SessionLifecycle {
  readonly events = new EventEmitter<LifecycleEvents>();
  readonly #options: SessionLifecycleOptions;
  readonly #shared: SharedParts;
  /** The last answers of sessions' pi, least recently used dropped first. */
  readonly #answers: LRUCache<string, KnownAnswers>;
  /** Creations and closings in progress. */
  readonly #underWay = new Set<Promise<unknown>>();

  constructor(options: SessionLifecycleOptions, shared: SharedParts) {
    this.#options = options;
    this.#shared = shared;
    this.#answers = new LRUCache({
      maxSize: options.limits.maxCachedAnswersBytes,
      sizeCalculation: (answers) =>
        [...answers.values()].reduce((bytes, { text }) => bytes + 512 + 2 * text.length, 1_024),
    });
  }

  /** Opens the sessions that the store has. */
  load(): void {
    const { sessions, directory } = this.#options;
    for (const { isBeginning, ...stored } of sessions.all()) {
      if (isBeginning === true) void sessions.put(stored);
      directory.add(this.#session(stored, {}, this.#options.survival?.leftIn(stored.sessionId)));
    }
  }

  /**
   * Makes a session with an id, which belongs to one session: a concurrent call for it gets the session being created.
   * Throws as {@link requireRoom}.
   */
  make(sessionId: string, work: () => Promise<Session>): Promise<Session> {
    const { directory } = this.#options;
    const making = directory.making(sessionId);
    if (making !== undefined) return making;
    this.requireRoom();
    return directory.make(sessionId, () => this.#track(work()));
  }

  /**
   * Begins a session. It exists when its first child is ready, or, `asleep`, when it is stored. Otherwise it exists when
   * `how` has provided a child: `how` is called before this returns, or never. Throws errors of starting, `store_failed`,
   * and `session_file_unusable` if the file belongs to another session; then only a file with messages remains.
   */
  async begin(stored: StoredSession, beginning: Beginning = {}): Promise<Session> {
    const { how = "awake", content, signal, ownOptimisation } = beginning;
    const { sessionId, file } = stored;
    const { directory } = this.#options;
    const { compaction } = this.#shared.children;
    if (stored.ephemeral !== true) requireOwnFile(stored, directory.withCreating());
    const session = this.#session({ ...stored, isBeginning: true }, beginning);
    directory.creating.add(session);
    try {
      const reserved = compaction.reserve(sessionId, stored.options.optimisation);
      try {
        if (how === "awake") await (signal === undefined ? session.awake() : unlessAborted(session.awake(), signal));
        else if (how !== "asleep") await how(session);
        await requireWanted(session, ownOptimisation);
        await session.begun();
        directory.refuseWhenEnding();
        directory.add(session);
        this.#shared.watch.note(stored, "created");
        return session;
      } finally {
        reserved[Symbol.dispose]();
      }
    } catch (error) {
      await session.close();
      if (content !== undefined) await removeIfUnused(file, content);
      else if (stored.isOpened !== true) await removeIfEmpty(file);
      await this.#forget(session);
      throw error;
    } finally {
      directory.creating.delete(session);
    }
  }

  /**
   * Creates a session, without a pi, from a branch of another one. Returns its id. Leaves nothing if that
   * fails.
   */
  async branchOff(from: StoredSession, leafId: string): Promise<string> {
    this.requireRoom();
    const now = new Date();
    const sessionId = uuidv7();
    const file = await writeBranch({ file: from.file, leafId, sessionId, cwd: from.cwd, now });
    const stored = { ...inheritedFields(from, now), sessionId, file, generation: 1 };
    const { environment, mcpServers } = this.#options.directory.find(from.sessionId) ?? {};
    try {
      await this.make(sessionId, () => this.begin(stored, { how: "asleep", environment, mcpServers }));
    } catch (error) {
      await unlink(file).catch(() => {});
      throw error;
    }
    return sessionId;
  }

  /** Ends a session's child and removes the session; its file is deleted if requested, or if it never got a message. */
  end(session: Session, how: "close" | "delete" = "close"): Promise<ChildExit | undefined> {
    const ended = this.#end(session, how);
    this.#options.directory.ending(session, ended);
    return this.#track(ended);
  }

  /** Throws `overloaded` at the limit, and `shutting_down`. */
  requireRoom(): void {
    const { directory, limits } = this.#options;
    directory.refuseWhenEnding();
    const { maxSessions } = limits;
    if (directory.size >= maxSessions) {
      throw new WireError("overloaded", `There are ${maxSessions} sessions, which is the limit. Close some.`, {
        retryAfterMs: 10_000,
      });
    }
  }

  /** Resolves when the creations and closings in progress have ended. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#underWay);
  }

  async #end(session: Session, how: "close" | "delete"): Promise<ChildExit | undefined> {
    const { sessions, directory, spill } = this.#options;
    const { sessionId } = session;
    const exit = await session.close(how);
    // A failed write is retried, and its content can be read in the meantime.
    void (how === "delete" ? sessions.closed.delete(sessionId) : sessions.closed.put(session.stored)).catch(() => {});
    if (directory.remove(session)) this.#shared.watch.note(session.stored, "closed");
    await this.#forget(session);
    if (how === "delete") spill?.wanted();
    await this.#shared.children.compaction.giveBack();
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
      this.#shared.contexts.forget(sessionId),
    ]);
  }

  #session(stored: StoredSession, { environment, mcpServers }: Beginning = {}, left?: LeftChild): Session {
    const { children, contexts, watch } = this.#shared;
    const { directory, sessions, prompts, tracker, dialogs, taker, logs, limits, env, runDirectory } = this.#options;
    const { spillDirectory, roots, spill, configuration, survival } = this.#options;
    const session = new Session({
      ...limits,
      stored,
      environment: environment ?? children.environments.own,
      mcpServers,
      sessions,
      source: children,
      survival,
      left,
      contexts,
      prompts,
      tracker,
      taker,
      branchOff: (from, leafId) => this.branchOff(from, leafId),
      logs,
      dialogs,
      answers: { cache: this.#answers, store: sessions.answers, maxBytes: limits.maxCachedAnswerBytes },
      parts: { spillDirectory, spill, roots, configuration, compaction: children.compaction },
      calls: { ...limits.calls, runDirectory, settingsFile: join(agentDirectoryOf(env), "settings.json") },
      log: this.#options.log.child({ sessionId: stored.sessionId }),
    });
    session.events.on("changed", () => {
      children.occupancy.changed();
      if (directory.find(stored.sessionId) !== undefined) watch.note(stored, "changed");
    });
    session.journal.onSaid((notification) => watch.said(session, notification));
    session.events.on("sessionSwitched", (child, hello, file) => {
      this.events.emit("switched", session, child, hello, file);
    });
    // The callers of the failed start get its reason first.
    session.events.on("contextLost", () => void session.startOver().then(() => this.#abandon(session)));
    return session;
  }

  #abandon(session: Session): void {
    if (this.#options.directory.find(session.sessionId) === session) void this.end(session).catch(() => {});
  }

  #track<T>(work: Promise<T>): Promise<T> {
    this.#underWay.add(work);
    return work.finally(() => this.#underWay.delete(work));
  }
}

/** Throws reasons against the session that only its pi can report: no prices for its budget, a missing tool. */
async function requireWanted(session: Session, own: OptimisationOptions | undefined): Promise<void> {
  if (own === undefined) return;
  if (typeof own.cost?.budgetUsd === "number") session.costs.requirePrices();
  await session.parts.tools.require(own);
}

/** The properties that a derived session inherits. */
export function inheritedFields(
  from: StoredSession,
  now: Date,
): Omit<StoredSession, "sessionId" | "file" | "generation"> {
  const { name: _name, ...options } = from.options;
  const at = now.getTime();
  return {
    ...closedSession(from),
    ...{ cwd: from.cwd, options, reservedSeq: 0, createdAt: at, updatedAt: at },
  };
}
