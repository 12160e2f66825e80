import type { Logger } from "pino";
import { WireError } from "../../protocol/errors.ts";
import type { ChildExit } from "../../protocol/session.ts";
import type { SessionRecord } from "../core/session-record.ts";
import { within } from "../lib/deadline.ts";
import type { SerialQueue } from "../lib/serial-queue.ts";
import type { Journal } from "../log/journal.ts";
import type { Child, ChildSinks } from "../pi/child.ts";
import { isRecordObject } from "../pi/records.ts";
import { isSameFile } from "../pi/session-paths.ts";
import type { Custody } from "./custody.ts";
import { HeldReports } from "./held-reports.ts";

export interface SuccessionParts {
  readonly record: SessionRecord;
  readonly journal: Journal;
  /** The session's child. */
  readonly life: {
    readonly child: Child | undefined;
    readonly canTake: boolean;
    take(child: Child): void;
    giveAway(child: Child, left: Promise<void>): void;
  };
  readonly custody: Custody;
  readonly scope: SerialQueue;
  /** What pi may take to say what session is in it: it answers when its extensions' start hooks have ended. */
  readonly startTimeoutMs: number;
  /** What a pi may report meanwhile, in bytes. */
  readonly maxHeldBytes: number;
  /** Where a child of this generation reports. */
  readonly sinks: (generation: number) => ChildSinks;
  /** Nothing is to be expected of the child any more, as far as this session goes. */
  readonly childEnded: (child: Child, exit: ChildExit) => void;
  /** Reads pi's state again. */
  readonly refresh: (child: Child) => Promise<void>;
  /** Brings to the child what waits for it. */
  readonly resume: (child: Child) => void;
  /** Has a child started where something waits for one. */
  readonly wake: () => void;
  readonly log: Logger;
}

/** How a child goes from one session to another, when pi itself has gone from one session to another. */
export class Succession {
  readonly #parts: SuccessionParts;
  #successor: Promise<string> | undefined;
  #isConfirmed = false;
  #taken: Promise<void> = Promise.resolve();
  /** Children that other sessions have, and when each has left this one's file. */
  readonly #given = new WeakMap<Child, Promise<void>>();

  constructor(parts: SuccessionParts) {
    this.#parts = parts;
  }

  /** The session that was the last to take this one's child over, once pi has confirmed it. Rejects where none has. */
  get successor(): Promise<string> | undefined {
    return this.#successor;
  }

  /** Whether pi itself has said that this session is in a child that was taken over. */
  get isConfirmed(): boolean {
    return this.#isConfirmed;
  }

  forget(): void {
    this.#successor = undefined;
  }

  /**
   * Another session is said to be in the child, and has it: this one goes on as one that has hibernated. Until the child
   * has `left` this one's file, which never rejects, no other is started on it, and nobody else gets it.
   */
  giveAway(child: Child, left: Promise<void>): void {
    const { life, custody, childEnded, wake } = this.#parts;
    this.#given.set(child, left);
    life.giveAway(child, left);
    custody.gaveAway(child, left);
    childEnded(child, { at: Date.now(), code: null, signal: null, expected: true, stderrTail: child.stderrTail });
    wake();
  }

  /** Tells the subscribers which session has this one's child, as soon as that is known. Where it rejects, none has. */
  replacedBy(successor: Promise<string>): void {
    this.#successor = successor;
    const { journal, record } = this.#parts;
    successor.then(
      (to) => {
        if (!journal.isClosed) journal.say("session/replaced", { from: record.stored.sessionId, to });
      },
      () => {},
    );
  }

  /** Whether a child of another session can be taken over. */
  get canTake(): boolean {
    return this.#parts.life.canTake;
  }

  /**
   * Takes over a child of another session, in which this one's session is by now. What it reports is held until pi has said
   * so itself. Resolves then, or when nothing is left of it.
   */
  takeOver(child: Child): Promise<void> {
    const { record, life, custody, sinks, resume, scope, maxHeldBytes } = this.#parts;
    const generation = record.nextGeneration();
    this.#given.delete(child);
    const own = sinks(generation);
    const held = new HeldReports({ sinks: own, maxBytes: maxHeldBytes, onFull: () => void child.stop() });
    child.rebind(held);
    life.take(child);
    // Before the prompts that come now: they are for the session, and no other may have them.
    const verified = scope.overtake(() => this.#verify(child, held, own));
    this.#taken = this.#takeFile(child, Promise.all([custody.tookOver(child, generation), verified]));
    this.#taken.catch(() => {});
    resume(child);
    return verified.catch(() => child.cleaned);
  }

  /** Resolves when a session that has taken a child over has its file, too. Throws why it cannot have it. */
  get taken(): Promise<void> {
    return this.#taken;
  }

  /**
   * Whoever runs in the pi could write a hello: pi itself is asked what session is in it. One that has another, or does
   * not answer in the time of a start, is ended. Throws `link_failed`, and `child_exited`.
   */
  async #verify(child: Child, held: HeldReports, own: ChildSinks): Promise<void> {
    const { record, startTimeoutMs } = this.#parts;
    const { sessionId, file } = record.stored;
    const [asked] = await Promise.allSettled([within(child.send({ type: "get_state" }), startTimeoutMs)]);
    if (asked.status === "fulfilled" && asked.value.kind === "done") {
      const { data } = asked.value.value;
      const { sessionId: id, sessionFile } = isRecordObject(data) ? data : {};
      if (id === sessionId && typeof sessionFile === "string" && isSameFile(sessionFile, file)) {
        this.#isConfirmed = true;
        child.rebind(own);
        held.release(() => child.sinks);
        return;
      }
    }
    // It has gone on to another session, which asks, too, and hears the rest.
    const next = held.takeOther(file);
    if (next !== undefined) own.onFrame(next);
    const given = this.#given.get(child);
    if (given !== undefined) {
      held.release(() => child.sinks);
      return await given;
    }
    await child.stop();
    if (asked.status === "rejected") throw asked.reason;
    if (asked.value.kind === "timeout") {
      const message = `pi did not say within ${startTimeoutMs} ms that it has the session ${sessionId}; it is ended.`;
      throw new WireError("link_failed", message, { reason: "no_answer" });
    }
    throw new WireError("link_failed", `pi was said to have the session ${sessionId}, and has not; it is ended.`, {
      reason: "false_hello",
    });
  }

  async #takeFile(child: Child, taken: Promise<unknown>): Promise<void> {
    const { life, refresh, log } = this.#parts;
    try {
      await taken;
    } catch (error) {
      log.error({ err: error }, "a session that was put into a pi cannot have the pi or its file; the pi is ended");
      void child.stop();
      throw error;
    }
    if (life.child !== child) return;
    await refresh(child).catch((error: unknown) => log.warn({ err: error }, "pi's state could not be read"));
  }
}
