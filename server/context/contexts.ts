import type { Logger } from "pino";
import type { ContextOptions } from "../../context/document/options.ts";
import type { ContextLimits } from "../../protocol/context-limits.ts";
import type { ContextOption } from "../../protocol/context-option.ts";
import { type ErrorName, WireError } from "../../protocol/errors.ts";
import type { Params, Result } from "../../protocol/methods.ts";
import type { Roots } from "../core/roots.ts";
import type { Child } from "../pi/child.ts";
import { sessionRoot } from "../pi/session-file.ts";
import type { StoredContext, StoredOptions, StoredSession } from "../store/stored-session.ts";
import { ByteBudget, type Reservation } from "./byte-budget.ts";
import { ContextDelivery } from "./context-delivery.ts";
import { ExportFiles, type ExportFilesLimits, KeptContexts } from "./kept-files.ts";
import type { ContextCaller } from "./read-path.ts";
import { type ContextSession, ContextSources } from "./sources.ts";
import { modeOf, summaryOf } from "./summary.ts";
import { budgetOf, Targets, type TargetsOptions } from "./targets.ts";
import type { Prepared, PreparedFacts, PrepareWork } from "./work.ts";
import { WorkerPool, type WorkerPoolLimits } from "./worker-pool.ts";

/** The context settings of the daemon's configuration. */
export interface ContextConfiguration {
  readonly readRoots: readonly string[];
  readonly ackTimeoutMs: number;
  readonly limits: ContextLimits;
}

export interface ContextsOptions extends Omit<TargetsOptions, "maxKnown"> {
  readonly stateDir: string;
  /** Working directory of a pi that is started for a dry run. */
  readonly runDirectory: string;
  readonly configuration: ContextConfiguration;
  readonly roots: Roots;
  readonly limits: WorkerPoolLimits &
    ExportFilesLimits & {
      readonly maxInlineBytes: number;
      readonly maxKnownTargets: number;
      /** Limit for all documents in memory. */
      readonly maxHeldBytes: number;
    };
  /** Throws `session_not_found`. */
  readonly session: (sessionId: string) => ContextSession;
  readonly find: (sessionId: string) => ContextSession | undefined;
  readonly log: Logger;
}

/** A session that is about to be created. */
export interface ContextOrder {
  readonly sessionId: string;
  /** Resolved, without links. */
  readonly cwd: string;
  readonly ephemeral: boolean;
  readonly options: StoredOptions;
  readonly now: Date;
}

/** A prepared context that waits for its session. */
export interface ReadyContext {
  readonly options: StoredOptions;
  readonly stored: StoredContext;
  readonly facts: PreparedFacts;
  /** The lines of the session's file, or the stored form for its helper. */
  readonly bytes: Uint8Array;
  /** Releases the bytes. */
  readonly release: () => void;
}

/** Errors of the context itself: with `onError: "warn"` the session starts without it. */
const contextFailures: ReadonlySet<ErrorName> = new Set<ErrorName>([
  "invalid_params",
  "forbidden",
  "context_invalid",
  "context_too_large",
  "context_over_budget",
  "context_mode_conflict",
  "context_transport_failed",
  "entry_not_found",
  "session_not_found",
  "session_lost",
  "session_closed",
  "child_exited",
]);

/** Whether a session may start without its context after this error. */
export function mayStartWithout(option: ContextOption | undefined, error: unknown): error is WireError {
  return option?.onError === "warn" && error instanceof WireError && contextFailures.has(error.kind);
}

/** Imports and exports conversations. */
export class Contexts {
  readonly #options: ContextsOptions;
  readonly #pool: WorkerPool;
  readonly #budget: ByteBudget;
  readonly #targets: Targets;
  readonly #sources: ContextSources;
  readonly #kept: KeptContexts;
  readonly #exports: ExportFiles;
  readonly #delivery: ContextDelivery;
  readonly #abandon = new AbortController();

  constructor(options: ContextsOptions) {
    this.#options = options;
    const { limits, log, stateDir, env, configuration, roots, find, session } = options;
    this.#pool = new WorkerPool(limits, log);
    const { maxHeldBytes, maxWaiting, maxOwnBytes, workTimeoutMs } = limits;
    this.#budget = new ByteBudget({ maxHeldBytes, maxWaiting, waitMs: workTimeoutMs, maxFreeBytes: maxOwnBytes });
    this.#targets = new Targets({ ...options, maxKnown: limits.maxKnownTargets });
    this.#kept = new KeptContexts(stateDir, log);
    this.#exports = new ExportFiles(stateDir, limits);
    this.#delivery = new ContextDelivery({
      kept: this.#kept,
      byteBudget: this.#budget,
      ackTimeoutMs: configuration.ackTimeoutMs,
    });
    this.#sources = new ContextSources({
      ...{ session, find, roots },
      kept: (stored) => this.#keptBytes(stored),
      readRoots: configuration.readRoots,
      sessionRoot: () => sessionRoot(env),
      maxBytes: configuration.limits.maxDocumentBytes,
    });
  }

  /** Deletes files that a killed daemon left for unknown sessions. */
  async sweep(isKnown: (sessionId: string) => boolean): Promise<void> {
    await this.#exports.clear();
    await this.#kept.sweep(isKnown);
  }

  /** Cancels work in progress. */
  async close(): Promise<void> {
    this.#abandon.abort(new WireError("shutting_down", "The daemon is shutting down."));
    await this.#pool.close();
    await this.#exports.clear();
  }

  /**
   * Prepares the session's context from the option. Throws the errors of contexts, `invalid_params`, `forbidden`,
   * `session_not_found`, and errors of starting pi.
   */
  async prepare(option: ContextOption, order: ContextOrder, asking: ContextCaller): Promise<ReadyContext> {
    const reservation = this.#budget.open();
    try {
      return await this.#ready(option, order, this.#untilClosed(asking), reservation);
    } catch (error) {
      reservation.release();
      throw error;
    }
  }

  async #ready(
    option: ContextOption,
    order: ContextOrder,
    caller: ContextCaller,
    reservation: Reservation,
  ): Promise<ReadyContext> {
    const mode = modeOf(option, order.ephemeral);
    this.#sources.check(option, caller);
    // No bytes are held while pi is asked.
    const { target, model, thinking, budget: facts } = await this.#targets.find(order, caller.signal);
    const source = await this.#sources.read(option, caller, reservation);
    const { sessionId, cwd, now } = order;
    const { outcome, as } = await this.#work(option, { source, target, facts }, caller, () =>
      mode === "session"
        ? { kind: "session", header: { id: sessionId, timestamp: now.getTime(), cwd } }
        : { kind: "helper", afterCompaction: option.ephemeralAfterCompaction ?? "trim" },
    );
    const summary = summaryOf(mode, outcome.facts);
    return {
      release: reservation.release,
      // Otherwise pi would use the model of the last answer in the file.
      options: {
        ...order.options,
        ...(as.kind === "session" ? { model } : {}),
        ...(thinking === undefined ? {} : { thinking }),
      },
      stored: {
        summary,
        ...(outcome.facts.unanswered === undefined ? {} : { unanswered: outcome.facts.unanswered }),
      },
      facts: outcome.facts,
      bytes: outcome.bytes,
    };
  }

  /** Stores the context for the session's pi, and the repairs. Throws `context_transport_failed`. */
  async keep(sessionId: string, { stored, facts, bytes }: ReadyContext): Promise<StoredContext> {
    if (facts.repairs.length > 0)
      await this.#kept.put(sessionId, "repairs", Buffer.from(JSON.stringify(facts.repairs)));
    if (stored.summary.mode === "session") return stored;
    return { ...stored, kept: await this.#kept.put(sessionId, "context", bytes) };
  }

  /** The session is over. */
  forget(sessionId: string): Promise<void> {
    return this.#kept.forget(sessionId);
  }

  /** As {@link ContextDelivery.give}. */
  give(child: Child, stored: StoredSession, signal: AbortSignal): Promise<void> {
    return this.#delivery.give(child, stored, AbortSignal.any([signal, this.#abandon.signal]));
  }

  /** Throws as {@link prepare}. */
  async inspect(params: Params<"context/inspect">, asking: ContextCaller): Promise<Result<"context/inspect">> {
    return await this.#budget.holding((reservation) => this.#inspect(params, this.#untilClosed(asking), reservation));
  }

  async #inspect(
    params: Params<"context/inspect">,
    caller: ContextCaller,
    reservation: Reservation,
  ): Promise<Result<"context/inspect">> {
    const { sessionId, context: option, model, items = false } = params;
    if ((sessionId === undefined) === (option === undefined)) throw oneOf("context/inspect", "sessionId", "context");
    if (option === undefined) {
      if (model !== undefined || params.items !== undefined)
        throw onlyWithContext(model === undefined ? "items" : "model");
      return await this.#inspectSession(this.#options.session(sessionId as string));
    }
    const mode = option.mode === "ephemeral" ? "ephemeral" : "session";
    this.#sources.check(option, caller);
    const request = { cwd: this.#options.runDirectory, options: model === undefined ? {} : { model } };
    const { target, budget: facts } = await this.#targets.find(request, caller.signal);
    const source = await this.#sources.read(option, caller, reservation);
    const { outcome } = await this.#work(option, { source, target, facts }, caller, () => ({
      kind: items ? "items" : "facts",
    }));
    const { counts, repairs, tokens, dropped, warnings, hash } = outcome.facts;
    const found = { mode, counts, repairs: [...repairs], tokens, dropped, warnings: [...warnings], hash } as const;
    if (!items) return found as Result<"context/inspect">;
    this.#requireInline(outcome.bytes, "The items have", "Ask without items.");
    return { ...found, items: JSON.parse(textOf(outcome.bytes)) as unknown[] } as Result<"context/inspect">;
  }

  /** Throws `session_not_found`, `entry_not_found`, `forbidden`, `too_large`, and what reading can throw. */
  async export(params: Params<"context/export">, asking: ContextCaller): Promise<Result<"context/export">> {
    return await this.#budget.holding((reservation) => this.#export(params, this.#untilClosed(asking), reservation));
  }

  async #export(
    params: Params<"context/export">,
    caller: ContextCaller,
    reservation: Reservation,
  ): Promise<Result<"context/export">> {
    const { sessionId, path, output = "inline", ...options } = params;
    if ((sessionId === undefined) === (path === undefined)) throw oneOf("context/export", "sessionId", "path");
    const from =
      path === undefined
        ? await this.#sources.ofSession(this.#options.session(sessionId as string), params.leafId, caller, reservation)
        : await this.#sources.ofFile(path, caller, reservation);
    const made = await this.#pool.do({ kind: "export", from, options }, caller.signal);
    const diagnostics = made.diagnostics as Result<"context/export">["diagnostics"];
    if (output === "file") {
      const { bytes, sha256 } = made;
      return { path: await this.#exports.put(bytes), bytes: bytes.byteLength, sha256, diagnostics };
    }
    this.#requireInline(made.bytes, "The document has", 'Use output "file".');
    return { document: JSON.parse(textOf(made.bytes)), diagnostics };
  }

  /** A daemon that shuts down cannot complete the call. */
  #untilClosed(caller: ContextCaller): ContextCaller {
    return { ...caller, signal: AbortSignal.any([caller.signal, this.#abandon.signal]) };
  }

  async #inspectSession(session: ContextSession): Promise<Result<"context/inspect">> {
    const { sessionId } = session;
    const { context } = session.stored;
    if (context === undefined) {
      const { error } = session.context;
      const why =
        error === undefined
          ? "The session has no context of its own: it was created without one, or derives from another session."
          : `The session started without its context: ${error.message}`;
      throw new WireError("context_invalid", why, {
        sessionId,
        code: "nothing_selected",
      });
    }
    const { mode, messages: _messages, nodes, items, pairs, repairs: counted, notes, ...facts } = context.summary;
    const repairs = ((await this.#kept.repairs(sessionId)) ?? []) as Result<"context/inspect">["repairs"];
    const counts = { nodes, items, pairs, repairs: counted, ...(notes === undefined ? {} : { notes }) };
    return { mode, counts, repairs, ...facts };
  }

  async #work(
    option: ContextOption,
    {
      source,
      target,
      facts,
    }: { source: PrepareWork["source"]; target: PrepareWork["target"]; facts: Parameters<typeof budgetOf>[1] },
    { signal }: ContextCaller,
    as: () => PrepareWork["as"],
  ): Promise<{ readonly outcome: Prepared; readonly as: PrepareWork["as"] }> {
    const { document: _document, path: _path, fromSession: _session, ...options } = option;
    const wanted = as();
    const outcome = await this.#pool.do<PrepareWork>(
      {
        kind: "prepare",
        source,
        options: options as ContextOptions,
        target,
        ...budgetOf(option.maxTokens, facts),
        limits: this.#options.configuration.limits,
        as: wanted,
      },
      signal,
    );
    return { outcome, as: wanted };
  }

  async #keptBytes({ sessionId, context }: StoredSession): Promise<Buffer | undefined> {
    return context?.kept === undefined ? undefined : await this.#kept.get(sessionId, context.kept);
  }

  #requireInline(bytes: Uint8Array, what: string, advice: string): void {
    const { maxInlineBytes } = this.#options.limits;
    if (bytes.byteLength <= maxInlineBytes) return;
    const message = `${what} ${bytes.byteLength} bytes; an answer has at most ${maxInlineBytes}. ${advice}`;
    throw new WireError("too_large", message, { bytes: bytes.byteLength, maxBytes: maxInlineBytes });
  }
}

function oneOf(method: string, ...names: readonly string[]): WireError {
  return new WireError("invalid_params", `${method} takes exactly one of ${names.join(" and ")}.`, {
    findings: [{ path: "", message: `must have exactly one of ${names.join(", ")}` }],
  });
}

function onlyWithContext(name: string): WireError {
  return new WireError("invalid_params", `context/inspect takes ${name} with context alone, and not with sessionId.`, {
    findings: [{ path: `/${name}`, message: "is only for context" }],
  });
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
}
