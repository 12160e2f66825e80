import type { ContextSource } from "../../context/document/document.ts";
import type { ContextOption } from "../../protocol/context-option.ts";
import { WireError } from "../../protocol/errors.ts";
import type { EntriesReply } from "../../protocol/link-inward.ts";
import { isRecord } from "../../protocol/objects.ts";
import { liesUnder, type Roots } from "../core/roots.ts";
import type { SessionState } from "../core/session-state.ts";
import { workingDirectory } from "../core/working-directory.ts";
import type { Child } from "../pi/child.ts";
import { isEntriesReply } from "../pi/outward-frame.ts";
import type { StoredSession } from "../store/stored-session.ts";
import type { Reservation } from "./byte-budget.ts";
import type { InitialContext } from "./initial-context.ts";
import { type ContextCaller, notAllowed, type ReadBounds, readNamed, readOwn, tooLarge } from "./read-path.ts";
import type { WorkSource } from "./work.ts";

/** The entries of a session, to build a document. */
export interface ContextSession {
  readonly sessionId: string;
  readonly file: string;
  readonly stored: StoredSession;
  readonly state: SessionState;
  /** Why its conversation is lost. */
  readonly loss: WireError | undefined;
  readonly context: Pick<InitialContext, "error" | "failed">;
}

export interface ContextSourcesOptions {
  readonly readRoots: readonly string[];
  readonly roots: Roots;
  /** The directories of pi's session files. */
  readonly sessionRoot: () => string;
  readonly maxBytes: number;
  /** Throws `session_not_found`. */
  readonly session: (sessionId: string) => ContextSession;
  readonly find: (sessionId: string) => ContextSession | undefined;
  /** The stored context for the helper of an ephemeral session: `helperLines`. */
  readonly kept: (stored: StoredSession) => Promise<Buffer | undefined>;
}

type SessionSource = WorkSource & { readonly kind: "session" };

/** The bytes of documents and sessions from all sources. */
export class ContextSources {
  readonly #options: ContextSourcesOptions;

  constructor(options: ContextSourcesOptions) {
    this.#options = options;
  }

  /** Throws `invalid_params` unless the option names one source, and `forbidden` where the caller may not read. */
  check({ document, path, fromSession }: ContextOption, caller: ContextCaller): void {
    const given = [document, path, fromSession].filter((source) => source !== undefined);
    if (given.length !== 1) throw oneSource(given.length);
    if (document === undefined && caller.mayObserve === false) {
      const why = 'The token does not allow reading sessions and files: it lacks "observe".';
      throw new WireError("forbidden", why, { needs: "observe" });
    }
  }

  /**
   * Reads the source that the option `context` names. Its bytes are reserved before it is read. Throws what {@link
   * check} throws, `overloaded`, `session_not_found`, `context_too_large`, `context_transport_failed`, and what
   * {@link ofSession} throws.
   */
  async read(option: ContextOption, caller: ContextCaller, reservation: Reservation): Promise<WorkSource> {
    this.check(option, caller);
    const { document, path, fromSession } = option;
    const { maxBytes } = this.#options;
    if (path !== undefined) {
      const { bytes } = await readNamed(path, caller, this.#rules([]), this.#bounds(caller, reservation));
      return { kind: "document", bytes };
    }
    if (fromSession !== undefined) {
      const { sessionId, leafId } = fromSession;
      const session = this.#options.session(sessionId);
      // A token for other sessions does not learn that this one exists.
      if (caller.covers?.(session.stored) === false) throw noSession(sessionId);
      return await this.ofSession(session, leafId, caller, reservation);
    }
    // Only the value, which the call already holds, waits for the budget.
    const length = Buffer.byteLength(JSON.stringify(document));
    if (length > maxBytes) throw tooLarge(length, maxBytes);
    await reservation.take(length, caller.signal);
    return { kind: "document", bytes: Buffer.from(JSON.stringify(document)) };
  }

  /**
   * A session's current state, up to its last complete entry. Throws `session_lost`, `child_exited`,
   * `context_too_large`, `context_transport_failed`, `overloaded`.
   */
  async ofSession(
    session: ContextSession,
    leafId: string | undefined,
    caller: ContextCaller,
    reservation: Reservation,
  ): Promise<SessionSource> {
    if (session.stored.ephemeral === true) {
      // The size of pi's answer is unknown in advance.
      await reservation.take(this.#options.maxBytes, caller.signal);
      const source = await this.#ofMemory(session, leafId);
      reservation.shrink(source.bytes.byteLength + (source.kept?.byteLength ?? 0));
      return source;
    }
    // Asked before the file is read, so that the entry is in it.
    const leaf = leafId ?? (await leafOf(session));
    const found = await readOwn(session.file, this.#bounds(caller, reservation));
    return {
      kind: "session",
      bytes: found?.bytes ?? Buffer.alloc(0),
      source: sourceOf(session.sessionId, found?.mtimeMs),
      ...(leaf === undefined ? {} : { leafId: leaf }),
    };
  }

  /** Any session file of pi. Throws `forbidden`, `context_too_large`, `context_transport_failed`, `overloaded`. */
  async ofFile(path: string, caller: ContextCaller, reservation: Reservation): Promise<SessionSource> {
    const { sessionRoot, find } = this.#options;
    const bounds = this.#bounds(caller, reservation);
    const { bytes, mtimeMs, path: real } = await readNamed(path, caller, this.#rules([sessionRoot()]), bounds);
    const { id, cwd } = headerIn(bytes);
    const directory = await workingDirectory(cwd).catch(() => cwd);
    if (!(await this.#mayBeOf(directory, real, caller))) throw notAllowed();
    if (caller.covers !== undefined) {
      const same = find(id)?.stored;
      const isCovered =
        caller.covers({ cwd: directory, labels: same?.labels }) && (same === undefined || caller.covers(same));
      if (!isCovered) throw notAllowed();
    }
    return { kind: "session", bytes, source: sourceOf(id, mtimeMs) };
  }

  /**
   * Among pi's own files, those of sessions that could be opened; elsewhere any file that the configuration allows.
   */
  async #mayBeOf(directory: string, file: string, { mayReadAny }: ContextCaller): Promise<boolean> {
    const { roots, readRoots } = this.#options;
    if (mayReadAny || (await liesUnder(directory, roots))) return true;
    return readRoots.length > 0 && (await liesUnder(file, readRoots)) && (await liesUnder(file, roots));
  }

  /** The entries of an ephemeral session exist only in its pi, and its earlier past in the stored context. */
  async #ofMemory(session: ContextSession, leafId: string | undefined): Promise<SessionSource> {
    if (session.loss !== undefined) throw session.loss;
    const { state } = session;
    const child = state.kind === "idle" || state.kind === "running" ? state.child : undefined;
    const { data } = child === undefined ? { data: undefined } : await child.send({ type: "get_entries" });
    const said = isRecord(data) ? data : {};
    const leaf = leafId ?? (typeof said["leafId"] === "string" ? said["leafId"] : undefined);
    const own = (Array.isArray(said["entries"]) ? said["entries"] : []).filter(isRecord);
    const bytes = Buffer.from(own.map((entry) => `${JSON.stringify(entry)}\n`).join(""));
    // It is assembled by the worker, because that takes time.
    const kept = await this.#options.kept(session.stored);
    const { maxBytes } = this.#options;
    const length = bytes.length + (kept?.length ?? 0);
    if (length > maxBytes) throw tooLarge(length, maxBytes);
    return {
      kind: "session",
      bytes,
      source: sourceOf(session.sessionId),
      ...(leaf === undefined ? {} : { leafId: leaf }),
      ...(kept === undefined ? {} : { kept }),
    };
  }

  #bounds({ signal }: ContextCaller, reservation: Reservation): ReadBounds {
    return { maxBytes: this.#options.maxBytes, admit: (bytes) => reservation.take(bytes, signal) };
  }

  #rules(further: readonly string[]) {
    const { readRoots, roots } = this.#options;
    return { readRoots, roots, further };
  }
}

const askTimeoutMs = 2_000;

/** pi's current leaf, which is not always the last entry of its file. Undefined: unknown. */
async function leafOf({ state, stored }: ContextSession): Promise<string | undefined> {
  if (state.kind !== "idle" && state.kind !== "running") return undefined;
  const reply = await asked(state.child, stored.fileMark?.lastId);
  return reply?.leafId;
}

async function asked(child: Child, since: string | undefined): Promise<EntriesReply | undefined> {
  const timeUp = AbortSignal.timeout(askTimeoutMs);
  try {
    const frame = { kind: "entries", ...(since === undefined ? {} : { since }) } as const;
    const said = await Promise.race([
      child.link.send<unknown>(frame),
      new Promise<undefined>((resolve) => timeUp.addEventListener("abort", () => resolve(undefined), { once: true })),
    ]);
    return isEntriesReply(said) ? said : undefined;
  } catch {
    // The file is the best remaining source.
    return undefined;
  }
}

/** The same file results in the same document. */
function sourceOf(id: string, mtimeMs?: number): ContextSource {
  return {
    kind: "pi-session",
    ...(id === "" ? {} : { id }),
    ...(mtimeMs === undefined ? {} : { exportedAt: Math.round(mtimeMs) }),
  };
}

function headerIn(bytes: Buffer): { readonly id: string; readonly cwd: string } {
  const end = bytes.indexOf(10);
  let header: unknown;
  try {
    header = JSON.parse(bytes.toString("utf8", 0, end === -1 ? bytes.length : end));
  } catch {
    header = undefined;
  }
  const { type, id, cwd } = isRecord(header) ? header : {};
  if (type !== "session" || typeof id !== "string" || typeof cwd !== "string") {
    throw new WireError("context_transport_failed", "The file is not a pi session file.", {
      reason: "not_a_session",
      retryable: false,
    });
  }
  return { id, cwd };
}

function noSession(sessionId: string): WireError {
  return new WireError("session_not_found", `There is no session "${sessionId}".`, { sessionId });
}

function oneSource(count: number): WireError {
  const message = `context takes exactly one of document, path and fromSession; it has ${count}.`;
  return new WireError("invalid_params", message, {
    errors: [{ pointer: "/context", expected: "exactly one of document, path, fromSession", got: `${count} of them` }],
  });
}
