import { dirname } from "node:path";
import { checkedParts, type MergedParts, type PartOptions } from "../../protocol/configuration/part-options.ts";
import { configurationRefusal } from "../../protocol/configuration/refusal.ts";
import { WireError } from "../../protocol/errors.ts";
import type { Result } from "../../protocol/methods.ts";
import type { OptimisationConfig } from "../../protocol/optimisation/config.ts";
import type { OptimisationOptions } from "../../protocol/optimisation/options.ts";
import type { PruningConfig } from "../../protocol/pruning/config.ts";
import type { PruningOptions } from "../../protocol/pruning/options.ts";
import { mergePruning } from "../../protocol/pruning/resolve.ts";
import type { Roots } from "../core/roots.ts";
import { isChildOf, type SessionCore } from "../core/session-core.ts";
import type { SessionRecord } from "../core/session-record.ts";
import { SerialQueue } from "../lib/serial-queue.ts";
import type { Journal } from "../log/journal.ts";
import type { Child } from "../pi/child.ts";
import { type CompactionSettings, requireNamedRoute } from "./compaction-settings.ts";
import { noConfiguration, requireFiles, reread, type SessionConfiguration, tellProjectProblem } from "./part-layers.ts";
import { hasParts, partsOf, rememberParts, spawnOptions } from "./parts-config.ts";
import type { PolicyTools } from "./policy-tools.ts";
import type { Spill } from "./spill.ts";

export interface PartsConfiguringOptions {
  readonly record: SessionRecord;
  /** Directory for texts that parts move out of transcripts. */
  readonly spillDirectory: string;
  /** Records the directories of sessions that may refer to such texts. */
  readonly spill?: Pick<Spill, "note"> | undefined;
  /** Receives the reason why a project's layer is ignored. */
  readonly journal: Pick<Journal, "say">;
  /** The session settings of the daemon's configuration. */
  readonly configuration?: Pick<SessionConfiguration, "profiles" | "pruning">;
  /** Directories that files of a call must be in. */
  readonly roots?: Roots;
  /** Refuses an impossible configuration. */
  readonly compaction?: CompactionSettings;
  /** Refuses tools that the running pi does not have. */
  readonly tools?: Pick<PolicyTools, "require">;
}

const maxWaiting = 64;

interface Configured {
  readonly optimisation: OptimisationConfig;
  readonly pruning: PruningConfig;
  readonly from: "nextRequest" | "nextPi";
}

/** Changes the configuration of the parts inside a session's pi: in its record, and in the running pi. */
export class PartsConfiguring {
  readonly #core: SessionCore;
  readonly #options: PartsConfiguringOptions;
  readonly #queue = new SerialQueue({
    maxWaiting,
    onFull: () => new WireError("overloaded", "Too many calls configure this session.", { retryAfterMs: 1_000 }),
  });

  constructor(core: SessionCore, options: PartsConfiguringOptions) {
    this.#core = core;
    this.#options = options;
  }

  /**
   * Adds a layer to the session's configuration. When it resolves, the change is on disk and known to the running pi,
   * if any; no pi is started. Throws `invalid_params`, `path_invalid`, `session_closed`, `store_failed`,
   * `link_failed`.
   */
  async configure(given: OptimisationOptions, signal: AbortSignal): Promise<Result<"optimisation/configure">> {
    const { optimisation, from } = await this.#queue.run(() => this.#configure({ optimisation: given }), signal);
    return { configuration: optimisation, from };
  }

  /**
   * The same for pruning. `isReread`: reads the layers below the callers' again, and sends the result to the running
   * pi even if it is equal, because files that it names may have changed.
   */
  async prune(given: PruningOptions, isReread: boolean, signal: AbortSignal): Promise<Result<"pruning/configure">> {
    const how = { isReread };
    const { pruning, from } = await this.#queue.run(() => this.#configure({ pruning: given }, how), signal);
    return { configuration: pruning, from };
  }

  /** A child has come from another session, whose configuration may differ. */
  async took(child: Child): Promise<void> {
    await this.#queue.run(() => this.#give(child));
  }

  async #configure(given: PartOptions, { isReread = false } = {}): Promise<Configured> {
    const { record, roots } = this.#options;
    this.#requireOpen();
    await requireFiles(given, roots);
    const { options, ownPruning } = record.stored;
    const below = isReread ? await this.#reread(given.pruning) : options;
    const { merged, mistakes, optimisation, pruning } = checkedParts([below, given], options, given);
    if (mistakes.length > 0) throw configurationRefusal(mistakes);
    requireNamedRoute(given.optimisation, merged.optimisation ?? {});
    if (given.optimisation !== undefined) await this.#options.tools?.require(given.optimisation, merged.optimisation);
    this.#options.compaction?.require(record.stored.sessionId, merged.optimisation);
    this.#requireOpen();
    const before = this.#parts();
    const own = given.pruning === undefined ? ownPruning : mergePruning(ownPruning, given.pruning);
    record.partsBy(merged, own);
    await record.saved().catch((error: unknown) => {
      record.partsBy(options, ownPruning);
      throw error;
    });
    await this.#options.compaction?.giveBack();
    const after = this.#parts();
    // A pi that starts now may have read the record before.
    await this.#core.startOver();
    const { state } = this.#core;
    const configured = { optimisation, pruning };
    if (state.kind !== "idle" && state.kind !== "running") return { ...configured, from: "nextPi" };
    if (lacksTools(options, before, after)) return { ...configured, from: "nextPi" };
    await this.#give(state.child, isReread);
    return { ...configured, from: "nextRequest" };
  }

  async #reread(given: PruningOptions | undefined): Promise<MergedParts> {
    const { record, journal, configuration = noConfiguration } = this.#options;
    const { projectProblem, ...merged } = await reread(record.stored, configuration, given);
    tellProjectProblem({ journal }, projectProblem);
    return merged;
  }

  async #give(child: Child, isAnew = false): Promise<void> {
    const parts = this.#parts();
    const { stored } = this.#options.record;
    if (parts !== undefined && stored.ephemeral !== true) this.#options.spill?.note(dirname(stored.file));
    if (!isChildOf(this.#core, child) || (!isAnew && hasParts(child, parts))) return;
    try {
      await child.link.send({ kind: "configure", parts: parts ?? null });
      rememberParts(child, parts);
    } catch (error) {
      // The next pi is started with it.
      if (isChildOf(this.#core, child)) throw error;
    }
  }

  #parts(): ReturnType<typeof partsOf> {
    return partsOf(this.#options.record.stored, this.#options.spillDirectory);
  }

  #requireOpen(): void {
    const { kind } = this.#core.state;
    if (kind === "closing" || kind === "closed") throw new WireError("session_closed", "The session is being closed.");
  }
}

/** A pi that was started with a list of tools cannot get further ones. */
function lacksTools(
  options: Parameters<typeof spawnOptions>[0],
  before: ReturnType<typeof partsOf>,
  after: ReturnType<typeof partsOf>,
): boolean {
  const has = new Set(spawnOptions(options, before).tools);
  return spawnOptions(options, after).tools?.some((tool) => !has.has(tool)) === true;
}
