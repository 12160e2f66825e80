import { EventEmitter } from "node:events";
import type { Logger } from "pino";
import type { Delivery } from "../../protocol/delivery.ts";
import type { Dialog } from "../../protocol/dialog.ts";
import { WireError } from "../../protocol/errors.ts";
import { isRecord } from "../../protocol/objects.ts";
import type { ChildExit, SessionInfo } from "../../protocol/session.ts";
import { CachedAnswers, type CachedAnswersOptions } from "../children/cached-answers.ts";
import { ChildLife } from "../children/child-life.ts";
import { ChildReports } from "../children/child-reports.ts";
import { ChildRestore } from "../children/child-restore.ts";
import { ChildShutdown } from "../children/child-shutdown.ts";
import type { ChildSource } from "../children/child-source.ts";
import { ChildSupervisor, type StartChange } from "../children/child-supervisor.ts";
import { PiCalls, type PiCallsOptions } from "../children/pi-calls.ts";
import type { ResponsivenessLimits } from "../children/responsiveness.ts";
import type { StartRateLimits } from "../children/start-rate-limit.ts";
import type { LeftChild, Survival } from "../children/survival.ts";
import { limits } from "../configuration/limits.ts";
import { SessionCosts } from "../context/cost/session-costs.ts";
import { type ContextTransport, InitialContext } from "../context/initial-context.ts";
import { PartCalls } from "../context/part-calls.ts";
import type { PartsConfiguringOptions } from "../context/parts-configuring.ts";
import { Attribution, attributionOf } from "../core/attribution.ts";
import { Control } from "../core/control.ts";
import { Idleness } from "../core/idleness.ts";
import type { SessionChange, SessionContext, SessionEmitter } from "../core/session-context.ts";
import type { StartPurpose } from "../core/session-core.ts";
import { SessionRecord } from "../core/session-record.ts";
import type { SessionState } from "../core/session-state.ts";
import { custodyOf } from "../custody/custody.ts";
import { Succession } from "../custody/succession.ts";
import { deliveryUpdated } from "../delivery/delivery-notifier.ts";
import { Pushing } from "../delivery/pushing.ts";
import { Retry } from "../delivery/retry.ts";
import type { DeliveryTracker } from "../delivery/tracker.ts";
import { defaultPolicy } from "../dialogs/dialog-policy.ts";
import type { DialogRegistry } from "../dialogs/dialog-registry.ts";
import { Dialogs } from "../dialogs/dialogs.ts";
import { systemClock } from "../lib/monotonic-clock.ts";
import { SerialQueue } from "../lib/serial-queue.ts";
import { EventBackfill } from "../log/event-backfill.ts";
import { Journal, type SubscribeOptions } from "../log/journal.ts";
import type { Logs } from "../log/logs.ts";
import { ProviderWatch } from "../log/provider-watch.ts";
import { type SessionSnapshot, takeSnapshot } from "../log/snapshot.ts";
import { StderrWatch } from "../log/stderr-watch.ts";
import type { Subscriber } from "../log/subscription.ts";
import type { Child, ChildLimits, ChildSinks } from "../pi/child.ts";
import type { ChildEnvironment } from "../pi/child-environment.ts";
import type { ChildMcpServers } from "../pi/child-mcp-servers.ts";
import type { LeaseTaker } from "../pi/lease.ts";
import type { ChildStdio } from "../pi/stdio.ts";
import { Prompting } from "../prompts/prompting.ts";
import { SessionPrompts } from "../prompts/session-prompts.ts";
import type { PromptStore } from "../store/prompts.ts";
import type { SessionStore } from "../store/sessions.ts";
import type { StoredSession } from "../store/stored-session.ts";
import { type RowSources, SessionRow } from "./session-row.ts";
import { SummaryRecord } from "./summary-record.ts";

export interface SessionOptions {
  readonly stored: StoredSession;
  /** The environment of its children, which is not stored. */
  readonly environment: ChildEnvironment;
  /** The MCP servers of its children, which are not stored. Default: none. */
  readonly mcpServers?: ChildMcpServers | undefined;
  /** Stores changes of the session's record. */
  readonly sessions: Pick<SessionStore, "put" | "flush" | "summaries">;
  readonly prompts: PromptStore;
  readonly tracker: DeliveryTracker;
  readonly logs: Logs;
  readonly dialogs: DialogRegistry;
  /** Starts pi for the session. */
  readonly source: Pick<ChildSource, "start" | "admit" | "adopt">;
  /** Default: children end with the daemon. */
  readonly survival?: Survival | undefined;
  /** The child that a former daemon left in it. */
  readonly left?: LeftChild | undefined;
  readonly contexts: ContextTransport;
  /** The owner recorded in leases of session files. */
  readonly taker: LeaseTaker;
  /** Creates a session from the branch of this one that ends with the entry, and returns its id. */
  readonly branchOff: (from: StoredSession, leafId: string) => Promise<string>;
  /** Bytes read from the end of pi's session file for a backfill. */
  readonly maxRefillBytes: number;
  /** The messages of a snapshot. */
  readonly maxSnapshotBytes: number;
  /** Maximum size of one reported message list or payload. */
  readonly maxProviderBodyBytes: number;
  /** Maximum number of waiting calls. */
  readonly maxWaitingCalls: number;
  readonly calls: PiCallsOptions;
  /** pi's last answers, of all sessions. */
  readonly answers: Pick<CachedAnswersOptions, "cache" | "store" | "maxBytes">;
  readonly parts: Omit<PartsConfiguringOptions, "record" | "journal">;
  /** For sessions that do not set it. */
  readonly idleAfterMs: number;
  readonly child: Pick<ChildLimits, "startTimeoutMs" | "maxRecordBytes">;
  readonly responsiveness: ResponsivenessLimits;
  /** Limits on starts of its pi. */
  readonly rates: StartRateLimits;
  readonly log: Logger;
}

/**
 * A durable conversation: one pi session file for its lifetime. It survives its children; the next prompt or push
 * starts one. Parts take what exists when they are made; what comes later subscribes to the session's events.
 */
export class Session {
  readonly events: SessionEmitter;
  readonly scope: SerialQueue;
  readonly attribution: Attribution;
  /** The session's notifications and subscribers. */
  readonly journal: Journal;
  readonly context: InitialContext;
  readonly control: Control;
  readonly prompts: SessionPrompts;
  readonly dialogs: Dialogs;
  readonly pushing: Pushing;
  readonly calls: PiCalls;
  readonly parts: PartCalls;
  readonly answers: CachedAnswers;
  readonly costs: SessionCosts;
  readonly prompting: Prompting;
  readonly idleness: Idleness;
  readonly supervisor: ChildSupervisor;
  readonly succession: Succession;
  readonly #options: SessionOptions;
  readonly #record: SessionRecord;
  readonly #life: ChildLife;
  readonly #shutdown: ChildShutdown;
  readonly #restore: ChildRestore;
  readonly #stderr: StderrWatch;
  readonly #summary: SummaryRecord;
  #row: SessionRow | undefined;

  constructor(options: SessionOptions) {
    const { stored, sessions, tracker, source, child, log } = options;
    const { sessionId } = stored;
    this.#options = options;

    const { environment, mcpServers } = options;
    const record = new SessionRecord(
      stored,
      (current, isAwaited) => sessions.put(current, isAwaited),
      environment,
      mcpServers,
    );
    const { epoch } = record;
    const numbers = record.numbers((upTo) => sessions.flush(sessionId, upTo));
    const events: SessionEmitter = new EventEmitter();
    const { left } = options;
    const continuation = left && {
      seq: left.at.kept.seq,
      saidAfter: left.at.applied.seq,
      onMismatch: (why: string) => {
        log.error({ why }, "the log of a restored session goes on with a gap");
        events.emit("renumbered");
      },
    };
    const onUnwritten = (): void => void events.emit("unwritten");
    const eventLog = options.logs.open(sessionId, epoch, numbers, { continuation, onUnwritten });
    const onFault = (err: unknown, subscriberId: string): void =>
      log.error({ err, subscriberId }, "a subscriber failed and was removed");
    const journal = new Journal({ sessionId, epoch, log: eventLog, onFault });
    const scope = queueOf(options.maxWaitingCalls, events);
    const attribution = new Attribution();
    const context: SessionContext = { sessionId, record, journal, events, attribution, scope, log };

    const backfill = new EventBackfill({
      log: eventLog,
      record: (event, entry) => {
        const generation = Math.max(1, record.stored.generation);
        journal.record(event, generation, false, undefined, prompts.originOfEntry(entry));
      },
      maxBytes: options.maxRefillBytes,
      logger: log,
    });
    const provider = new ProviderWatch({ journal, maxBodyBytes: options.maxProviderBodyBytes, log });
    const stderr = new StderrWatch(journal);
    const control = controlOf(context);
    const custody = custodyOf(context, {
      taker: options.taker,
      branchOff: (leafId) => options.branchOff(record.stored, leafId),
    });
    const initialContext = new InitialContext(context, options.contexts);
    const prompts = new SessionPrompts(context, { store: options.prompts, tracker });

    const { rates: startRate } = options;
    const life = new ChildLife(context, { source, startRate, custody, initialContext, backfill, prompts });
    const dialogs = dialogsOf(context, { registry: options.dialogs, journal, life, control, prompts, tracker });
    const retry = new Retry({
      again: () => events.emit("retryDue"),
      pushWaits: () => tracker.wantsChild(sessionId),
      admit: () => source.admit(),
      onChange: () => events.emit("changed"),
    });
    const pushing = new Pushing(context, life, { tracker, retry });
    const parts = new PartCalls(life, {
      ...options.parts,
      startTimeoutMs: child.startTimeoutMs,
      record,
      journal,
      by: () => attribution.by,
      log,
    });
    const answers = new CachedAnswers(context, { ...options.answers, parts });
    const costs = new SessionCosts(life, { record, parts, log });
    const { idleAfterMs, responsiveness } = options;
    const supervisor = new ChildSupervisor(context, {
      life,
      pushing,
      retry,
      answers,
      dialogs,
      journal,
      idleAfterMs,
      responsiveness,
    });
    const idleness = idlenessOf(context, { life, prompts, pushing });
    const reports = new ChildReports(context, {
      journal,
      backfill,
      provider,
      stderr,
      prompts,
      dialogs,
      life,
      custody,
      tracker,
      pushing,
      supervisor,
      parts,
      costs,
      survival: options.survival,
    });

    this.events = events;
    this.scope = scope;
    this.attribution = attribution;
    this.journal = journal;
    this.context = initialContext;
    this.control = control;
    this.prompts = prompts;
    this.dialogs = dialogs;
    this.pushing = pushing;
    this.calls = new PiCalls(life, options.calls);
    this.parts = parts;
    this.answers = answers;
    this.costs = costs;
    const prompting = new Prompting(life, { ledger: prompts.ledger, dialogs, pushing, costs });
    this.prompting = prompting;
    this.idleness = idleness;
    this.supervisor = supervisor;
    this.succession = new Succession(context, {
      life,
      custody,
      pushing,
      parts,
      startTimeoutMs: child.startTimeoutMs,
      maxHeldBytes: child.maxRecordBytes,
    });
    const summary = new SummaryRecord(context, sessions.summaries);
    const adopt = (child: LeftChild, stdio: ChildStdio, sinks: ChildSinks): Child => {
      if (options.survival !== undefined) options.survival.facts.restored += 1;
      return source.adopt(child, stdio, sinks, log);
    };
    const restored = {
      journal,
      eventLog,
      life,
      reports,
      prompts,
      prompting,
      dialogs,
      custody,
      tracker,
      pushing,
      supervisor,
      parts,
      adopt,
    };
    this.#restore = new ChildRestore(context, restored, left);
    this.#record = record;
    this.#summary = summary;
    this.#stderr = stderr;
    this.#life = life;
    this.#shutdown = new ChildShutdown(context, {
      journal,
      life,
      custody,
      dialogs,
      prompts,
      idleness,
      control,
      retry,
      tracker,
      answers,
      reports,
      summary,
    });
    events.on("changed", (change) => this.#publish(change));
  }

  get sessionId(): string {
    return this.#record.stored.sessionId;
  }

  get cwd(): string {
    return this.#record.stored.cwd;
  }

  get file(): string {
    return this.#record.stored.file;
  }

  get stored(): StoredSession {
    return this.#record.stored;
  }

  get state(): SessionState {
    return this.#life.state;
  }

  /** The environment of its child, or of the next one. */
  get environment(): ChildEnvironment | undefined {
    return this.#record.environment;
  }

  /** The MCP servers that clients gave for its child, or for the next one. */
  get mcpServers(): ChildMcpServers {
    return this.#record.mcpServers;
  }

  /**
   * As {@link ChildSupervisor.startAgainWith}, unless others than `subscriberId` follow the session. Subscribers of the
   * same viewer do not count as others; if there are such, an idle child is started again even if nothing differs.
   */
  async startAgainWith(
    change: Omit<StartChange, "isReload">,
    { subscriberId, viewer }: { readonly subscriberId?: string | undefined; readonly viewer?: string | undefined },
  ): Promise<void> {
    const { subscriptions } = this.journal;
    const isAlone = (): boolean => !subscriptions.hasOthers(subscriberId, viewer);
    const isReload = viewer !== undefined && subscriptions.hasOthers(subscriberId) && isAlone();
    await this.supervisor.startAgainWith({ ...change, isReload }, isAlone);
  }

  /** `session_lost`, once its pi is lost and cannot be replaced. */
  get loss(): WireError | undefined {
    return this.#life.loss;
  }

  get runId(): string | undefined {
    return this.#life.runId;
  }

  /** The session as clients see it. */
  info(): SessionInfo {
    return this.row().info;
  }

  /** {@link info} with its JSON. The same object while nothing in it changes. */
  row(): SessionRow {
    const sources = this.#rowSources();
    if (this.#row?.isOf(sources) !== true) this.#row = new SessionRow(sources);
    return this.#row;
  }

  #rowSources(): RowSources {
    const { state, supervisor, journal, loss } = this;
    const { stored, model, thinkingLevel } = this.#record;
    const child = state.kind === "idle" || state.kind === "running" ? state.child : undefined;
    const control = this.control.state;
    return {
      stored,
      model,
      thinkingLevel,
      // A former daemon started it.
      environment: child?.restoredAt === undefined ? this.#record.environment : undefined,
      mcpServers: this.#record.mcpServers,
      isLost: loss !== undefined,
      state: state.kind,
      pid: child?.pid,
      restoredAt: child?.restoredAt,
      runId: state.kind === "running" ? state.runId : undefined,
      exit: state.kind === "crashed" || state.kind === "hibernated" ? state.exit : undefined,
      idleAfterMs: supervisor.hibernation.idleAfterMs,
      restarts: supervisor.restarts,
      silentSince: supervisor.silentSince,
      cursor: journal.cursor,
      epoch: journal.epoch,
      pendingDeliveries: this.#options.tracker.pending(this.sessionId),
      control: control.policy === "shared" && control.controller === undefined ? undefined : control,
      pendingDialogs: this.dialogs.summaries(),
      lostPrompts: this.prompts.ledger.lost,
      summary: this.#summary.current,
    };
  }

  /** As {@link Journal.subscribe}. */
  subscribe(subscriber: Subscriber, options: SubscribeOptions = {}): number {
    // What pi has written until now is not for a later subscriber.
    if (options.stderr === true) this.#stderr.look();
    const cursor = this.journal.subscribe(subscriber, options);
    if (options.stderr !== true || options.after !== 0) return cursor;
    const { whenAnswered = (then: () => void) => then() } = options;
    whenAnswered(() => this.#stderr.tellStart(subscriber.id));
    return cursor;
  }

  /** Assigns a subscriber to its client. Dialogs for its former id become open to all clients. */
  subscriberNamed(subscriberId: string, clientId: string): void {
    if (this.journal.subscriptions.named(subscriberId, clientId)) this.dialogs.ownersChanged();
  }

  unsubscribe(subscriberId: string): boolean {
    this.supervisor.hibernation.letGo(subscriberId);
    return this.journal.unsubscribe(subscriberId);
  }

  /** The session's current state, with the matching cursor. Throws `child_exited`. */
  snapshot(): Promise<SessionSnapshot> {
    return takeSnapshot({
      child: this.#life.child,
      file: this.file,
      info: () => this.info(),
      maxBytes: this.#options.maxSnapshotBytes,
    });
  }

  /** Reports a delivery to the session's subscribers. */
  deliveryChanged(delivery: Delivery): void {
    const { method, params } = deliveryUpdated(delivery);
    this.journal.say(method, params);
    this.events.emit("workChanged");
  }

  /** As {@link SessionCore.awake}. */
  awake(purpose?: StartPurpose): Promise<Child> {
    return this.#life.awake(purpose);
  }

  /** Resolves when no start is in progress, whatever its outcome. */
  startOver(): Promise<void> {
    return this.#life.startOver();
  }

  /** Resolves when no run is active. */
  settled(): Promise<void> {
    return this.#life.settled();
  }

  /** Resolves when the last child has been cleaned up. */
  cleaned(): Promise<void> {
    return this.#life.cleaned();
  }

  /**
   * Recovers after another daemon: goes on with its child, if that survived. Otherwise entries that the child had not
   * written are lost.
   */
  async recover(): Promise<void> {
    this.#summary.recover();
    await this.#restore.run();
  }

  /** Resolves when the session's record is on disk. */
  saved(): Promise<void> {
    return this.#record.saved();
  }

  /** As {@link SessionRecord.begun}. */
  begun(): Promise<void> {
    return this.#record.begun();
  }

  /**
   * Ends the child and keeps the session for a later daemon. An active run may finish within `drainMs`. Resolves when
   * the child has been cleaned up.
   */
  shutDown(drainMs: number): Promise<void> {
    return this.#shutdown.shutDown(drainMs);
  }

  /** Leaves the child to the next daemon, if it survives this one; otherwise as {@link shutDown}. */
  leave(drainMs: number): Promise<void> {
    return this.#shutdown.leave(drainMs);
  }

  /**
   * Ends the child and the session; its file is deleted if requested, or if it never got a message. Always returns
   * the same promise. Before a deletion it throws `session_in_use` and `session_file_unusable`; then the session is
   * unchanged.
   */
  close(how: "close" | "delete" = "close"): Promise<ChildExit | undefined> {
    return this.#shutdown.close(how);
  }

  /** Reloads the current file. Throws `session_busy`. */
  reload(): Promise<void> {
    return this.#shutdown.reload();
  }

  /** The session has ended, or was never created: stores and reports nothing more. */
  forget(): void {
    this.#record.close();
    this.journal.close();
    this.answers.forget();
    this.#summary.forget();
  }

  #publish(change: SessionChange = {}): void {
    // The cursor after the frame is the frame's own seq.
    const session = { ...this.info(), cursor: this.journal.cursor + 1 };
    this.journal.say("session/updated", { ...attributionOf(this.attribution.by), session, ...change });
  }
}

function queueOf(maxWaiting: number, events: SessionEmitter): SerialQueue {
  const onFull = (): WireError =>
    new WireError("overloaded", "Too many calls wait for this session.", { retryAfterMs: 1_000 });
  return new SerialQueue({ maxWaiting, onFull, onEmpty: () => events.emit("workChanged") });
}

function controlOf({ sessionId, record, journal, events }: SessionContext): Control {
  return new Control({
    sessionId,
    policy: record.stored.control ?? "shared",
    onPolicy: (policy) => record.governedBy(policy),
    say: (control, change, by) => {
      journal.say("session/controlChanged", { ...attributionOf(by), control, change });
      events.emit("controlChanged");
    },
    graceMs: limits.controlGraceMs,
  });
}

interface DialogParts {
  readonly registry: DialogRegistry;
  readonly journal: Journal;
  readonly life: ChildLife;
  readonly control: Control;
  readonly prompts: SessionPrompts;
  readonly tracker: DeliveryTracker;
}

function dialogsOf(
  { sessionId, record, events, log }: SessionContext,
  { registry, journal, life, control, prompts, tracker }: DialogParts,
): Dialogs {
  const { subscriptions } = journal;
  const { answerers } = registry;
  const dialogs = new Dialogs({
    sessionId,
    registry,
    policy: record.stored.dialogPolicy ?? defaultPolicy,
    clock: systemClock,
    say: (method, params) => journal.say(method, params),
    responders: (without) =>
      (without === undefined ? subscriptions.answerers : subscriptions.answerersWithout(without)) +
      answerers.count(record.stored, (id) => without?.has(id) === true || subscriptions.canAnswer(id)),
    canAnswer: (subscriberId) => subscriptions.canAnswer(subscriberId) || answerers.has(subscriberId, record.stored),
    owner: () => prompts.owner,
    isResponder: (clientId, without) =>
      (subscriptions.isAnswerer(clientId, without) || answerers.hasClient(clientId, record.stored, without)) &&
      control.allows(clientId),
    announce: (child, dialog) => {
      // A child that belongs to another session has other extensions.
      if (life.child !== child) return undefined;
      return life.child.link.send({ kind: "dialog", ...dialog, reason: "no_responder" }).then(
        () => {},
        (err: unknown) => log.warn({ err }, "cannot tell extensions that no client can answer a dialog"),
      );
    },
    toldId: (requestId) => {
      const told = journal.findSaid(
        "dialog/opened",
        ({ dialog }) => isRecord(dialog) && dialog["requestId"] === requestId,
      );
      return (told?.["dialog"] as Dialog | undefined)?.dialogId;
    },
    runId: () => life.runId,
    generation: () => record.stored.generation,
    child: () => life.child,
    onPending: () => events.emit("changed"),
    onRunWaits: (isWaiting) => tracker.runWaits(sessionId, isWaiting),
    log,
  });
  subscriptions.onAnswerers(() => dialogs.respondersChanged());
  events.on("controlChanged", () => dialogs.ownersChanged());
  events.on("stateChanged", ({ kind }) => {
    if (kind === "closing") dialogs.endAll("close");
  });
  return dialogs;
}

interface WorkParts {
  readonly life: ChildLife;
  readonly prompts: SessionPrompts;
  readonly pushing: Pushing;
}

function idlenessOf({ scope, events }: SessionContext, { life, prompts, pushing }: WorkParts): Idleness {
  const isIdle = (): boolean => {
    const { kind } = life.state;
    const isQuiet = kind === "idle" || kind === "hibernated" || kind === "crashed";
    return isQuiet && scope.isEmpty && prompts.isQuiet && !pushing.wantsChild;
  };
  const idleness = new Idleness(isIdle);
  events.on("workChanged", () => idleness.changed());
  events.on("stateChanged", () => idleness.changed());
  return idleness;
}
