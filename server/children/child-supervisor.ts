import { setTimeout as pause } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { type ErrorName, WireError } from "../../protocol/errors.ts";
import type { ChildExit, SessionInfo } from "../../protocol/session.ts";
import type { SessionContext } from "../core/session-context.ts";
import type { Pushing } from "../delivery/pushing.ts";
import type { Retry } from "../delivery/retry.ts";
import type { Dialogs } from "../dialogs/dialogs.ts";
import { SerialQueue } from "../lib/serial-queue.ts";
import type { Journal } from "../log/journal.ts";
import type { ChildEnvironment } from "../pi/child-environment.ts";
import type { ChildMcpServers } from "../pi/child-mcp-servers.ts";
import { shownName } from "../pi/safe-values.ts";
import type { StoredOptions } from "../store/stored-session.ts";
import type { CachedAnswers } from "./cached-answers.ts";
import type { ChildLife } from "./child-life.ts";
import { type AwakeReason, Hibernation, type Holder } from "./hibernation.ts";
import { Responsiveness, type ResponsivenessLimits } from "./responsiveness.ts";

/** For the next child. What is absent stays. */
export interface StartChange {
  readonly environment?: ChildEnvironment | undefined;
  readonly mcpServers?: ChildMcpServers | undefined;
  readonly options?: StoredOptions | undefined;
  /** Starts an idle child again even if nothing differs. */
  readonly isReload?: boolean | undefined;
}

export interface ChildSupervisorOptions {
  readonly life: ChildLife;
  readonly pushing: Pushing;
  readonly retry: Retry;
  readonly answers: Pick<CachedAnswers, "ask">;
  readonly dialogs: Pick<Dialogs, "size">;
  readonly journal: Pick<Journal, "hasPending" | "rest">;
  /** For a session that does not set it. */
  readonly idleAfterMs: number;
  readonly responsiveness: ResponsivenessLimits;
}

/** How long a child may take after a run until its last answers, which the daemon itself asks for, have arrived. */
const settlesWithinMs = 1_000;
const settlesEveryMs = 20;
/** Calls that want the session's pi to be started again. */
const maxChangesWaiting = 64;

/** Automatic actions on a session's child: ends it when idle, checks it when silent, restarts it after a crash. */
export class ChildSupervisor {
  readonly hibernation: Hibernation;
  readonly #session: SessionContext;
  readonly #options: ChildSupervisorOptions;
  readonly #responsiveness: Responsiveness;
  readonly #changes = new SerialQueue({
    maxWaiting: maxChangesWaiting,
    onFull: () =>
      new WireError("overloaded", "Too many calls wait to start the session's pi again.", { retryAfterMs: 1_000 }),
  });
  /** What callers asked of its start, and what that became: pi may name a model otherwise, or limit the thinking. */
  readonly #asked = new Map<string, { readonly value: unknown; readonly became: unknown }>();

  constructor(session: SessionContext, options: ChildSupervisorOptions) {
    this.#session = session;
    this.#options = options;
    const { events, record, scope } = session;
    const { life, answers } = options;
    this.hibernation = new Hibernation({
      life,
      scope,
      reason: () => this.#reason(),
      idleAfterMs: () => record.stored.idleAfterMs ?? options.idleAfterMs,
      beforeEnd: (child) => answers.ask(child),
    });
    this.#responsiveness = new Responsiveness(options.responsiveness, () => events.emit("changed"));
    events.on("retryDue", () => this.#again());
  }

  /** As {@link Retry.facts}. */
  get restarts(): SessionInfo["restarts"] {
    return this.#options.retry.facts();
  }

  /** As {@link Responsiveness.silentSince}. */
  get silentSince(): number | undefined {
    return this.#responsiveness.silentSince;
  }

  /** Keeps the child running for the holder, from now on; or stops doing so. */
  require(holder: Holder, isWanted: boolean): void {
    if (!isWanted) {
      this.hibernation.letGo(holder.id);
      return;
    }
    this.hibernation.hold(holder);
    // The session's state has the outcome.
    this.#options.life.awake().catch(() => {});
  }

  /** Called periodically. */
  look(): void {
    const { life } = this.#options;
    this.#responsiveness.look(life.child, life.runId !== undefined);
  }

  /**
   * Ends the child, if it is not needed or `force` is set. Resolves when it has been cleaned up, and the log's memory is
   * free: a child that crashed has left it as it was. Throws `session_busy` with the reason.
   */
  async hibernate(force: boolean): Promise<void> {
    if (force) await this.#hibernateNow();
    else await this.#fallAsleep();
    await this.#options.journal.rest();
  }

  async #hibernateNow(): Promise<void> {
    const { life, answers } = this.#options;
    await life.startOver();
    if (life.child !== undefined && life.runId === undefined) await answers.ask(life.child);
    await life.endChild();
  }

  async #fallAsleep(): Promise<void> {
    const outcome = await this.hibernation.fallAsleep();
    if (typeof outcome === "object") return void (await outcome.ended);
    throw new WireError("session_busy", `The session cannot hibernate now: ${words[outcome]}. force: true does it.`, {
      sessionId: this.#session.sessionId,
      reason: outcome,
    });
  }

  /**
   * Gives the session's children another environment, other MCP servers and other options, and starts an idle child again with them. Nothing
   * changes if `isAllowed` returns false, or if the child is needed: by a run, a call, an open question, or because the
   * session is ephemeral. Throws `session_busy` for options and MCP servers that it then does not get, and errors of
   * starting.
   */
  async startAgainWith(change: StartChange, isAllowed: () => boolean): Promise<void> {
    // One caller's options must not replace another's before pi has started with them.
    await this.#changes.run(() => this.#changeStart(change, isAllowed));
  }

  async #changeStart(change: StartChange, isAllowed: () => boolean): Promise<void> {
    const { life } = this.#options;
    const until = performance.now() + settlesWithinMs;
    while (this.#differs(change)) {
      const reason = isAllowed() ? await this.#startAgain(change) : "shared";
      if (reason === undefined) return;
      const isSettling = life.runId === undefined && (reason === "calls" || reason === "running");
      if (!isSettling || performance.now() >= until) {
        this.#refuse(change, reason);
        return;
      }
      await pause(settlesEveryMs);
    }
  }

  /** Returns why that is not possible now. */
  async #startAgain(change: StartChange): Promise<AwakeReason | undefined> {
    const { record, events } = this.#session;
    const { life } = this.#options;
    const { child } = life;
    const { environment, mcpServers, stored } = record;
    const outcome = await this.hibernation.fallAsleep({ evenIfHeld: true, atEnd: () => this.#apply(change) });
    if (typeof outcome !== "object") return outcome;
    await outcome.ended;
    // A session without a child is started too: otherwise nobody would learn that pi refuses what it is given.
    if (child === undefined && change.options === undefined && change.mcpServers === undefined) return undefined;
    const name = shownName(change.options?.name ?? "");
    try {
      const next = await life.awake();
      // pi takes a name from its command line only for a new session.
      if (name !== undefined) await next.send({ type: "set_session_name", name });
      this.#took(change);
    } catch (error) {
      // The next start would fail for the same reason.
      record.environment = environment;
      record.mcpServers = mcpServers;
      record.setStartOptions(change.options ?? {}, stored.options);
      events.emit("changed");
      if (child !== undefined) await life.awake().catch(() => {});
      throw error;
    }
    return undefined;
  }

  /** Throws `session_busy` for options and MCP servers. A new environment that cannot be applied is ignored. */
  #refuse(change: StartChange, reason: AwakeReason | "shared"): void {
    const options = [...this.#differingOptions(change), ...(this.#hasOtherServers(change) ? ["mcpServers"] : [])];
    if (options.length === 0) return;
    const why = reason === "shared" ? "other connections follow it" : words[reason];
    throw new WireError("session_busy", `The session keeps its ${options.join(", ")}, because ${why}.`, {
      sessionId: this.#session.sessionId,
      reason,
      options,
    });
  }

  #differs(change: StartChange): boolean {
    const { environment, isReload } = change;
    const { record } = this.#session;
    const isSame =
      environment === undefined || (this.#isKnown && record.environment?.fingerprint === environment.fingerprint);
    const isOther = this.#hasOtherServers(change) || this.#differingOptions(change).length > 0;
    return isReload === true || !isSame || isOther;
  }

  /** Whether the secrets of its child are known. A former daemon did not store them. */
  get #isKnown(): boolean {
    return this.#options.life.child?.restoredAt === undefined;
  }

  #hasOtherServers({ mcpServers }: StartChange): boolean {
    return mcpServers !== undefined && !(this.#isKnown && this.#session.record.mcpServers.isSame(mcpServers));
  }

  #differingOptions({ options = {} }: StartChange): readonly string[] {
    const current = this.#currentOptions;
    const isSame = (name: string, value: unknown): boolean =>
      isDeepStrictEqual(current[name], value) ||
      isDeepStrictEqual(this.#asked.get(name), { value, became: current[name] });
    // pi does not take an empty name.
    const given = { ...options, name: shownName(options.name ?? "") ?? current["name"] };
    return Object.entries(given).flatMap(([name, value]) => (isSame(name, value) ? [] : [name]));
  }

  get #currentOptions(): Readonly<Record<string, unknown>> {
    const { stored } = this.#session.record;
    return { ...stored.options, name: stored.name };
  }

  /** pi has started with these options. */
  #took({ options = {} }: StartChange): void {
    const current = this.#currentOptions;
    for (const [name, value] of Object.entries(options)) this.#asked.set(name, { value, became: current[name] });
  }

  #apply({ environment, mcpServers, options }: StartChange): void {
    const { record, events } = this.#session;
    if (environment !== undefined) record.environment = environment;
    if (mcpServers !== undefined) record.mcpServers = mcpServers;
    if (options !== undefined) record.setStartOptions(options);
    events.emit("changed");
  }

  /**
   * The child has ended. A crashed child is restarted where it is needed: for a push, for a subscriber that keeps it
   * awake, and after a run, so that the session becomes idle again. Otherwise the next call starts one. `hadRun` of a
   * child that was asked to end is a run that began at its last moment. `wasRetired`: work waits for the next child.
   */
  childEnded(exit: ChildExit, hadRun: boolean, wasRetired: boolean): void {
    const { life, pushing, retry } = this.#options;
    if (life.isEnding) return;
    if (exit.expected && wasRetired) {
      if (this.hibernation.isHeld || pushing.wantsChild) this.#again();
    } else if (exit.expected) {
      if (hadRun && pushing.wantsChild) retry.failed();
    } else if (hadRun || this.hibernation.isHeld || pushing.wantsChild) retry.failed();
  }

  /** The pi of a former daemon has ended before this one could go on with it. */
  leftEnded(): void {
    const { life, pushing } = this.#options;
    if (!life.isEnding && (this.hibernation.isHeld || pushing.wantsChild)) this.#again();
  }

  #again(): void {
    const { life, pushing, retry } = this.#options;
    if (pushing.wantsChild) void pushing.handOver();
    else {
      life.awake().catch((error: unknown) => {
        if (!(error instanceof WireError && noFailures.has(error.kind))) retry.failed();
      });
    }
  }

  /** Why the session needs its child while no call uses it. */
  #reason(): AwakeReason | undefined {
    const { life, pushing, dialogs, journal } = this.#options;
    const isRetiring = life.child?.retires !== undefined;
    // They wait for the next child.
    if (pushing.wantsChild && !isRetiring) return "deliveries";
    if (!isRetiring && this.#session.record.stored.ephemeral === true) return "ephemeral";
    if (dialogs.size > 0) return "dialog";
    return journal.hasPending ? "background" : undefined;
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
