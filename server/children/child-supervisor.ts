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
  /** Returns the child; starts one if necessary. */
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

/** Automatic actions on a session's child: ends it when idle, checks it when silent, restarts it after a crash. */
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

  /** The fields that clients see. */
  facts(): Pick<SessionInfo, "idleAfterMs" | "restarts" | "unresponsive"> {
    const restarts = this.retry.facts();
    const { silentSince: since } = this.#responsiveness;
    return {
      idleAfterMs: this.#options.idleAfterMs(),
      ...(restarts === undefined ? {} : { restarts }),
      ...(since === undefined ? {} : { unresponsive: { since } }),
    };
  }

  /** Keeps the child running for the holder, from now on; or stops doing so. */
  require(holder: Holder, isWanted: boolean): void {
    if (!isWanted) {
      this.hibernation.letGo(holder.id);
      return;
    }
    this.hibernation.hold(holder);
    // The session's state has the outcome.
    this.#options.awake().catch(() => {});
  }

  /** Called periodically. */
  look(): void {
    const life = this.#options.life();
    this.#responsiveness.look(life.child, life.runId !== undefined);
  }

  /**
   * Ends the child, if it is not needed or `force` is set. Resolves when it has been cleaned up. Throws
   * `session_busy` with the reason.
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
   * The child has ended. A crashed child is restarted where it is needed: for a push, for a subscriber that keeps it
   * awake, and after a run, so that the session becomes idle again. Otherwise the next call starts one. `hadRun` of a
   * child that was asked to end is a run that began at its last moment.
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

/** After these errors there is no retry: the first is counted when the child ends, the others are permanent. */
const noFailures: ReadonlySet<ErrorName> = new Set([
  "child_exited",
  "session_lost",
  "session_in_use",
  "session_file_unusable",
  "foreign_write",
]);

const words: Readonly<Record<AwakeReason, string>> = {
  starting: "its pi starts",
  running: "a run is active",
  calls: "calls are in progress",
  background: "extensions have background work",
  deliveries: "pushes wait for their moment",
  dialog: "a dialog is open",
  ephemeral: "it is kept only in its pi's memory, and would be lost",
  subscription: "a subscriber wants it awake",
  unresponsive: "its pi does not answer",
};
