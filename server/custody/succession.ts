import { WireError } from "../../protocol/errors.ts";
import { isRecord } from "../../protocol/objects.ts";
import type { PartCalls } from "../context/part-calls.ts";
import { childSinks, type SessionContext } from "../core/session-context.ts";
import type { SessionRecord } from "../core/session-record.ts";
import type { Pushing } from "../delivery/pushing.ts";
import { within } from "../lib/deadline.ts";
import type { Child, ChildSinks } from "../pi/child.ts";
import { isSameFile } from "../pi/session-paths.ts";
import type { Custody } from "./custody.ts";
import { HeldReports } from "./held-reports.ts";

export interface SuccessionParts {
  /** The session's child. */
  readonly life: {
    readonly child: Child | undefined;
    readonly canTake: boolean;
    take(child: Child): void;
    giveAway(child: Child, left: Promise<void>): void;
    refresh(child: Child): Promise<void>;
  };
  readonly custody: Pick<Custody, "gaveAway" | "tookOver">;
  readonly pushing: Pick<Pushing, "handOver" | "resume" | "wantsChild">;
  readonly parts: Pick<PartCalls, "took">;
  /** How long pi may take to report its session: it answers when its extensions' start hooks have ended. */
  readonly startTimeoutMs: number;
  /** Maximum bytes of reports in the meantime. */
  readonly maxHeldBytes: number;
}

/** Transfers a child from one session to another, after pi itself switched. */
export class Succession {
  readonly #session: SessionContext;
  readonly #parts: SuccessionParts;
  #successor: Promise<string> | undefined;
  #isConfirmed = false;
  #taken: Promise<void> = Promise.resolve();
  /** Children of other sessions, and when each has left this one's file. */
  readonly #given = new WeakMap<Child, Promise<void>>();

  constructor(session: SessionContext, parts: SuccessionParts) {
    this.#session = session;
    this.#parts = parts;
  }

  /** The session that last took over this one's child, once pi has confirmed it. Rejects if none has. */
  get successor(): Promise<string> | undefined {
    return this.#successor;
  }

  /** Whether pi itself has confirmed this session for a child that was taken over. */
  get isConfirmed(): boolean {
    return this.#isConfirmed;
  }

  forget(): void {
    this.#successor = undefined;
  }

  /**
   * A hello names another session in the child, which takes it: this session continues as hibernated. Until the child
   * has `left` this one's file, which never rejects, no other child is started on it, and the lease is kept.
   */
  giveAway(child: Child, left: Promise<void>): void {
    const { life, custody, pushing } = this.#parts;
    this.#given.set(child, left);
    life.giveAway(child, left);
    custody.gaveAway(child, left);
    const exit = { at: Date.now(), code: null, signal: null, expected: true, stderrTail: child.stderrTail };
    this.#session.events.emit("childEnded", { child, exit, hadRun: false });
    if (pushing.wantsChild) void pushing.handOver();
  }

  /** Reports the session that took over this one's child, once known. If it rejects, there is none. */
  replacedBy(successor: Promise<string>, cause: "call" | "extension"): void {
    this.#successor = successor;
    const { journal, sessionId } = this.#session;
    successor.then(
      (to) => {
        if (!journal.isClosed) journal.say("session/replaced", { from: sessionId, to, cause });
      },
      () => {},
    );
  }

  /** Whether a child of another session can be taken over. */
  get canTake(): boolean {
    return this.#parts.life.canTake;
  }

  /**
   * Takes over a child that contains this session by now. Its reports are held until pi has confirmed the session.
   * Resolves then, or when the child has been cleaned up. `from`: what the child was started with.
   */
  takeOver(child: Child, from: Pick<SessionRecord, "environment" | "mcpServers">): Promise<void> {
    const { record, scope } = this.#session;
    const { life, custody, pushing, parts, maxHeldBytes } = this.#parts;
    const generation = record.nextGeneration();
    record.environment = from.environment;
    record.mcpServers = from.mcpServers;
    this.#given.delete(child);
    const own = childSinks(this.#session, generation);
    const held = new HeldReports({ sinks: own, maxBytes: maxHeldBytes, onFull: () => void child.stop() });
    child.rebind(held);
    life.take(child);
    this.#session.events.emit("reportsHeld", true);
    // Before later prompts: these are for this session, and no other may receive them.
    const verified = scope.overtake(() => this.#verify(child, held, own));
    this.#taken = this.#takeFile(child, Promise.all([custody.tookOver(child, generation), verified]));
    this.#taken.catch(() => {});
    parts.took(child);
    void pushing.resume(child);
    return verified.catch(() => child.cleaned);
  }

  /** Resolves when a session that took over a child also has its file. Throws why it cannot have it. */
  get taken(): Promise<void> {
    return this.#taken;
  }

  /**
   * Any code in the pi can write a hello, so pi itself is asked for its session. A pi with another session, or
   * without an answer within the time of a start, is ended. Throws `link_failed`, and `child_exited`.
   */
  async #verify(child: Child, held: HeldReports, own: ChildSinks): Promise<void> {
    const { startTimeoutMs } = this.#parts;
    const { sessionId, file } = this.#session.record.stored;
    const [asked] = await Promise.allSettled([within(child.send({ type: "get_state" }), startTimeoutMs)]);
    if (asked.status === "fulfilled" && asked.value.kind === "done") {
      const { data } = asked.value.value;
      const { sessionId: id, sessionFile } = isRecord(data) ? data : {};
      if (id === sessionId && typeof sessionFile === "string" && isSameFile(sessionFile, file)) {
        this.#isConfirmed = true;
        child.rebind(own);
        held.release(() => child.sinks);
        this.#session.events.emit("reportsHeld", false);
        return;
      }
    }
    // It has switched to another session, which also asks, and gets the later reports.
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
      const message = `pi did not confirm the session ${sessionId} within ${startTimeoutMs} ms and was ended.`;
      throw new WireError("link_failed", message, { reason: "no_answer" });
    }
    throw new WireError("link_failed", `A hello named the session ${sessionId}, but pi has another; pi was ended.`, {
      reason: "false_hello",
    });
  }

  async #takeFile(child: Child, taken: Promise<unknown>): Promise<void> {
    const { life } = this.#parts;
    const { log } = this.#session;
    try {
      await taken;
    } catch (error) {
      log.error({ err: error }, "a session cannot take over the pi that contains it, or its file; ending the pi");
      void child.stop();
      throw error;
    }
    if (life.child !== child) return;
    await life.refresh(child).catch((error: unknown) => log.warn({ err: error }, "cannot read pi's state"));
  }
}
