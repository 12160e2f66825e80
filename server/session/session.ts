import type { By } from "../../protocol/client-identity.ts";
import type { Delivery } from "../../protocol/delivery.ts";
import { WireError } from "../../protocol/errors.ts";
import type { OutwardFrame } from "../../protocol/link.ts";
import type { ChildExit, LostPrompt, SessionInfo } from "../../protocol/session.ts";
import { limits } from "../config.ts";
import { within } from "../lib/deadline.ts";
import { SerialQueue } from "../lib/serial-queue.ts";
import type { Child, ChildSinks } from "../pi/child.ts";
import type { Hello } from "../pi/link.ts";
import { readyState } from "../pi/ready-state.ts";
import type { PiEvent } from "../pi/records.ts";
import type { RecordDiagnostic } from "../pi/router.ts";
import { removeIfEmpty } from "../pi/session-file.ts";
import type { StoredSession } from "../store/sessions.ts";
import { Attribution, changedBy } from "./attribution.ts";
import { ChildLife, type StartPurpose } from "./child-life.ts";
import { Control } from "./control.ts";
import { type Custody, custodyOf } from "./custody.ts";
import type { Dialogs } from "./dialogs.ts";
import { lossOf } from "./ephemeral.ts";
import { Journal, type SubscribeOptions } from "./journal.ts";
import { PiCalls } from "./pi-calls.ts";
import { type EventReaders, lookAt } from "./pi-events.ts";
import type { Prompting } from "./prompting.ts";
import { ProviderWatch } from "./provider-watch.ts";
import { Pushing } from "./pushing.ts";
import { Refill } from "./refill.ts";
import type { SessionCore } from "./session-core.ts";
import { dialogsOf } from "./session-dialogs.ts";
import { sessionInfo } from "./session-info.ts";
import type { SessionOptions } from "./session-options.ts";
import { SessionPrompts } from "./session-prompts.ts";
import { SessionRecord } from "./session-record.ts";
import type { SessionState } from "./session-state.ts";
import { SettlingGate } from "./settling-gate.ts";
import { signed } from "./signed.ts";
import { type SessionSnapshot, takeSnapshot } from "./snapshot.ts";
import type { Subscriber } from "./subscription.ts";
import { Succession } from "./succession.ts";
import { Upkeep } from "./upkeep.ts";

/**
 * A durable conversation: one pi session file for life. It outlives its children; the next prompt or push starts one.
 */
export class Session implements SessionCore {
  readonly scope: SerialQueue;
  readonly pushing: Pushing;
  readonly calls: PiCalls;
  readonly prompts: SessionPrompts;
  readonly upkeep: Upkeep;
  readonly control: Control;
  readonly attribution = new Attribution();
  readonly succession: Succession;
  readonly dialogs: Dialogs;
  readonly #options: SessionOptions;
  readonly #journal: Journal;
  readonly #record: SessionRecord;
  readonly #refill: Refill;
  /** The first child that this daemon starts. */
  readonly #firstGeneration: number;
  readonly #provider: ProviderWatch;
  readonly #life: ChildLife;
  readonly #custody: Custody;
  readonly #settling = new SettlingGate((frame) => this.#take(frame));
  readonly #readers: EventReaders = {
    runStarted: () => {
      this.runStarted();
      this.prompts.runs.agentIs("active");
    },
    agentEnded: () => this.prompts.runs.agentIs("done"),
    runSettled: (event) => this.prompts.settled(this.#life.child, event, (aborted) => this.#runSettled(aborted)),
    compacting: (isOn) => this.prompts.compacting(isOn),
    messageEnded: (event) => this.prompts.messageEnded(event),
    learned: (said) => {
      this.#record.take(said);
      this.#publish();
    },
    asked: (event) => this.dialogs.look(event),
  };
  #closed: Promise<ChildExit | undefined> | undefined;
  /** Resolves when everything is told of the last child's end. */
  #lastEnded: Promise<void> = Promise.resolve();

  constructor(options: SessionOptions) {
    this.#options = options;
    const { sessionId } = options.stored;
    this.#record = new SessionRecord(options.stored, options.save);
    this.#firstGeneration = options.stored.generation + 1;
    const eventLog = options.logs.open(sessionId, this.#record.numbers(options.flush));
    this.#journal = new Journal({ sessionId, epoch: this.#record.epoch, log: eventLog });
    this.#refill = new Refill({
      log: eventLog,
      record: (record) => this.#journal.record(record, Math.max(1, this.#record.stored.generation), false),
      maxBytes: options.maxRefillBytes,
      logger: options.log,
    });
    const { maxProviderBodyBytes: maxBodyBytes, log } = options;
    this.#provider = new ProviderWatch({ journal: this.#journal, maxBodyBytes, log });
    const branchOff = (leafId: string): Promise<string> => options.branchOff(this, leafId);
    this.#custody = custodyOf({ options, record: this.#record, journal: this.#journal, branchOff });
    this.scope = new SerialQueue({
      maxWaiting: options.maxWaitingCalls,
      onFull: () => new WireError("overloaded", "Too many calls wait for this session.", { retryAfterMs: 1_000 }),
      onEmpty: () => this.prompts.idleness.changed(),
    });
    this.control = new Control({
      sessionId,
      policy: options.stored.control ?? "shared",
      onPolicy: (policy) => this.#record.governedBy(policy),
      say: (control, change, by) => this.#journal.say("session/controlChanged", { ...signed(by), control, change }),
      graceMs: limits.controlGraceMs,
    });
    this.upkeep = new Upkeep({
      ...options,
      sessionId,
      scope: this.scope,
      life: () => this.#life,
      awake: () => this.awake(),
      pushing: () => this.pushing,
      reasons: [
        () => (this.#record.stored.ephemeral === true ? "ephemeral" : undefined),
        () => (this.dialogs.size > 0 ? "dialog" : undefined),
        () => (this.#journal.hasPending ? "background" : undefined),
      ],
      idleAfterMs: () => this.#record.stored.idleAfterMs ?? options.idleAfterMs,
      onChange: () => this.#publish(),
    });
    this.pushing = new Pushing(this, options.tracker, this.upkeep.retry, log);
    this.calls = new PiCalls(this, { ...options.calls, refresh: (child) => this.refresh(child) });
    const { prompts: store } = options;
    const onLost = (lost: readonly LostPrompt[]): void => this.#publish(lost);
    this.prompts = new SessionPrompts({ core: this, journal: this.#journal, store, pushing: this.pushing, onLost });
    this.#life = new ChildLife({
      runs: this.prompts.runs,
      start: (signal) => this.#start(signal),
      onReady: (child) => {
        this.#provider.attach(child);
        this.dialogs.childReady();
      },
      resume: (child, purpose) => this.pushing.resume(child, purpose === "prompt" ? "later" : "now"),
      leave: (end) => this.#leave(end),
      onEnded: (child, exit, hadRun) => {
        this.#lastEnded = this.#childEnded(child, exit, hadRun);
      },
      onChange: () => {
        this.#record.touch();
        this.#publish();
        this.prompts.idleness.changed();
      },
      log,
    });
    const [record, journal, life] = [this.#record, this.#journal, this.#life];
    this.dialogs = dialogsOf({ options, record, journal, life, onPending: () => this.#publish() });
    this.succession = new Succession({
      record: this.#record,
      journal: this.#journal,
      life: this.#life,
      custody: this.#custody,
      sinks: (generation) => this.#sinks(generation),
      childEnded: (child, exit) => void this.#childEnded(child, exit, false),
      refresh: (child) => this.refresh(child),
      resume: (child) => this.#resume(child),
      wake: () => void (this.pushing.wantsChild && this.pushing.handOver()),
      log,
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

  /** `session_lost`, once it has lost its pi and cannot have another. */
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
      upkeep: this.upkeep.facts(),
      cursor: this.#journal.cursor,
      epoch: this.#journal.epoch,
      pendingDeliveries: this.#options.tracker.pending(this.sessionId),
      control: this.control.state,
      pendingDialogs: this.dialogs.summaries(),
      lostPrompts: this.prompts.ledger.lost,
    });
  }

  /** What the session tells, and who hears it. */
  get journal(): Journal {
    return this.#journal;
  }

  /** As {@link Journal.subscribe}. */
  subscribe(subscriber: Subscriber, options?: SubscribeOptions): number {
    return this.#journal.subscribe(subscriber, options);
  }

  unsubscribe(subscriberId: string): boolean {
    this.upkeep.hibernation.letGo(subscriberId);
    return this.#journal.unsubscribe(subscriberId);
  }

  /** The session as it is, with the cursor of that moment. Throws `child_exited`. */
  snapshot(): Promise<SessionSnapshot> {
    return takeSnapshot({
      child: this.#life.child,
      file: this.file,
      info: () => this.info(),
      maxBytes: this.#options.maxSnapshotBytes,
    });
  }

  /** Tells the session's subscribers of a delivery. */
  deliveryChanged(delivery: Delivery): void {
    this.#journal.say("delivery/updated", { ...signed(changedBy(delivery)), delivery });
    this.prompts.idleness.changed();
  }

  async awake(purpose: StartPurpose = "work"): Promise<Child> {
    if (this.loss !== undefined) throw this.loss;
    const { child } = this.#life;
    if (child !== undefined && this.runId === undefined) {
      const found = await this.#custody.check(child);
      if (found !== "ready") await this.#life.endChild();
      if (found instanceof WireError) throw found;
    }
    return await this.#life.awake(purpose);
  }

  startOver(): Promise<void> {
    return this.#life.startOver();
  }

  runStarted(promptId?: string): string {
    const starter = this.prompts.starter(promptId);
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

  /** Reads pi's state again after something that may have changed it. */
  async refresh(child: Child): Promise<void> {
    this.#record.take(readyState((await child.send({ type: "get_state" })).data));
    this.#publish();
  }

  /** A daemon has ended and another began: what the child of the former had not written is lost. */
  async recover(): Promise<void> {
    this.prompts.recover();
    this.dialogs.recover();
    await this.#recount(Date.now());
    if (this.#journal.lost !== undefined) await this.#refill.run(this.file);
    if (this.#record.stored.fileMark?.isOpen === true) await this.#leave(() => this.#custody.orphaned());
  }

  /** Resolves when the session's record is on disk. */
  saved(): Promise<void> {
    return this.#record.saved();
  }

  /**
   * Ends the child and keeps the session for a later daemon. A run that is on may come to its end within `drainMs`.
   * Resolves when nothing of the child is left.
   */
  async shutDown(drainMs: number): Promise<void> {
    await this.#refuseStarts(new WireError("shutting_down", "The daemon is about to end."));
    if (this.runId !== undefined) await within(this.settled(), drainMs);
    this.dialogs.endAll("hibernate");
    await this.#life.endChild();
    await this.#custody.idle();
    await this.#lastEnded;
    await this.#journal.rest();
  }

  /**
   * Ends the child and the session; its file is deleted with it, or only if it never got a message. Always the same
   * promise. Before it deletes it throws `session_in_use` and `session_file_unusable`; the session is as before then.
   */
  close(how: "close" | "delete" = "close"): Promise<ChildExit | undefined> {
    this.#closed ??= this.#close(how);
    return this.#closed;
  }

  async #close(how: "close" | "delete"): Promise<ChildExit | undefined> {
    if (how === "close") return await this.#end();
    const remove = await this.#custody.toRemove(this.#record.stored.generation).catch((error: unknown) => {
      this.#closed = undefined;
      throw error;
    });
    return await this.#end().finally(remove);
  }

  async #end(): Promise<ChildExit | undefined> {
    const why = new WireError("session_closed", `The session ${this.sessionId} is closed.`);
    this.prompts.close(why);
    this.control.close();
    await this.#refuseStarts(why);
    this.dialogs.endAll("close");
    return await this.#leave(() =>
      this.#life.close(async () => {
        this.#options.tracker.applyToAll(this.sessionId, { kind: "sessionClosed", at: Date.now() });
        await this.#options.tracker.told();
      }),
    );
  }

  /** Goes on with the file as it is now. Throws `session_busy`. */
  async reload(): Promise<void> {
    await this.scope.run(async () => {
      if (this.runId !== undefined) throw new WireError("session_busy", "The session is busy (a run is on).");
      await this.#life.endChild();
      await this.#custody.idle();
      this.#custody.forget();
    });
  }

  /** Ends the child by `end`. An own file that never got a message goes with it. */
  #leave<T>(end: () => Promise<T>): Promise<T> {
    return this.#custody.with(this.#record.stored.generation, end, async () => {
      if (this.#record.stored.isOpened !== true && (await removeIfEmpty(this.file))) this.#custody.forget();
    });
  }

  async #refuseStarts(why: WireError): Promise<void> {
    this.upkeep.retry.close();
    await this.#life.refuseStarts(why);
  }

  async #start(signal: AbortSignal): Promise<Child> {
    await this.#custody.begin(this.#record.stored.generation + 1);
    const generation = this.#record.nextGeneration();
    this.dialogs.childStarting();
    try {
      const { child, ready } = await this.#options.start(this.#record.stored, { signal, ...this.#sinks(generation) });
      this.#custody.started(child, generation);
      this.#record.take(ready);
      // The child of a daemon that was killed may have written to the very last.
      if (this.#journal.lost !== undefined && generation === this.#firstGeneration) await this.#refill.run(this.file);
      return child;
    } catch (error) {
      await this.#custody.notStarted();
      throw error;
    }
  }

  #sinks(generation: number): ChildSinks {
    return {
      onEvent: (record, event) => this.#event(generation, record, event),
      onFrame: (frame) => this.#frame(generation, frame),
      onDiagnostic: (diagnostic) => this.#diagnostic(generation, diagnostic),
    };
  }

  #event(generation: number, record: Buffer, event: PiEvent | undefined): void {
    this.#journal.record(record, generation, event === undefined);
    if (event === undefined) return;
    this.#refill.note(event);
    this.#provider.look(event);
    lookAt(event, this.#readers);
  }

  #runSettled(aborted: boolean | undefined): void {
    this.dialogs.runSettled(this.runId);
    if (!this.#life.runSettled(aborted)) return;
    this.#settling.open();
    const { child } = this.#life;
    if (child !== undefined) this.#custody.settled(child);
  }

  #frame(generation: number, frame: OutwardFrame): void {
    if (generation === this.#record.stored.generation) this.#settling.pass(frame, this.runId !== undefined);
  }

  #take(frame: OutwardFrame): void {
    this.#options.tracker.receive(this.sessionId, frame);
    this.#provider.receive(frame);
    if (frame.kind === "settled" && !frame.aborted) this.prompts.queueSettled();
    if (frame.kind === "fault") {
      this.#options.log.error({ where: frame.where, fault: frame.error }, "a part of the helper failed");
    }
    if (frame.kind === "pending") this.#journal.pending(frame.pending);
    if (frame.kind === "hello") this.#hello(frame);
  }

  /** A hello behind the first: the session inside pi was reloaded, and the helper's list with it, or is another one. */
  #hello(hello: Hello): void {
    const { child, isEnding } = this.#life;
    if (child === undefined) return;
    const { sessionFile } = hello;
    if (sessionFile === undefined || sessionFile === this.file) this.#resume(child);
    // Of what ends now nothing goes on.
    else if (!isEnding) this.#options.succeed(this, child, hello, sessionFile);
  }

  #resume(child: Child): void {
    this.scope
      .run(() => this.pushing.resume(child, "now"))
      .catch((error: unknown) => {
        this.#options.log.warn({ err: error }, "held pushes could not be brought to the helper");
      });
  }

  #diagnostic(generation: number, diagnostic: RecordDiagnostic): void {
    const { kind, bytes } = diagnostic;
    this.#options.log.warn({ generation, kind, bytes }, "pi wrote a record that could not be passed on as it is");
    const event = { type: "rpcd_diagnostic", ...diagnostic };
    this.#journal.say("session/event", { generation, event });
  }

  async #childEnded(child: Child, exit: ChildExit, hadRun: boolean): Promise<void> {
    this.#settling.open();
    this.#provider.childEnded(child, exit.at);
    this.dialogs.childEnded(child);
    this.#journal.pending([]);
    await this.#recount(exit.at);
    if (!exit.expected) await this.#refill.run(this.file);
    this.upkeep.childEnded(exit, hadRun);
    if (exit.expected) await this.#journal.rest();
  }

  /** What a child that has ended leaves undecided: its deliveries and its prompts. */
  async #recount(at: number): Promise<void> {
    try {
      const kind = this.#record.stored.ephemeral === true ? "sessionLost" : "childEnded";
      this.#options.tracker.applyToAll(this.sessionId, { kind, at });
      await this.prompts.childEnded();
    } catch (error) {
      this.#options.log.error({ err: error }, "what an ended child has left could not be counted");
    }
  }

  #publish(lostPrompts?: readonly LostPrompt[]): void {
    // The frame's own seq is the cursor behind it.
    const session = { ...this.info(), cursor: this.#journal.cursor + 1 };
    const lost = lostPrompts === undefined ? {} : { lostPrompts };
    this.#journal.say("session/updated", { ...signed(this.attribution.by), session, ...lost });
    this.#options.onChange();
  }
}
