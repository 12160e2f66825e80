import { type ErrorName, WireError } from "../../protocol/errors.ts";
import type { ChildExit, SessionInfo } from "../../protocol/session.ts";
import type { Pushing } from "../delivery/pushing.ts";
import { Retry } from "../delivery/retry.ts";
import type { SerialQueue } from "../lib/serial-queue.ts";
import type { Child } from "../pi/child.ts";
import type { ChildLife } from "./child-life.ts";
import { type AwakeReason, Hibernation, type HibernationOptions, type Holder } from "./hibernation.ts";
import { Responsiveness, type ResponsivenessLimits } from "./responsiveness.ts";

export interface ChildSupervisorOptions {
  readonly sessionId: string;
  readonly scope: SerialQueue;
  readonly life: () => ChildLife;
  /** The child; one is started if there is none. */
  readonly awake: () => Promise<unknown>;
  readonly pushing: () => Pushing;
  /** Why parts of the session need the child. */
  readonly reasons: readonly (() => AwakeReason | undefined)[];
  readonly idleAfterMs: () => number;
  /** As {@link HibernationOptions.beforeEnd}. */
  readonly beforeEnd: (child: Child) => Promise<void>;
  readonly responsiveness: ResponsivenessLimits;
  readonly admitStart: () => number;
  readonly onChange: () => void;
}

/** What is done to a session's child unasked: it is ended when idle, asked when silent, started again after a crash. */
export class ChildSupervisor {
  readonly hibernation: Hibernation;
  readonly retry: Retry;
  readonly #options: ChildSupervisorOptions;
  readonly #responsiveness: Responsiveness;

  constructor(options: ChildSupervisorOptions) {
    this.#options = options;
    const { pushing, admitStart, onChange } = options;
    this.retry = new Retry({
      again: () => this.#again(),
      pushWaits: () => pushing().wantsChild,
      admit: admitStart,
      onChange,
    });
    const deliveries = (): AwakeReason | undefined => (pushing().wantsChild ? "deliveries" : undefined);
    this.hibernation = new Hibernation({ ...options, reasons: [deliveries, ...options.reasons] });
    this.#responsiveness = new Responsiveness(options.responsiveness, onChange);
  }

  /** What clients see of it. */
  facts(): Pick<SessionInfo, "idleAfterMs" | "restarts" | "unresponsive"> {
    const restarts = this.retry.facts();
    const { silentSince: since } = this.#responsiveness;
    return {
      idleAfterMs: this.#options.idleAfterMs(),
      ...(restarts === undefined ? {} : { restarts }),
      ...(since === undefined ? {} : { unresponsive: { since } }),
    };
  }

  /** Has the child there for as long as the holder is, from now on; or not any more. */
  require(holder: Holder, isWanted: boolean): void {
    if (!isWanted) {
      this.hibernation.letGo(holder.id);
      return;
    }
    this.hibernation.hold(holder);
    // What comes of it is the session's state.
    this.#options.awake().catch(() => {});
  }

  /** Called every so often. */
  look(): void {
    const life = this.#options.life();
    this.#responsiveness.look(life.child, life.runId !== undefined);
  }

  /**
   * Ends the child, if nothing needs it or `force` says so. Resolves when nothing of it is left. Throws `session_busy` with
   * the reason.
   */
  async hibernate(force: boolean): Promise<void> {
    const { life: lifeOf, sessionId } = this.#options;
    if (force) {
      const life = lifeOf();
      await life.startOver();
      if (life.child !== undefined && life.runId === undefined) await this.#options.beforeEnd(life.child);
      await life.endChild();
      return;
    }
    const outcome = await this.hibernation.fallAsleep();
    if (typeof outcome === "object") return void (await outcome.ended);
    throw new WireError("session_busy", `The session cannot hibernate now: ${words[outcome]}. force: true does it.`, {
      sessionId,
      reason: outcome,
    });
  }

  /**
   * The child has ended. One that crashed is started again where it is needed: for a push, for who wants it awake, and
   * after a run, so that the session is idle again. Others are started by the next call. `hadRun` of a child that was
   * asked to end is a run that began in its last moment.
   */
  childEnded(exit: ChildExit, hadRun: boolean): void {
    if (this.#options.life().isEnding) return;
    if (exit.expected) {
      if (hadRun && this.#options.pushing().wantsChild) this.retry.failed();
    } else if (hadRun || this.hibernation.isHeld || this.#options.pushing().wantsChild) this.retry.failed();
  }

  #again(): void {
    const { awake, pushing } = this.#options;
    if (pushing().wantsChild) void pushing().handOver();
    else {
      awake().catch((error: unknown) => {
        if (!(error instanceof WireError && noFailures.has(error.kind))) this.retry.failed();
      });
    }
  }
}

/** Behind these nothing is tried again: the first is counted as the child ends, the others do not pass by themselves. */
const noFailures: ReadonlySet<ErrorName> = new Set([
  "child_exited",
  "session_lost",
  "session_in_use",
  "session_file_unusable",
  "foreign_write",
]);

const words: Readonly<Record<AwakeReason, string>> = {
  starting: "its pi starts",
  running: "a run is on",
  calls: "calls are under way",
  background: "extensions have something in the background",
  deliveries: "pushes wait for their moment",
  dialog: "a dialog is open",
  ephemeral: "it is kept in its pi's memory alone, and would be lost",
  subscription: "a subscriber wants it awake",
  unresponsive: "its pi does not answer",
};
