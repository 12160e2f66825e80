import { dirname } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { Logger } from "pino";
import { WireError } from "../../protocol/errors.ts";
import type { PartsConfig } from "../../protocol/link.ts";
import { CompactionSettings, settingsOf } from "../context/compaction-settings.ts";
import type { SessionConfiguration } from "../context/part-layers.ts";
import { partsOf, rememberParts, spawnOptions } from "../context/parts-config.ts";
import type { Spill } from "../context/spill.ts";
import { StartHealth } from "../core/restart-policy.ts";
import { type Roots, requireRoot } from "../core/roots.ts";
import { movedDirectory, workingDirectory } from "../core/working-directory.ts";
import { within } from "../lib/deadline.ts";
import { Gate } from "../lib/gate.ts";
import { adopt, isExactModel } from "../pi/adopt.ts";
import { requireMcpServers, requireOptions } from "../pi/capabilities.ts";
import { Child, type ChildLimits, type ChildOptions, type ChildSinks, type KeptOptions } from "../pi/child.ts";
import { ChildEnvironments } from "../pi/child-environment.ts";
import type { ChildRegistry } from "../pi/child-registry.ts";
import { checkEntries } from "../pi/entry-check.ts";
import { exhaustion } from "../pi/exhaustion.ts";
import type { PiCommand } from "../pi/records.ts";
import { spawnName } from "../pi/safe-values.ts";
import { ensureSessionFile } from "../pi/session-file.ts";
import { requireOwnHeader } from "../pi/session-paths.ts";
import type { PiOptions, PiProgram } from "../pi/spawn-options.ts";
import { startPi } from "../pi/start-pi.ts";
import type { ChildStdio } from "../pi/stdio.ts";
import { type WarmKind, WarmPool, type WarmPoolLimits } from "../pi/warm-pool.ts";
import type { StoredSession } from "../store/stored-session.ts";
import type { ChildStarter, Started, StartSinks } from "./child-life.ts";
import { Occupancy, type OccupancyLimits, type OccupancyOptions } from "./occupancy.ts";
import type { LeftChild } from "./survival.ts";

export interface ChildSourceOptions {
  /** Located at each start, so that an updated pi is found. Throws `pi_not_found` or `pi_too_old`. */
  readonly locate: () => Promise<PiProgram>;
  readonly helper: string;
  readonly runDirectory: string;
  /** Directory for texts that parts move out of transcripts. */
  readonly spillDirectory: string;
  /** Removes these texts. Default: they are kept. */
  readonly spill?: Pick<Spill, "note" | "wanted">;
  readonly env: NodeJS.ProcessEnv;
  readonly configuration?: Pick<SessionConfiguration, "agentDirectory" | "customUi">;
  /** Directories that working directories must be in. Default: anywhere. */
  readonly roots?: Roots;
  readonly childRegistry?: ChildRegistry | undefined;
  /** Default: children end with the daemon. */
  readonly kept?: KeptOptions | undefined;
  readonly limits: {
    readonly child: ChildLimits;
    readonly maxParallelStarts: number;
    readonly startPlaceMs: number;
    readonly occupancy: OccupancyLimits;
    readonly warm: WarmPoolLimits;
  };
  readonly directory: SourceDirectory;
  readonly log: Logger;
}

/** The open sessions. */
interface SourceDirectory {
  all(): readonly (OccupyingSession & { readonly stored: StoredSession })[];
  /** Why nothing may be started any more, if so. */
  readonly refusal: WireError | undefined;
}

/** Directory and options of a pi that is only queried. */
export interface Question {
  readonly cwd: string;
  readonly pi?: PiOptions;
  readonly signal: AbortSignal;
}

type OccupyingSession = ReturnType<OccupancyOptions["sessions"]> extends Iterable<infer S> ? S : never;

/** How long a warm child is not replaced after it was taken. */
const refillDelayMs = 500;

/** The source of children: a warm one if available, else a start, of which a limited number run at a time. */
export class ChildSource implements ChildStarter {
  readonly #options: ChildSourceOptions;
  readonly #starts: Gate;
  readonly #pool: WarmPool;
  readonly #health = new StartHealth();
  /** The limits on children. */
  readonly occupancy: Occupancy;
  readonly compaction: CompactionSettings;
  readonly environments: ChildEnvironments;

  constructor(options: ChildSourceOptions) {
    this.#options = options;
    const { limits, env, log, directory } = options;
    const sessions = () => directory.all();
    this.environments = new ChildEnvironments(env);
    this.#starts = new Gate(limits.maxParallelStarts, limits.startPlaceMs);
    this.#pool = new WarmPool({
      limits: limits.warm,
      env,
      log,
      start: async (kind, signal) => {
        // The session that took the last one has its first prompt soon, which the start would delay on a small machine.
        await pause(refillDelayMs, undefined, { signal });
        if (!this.occupancy.hasPlace)
          throw new WireError("overloaded", "The limit on children leaves no room for a warm one.");
        return await this.#starts.pass(() => this.#startWarm(kind, signal), { signal, isSpare: true });
      },
    });
    this.occupancy = new Occupancy({
      limits: limits.occupancy,
      sessions,
      warm: () => this.#pool.size,
      shrinkWarm: () => this.#pool.shrink(),
      log,
    });
    this.compaction = new CompactionSettings({
      directory: options.configuration?.agentDirectory,
      sessions,
      models: async () => {
        const signal = AbortSignal.timeout(2 * limits.child.startTimeoutMs);
        return await this.ask({ type: "get_available_models" }, { cwd: options.runDirectory, signal });
      },
      log,
    });
  }

  /** Number of warm children. */
  get warm(): number {
    return this.#pool.size;
  }

  /** Milliseconds until an automatic start is allowed; 0: now. */
  admit(): number {
    return this.#health.admit();
  }

  /** Throws errors of starting pi, `cwd_invalid` and `overloaded`; then nothing remains. */
  async start(stored: StoredSession, sinks: StartSinks, log: Logger): Promise<Started> {
    try {
      const started = await this.occupancy.place(() => this.#start(stored, sinks, log), sinks.signal);
      this.#health.succeeded();
      return started;
    } catch (error) {
      if (!sinks.signal.aborted) this.#health.failed();
      throw exhaustion(error) ?? error;
    }
  }

  /**
   * Starts a child for one query, in an ephemeral session, and ends it. Returns the data of its answer. It makes no
   * request to a model, even if an extension starts a run.
   */
  async ask(command: PiCommand, { cwd, pi = {}, signal }: Question): Promise<unknown> {
    const { locate, limits } = this.#options;
    const kind: WarmKind = { program: await locate(), cwd, options: pi };
    const start = async () => ({
      child: await this.#starts.pass(() => this.#startWarm(kind, signal, true), { signal }),
    });
    const { child } = await this.occupancy.place(start, signal);
    const abandon = (): void => void child.stop();
    signal.addEventListener("abort", abandon, { once: true });
    try {
      if (signal.aborted) abandon();
      const answered = await within(child.send(command), limits.child.startTimeoutMs);
      if (answered.kind === "done") return answered.value.data;
      throw new WireError("start_failed", `pi did not answer "${command.type}" in time.`);
    } finally {
      signal.removeEventListener("abort", abandon);
      await child.stop();
      await child.cleaned;
    }
  }

  /** The child that a former daemon left; reads its output from the next turn on. */
  adopt(left: LeftChild, stdio: ChildStdio, sinks: ChildSinks, log: Logger): Child {
    const { childId: id, statusKey, place, process: identity, program, left: state, generation } = left;
    const { helper, env, childRegistry, limits } = this.#options;
    const { signal } = new AbortController();
    const options = {
      program,
      cwd: place.directory,
      pi: {},
      helper,
      runDirectory: place.directory,
      env,
      childRegistry,
    };
    return new Child(
      { ...options, ...sinks, left: state, limits: limits.child, signal, log: log.child({ generation }) },
      { id, statusKey, stdio, place, identity },
    );
  }

  /** Ends the warm children. Resolves when they have been cleaned up. */
  close(): Promise<void> {
    this.occupancy.close();
    return this.#pool.close();
  }

  async #start(stored: StoredSession, sinks: StartSinks, log: Logger): Promise<Started> {
    this.#refuse();
    const cwd = await workingDirectory(stored.cwd);
    await requireRoot(cwd, this.#options.roots);
    if (cwd !== stored.cwd) throw movedDirectory(stored.cwd);
    const isNew = stored.ephemeral === true || (await ensureFile(stored));
    // A file with entries contains the session's name.
    const name = isNew || stored.generation === 1 ? spawnName(stored.name ?? "") : undefined;
    await this.compaction.write(stored.options.optimisation);
    const parts = partsOf(stored, this.#options.spillDirectory);
    if (parts !== undefined && stored.ephemeral !== true) this.#options.spill?.note(dirname(stored.file));
    const { customUi } = this.#options.configuration ?? {};
    const options = {
      ...(customUi === undefined ? {} : { customUi }),
      ...spawnOptions(stored.options, parts),
      ...(name === undefined ? {} : { name }),
    };
    const { environment = this.environments.own, mcpServers } = sinks;
    const hasServers = mcpServers?.isEmpty === false;
    const program = await this.#options.locate();
    requireOptions(program, options);
    if (hasServers) requireMcpServers(program);
    const kind: WarmKind = { program, cwd: stored.cwd, options, environment };
    const cold = (): Promise<Started> => this.#cold(kind, stored, { ...sinks, parts }, log);
    // A warm pi has read pi's settings already.
    const isBySettings = settingsOf(stored.options.optimisation) !== undefined;
    const isCold = stored.ephemeral === true || isBySettings || hasServers;
    const warm = isCold ? undefined : await this.#adopted(kind, stored.file, sinks, parts);
    const started = warm ?? (await cold());
    rememberParts(started.child, parts);
    if (stored.ephemeral === true || hasServers) return started;
    this.#pool.wanted(kind);
    return started;
  }

  async #adopted(
    kind: WarmKind,
    sessionFile: string,
    sinks: StartSinks,
    parts: PartsConfig | undefined,
  ): Promise<Started | undefined> {
    const { model, thinking, name } = kind.options;
    if (!isExactModel(model)) return undefined;
    const child = await this.#pool.take(kind);
    if (child === undefined) return undefined;
    sinks.onPi();
    const abandon = (): void => void child.stop();
    sinks.signal.addEventListener("abort", abandon, { once: true });
    try {
      if (sinks.signal.aborted) abandon();
      const adoption = adopt(child, { sessionFile, model, thinking, name, parts, sinks });
      const adopted = await within(adoption, this.#options.limits.child.startTimeoutMs);
      if (adopted.kind === "done") return { child, ready: adopted.value };
      throw new WireError("start_failed", "A warm pi did not switch to the session in time.");
    } catch (error) {
      this.#options.log.info({ err: error }, "cannot use a warm child; starting another");
      // Reports from its shutdown do not belong to the session's own child.
      child.rebind(unassignedSinks);
      await child.stop();
      await child.cleaned;
      return undefined;
    } finally {
      sinks.signal.removeEventListener("abort", abandon);
    }
  }

  async #cold(
    kind: WarmKind,
    stored: StoredSession,
    sinks: StartSinks & { readonly parts: PartsConfig | undefined },
    log: Logger,
  ): Promise<Started> {
    const start = async (): Promise<Started> => {
      this.#refuse();
      sinks.onPi();
      return await startPi({
        ...this.#of(kind),
        ...(stored.ephemeral === true ? { sessionId: stored.sessionId } : { sessionFile: stored.file }),
        contextWithinMs: this.#contextWithinMs(stored),
        log: log.child({ generation: stored.generation }),
        ...sinks,
      });
    };
    return await this.#starts.pass(start, { signal: sinks.signal });
  }

  /**
   * An extension may start a run before the context, which is sent after the start, has arrived. If its
   * `session_start` waited for that run, it would block the start, so the run may continue before the start's
   * timeout.
   */
  #contextWithinMs({ context }: StoredSession): number | undefined {
    return context?.kept === undefined ? undefined : this.#options.limits.child.startTimeoutMs / 2;
  }

  async #startWarm(kind: WarmKind, signal: AbortSignal, isOnlyAsked = false): Promise<Child> {
    this.#refuse();
    const log = this.#options.log.child({ warm: true });
    const { child } = await startPi({ ...this.#of(kind), log, signal, isOnlyAsked, ...unassignedSinks });
    return child;
  }

  #of({
    program,
    cwd,
    options,
    environment,
  }: WarmKind): Omit<ChildOptions, "sessionFile" | "sessionId" | "log" | "signal" | keyof ChildSinks> {
    const { helper, runDirectory, env, childRegistry, kept, limits } = this.#options;
    const own = { program, cwd, pi: options, environment, limits: limits.child };
    return { ...own, helper, runDirectory, env, childRegistry, kept };
  }

  #refuse(): void {
    const why = this.#options.directory.refusal;
    if (why !== undefined) throw why;
  }
}

/** Sink for a child that is not yet assigned to a session; its extensions report again with the session. */
const unassignedSinks: ChildSinks = { onEvent: () => {}, onFrame: () => {}, onDiagnostic: () => {} };

/**
 * Returns whether the session's file had to be created. If an opened file is missing, another process has removed it,
 * which is `session_file_unusable`.
 */
async function ensureFile({ sessionId, cwd, file, isOpened, generation, createdAt }: StoredSession): Promise<boolean> {
  const isNew =
    (isOpened !== true || generation > 1) &&
    (await ensureSessionFile(file, { sessionId, cwd, now: new Date(createdAt) }));
  if (!isNew) requireOwnHeader({ sessionId, file });
  if (isOpened === true && generation === 1) await checkEntries(file);
  return isNew;
}
