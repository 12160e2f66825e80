import { WireError } from "../../protocol/errors.ts";
import type { ChildExit } from "../../protocol/session.ts";
import type { Control } from "../core/control.ts";
import type { SessionRecord } from "../core/session-record.ts";
import type { Custody } from "../custody/custody.ts";
import type { DeliveryTracker } from "../delivery/tracker.ts";
import type { Dialogs } from "../dialogs/dialogs.ts";
import { within } from "../lib/deadline.ts";
import type { SerialQueue } from "../lib/serial-queue.ts";
import type { Journal } from "../log/journal.ts";
import type { Child } from "../pi/child.ts";
import { removeIfEmpty } from "../pi/session-file.ts";
import type { SessionPrompts } from "../prompts/session-prompts.ts";
import type { ChildLife } from "./child-life.ts";
import type { ChildSupervisor } from "./child-supervisor.ts";
import type { HibernationOptions } from "./hibernation.ts";

export interface ChildShutdownParts {
  readonly scope: SerialQueue;
  readonly record: SessionRecord;
  readonly journal: Journal;
  readonly life: ChildLife;
  readonly custody: Custody;
  readonly dialogs: Dialogs;
  readonly prompts: SessionPrompts;
  readonly control: Control;
  readonly supervisor: ChildSupervisor;
  readonly tracker: DeliveryTracker;
  /** Resolves when the end of the last child has been reported in full. */
  readonly lastEnded: () => Promise<void>;
  /** As {@link HibernationOptions.beforeEnd}. */
  readonly beforeEnd: (child: Child) => Promise<void>;
}

/** Ends a session's child: for hibernation, for another daemon, or permanently. */
export class ChildShutdown {
  readonly #parts: ChildShutdownParts;
  #closed: Promise<ChildExit | undefined> | undefined;
  /** Whether the file is deleted even if it has messages. */
  #deletes = false;

  constructor(parts: ChildShutdownParts) {
    this.#parts = parts;
  }

  /** Ends the child by calling `end`. The session's own file is deleted if it never got a message. */
  leave<T>(end: () => Promise<T>): Promise<T> {
    const { custody, record } = this.#parts;
    return custody.with(record.stored.generation, end, async () => {
      const { file, isOpened } = record.stored;
      if (isOpened !== true && (await removeIfEmpty(file))) custody.forget();
    });
  }

  /** As {@link Session.shutDown}. */
  async shutDown(drainMs: number): Promise<void> {
    const { life, dialogs, custody, journal, lastEnded, beforeEnd } = this.#parts;
    await this.#refuseStarts(new WireError("shutting_down", "The daemon is shutting down."));
    if (life.runId !== undefined) await within(life.settled(), drainMs);
    if (life.state.kind === "idle") await beforeEnd(life.state.child);
    dialogs.endAll("hibernate");
    await life.endChild();
    await custody.idle();
    await lastEnded();
    await journal.rest();
  }

  /** As {@link Session.close}. */
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
    const { scope, life, custody } = this.#parts;
    await scope.run(async () => {
      if (life.runId !== undefined) throw new WireError("session_busy", "The session is busy (a run is active).");
      await life.endChild();
      await custody.idle();
      custody.forget();
    });
  }

  async #close(how: "close" | "delete", end: () => Promise<ChildExit | undefined>): Promise<ChildExit | undefined> {
    if (how === "close") return await end();
    const { custody, record } = this.#parts;
    const before = this.#closed;
    const remove = await custody.toRemove(record.stored.generation).catch((error: unknown) => {
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
    const { record, prompts, control, dialogs, life, tracker } = this.#parts;
    const { sessionId } = record.stored;
    const why = new WireError("session_closed", `The session ${sessionId} is closed.`);
    prompts.close(why);
    control.close();
    await this.#refuseStarts(why);
    dialogs.endAll("close");
    return await this.leave(() =>
      life.close(async () => {
        tracker.applyToAll(sessionId, { kind: "sessionClosed", at: Date.now() });
        await tracker.told();
      }),
    );
  }

  async #refuseStarts(why: WireError): Promise<void> {
    const { supervisor, life } = this.#parts;
    supervisor.retry.close();
    await life.refuseStarts(why);
  }
}
