import { WireError } from "../../protocol/errors.ts";
import type { PartCalls } from "../context/part-calls.ts";
import type { SessionContext } from "../core/session-context.ts";
import { childSinks } from "../core/session-context.ts";
import type { Custody } from "../custody/custody.ts";
import type { Pushing } from "../delivery/pushing.ts";
import type { DeliveryTracker } from "../delivery/tracker.ts";
import type { Dialogs } from "../dialogs/dialogs.ts";
import { within } from "../lib/deadline.ts";
import type { EventLog } from "../log/event-log.ts";
import type { Journal } from "../log/journal.ts";
import { type LastEvents, lastEvents } from "../log/last-events.ts";
import type { Child, ChildSinks } from "../pi/child.ts";
import type { ChildStdio, KeeperLink } from "../pi/stdio.ts";
import type { Prompting } from "../prompts/prompting.ts";
import type { SessionPrompts } from "../prompts/session-prompts.ts";
import type { ChildLife } from "./child-life.ts";
import type { ChildReports } from "./child-reports.ts";
import type { ChildSupervisor } from "./child-supervisor.ts";
import { isExact, type LeftChild, lacksRecords, whyRetired } from "./survival.ts";

export interface ChildRestoreParts {
  readonly journal: Journal;
  readonly eventLog: EventLog;
  readonly life: ChildLife;
  readonly reports: ChildReports;
  readonly prompts: SessionPrompts;
  readonly prompting: Prompting;
  readonly dialogs: Dialogs;
  readonly custody: Custody;
  readonly tracker: DeliveryTracker;
  readonly pushing: Pushing;
  readonly supervisor: ChildSupervisor;
  readonly parts: PartCalls;
  /** Makes the object for a child of a former daemon, which begins to read its output in the next turn. */
  readonly adopt: (left: LeftChild, stdio: ChildStdio, sinks: ChildSinks) => Child;
}

/** How long a start waits until a child has repeated its output. */
const maxReplayMs = 10_000;

/**
 * Goes on with the child that a former daemon left in a session. Records that the former daemon dealt with only go to the
 * log, under the numbers that they have; later ones have their effects here.
 */
export class ChildRestore {
  readonly #session: SessionContext;
  readonly #parts: ChildRestoreParts;
  readonly #left: LeftChild | undefined;
  readonly #recovered = Promise.withResolvers<void>();

  /** `left`: what a former daemon left, until {@link run} goes on with it. */
  constructor(session: SessionContext, parts: ChildRestoreParts, left: LeftChild | undefined) {
    this.#session = session;
    this.#parts = parts;
    this.#left = left;
    // Nothing may take the session file as final before.
    if (left !== undefined) parts.life.expectLeft(this.#recovered.promise);
  }

  /**
   * Resolves when everything that clients may have seen of the child is in the log, or it has ended. If it does not answer
   * yet, resolves at once; callers of the session then wait for it.
   */
  async run(): Promise<void> {
    const { life, supervisor } = this.#parts;
    const left = this.#left;
    if (left === undefined) {
      await this.#recover();
      return;
    }
    const restored = this.#restored(left).finally(() => this.#recovered.resolve());
    // The daemon's start does not wait for a child that has stopped to answer.
    if (left.hasAnswered) await within(restored, maxReplayMs);
    else {
      life.awaitLeft(restored, () => left.kill());
      // Pushes that this daemon found waited for that pi.
      void restored.then((child) => child ?? supervisor.leftEnded());
    }
  }

  /** The session's child ended with a former daemon; entries that it had not written are lost. */
  async #recover(): Promise<void> {
    const { reports, custody } = this.#parts;
    await reports.recover();
    const { generation, fileMark } = this.#session.record.stored;
    if (fileMark?.isOpen === true) await custody.leave(generation, () => custody.orphaned());
  }

  async #restored(left: LeftChild): Promise<Child | undefined> {
    const { journal, life } = this.#parts;
    const { log } = this.#session;
    try {
      const stdio = await left.connected.catch(() => undefined);
      if (stdio?.keeper !== undefined) {
        if (!lacksRecords(left, stdio.keeper)) return await this.#goOn(left, stdio, stdio.keeper);
        left.kill();
        stdio.stdout.resume();
        await stdio.exited;
      }
    } catch (error) {
      log.error({ err: error }, "cannot continue the pi of a former daemon; ending it");
      left.kill();
      // Its end does the rest.
      if (life.child !== undefined) return undefined;
    }
    try {
      journal.cannotContinue("The child has ended, or the store lacks a part of what it did.");
      await this.#recover();
    } catch (error) {
      log.error({ err: error }, "cannot recover a session whose pi has ended");
    }
    await left.forget().catch((error: unknown) => log.error({ err: error }, "cannot end what is left of a pi"));
    return undefined;
  }

  async #goOn(left: LeftChild, stdio: ChildStdio, keeper: KeeperLink): Promise<Child> {
    const { journal, eventLog, life, reports, prompts, prompting, dialogs, adopt } = this.#parts;
    const { generation, at } = left;
    if (!isExact(left, keeper))
      journal.cannotContinue("The former daemon could not write down everything that it told.");
    const replayed = Promise.withResolvers<void>();
    const runId = prompts.runs.left?.runId;
    const last = lastEvents(eventLog, { upTo: at.applied.seq, generation, runId });
    prompts.resume(last);
    journal.resume(last);
    // One that is owed is said again below, and found then.
    const isOwed = at.owed.some(({ method, params }) => method === "run/started" && params["runId"] === runId);
    if (runId !== undefined && !isOwed) eventLog.said?.claim("run/started", { runId });
    reports.goOnFrom(at, () => replayed.resolve());
    const child = adopt(left, stdio, childSinks(this.#session, generation));
    child.restoredAt = Date.now();
    child.retires = whyRetired(left);
    if (child.retires !== undefined)
      this.#session.log.warn(`the pi of a former daemon ends when its run has ended: ${child.retires}`);
    life.restore(child, runId);
    dialogs.resume(child, at.answers);
    prompting.resume(child, new Set(keeper.answer.given));
    for (const { method, params } of at.owed) journal.say(method, params);
    await Promise.race([replayed.promise, child.exited]);
    dialogs.resumed();
    if (child.state.kind === "exited") await reports.ended;
    else await this.#resume(child, left, runId, last);
    return child;
  }

  async #resume(
    child: Child,
    { generation }: LeftChild,
    runId: string | undefined,
    { settled }: LastEvents,
  ): Promise<void> {
    const { journal, life, reports, prompts, custody, tracker, pushing, parts } = this.#parts;
    const { events, log } = this.#session;
    try {
      await custody.resume(child, generation);
    } catch (error) {
      const isOthers = error instanceof WireError && error.kind === "session_in_use";
      const then = isOthers ? "ending that pi" : "other daemons may take it when that pi has ended";
      log.error({ err: error }, `cannot hold the file of a session whose pi survived a former daemon; ${then}`);
      if (isOthers) void child.stop();
    }
    // The former daemon was asking pi whether it had. Without doubt the run would have ended.
    const isInDoubt = runId !== undefined && prompts.runs.runId === runId && prompts.runs.isActive;
    if (settled !== undefined && isInDoubt) reports.settledBefore(settled);
    events.emit("changed");
    if (child.retires === undefined) {
      void pushing.resume(child);
      parts.took(child);
    }
    life.refresh(child).catch((error: unknown) => log.warn({ err: error }, "cannot read the state of a restored pi"));
    // What was being stored at the former daemon's end is told in a moment.
    void Promise.all([prompts.told(), tracker.told()]).then(() => journal.forgetSaid());
  }
}
