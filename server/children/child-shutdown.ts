import { WireError } from "../../protocol/errors.ts";
import type { ChildExit } from "../../protocol/session.ts";
import type { Control } from "../core/control.ts";
import type { Idleness } from "../core/idleness.ts";
import type { SessionContext } from "../core/session-context.ts";
import type { Custody } from "../custody/custody.ts";
import type { Retry } from "../delivery/retry.ts";
import type { DeliveryTracker } from "../delivery/tracker.ts";
import type { Dialogs } from "../dialogs/dialogs.ts";
import { within } from "../lib/deadline.ts";
import type { Journal } from "../log/journal.ts";
import { deliveriesIn } from "../pi/session-file.ts";
import type { SessionPrompts } from "../prompts/session-prompts.ts";
import type { CachedAnswers } from "./cached-answers.ts";
import type { ChildLife } from "./child-life.ts";
import type { ChildReports } from "./child-reports.ts";

export interface ChildShutdownParts {
  readonly journal: Pick<Journal, "rest">;
  readonly life: ChildLife;
  readonly custody: Custody;
  readonly dialogs: Dialogs;
  readonly prompts: SessionPrompts;
  readonly idleness: Idleness;
  readonly control: Control;
  readonly retry: Retry;
  readonly tracker: DeliveryTracker;
  readonly answers: Pick<CachedAnswers, "ask">;
  readonly reports: Pick<ChildReports, "ended">;
  /** `complete`: resolves when nothing more is told of it. */
  readonly summary: { readonly complete: Promise<void> };
}

/** Ends a session's child: to load its file again, for another daemon, or permanently. */
export class ChildShutdown {
  readonly #session: SessionContext;
  readonly #parts: ChildShutdownParts;
  #closed: Promise<ChildExit | undefined> | undefined;
  /** Whether the file is deleted even if it has messages. */
  #deletes = false;

  constructor(session: SessionContext, parts: ChildShutdownParts) {
    this.#session = session;
    this.#parts = parts;
  }

  /** Like {@link Session.shutDown}. */
  async shutDown(drainMs: number): Promise<void> {
    const { life, dialogs, custody, control, journal, answers, reports, summary } = this.#parts;
    // A daemon that is killed from here on leaves no child.
    try {
      life.child?.keeper?.mortal();
    } catch (error) {
      this.#session.log.warn({ err: error }, "a pi may survive if this daemon is killed before it has ended");
    }
    await this.#refuseStarts(new WireError("shutting_down", "The daemon is shutting down."));
    if (life.runId !== undefined) await within(life.settled(), drainMs);
    if (life.state.kind === "idle") await answers.ask(life.state.child);
    dialogs.endAll("hibernate");
    await life.endChild();
    await custody.idle();
    await reports.ended;
    await summary.complete;
    // A lease that expired later would be reported to a closed store.
    control.close();
    await journal.rest();
  }

  /** Like {@link Session.leave}. */
  async leave(drainMs: number): Promise<void> {
    const { life, retry, control } = this.#parts;
    const { child } = life;
    // It does not answer; the next daemon may get an answer.
    if (life.isLeftAwaited) return;
    if (child?.keeper === undefined) {
      await this.shutDown(drainMs);
      return;
    }
    child.leave();
    retry.close();
    control.close();
  }

  /** Like {@link Session.close}. */
  close(how: "close" | "delete"): Promise<ChildExit | undefined> {
    if (how === "delete" && this.#closed !== undefined && !this.#deletes) {
      this.#deletes = true;
      const closing = this.#closed;
      this.#closed = this.#close(how, () => closing);
    } else {
      this.#deletes ||= this.#closed === undefined && how === "delete";
      this.#closed ??= this.#close(how, () => this.#end());
    }
    return this.#closed;
  }

  /** Reloads the current file. Throws `session_busy`. */
  async reload(): Promise<void> {
    const { life, custody } = this.#parts;
    await this.#session.scope.run(async () => {
      if (life.runId !== undefined) throw new WireError("session_busy", "The session is busy (a run is active).");
      await life.endChild();
      await custody.idle();
      custody.forget();
    });
  }

  async #close(how: "close" | "delete", end: () => Promise<ChildExit | undefined>): Promise<ChildExit | undefined> {
    if (how === "close") return await end();
    const before = this.#closed;
    const remove = await this.#parts.custody.toRemove(this.#generation).catch((error: unknown) => {
      this.#closed = before;
      this.#deletes = false;
      throw error;
    });
    try {
      return await end();
    } finally {
      await remove();
    }
  }

  async #end(): Promise<ChildExit | undefined> {
    const { prompts, idleness, control, dialogs, custody, life, tracker } = this.#parts;
    const { sessionId } = this.#session;
    const why = new WireError("session_closed", `The session ${sessionId} is closed.`);
    prompts.close(why);
    idleness.close(why);
    control.close();
    await this.#refuseStarts(why);
    dialogs.endAll("close");
    return await custody.leave(this.#generation, () =>
      life.close(async () => {
        await this.#findInserted();
        tracker.applyToAll(sessionId, { kind: "sessionClosed", at: Date.now() });
        await tracker.told();
      }),
    );
  }

  /** The file has what pi inserted and did not report, or what a power failure has undone in the store. */
  async #findInserted(): Promise<void> {
    const { tracker } = this.#parts;
    const { sessionId, record, log } = this.#session;
    const open = tracker.withdrawable(tracker.underWay(sessionId));
    if (open.length === 0) return;
    try {
      const inserted = await deliveriesIn(record.stored.file, open);
      for (const id of inserted) tracker.apply(sessionId, id, { kind: "inserted", at: Date.now() });
    } catch (error) {
      log.warn({ err: error }, "cannot read which pushes are in the transcript of a closed session");
    }
  }

  get #generation(): number {
    return this.#session.record.stored.generation;
  }

  async #refuseStarts(why: WireError): Promise<void> {
    const { retry, life } = this.#parts;
    retry.close();
    await life.refuseStarts(why);
  }
}
