import type { OutwardFrame } from "../../protocol/link-outward.ts";
import { isRecord } from "../../protocol/objects.ts";
import type { SessionCosts } from "../context/cost/session-costs.ts";
import type { PartCalls } from "../context/part-calls.ts";
import type { ChildEnded, SessionContext } from "../core/session-context.ts";
import type { Custody } from "../custody/custody.ts";
import { isInMemoryAlone } from "../custody/ephemeral.ts";
import { deliveryUpdated } from "../delivery/delivery-notifier.ts";
import type { Pushing } from "../delivery/pushing.ts";
import type { DeliveryTracker } from "../delivery/tracker.ts";
import type { Dialogs } from "../dialogs/dialogs.ts";
import type { EventBackfill } from "../log/event-backfill.ts";
import type { Journal } from "../log/journal.ts";
import type { ProviderWatch } from "../log/provider-watch.ts";
import type { StderrWatch } from "../log/stderr-watch.ts";
import type { Child } from "../pi/child.ts";
import type { Hello } from "../pi/link.ts";
import type { ReadyState } from "../pi/ready-state.ts";
import type { PiEvent } from "../pi/records.ts";
import type { RecordDiagnostic } from "../pi/router.ts";
import { queuedTexts } from "../prompts/queued-texts.ts";
import type { SessionPrompts } from "../prompts/session-prompts.ts";
import type { ChildPlace } from "../store/children.ts";
import { ChildKeeping } from "./child-keeping.ts";
import type { ChildLife } from "./child-life.ts";
import type { ChildSupervisor } from "./child-supervisor.ts";
import type { Survival } from "./survival.ts";

export interface ChildReportsParts {
  readonly journal: Journal;
  readonly backfill: EventBackfill;
  readonly provider: ProviderWatch;
  readonly stderr: StderrWatch;
  readonly prompts: SessionPrompts;
  readonly dialogs: Dialogs;
  readonly life: ChildLife;
  readonly custody: Custody;
  readonly tracker: DeliveryTracker;
  readonly pushing: Pushing;
  readonly supervisor: ChildSupervisor;
  /** Receives reports of the parts inside pi. */
  readonly parts: PartCalls;
  readonly costs: SessionCosts;
  /** Default: children end with their daemon. */
  readonly survival?: Survival | undefined;
}

/** Passes the reports of a session's child to the parts of the session, in a fixed order. */
export class ChildReports {
  readonly #session: SessionContext;
  readonly #parts: ChildReportsParts;
  readonly #settling = new SettlingGate(
    (frame) => this.#take(frame),
    (isHolding) => (isHolding ? this.#keeping?.hold() : this.#keeping?.release()),
  );
  /** Keeps the session's child for the next daemon, if it survives this one. */
  #keeping: ChildKeeping | undefined;
  #left: ChildPlace | undefined;
  #onReplayed = (): void => {};
  #ended: Promise<void> = Promise.resolve();

  constructor(session: SessionContext, parts: ChildReportsParts) {
    this.#session = session;
    this.#parts = parts;
    const { events } = session;
    const { dialogs, provider, stderr } = parts;
    events.on("childStarting", () => dialogs.childStarting());
    events.on("childReady", (child) => {
      this.#keep(child);
      provider.attach(child);
      stderr.attach(child);
      dialogs.childReady();
      parts.parts.tools.look(child);
    });
    events.on("handled", (generation) => {
      if (generation !== this.#generation) return;
      this.#keeping?.handled();
      stderr.look();
    });
    events.on("childChanged", () => this.#renew());
    events.on("reportsHeld", (isHolding) => this.#keeping?.reportsHeld(isHolding));
    events.on("renumbered", () => this.#keeping?.renumbered());
    events.on("unwritten", () => this.#keeping?.unwritten());
    events.on("record", (generation, record, event, isDelta) => this.#record(generation, record, event, isDelta));
    events.on("frame", (generation, frame) => this.#frame(generation, frame));
    events.on("diagnostic", (generation, diagnostic) => this.#diagnostic(generation, diagnostic));
    events.on("childLeaving", () => dialogs.endAll("hibernate"));
    events.on("childEnded", (end) => {
      this.#ended = this.#childEnded(end);
    });
  }

  /** The child that is ready next was left by a former daemon here. `onReplayed`: its output is no longer a repetition. */
  goOnFrom(left: ChildPlace, onReplayed: () => void): void {
    this.#left = left;
    this.#onReplayed = onReplayed;
  }

  /** pi may have settled before the child was left, and no run had ended for that. */
  settledBefore(event: PiEvent): void {
    const { prompts, life } = this.#parts;
    prompts.settled(life.child, event, (aborted) => this.#runSettled(aborted));
  }

  /** Resolves when the end of the last child has been reported in full. */
  get ended(): Promise<void> {
    return this.#ended;
  }

  /** The session's child ended with a former daemon; entries that it had not written are lost. */
  async recover(): Promise<void> {
    const { prompts, dialogs, backfill } = this.#parts;
    prompts.runs.recover();
    dialogs.recover();
    await this.#account(Date.now());
    await backfill.runIfLost(this.#session.record.stored.file);
  }

  #record(generation: number, record: Buffer, event: PiEvent | undefined, isDelta: boolean): void {
    const { journal, backfill, provider, prompts } = this.#parts;
    if (!isDelta && generation === this.#generation) this.#keeping?.note(record);
    const isNews = event !== undefined && !this.#isKnown(generation);
    journal.record(record, generation, isDelta, event, isNews ? prompts.originOf(event) : undefined);
    if (!isNews) return;
    backfill.note(event);
    provider.look(event);
    this.#event(event);
  }

  #event(event: PiEvent): void {
    const { prompts, life, dialogs, costs } = this.#parts;
    switch (event.type) {
      case "agent_start":
        life.runStarted();
        prompts.runs.agentIs("active");
        break;
      case "agent_end":
        prompts.runs.agentIs("done");
        break;
      case "agent_settled":
        prompts.settled(life.child, event, (aborted) => this.#runSettled(aborted));
        break;
      case "compaction_start":
      case "compaction_end":
        prompts.compacting(event.type === "compaction_start");
        if (isRecord(event["result"])) prompts.compacted();
        break;
      case "message_end":
        prompts.messageEnded(event);
        break;
      case "queue_update":
        prompts.ledger.queueChanged(queuedTexts(event));
        break;
      case "entry_appended":
        costs.entryAppended(event);
        break;
      case "session_info_changed":
        this.#learned({ sessionName: textOf(event["name"]) });
        break;
      case "thinking_level_changed":
        this.#learned({ thinkingLevel: textOf(event["level"]) });
        break;
      case "extension_ui_request":
        dialogs.look(event);
        break;
      default:
    }
  }

  /** pi reported part of its own state. */
  #learned(said: Partial<ReadyState>): void {
    const { record, events } = this.#session;
    record.take(said);
    events.emit("changed");
  }

  #runSettled(aborted: boolean | undefined): void {
    const { dialogs, life, custody } = this.#parts;
    dialogs.runSettled(life.runId);
    if (!life.runSettled(aborted)) return;
    this.#settling.open();
    const { child } = life;
    if (child !== undefined) custody.settled(child);
  }

  /** Whether a former daemon has done what the record under way requires. */
  #isKnown(generation: number): boolean {
    return generation === this.#generation && this.#keeping?.isKnown === true;
  }

  get #generation(): number {
    return this.#session.record.stored.generation;
  }

  #frame(generation: number, frame: OutwardFrame): void {
    const { life } = this.#parts;
    const isCurrent = generation === this.#generation;
    if (isCurrent && !this.#isKnown(generation)) this.#settling.pass(frame, life.runId !== undefined);
  }

  #take(frame: OutwardFrame): void {
    const { tracker, provider, prompts, journal, parts } = this.#parts;
    tracker.receive(this.#session.sessionId, frame);
    provider.receive(frame);
    if (frame.kind === "settled" && !frame.aborted) prompts.queueSettled();
    if (frame.kind === "fault") parts.failed(frame);
    if (frame.kind === "notice") parts.noticed(frame);
    if (frame.kind === "debug") parts.said(frame);
    if (frame.kind === "reload") parts.reload();
    if (frame.kind === "pending") journal.pending(frame.pending);
    if (frame.kind === "formerText") journal.tellFormerText(frame);
    if (frame.kind === "hello") this.#hello(frame);
  }

  #renew(): void {
    const { life, survival } = this.#parts;
    const { child } = life;
    if (child === undefined || this.#keeping?.isOf(child) !== true) return;
    this.#keeping.renew(survival?.factsOf(child, this.#session.sessionId, this.#generation));
  }

  /**
   * A later hello: the session inside pi was reloaded, and the helper lost its list, or pi switched to another
   * session.
   */
  #hello(hello: Hello): void {
    const { child, isEnding } = this.#parts.life;
    if (child === undefined) return;
    this.#renew();
    const { sessionFile } = hello;
    const { record, events } = this.#session;
    if (sessionFile === undefined || sessionFile === record.stored.file) void this.#parts.pushing.resume(child);
    // Work in progress has ended.
    else if (!isEnding) {
      // Until the other session has the child, the next daemon begins with this hello.
      this.#keeping?.hold();
      events.emit("sessionSwitched", child, hello, sessionFile);
    }
  }

  #diagnostic(generation: number, diagnostic: RecordDiagnostic): void {
    if (this.#isKnown(generation)) return;
    const { journal, log } = this.#session;
    const { kind, bytes } = diagnostic;
    log.warn({ generation, kind, bytes }, "pi wrote a record that cannot be forwarded unchanged");
    journal.say("session/event", { generation, event: { type: "rpcd_diagnostic", ...diagnostic } });
  }

  async #childEnded({ child, exit, hadRun }: ChildEnded): Promise<void> {
    const { provider, stderr, dialogs, journal, backfill, supervisor } = this.#parts;
    if (this.#keeping?.isOf(child) === true)
      journal.cannotContinue("The child ended before it had repeated its output.");
    // Frames that waited for the run to settle.
    this.#settling.open();
    provider.childEnded(child, exit.at);
    stderr.childEnded(child);
    dialogs.childEnded(child);
    journal.childEnded();
    await this.#account(exit.at);
    if (!exit.expected) await backfill.run(this.#session.record.stored.file);
    await this.#endKeeping(child);
    supervisor.childEnded(exit, hadRun, child.retires !== undefined);
    if (exit.expected) await journal.rest();
  }

  /** Only now the next daemon need not look at what the child has left. */
  async #endKeeping(child: Child): Promise<void> {
    const keeping = this.#keeping;
    if (keeping?.isOf(child) === true) {
      this.#keeping = undefined;
      await keeping.end().catch(() => {});
    }
    if (child.state.kind === "exited") child.removeFiles();
  }

  #keep(child: Child): void {
    const { survival, prompts, dialogs, tracker, journal } = this.#parts;
    const { sessionId, record } = this.#session;
    if (survival === undefined || child.keeper === undefined) return;
    const { keeper } = child;
    const facts = survival.factsOf(child, sessionId, record.stored.generation);
    if (facts === undefined) return;
    const left = this.#left;
    this.#left = undefined;
    this.#keeping = new ChildKeeping({
      ...{ child, keeper, facts, journal, store: survival.store, left },
      owed: () => [...tracker.unreported(sessionId).map(deliveryUpdated), ...prompts.owed, ...dialogs.owed],
      answers: () => dialogs.answers,
      onReplayed: () => this.#onReplayed(),
    });
  }

  /** Decides the deliveries and prompts that an ended child left open. */
  async #account(at: number): Promise<void> {
    const { sessionId, record, log } = this.#session;
    const { tracker, prompts } = this.#parts;
    try {
      tracker.applyToAll(sessionId, { kind: isInMemoryAlone(record.stored) ? "sessionLost" : "childEnded", at });
      await prompts.childEnded();
    } catch (error) {
      log.error({ err: error }, "cannot account for the prompts and deliveries of an ended child");
    }
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/**
 * Delays the helper's frames from its `settled` until pi's own `agent_settled`, a moment later. Otherwise clients
 * could hear of a parked push while the session still refuses prompts. The order of frames does not change.
 */
class SettlingGate {
  readonly #take: (frame: OutwardFrame) => void;
  readonly #onHold: (isHolding: boolean) => void;
  #kept: OutwardFrame[] | undefined;

  /** `onHold`: whether frames, from the current one on, are held. */
  constructor(take: (frame: OutwardFrame) => void, onHold: (isHolding: boolean) => void) {
    this.#take = take;
    this.#onHold = onHold;
  }

  pass(frame: OutwardFrame, isRunning: boolean): void {
    if (frame.kind === "settled" && isRunning && this.#kept === undefined) {
      this.#kept = [];
      this.#onHold(true);
    }
    if (this.#kept === undefined) this.#take(frame);
    else this.#kept.push(frame);
  }

  /** pi has settled or ended. */
  open(): void {
    const kept = this.#kept ?? [];
    this.#kept = undefined;
    for (const frame of kept) this.#take(frame);
    this.#onHold(false);
  }
}
