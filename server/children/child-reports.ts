import type { Logger } from "pino";
import type { OutwardFrame } from "../../protocol/link.ts";
import type { SessionCosts } from "../context/cost/session-costs.ts";
import type { PartCalls } from "../context/part-calls.ts";
import type { SessionRecord } from "../core/session-record.ts";
import type { Custody } from "../custody/custody.ts";
import type { DeliveryTracker } from "../delivery/tracker.ts";
import type { Dialogs } from "../dialogs/dialogs.ts";
import type { EventBackfill } from "../log/event-backfill.ts";
import type { Journal } from "../log/journal.ts";
import { type EventReaders, lookAt } from "../log/pi-events.ts";
import type { ProviderWatch } from "../log/provider-watch.ts";
import { SettlingGate } from "../log/settling-gate.ts";
import type { Child, ChildSinks } from "../pi/child.ts";
import type { Hello } from "../pi/link.ts";
import type { PiEvent } from "../pi/records.ts";
import type { RecordDiagnostic } from "../pi/router.ts";
import { queuedTexts } from "../prompts/queued-texts.ts";
import type { SessionPrompts } from "../prompts/session-prompts.ts";
import type { ChildLife } from "./child-life.ts";

export interface ChildReportsParts {
  readonly record: SessionRecord;
  readonly journal: Journal;
  readonly backfill: EventBackfill;
  readonly provider: ProviderWatch;
  readonly prompts: SessionPrompts;
  readonly dialogs: Dialogs;
  readonly life: ChildLife;
  readonly custody: Custody;
  readonly tracker: DeliveryTracker;
  /** Receives reports of the parts inside pi. */
  readonly parts: Pick<PartCalls, "failed" | "noticed" | "said" | "reload">;
  readonly costs: Pick<SessionCosts, "entryAppended">;
  /** A run of pi has begun. */
  readonly runStarted: () => void;
  /** The session has changed and must be reported. */
  readonly publish: () => void;
  /** The helper was reloaded and has lost its list. */
  readonly resume: (child: Child) => void;
  /** The child contains another session. */
  readonly succeed: (child: Child, hello: Hello, file: string) => void;
  readonly log: Logger;
}

/** Dispatches the reports of a session's child to the parts of the session. */
export class ChildReports {
  readonly #parts: ChildReportsParts;
  readonly #settling = new SettlingGate((frame) => this.#take(frame));
  readonly #readers: EventReaders;

  constructor(parts: ChildReportsParts) {
    this.#parts = parts;
    const { prompts, life, record, dialogs, runStarted, publish } = parts;
    this.#readers = {
      runStarted: () => {
        runStarted();
        prompts.runs.agentIs("active");
      },
      agentEnded: () => prompts.runs.agentIs("done"),
      runSettled: (event) => prompts.settled(life.child, event, (aborted) => this.#runSettled(aborted)),
      compacting: (isOn) => prompts.compacting(isOn),
      entryAppended: (event) => parts.costs.entryAppended(event),
      messageEnded: (event) => prompts.messageEnded(event),
      queueChanged: (event) => prompts.ledger.queueChanged(queuedTexts(event)),
      learned: (said) => {
        record.take(said);
        publish();
      },
      asked: (event) => dialogs.look(event),
    };
  }

  /** The sinks for a child of this generation. */
  sinks(generation: number): ChildSinks {
    return {
      onEvent: (record, event, isDelta) => this.#event(generation, record, event, isDelta),
      onFrame: (frame) => this.#frame(generation, frame),
      onDiagnostic: (diagnostic) => this.#diagnostic(generation, diagnostic),
    };
  }

  /** The child reports nothing more; frames that waited for its run to settle are released. */
  childEnded(): void {
    this.#settling.open();
  }

  #event(generation: number, record: Buffer, event: PiEvent | undefined, isDelta: boolean): void {
    const { journal, backfill, provider } = this.#parts;
    journal.record(record, generation, isDelta);
    if (event === undefined) return;
    backfill.note(event);
    provider.look(event);
    lookAt(event, this.#readers);
  }

  #runSettled(aborted: boolean | undefined): void {
    const { dialogs, life, custody } = this.#parts;
    dialogs.runSettled(life.runId);
    if (!life.runSettled(aborted)) return;
    this.#settling.open();
    const { child } = life;
    if (child !== undefined) custody.settled(child);
  }

  #frame(generation: number, frame: OutwardFrame): void {
    const { record, life } = this.#parts;
    if (generation === record.stored.generation) this.#settling.pass(frame, life.runId !== undefined);
  }

  #take(frame: OutwardFrame): void {
    const { tracker, record, provider, prompts, journal, parts } = this.#parts;
    tracker.receive(record.stored.sessionId, frame);
    provider.receive(frame);
    if (frame.kind === "settled" && !frame.aborted) prompts.queueSettled();
    if (frame.kind === "fault") parts.failed(frame);
    if (frame.kind === "notice") parts.noticed(frame);
    if (frame.kind === "debug") parts.said(frame);
    if (frame.kind === "reload") parts.reload();
    if (frame.kind === "pending") journal.pending(frame.pending);
    if (frame.kind === "hello") this.#hello(frame);
  }

  /**
   * A later hello: the session inside pi was reloaded, and the helper lost its list, or pi switched to another
   * session.
   */
  #hello(hello: Hello): void {
    const { life, record, resume, succeed } = this.#parts;
    const { child, isEnding } = life;
    if (child === undefined) return;
    const { sessionFile } = hello;
    if (sessionFile === undefined || sessionFile === record.stored.file) resume(child);
    // Work in progress has ended.
    else if (!isEnding) succeed(child, hello, sessionFile);
  }

  #diagnostic(generation: number, diagnostic: RecordDiagnostic): void {
    const { journal, log } = this.#parts;
    const { kind, bytes } = diagnostic;
    log.warn({ generation, kind, bytes }, "pi wrote a record that cannot be forwarded unchanged");
    journal.say("session/event", { generation, event: { type: "rpcd_diagnostic", ...diagnostic } });
  }
}
