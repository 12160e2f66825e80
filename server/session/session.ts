import type { By } from "../../protocol/client-identity.ts";
import type { Delivery } from "../../protocol/delivery.ts";
import { WireError } from "../../protocol/errors.ts";
import type { ChildExit, LostPrompt, SessionInfo } from "../../protocol/session.ts";
import { CachedAnswers } from "../children/cached-answers.ts";
import { ChildLife } from "../children/child-life.ts";
import { ChildReports } from "../children/child-reports.ts";
import { ChildShutdown } from "../children/child-shutdown.ts";
import type { ChildSupervisor } from "../children/child-supervisor.ts";
import { PiCalls } from "../children/pi-calls.ts";
import { SessionCosts } from "../context/cost/session-costs.ts";
import { PartCalls } from "../context/part-calls.ts";
import type { SessionContext } from "../context/session-context.ts";
import { Attribution, attributionOf, changedBy } from "../core/attribution.ts";
import type { Control } from "../core/control.ts";
import type { SessionCore, StartPurpose } from "../core/session-core.ts";
import { sessionInfo } from "../core/session-info.ts";
import { SessionRecord } from "../core/session-record.ts";
import type { SessionState } from "../core/session-state.ts";
import { type Custody, custodyOf } from "../custody/custody.ts";
import { lossOf } from "../custody/ephemeral.ts";
import { Succession } from "../custody/succession.ts";
import { Pushing } from "../delivery/pushing.ts";
import type { Dialogs } from "../dialogs/dialogs.ts";
import type { SerialQueue } from "../lib/serial-queue.ts";
import { EventBackfill } from "../log/event-backfill.ts";
import { Journal, type SubscribeOptions } from "../log/journal.ts";
import { ProviderWatch } from "../log/provider-watch.ts";
import { type SessionSnapshot, takeSnapshot } from "../log/snapshot.ts";
import type { Subscriber } from "../log/subscription.ts";
import type { Child } from "../pi/child.ts";
import { readyState } from "../pi/ready-state.ts";
import type { Prompting } from "../prompts/prompting.ts";
import { SessionPrompts } from "../prompts/session-prompts.ts";
import type { StoredSession } from "../store/sessions.ts";
import { dialogsOf } from "./session-dialogs.ts";
import type { SessionOptions } from "./session-options.ts";
import { contextOf, controlOf, queueOf, recount, resumeIn, supervisorOf } from "./session-parts.ts";

/**
 * A durable conversation: one pi session file for its lifetime. It survives its children; the next prompt or push
 * starts one.
 */
export class Session implements SessionCore {
  readonly scope: SerialQueue;
  readonly pushing: Pushing;
  readonly calls: PiCalls;
  readonly parts: PartCalls;
  readonly answers: CachedAnswers;
  readonly costs: SessionCosts;
  readonly prompts: SessionPrompts;
  readonly supervisor: ChildSupervisor;
  readonly control: Control;
  readonly attribution = new Attribution();
  readonly succession: Succession;
  readonly dialogs: Dialogs;
  readonly context: SessionContext;
  readonly #options: SessionOptions;
  readonly #journal: Journal;
  readonly #record: SessionRecord;
  readonly #backfill: EventBackfill;
  /** The first child that this daemon starts. */
  readonly #firstGeneration: number;
  readonly #provider: ProviderWatch;
  readonly #life: ChildLife;
  readonly #custody: Custody;
  readonly #reports: ChildReports;
  readonly #shutdown: ChildShutdown;
  /** Resolves when the end of the last child has been reported in full. */
  #lastEnded: Promise<void> = Promise.resolve();

  constructor(options: SessionOptions) {
    this.#options = options;
    const { sessionId, generation } = options.stored;
    this.#record = new SessionRecord(options.stored, options.save);
    this.#firstGeneration = generation + 1;
    const { epoch } = this.#record;
    const eventLog = options.logs.open(sessionId, epoch, this.#record.numbers(options.flush));
    const onFault = (err: unknown, subscriberId: string): void =>
      options.log.error({ err, subscriberId }, "a subscriber failed and was removed");
    this.#journal = new Journal({ sessionId, epoch, log: eventLog, onFault });
    const { maxProviderBodyBytes: maxBodyBytes, maxRefillBytes: maxBytes, log } = options;
    const record = (entry: Buffer) => this.#journal.record(entry, Math.max(1, this.#record.stored.generation), false);
    this.#backfill = new EventBackfill({ log: eventLog, record, maxBytes, logger: log });
    this.#provider = new ProviderWatch({ journal: this.#journal, maxBodyBytes, log });
    const made = { options, record: this.#record, journal: this.#journal };
    const contextLost = (): void => void this.#life.startOver().then(() => options.abandon(this));
    this.context = contextOf(made, () => this.#publish({ restored: true }), contextLost);
    this.#custody = custodyOf({ ...made, branchOff: (leafId) => options.branchOff(this, leafId) });
    this.scope = queueOf(options, () => this.prompts.idleness.changed());
    this.control = controlOf(made, () => this.dialogs.ownersChanged());
    this.supervisor = supervisorOf(made, this, {
      life: () => this.#life,
      onChange: () => this.#publish(),
      beforeEnd: (child) => this.answers.ask(child),
    });
    this.pushing = new Pushing(this, options.tracker, this.supervisor.retry, log);
    this.calls = new PiCalls(this, { ...options.calls, refresh: (child) => this.refresh(child) });
    this.parts = new PartCalls(this, {
      ...{ ...options.child, ...options.parts, ...made, log },
      by: () => this.attribution.by,
    });
    this.answers = new CachedAnswers({ ...options.answers, record: this.#record, parts: this.parts, log });
    this.costs = new SessionCosts(this, { record: this.#record, parts: this.parts, log });
    this.prompts = new SessionPrompts({
      ...{ core: this, journal: this.#journal, store: options.prompts, pushing: this.pushing, costs: this.costs },
      onLost: (lostPrompts) => this.#publish({ lostPrompts }),
    });
    this.#life = new ChildLife({
      runs: this.prompts.runs,
      startRate: options.rates,
      start: (signal, onPi) => this.#start(signal, onPi),
      onReady: (child) => {
        this.#provider.attach(child);
        this.dialogs.childReady();
        this.parts.tools.look(child);
      },
      resume: (child, purpose) => this.pushing.resume(child, purpose === "prompt" ? "later" : "now"),
      leave: (end) => {
        // From here on pi cannot receive answers.
        this.dialogs.endAll("hibernate");
        return this.#shutdown.leave(end);
      },
      onEnded: (child, exit, hadRun) => {
        this.#lastEnded = this.#childEnded(child, exit, hadRun);
      },
      onChange: () => {
        this.#record.touch();
        this.#publish();
        const { kind } = this.#life.state;
        if (kind === "closing") this.dialogs.endAll("close");
        if (kind === "hibernated" || kind === "crashed") this.answers.save();
        this.prompts.idleness.changed();
      },
      log,
    });
    const own = { record: this.#record, journal: this.#journal, life: this.#life, custody: this.#custody };
    this.dialogs = dialogsOf({
      options,
      ...own,
      control: this.control,
      owner: () => this.prompts.owner,
      onPending: () => this.#publish(),
    });
    const { prompts, dialogs, control, supervisor, scope } = this;
    const parts = { ...own, prompts, dialogs, control, supervisor, scope, tracker: options.tracker, log };
    this.#reports = new ChildReports({
      ...parts,
      parts: this.parts,
      costs: this.costs,
      backfill: this.#backfill,
      provider: this.#provider,
      runStarted: () => void this.runStarted(),
      publish: () => this.#publish(),
      resume: (child) => resumeIn(this, child, log),
      succeed: (child, hello, file) => options.succeed(this, child, hello, file),
    });
    this.#shutdown = new ChildShutdown({
      ...parts,
      lastEnded: () => this.#lastEnded,
      beforeEnd: (child) => this.answers.ask(child),
    });
    this.succession = new Succession({
      ...{ ...parts, startTimeoutMs: options.child.startTimeoutMs, maxHeldBytes: options.child.maxRecordBytes },
      sinks: (generation) => this.#reports.sinks(generation),
      childEnded: (child, exit) => void this.#childEnded(child, exit, false),
      refresh: (child) => this.refresh(child),
      resume: (child) => {
        this.parts.took(child);
        resumeIn(this, child, log);
      },
      wake: () => void (this.pushing.wantsChild && this.pushing.handOver()),
    });
  }

  get prompting(): Prompting {
    return this.prompts.prompting;
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

  /** `session_lost`, once its pi is lost and cannot be replaced. */
  get loss(): WireError | undefined {
    return lossOf(this.#record.stored, this.state);
  }

  get runId(): string | undefined {
    return this.#life.runId;
  }

  get runsStarted(): number {
    return this.#life.runsStarted;
  }

  info(): SessionInfo {
    return sessionInfo({
      facts: this.#record.facts(),
      state: this.#life.state,
      isLost: this.loss !== undefined,
      supervisor: this.supervisor.facts(),
      cursor: this.#journal.cursor,
      epoch: this.#journal.epoch,
      pendingDeliveries: this.#options.tracker.pending(this.sessionId),
      control: this.control.state,
      pendingDialogs: this.dialogs.summaries(),
      lostPrompts: this.prompts.ledger.lost,
    });
  }

  /** The session's notifications and subscribers. */
  get journal(): Journal {
    return this.#journal;
  }

  /** As {@link Journal.subscribe}. */
  subscribe(subscriber: Subscriber, options?: SubscribeOptions): number {
    return this.#journal.subscribe(subscriber, options);
  }

  /** Assigns a subscriber to its client. Dialogs for its former id become open to all clients. */
  subscriberNamed(subscriberId: string, clientId: string): void {
    if (this.#journal.subscriptions.named(subscriberId, clientId)) this.dialogs.ownersChanged();
  }

  unsubscribe(subscriberId: string): boolean {
    this.supervisor.hibernation.letGo(subscriberId);
    return this.#journal.unsubscribe(subscriberId);
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
    this.#journal.say("delivery/updated", { ...attributionOf(changedBy(delivery)), delivery });
    this.prompts.idleness.changed();
  }

  async awake(purpose: StartPurpose = "work"): Promise<Child> {
    if (this.loss !== undefined) throw this.loss;
    const { child } = this.#life;
    if (child !== undefined && this.runId === undefined && purpose !== "reading") {
      const found = await this.#custody.check(child);
      if (found !== "ready") await this.#life.endChild();
      if (found instanceof WireError) throw found;
    }
    return await this.#life.awake(purpose);
  }

  startOver(): Promise<void> {
    return this.#life.startOver();
  }

  runStarted(promptId?: string, by?: By): string {
    const starter = by === undefined ? this.prompts.starter(promptId) : { by };
    const runId = this.attribution.during(starter?.by, () => this.#life.runStarted(starter));
    if (promptId !== undefined) this.prompts.runs.took(promptId);
    return runId;
  }

  abortSent(by?: By): void {
    this.prompts.runs.abortSent(by);
  }

  nextRun(): Promise<void> {
    return this.#life.nextRun();
  }

  settled(): Promise<void> {
    return this.#life.settled();
  }

  cleaned(): Promise<void> {
    return this.#life.cleaned();
  }

  /** Reads pi's state again after a possible change. */
  async refresh(child: Child): Promise<void> {
    this.#record.take(readyState((await child.send({ type: "get_state" })).data));
    this.#publish();
  }

  /** Recovers after another daemon: entries that its child had not written are lost. */
  async recover(): Promise<void> {
    this.prompts.recover();
    this.dialogs.recover();
    await recount(this, this.#record, this.#options, Date.now());
    if (this.#journal.lost !== undefined) await this.#backfill.run(this.file);
    if (this.#record.stored.fileMark?.isOpen === true) await this.#shutdown.leave(() => this.#custody.orphaned());
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

  async #start(signal: AbortSignal, onPi: () => void): Promise<Child> {
    await this.#custody.begin(this.#record.stored.generation + 1);
    const generation = this.#record.nextGeneration();
    this.dialogs.childStarting();
    try {
      const sinks = this.#reports.sinks(generation);
      const { child, ready } = await this.#options.start(this.#record.stored, { signal, onPi, ...sinks });
      await this.context.give(child, generation, signal);
      this.#custody.started(child, generation);
      this.#record.take(ready);
      // The child of a killed daemon may have written until the end.
      if (this.#journal.lost !== undefined && generation === this.#firstGeneration) await this.#backfill.run(this.file);
      return child;
    } catch (error) {
      await this.#custody.notStarted();
      throw error;
    }
  }

  async #childEnded(child: Child, exit: ChildExit, hadRun: boolean): Promise<void> {
    this.#reports.childEnded();
    this.#provider.childEnded(child, exit.at);
    this.dialogs.childEnded(child);
    this.#journal.pending([]);
    await recount(this, this.#record, this.#options, exit.at);
    if (!exit.expected) await this.#backfill.run(this.file);
    this.supervisor.childEnded(exit, hadRun);
    if (exit.expected) await this.#journal.rest();
  }

  #publish(more: { readonly lostPrompts?: readonly LostPrompt[]; readonly restored?: true } = {}): void {
    // The cursor after the frame is the frame's own seq.
    const session = { ...this.info(), cursor: this.#journal.cursor + 1 };
    this.#journal.say("session/updated", { ...attributionOf(this.attribution.by), session, ...more });
    this.#options.onChange();
  }
}
