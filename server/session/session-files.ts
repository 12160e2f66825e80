import { existsSync } from "node:fs";
import { mkdir, realpath, unlink, writeFile } from "node:fs/promises";
import { dirname, isAbsolute } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { Logger } from "pino";
import { v7 as uuidv7 } from "uuid";
import type { By } from "../../protocol/client-identity.ts";
import { WireError } from "../../protocol/errors.ts";
import type { Params } from "../../protocol/methods.ts";
import { defined, isRecord } from "../../protocol/objects.ts";
import type { ChildExit } from "../../protocol/session.ts";
import { startOptions } from "../context/create-options.ts";
import type { SessionConfiguration } from "../context/part-layers.ts";
import { openedParts, tellProjectProblem } from "../context/part-layers.ts";
import { liesUnder } from "../core/roots.ts";
import type { Covers } from "../core/session-scope.ts";
import { workingDirectory } from "../core/working-directory.ts";
import type { CreatedFiles } from "../custody/created-files.ts";
import type { Child } from "../pi/child.ts";
import type { ChildEnvironment } from "../pi/child-environment.ts";
import type { ChildMcpServers } from "../pi/child-mcp-servers.ts";
import { checkEntries } from "../pi/entry-check.ts";
import { changeSince } from "../pi/file-mark.ts";
import { checkFile, writerOf } from "../pi/lease.ts";
import type { Hello } from "../pi/link.ts";
import { unusable } from "../pi/open-file.ts";
import type { PiCommand } from "../pi/records.ts";
import { createSessionFile, removeIfEmpty, sessionFilePath, sessionRoot } from "../pi/session-file.ts";
import { isInside, isSameFile, requireOwnPath, type SessionFileOwner } from "../pi/session-paths.ts";
import { findSessionFile } from "../pi/session-search.ts";
import { isSessionId, readStoredHeader, type StoredHeader } from "../pi/stored-header.ts";
import { firstMessagesIn, listStored, type StoredPage } from "../pi/stored-sessions.ts";
import { refused } from "../prompts/prompting.ts";
import { closedSession } from "../store/closed-sessions.ts";
import type { SessionStore } from "../store/sessions.ts";
import type { StoredOptions, StoredSession } from "../store/stored-session.ts";
import type { LeftSessions } from "./left-sessions.ts";
import type { Session } from "./session.ts";
import type { SessionDirectory } from "./session-directory.ts";
import { type Beginning, inheritedFields, type SessionLifecycle } from "./session-lifecycle.ts";

export interface SessionFilesOptions {
  readonly directory: SessionDirectory;
  readonly sessions: Pick<SessionStore, "closed">;
  readonly created: Pick<CreatedFiles, "begin" | "end">;
  readonly left: Pick<LeftSessions, "has" | "watch">;
  readonly lifecycle: Pick<SessionLifecycle, "events" | "make" | "begin" | "end" | "requireRoom">;
  /** pi's environment, which determines its session directories. */
  readonly env: NodeJS.ProcessEnv;
  /** The session settings of the daemon's configuration. */
  readonly configuration: Pick<SessionConfiguration, "optimisation" | "pruning" | "roots">;
  readonly log: Logger;
}

/** Filters pi's stored sessions. */
export interface StoredParams {
  readonly cwd: string | undefined;
  readonly after: string | undefined;
  /** Default: 100. */
  readonly limit: number | undefined;
  /** Default: all. */
  readonly covers?: Covers | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The caller of {@link SessionFiles.open}. */
export interface Opener {
  /** The sessions that are visible to it. Default: all. */
  readonly covers?: Covers | undefined;
  /** Whether it may open files outside pi's session directories. Default: no. */
  readonly mayOpenAny?: boolean;
  /** The environment of the session's children. Default: it stays as it is, at first the daemon's own. */
  readonly environment?: ChildEnvironment | undefined;
  /** The MCP servers of the session's children. Default: they stay as they are, at first none. */
  readonly mcpServers?: ChildMcpServers | undefined;
  /** The session whose pi may go on to the opened one. */
  readonly from?: Session | undefined;
  /** Its connection, which may follow the sessions already. */
  readonly subscriberId?: string | undefined;
  /** Its program. Other connections of it do not prevent that a pi is started again. */
  readonly viewer?: string | undefined;
  readonly by?: By | undefined;
}

/** A new session that took over the pi of another. */
export interface Branched {
  readonly session: Session;
  readonly text?: string;
}

/** Sessions by pi's session files: adopted and derived ones. */
export class SessionFiles {
  readonly #options: SessionFilesOptions;
  /** Files of new sessions that a pi is switching to. */
  readonly #made = new Set<string>();
  /** Sessions whose pi is asked to switch to another one. */
  readonly #branching = new Set<Session>();
  /** Sessions whose pi goes on, and those to which it goes, by their ids. */
  readonly #goingOn = new Map<string, Promise<void>>();

  constructor(options: SessionFilesOptions) {
    this.#options = options;
    options.lifecycle.events.on("switched", (from, child, hello, file) => this.#succeed(from, child, hello, file));
  }

  /**
   * Sessions outside `covers` count as missing. A session that is being closed is awaited, and opened again with its
   * former options. Throws `session_not_found`, `cwd_invalid`, `session_file_unusable`, `session_in_use`, and errors of starting pi.
   */
  async open(params: OpenParams, opener: Opener = {}): Promise<Session> {
    const { directory } = this.#options;
    const { covers, environment, mcpServers } = opener;
    if (params.sessionId !== undefined) await directory.ended(params.sessionId);
    const known = params.sessionId === undefined ? undefined : directory.find(params.sessionId);
    if (known !== undefined && params.file === undefined) {
      if (covers?.(known.stored) === false) throw noSession(known.sessionId);
      const { file, sessionId: id, cwd } = known;
      requireDirectory(params, cwd);
      return (
        (await this.#switchPi({ file, id, cwd }, params, opener)) ??
        (await withStartOptions(await this.#optionsIn(params), known, opener))
      );
    }
    const { file, id, cwd, createdAt } = await this.#look(params, opener);
    if (params.sessionId !== undefined && params.sessionId !== id) {
      throw unusable(file, "other_session", `belongs to the session ${id}`);
    }
    requireDirectory(params, cwd);
    // If that creation fails, this call can have the file.
    await directory.making(id)?.catch(() => {});
    await directory.ended(id);
    const gone = await this.#switchPi({ file, id, cwd }, params, opener);
    if (gone !== undefined) return gone;
    const options = await this.#optionsIn(params);
    const same = directory.find(id);
    if (same !== undefined) return await withStartOptions(options, await requireSameFile(same, file), opener);
    const { approve = options?.approve, onForeignWrite, dialogPolicy, whenLeft } = params;
    const { configuration, left } = this.#options;
    const closed = this.#options.sessions.closed.get(id);
    const { projectProblem, ...parts } =
      closed === undefined ? await openedParts(cwd, approve === true, configuration) : { projectProblem: undefined };
    const stored: StoredSession = {
      ...closed,
      sessionId: id,
      cwd: await workingDirectory(cwd),
      file,
      isOpened: true,
      generation: 0,
      reservedSeq: 0,
      ...(options?.name === undefined ? {} : { name: options.name }),
      options: {
        ...closed?.options,
        ...options,
        ...(approve === undefined ? {} : { approve }),
        ...parts,
      },
      ...(onForeignWrite === undefined ? {} : { onForeignWrite }),
      ...(dialogPolicy === undefined ? {} : { dialogPolicy }),
      createdAt,
      updatedAt: Date.now(),
    };
    const session = await this.#begin(stored, { environment, mcpServers });
    tellProjectProblem(session, projectProblem);
    if (whenLeft === "close") left.watch(session);
    return await requireSameFile(session, file);
  }

  /** Switches the pi of `from` to an existing file. Undefined: that is not possible. */
  async #switchPi(to: Target, params: OpenParams, { from, ...opener }: Opener): Promise<Session | undefined> {
    if (from === undefined) return undefined;
    const { approve, onForeignWrite, dialogPolicy } = params;
    const options = defined({ ...(await this.#optionsIn(params)), approve });
    const wanted = { options, policies: defined({ onForeignWrite, dialogPolicy }) };
    return await this.#oneAtATime([from.sessionId, to.id], async () => {
      if (!(await this.#canSwitchPi(from, to, wanted, opener))) return undefined;
      return await this.#goOn(from, to, opener);
    });
  }

  async #goOn(from: Session, to: Target, { by }: Opener): Promise<Session | undefined> {
    const { directory, lifecycle, log } = this.#options;
    if (directory.find(to.id) === undefined) {
      lifecycle.requireRoom();
      // pi would not come back from a cycle.
      await checkEntries(to.file);
    }
    if (from.runId !== undefined || from.state.kind === "running") await from.prompting.abort({ by });
    try {
      return (await this.#branched(from, { type: "switch_session", sessionPath: to.file })).session;
    } catch (error) {
      if (!(error instanceof WireError) || !["link_failed", "session_busy"].includes(error.kind)) throw error;
      // It has got a pi meanwhile, for example, or that of `from` compacts.
      log.info({ err: error, from: from.sessionId, to: to.id }, "a pi cannot go on to another session");
      return undefined;
    }
  }

  /** Does the work when no other such work is in progress for any of these sessions. Each such work has limits of its own. */
  async #oneAtATime<T>(ids: readonly string[], work: () => Promise<T>): Promise<T> {
    const isBusy = () => ids.map((id) => this.#goingOn.get(id)).find((each) => each !== undefined);
    for (let busy = isBusy(); busy !== undefined; busy = isBusy()) await busy;
    const done = Promise.withResolvers<void>();
    for (const id of ids) this.#goingOn.set(id, done.promise);
    try {
      return await work();
    } finally {
      for (const id of ids) this.#goingOn.delete(id);
      done.resolve();
    }
  }

  /** Whether the pi of `from` can have this session in the way in which it is to be opened. */
  async #canSwitchPi(
    from: Session,
    { file, id, cwd }: Target,
    { options: { model, thinking, name, ...options }, policies }: Wanted,
    { subscriberId, by, environment, mcpServers }: Opener,
  ): Promise<boolean> {
    const { directory, sessions, env } = this.#options;
    const { stored } = from;
    // Without a pi there is nothing to go on with, and it may be one that does not start.
    if (from.state.kind !== "idle" && from.state.kind !== "running") return false;
    if (stored.ephemeral === true || from.sessionId === id) return false;
    const same = directory.find(id);
    const to = same?.stored ?? { ...stored, ...sessions.closed.get(id) };
    const wanted = { ...to, options: { ...to.options, ...options } };
    const isFree =
      same === undefined ||
      (same.succession.canTake && same.control.allows(by?.clientId ?? "") && isSameFile(same.file, file));
    // An open session keeps its policies.
    const hasPolicies = same !== undefined || isDeepStrictEqual({ ...to, ...policies }, to);
    const isAlone = [from, same].every((each) => each?.journal.subscriptions.hasOthers(subscriberId) !== true);
    return (
      isFree &&
      isAlone &&
      hasPolicies &&
      isInside(file, [sessionRoot(env), dirname(stored.file), stored.options.sessionDir]) &&
      // pi takes them from the session.
      [model, thinking, name].every((each) => each === undefined) &&
      isSameFile(cwd, stored.cwd) &&
      (environment === undefined || environment.fingerprint === from.environment?.fingerprint) &&
      (mcpServers ?? same?.mcpServers ?? from.mcpServers).isSame(from.mcpServers) &&
      [to, wanted].every((each) => isDeepStrictEqual(rightsOf(each), rightsOf(stored))) &&
      // Its own start decides about what another program has written.
      (same === undefined ? (await writerOf(file)) === undefined : !(await hasChanged(same)))
    );
  }

  async #optionsIn({ options }: OpenParams): Promise<StoredOptions | undefined> {
    return options && (await startOptions(options, this.#options.configuration.roots));
  }

  /** A page of pi's stored sessions that the daemon does not manage. */
  async stored({ cwd, after, limit = 100, covers, signal }: StoredParams): Promise<StoredPage> {
    // Sessions that the daemon does not manage have no labels.
    const isListed = covers === undefined ? undefined : (directory: string) => covers({ cwd: directory });
    const held = await Promise.all(this.#options.directory.all().map(({ file }) => realpath(file).catch(() => file)));
    return await listStored({ env: this.#options.env, held: new Set(held), cwd, after, limit, isListed, signal });
  }

  /** The first words of a user in each file. */
  async firstMessages(files: readonly string[]): Promise<readonly (string | undefined)[]> {
    return await firstMessagesIn(files);
  }

  /** Throws `session_busy`, `refused_by_pi` (also when an extension forbids it), and errors of waking. */
  async fork(sessionId: string, entryId: string): Promise<Branched> {
    this.#options.lifecycle.requireRoom();
    return await this.#branched(this.#options.directory.get(sessionId), { type: "fork", entryId });
  }

  /** As {@link fork}. */
  async clone(sessionId: string): Promise<Branched> {
    this.#options.lifecycle.requireRoom();
    return await this.#branched(this.#options.directory.get(sessionId), { type: "clone" });
  }

  /**
   * As {@link fork}, without messages. pi switches to a file with a header alone: it would not write the first messages of a
   * session that it makes itself.
   */
  async startNew(sessionId: string, parentSession: string | undefined): Promise<Branched> {
    const { directory, created, env } = this.#options;
    const from = directory.get(sessionId);
    this.#options.lifecycle.requireRoom();
    const own = { sessionId: uuidv7(), cwd: from.stored.cwd, env, now: new Date() };
    const request = { ...own, directory: from.stored.options.sessionDir, parentSession };
    const path = sessionFilePath(request);
    await created.begin(own.sessionId, path);
    try {
      const file = await createSessionFile(request);
      this.#made.add(file);
      try {
        return await this.#branched(from, { type: "switch_session", sessionPath: file });
      } catch (error) {
        // pi may have it in spite of the error.
        if (directory.find(own.sessionId) === undefined) await removeIfEmpty(file);
        throw error;
      } finally {
        this.#made.delete(file);
      }
    } finally {
      await created.end(own.sessionId);
    }
  }

  /** Throws `session_in_use` and `session_file_unusable`; then the session is unchanged. */
  async delete(sessionId: string): Promise<ChildExit | undefined> {
    const session = this.#options.directory.get(sessionId);
    // If the file is gone already, there is nothing to protect.
    if (existsSync(session.file)) {
      const file = await realpath(session.file);
      if (!this.#isInside(file, session.stored.options.sessionDir)) throw outside(file);
      checkFile(session.file);
    }
    return await this.#options.lifecycle.end(session, "delete");
  }

  /**
   * A hello names another session inside a pi. The child belongs to that session from this record on. A new session
   * becomes visible, and `from` is replaced, when pi itself has confirmed it, because any extension can send a hello.
   * Must be synchronous: the following records belong to the other session.
   */
  #succeed(from: Session, child: Child, hello: Hello, file: string): void {
    const left = Promise.withResolvers<void>();
    from.succession.giveAway(child, left.promise);
    child.rebind({ onEvent: () => {}, onFrame: () => {}, onDiagnostic: () => {} });
    let taker: Session | undefined;
    const take = async (to: Session): Promise<void> => {
      if (!to.succession.canTake || !isSameFile(to.file, file)) {
        throw new WireError("link_failed", `The session ${to.sessionId} has a pi already, or another file.`);
      }
      if (!isDeepStrictEqual(rightsOf(from.stored), rightsOf(to.stored))) {
        throw otherRights(to.sessionId);
      }
      taker = to;
      left.resolve(to.succession.takeOver(child, from));
      await to.succession.taken;
    };
    const replaced = this.#replaced(from, { sessionId: hello.sessionId, file }, take).catch(async (error: unknown) => {
      // pi may have switched again before it could confirm.
      const next = taker?.succession.successor;
      if (next !== undefined) return await next;
      this.#options.log.error({ err: error, from: from.sessionId, file }, "cannot assign a pi to another session");
      throw error;
    });
    if (taker === undefined) {
      void child.stop();
      left.resolve(child.cleaned);
    }
    from.succession.replacedBy(replaced, this.#branching.has(from) ? "call" : "extension");
  }

  /** Has a session of that id, possibly a new one, `take` the child of another one. Returns the id. */
  async #replaced(
    from: Session,
    { sessionId, file }: SessionFileOwner,
    take: (to: Session) => Promise<void>,
  ): Promise<string> {
    const { directory, sessions, env } = this.#options;
    const known = directory.find(sessionId);
    if (known !== undefined) {
      await take(known);
      return sessionId;
    }
    requireOwnPath(file, [sessionRoot(env), dirname(from.file), from.stored.options.sessionDir]);
    if (directory.making(sessionId) !== undefined || !isSessionId(sessionId)) {
      throw new WireError("link_failed", "A hello named an invalid session.", { reason: "false_hello" });
    }
    const found = existsSync(file) ? readStoredHeader(file) : undefined;
    if (found !== undefined && !isSameFile(found.cwd, from.stored.cwd)) throw otherRights(sessionId);
    const { labels, ...inherited } = inheritedFields(from.stored, new Date());
    // Tokens for this session's labels do not cover a file that was not made from it.
    const isOfThis =
      found === undefined ||
      this.#made.has(file) ||
      (found.parent !== undefined && isSameFile(found.parent, from.stored.file));
    const stored = {
      ...inherited,
      ...(isOfThis && labels !== undefined ? { labels } : {}),
      ...sessions.closed.get(sessionId),
      ...{ sessionId, file, generation: 0 },
      ...(found === undefined ? {} : { isOpened: true }),
    };
    const how = async (to: Session): Promise<void> => {
      await take(to);
      if (!to.succession.isConfirmed) throw new WireError("link_failed", "pi has switched to yet another session.");
    };
    await this.#begin(stored, { how, environment: from.environment, mcpServers: from.mcpServers });
    return sessionId;
  }

  #begin(stored: StoredSession, beginning: Beginning): Promise<Session> {
    const { lifecycle } = this.#options;
    return lifecycle.make(stored.sessionId, () => lifecycle.begin(stored, beginning));
  }

  async #branched(from: Session, command: PiCommand): Promise<Branched> {
    const data = await from.scope.run(async () => {
      const child = await from.awake();
      await requireIdle(from, child);
      from.succession.forget();
      this.#branching.add(from);
      const response = await child.send(command).finally(() => this.#branching.delete(from));
      if (!response.success) throw refused(command.type, response);
      if (isRecord(response.data) && response.data["cancelled"] === true) {
        throw new WireError("refused_by_pi", `An extension refused pi's ${command.type}.`, {
          reason: "cancelled_by_extension",
        });
      }
      return response.data;
    });
    const session = this.#options.directory.find((await from.succession.successor) ?? "");
    if (session === undefined) {
      throw new WireError("link_failed", `pi did not report its session after ${command.type}.`);
    }
    await this.#settleIn(session, from);
    const { left } = this.#options;
    if (left.has(from)) left.watch(session);
    const text = isRecord(data) ? data["text"] : undefined;
    return { session, ...(typeof text === "string" ? { text } : {}) };
  }

  /**
   * pi creates the file of a session only with its first answer, and keeps entries in memory until then. With the file,
   * it writes each entry immediately, as for every other session.
   */
  async #settleIn(session: Session, from: Session): Promise<void> {
    const { sessionId, cwd, file } = session;
    await session.scope
      .run(async () => {
        if (existsSync(file) || session.state.kind !== "idle") return;
        const now = new Date().toISOString();
        const header = { type: "session", version: 3, id: sessionId, timestamp: now, cwd, parentSession: from.file };
        const { child } = session.state;
        const { data } = await child.send({ type: "get_entries" });
        const entries = isRecord(data) && Array.isArray(data["entries"]) ? (data["entries"] as unknown[]) : [];
        const lines = [header, ...entries].map((entry) => `${JSON.stringify(entry)}\n`);
        await mkdir(dirname(file), { recursive: true });
        await writeFile(file, lines.join(""), { flag: "wx", mode: 0o600 });
        const response = await child.send({ type: "switch_session", sessionPath: file });
        if (response.success && !(isRecord(response.data) && response.data["cancelled"] === true)) return;
        // pi would fail on a file that it did not create.
        await unlink(file);
      })
      .catch((error: unknown) =>
        this.#options.log.warn({ err: error, file }, "cannot create the file of a new session yet"),
      );
  }

  /** The requested file and its header. */
  async #look(
    params: OpenParams,
    { covers, mayOpenAny = false }: Opener,
  ): Promise<StoredHeader & { readonly file: string }> {
    try {
      const file = await this.#fileOf(params, mayOpenAny);
      checkFile(file);
      const header = readStoredHeader(file);
      if (covers === undefined) return { ...header, file };
      const same = this.#options.directory.find(header.id)?.stored ?? this.#options.sessions.closed.get(header.id);
      const scope = { cwd: await workingDirectory(header.cwd), labels: same?.labels };
      if (covers(scope) && (same === undefined || covers({ ...scope, ...same }))) return { ...header, file };
    } catch (error) {
      if (covers === undefined || (error instanceof WireError && error.kind === "invalid_params")) throw error;
    }
    // Any other error would reveal that the file exists.
    throw params.file === undefined
      ? noSession(params.sessionId ?? "")
      : unusable(params.file, "missing", "does not exist");
  }

  async #fileOf({ sessionId, file }: OpenParams, mayOpenAny: boolean): Promise<string> {
    if (file === undefined) {
      const found = sessionId === undefined ? undefined : findSessionFile(sessionId, this.#options.env);
      if (found !== undefined) return await realpath(found.file);
      throw sessionId === undefined
        ? new WireError("invalid_params", "session/open requires a sessionId or a file.", {
            findings: [{ path: "", message: "must have sessionId or file" }],
          })
        : noSession(sessionId);
    }
    if (!isAbsolute(file) || file.includes("\0")) throw unusable(file, "not_absolute", "is not an absolute path");
    const resolved = await realpath(file).catch((error: NodeJS.ErrnoException) => {
      throw unusable(file, "missing", "does not exist", error);
    });
    const mayOpen = mayOpenAny && (await liesUnder(resolved, this.#options.configuration.roots));
    if (!mayOpen && !this.#isInside(resolved)) throw outside(resolved);
    if (!resolved.endsWith(".jsonl")) throw unusable(file, "not_a_session", "does not end in .jsonl");
    return resolved;
  }

  /** Clients may delete only files in pi's session directories, and most may open no other ones. */
  #isInside(file: string, chosen?: string): boolean {
    return isInside(file, [sessionRoot(this.#options.env), chosen]);
  }
}

/** How a session is to be opened. */
interface Wanted {
  readonly options: StoredOptions;
  readonly policies: Pick<StoredSession, "onForeignWrite" | "dialogPolicy">;
}

/** Throws `cwd_invalid` where the caller expects another directory of the session. */
function requireDirectory({ cwd: expected }: OpenParams, cwd: string): void {
  if (expected === undefined || isSameFile(expected, cwd)) return;
  const why = `The session has another directory: ${JSON.stringify(cwd)}.`;
  throw new WireError("cwd_invalid", why, { cwd, reason: "another" });
}

/** Whether a file is not as the session's own children left it. */
async function hasChanged({ file, stored }: Session): Promise<boolean> {
  return stored.fileMark !== undefined && (await changeSince(file, stored.fileMark)) !== undefined;
}

/** A session that is to be opened. */
type Target = Pick<StoredHeader, "id" | "cwd"> & { readonly file: string };

/** Environment and MCP servers are given as parts of the {@link Opener}. */
type OpenParams = Omit<Params<"session/open">, "environment" | "mcpServers">;

/** Returns the session, whose pi has the opener's options and MCP servers, and its environment where that is possible now. */
async function withStartOptions(
  options: StoredOptions | undefined,
  session: Session,
  { environment, mcpServers, by, ...opener }: Opener,
): Promise<Session> {
  if (options !== undefined || mcpServers !== undefined) session.control.check(by);
  const change = { environment, mcpServers, options };
  if (session.control.allows(by?.clientId ?? "")) await session.startAgainWith(change, opener);
  return session;
}

/** Returns the session. Throws `session_file_unusable` where the file is a copy of its own. */
async function requireSameFile(session: Session, file: string): Promise<Session> {
  if ((await realpath(session.file).catch(() => session.file)) === file) return session;
  const { sessionId, file: own } = session;
  throw unusable(file, "copied", `has the id of the session ${sessionId}, whose file is ${own}`);
}

function outside(file: string): WireError {
  return unusable(file, "outside", "is outside pi's session directories");
}

function noSession(sessionId: string): WireError {
  return new WireError("session_not_found", `pi has no session "${sessionId}".`, { sessionId });
}

function otherRights(sessionId: string): WireError {
  return new WireError("link_failed", `The session ${sessionId} has another directory or other options than this pi.`);
}

/** The options that require a start of pi, and its directory: all except those that pi is told later. */
function rightsOf(stored: StoredSession): object {
  const {
    optimisation: _optimisation,
    pruning: _pruning,
    sessionDir: _directory,
    ...options
  } = closedSession(stored).options;
  return { cwd: stored.cwd, ...options };
}

/** Throws `session_busy`, because pi would abort its work. */
async function requireIdle(session: Session, child: Child): Promise<void> {
  const busy = (why: string): WireError => new WireError("session_busy", `The session is busy (${why}).`);
  if (session.state.kind !== "idle") throw busy("a run is active");
  const { data } = await child.send({ type: "get_state" });
  const { isStreaming, isCompacting } = isRecord(data) ? data : {};
  if (isStreaming === true || session.runId !== undefined) throw busy("a run is active");
  if (isCompacting === true) throw busy("a compaction is in progress");
}
