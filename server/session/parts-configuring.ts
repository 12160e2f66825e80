import { dirname } from "node:path";
import { configurationRefusal } from "../../protocol/configuration/refusal.ts";
import { WireError } from "../../protocol/errors.ts";
import type { Result } from "../../protocol/methods.ts";
import { checkedOptimisation } from "../../protocol/optimisation/check.ts";
import type { OptimisationOptions } from "../../protocol/optimisation/options.ts";
import { SerialQueue } from "../lib/serial-queue.ts";
import type { Child } from "../pi/child.ts";
import { type CompactionSettings, requireNamedRoute } from "./compaction-settings.ts";
import { requireFiles } from "./optimisation-layers.ts";
import { gaveParts, hasParts, partsOf, spawnOptions } from "./parts-config.ts";
import type { Roots } from "./roots.ts";
import { isChildOf, type SessionCore } from "./session-core.ts";
import type { SessionRecord } from "./session-record.ts";
import type { Spill } from "./spill.ts";

export interface PartsConfiguringOptions {
  readonly record: SessionRecord;
  /** Where the parts leave texts. */
  readonly spillDirectory: string;
  /** Who has to know where a session lies that may refer to them. */
  readonly spill?: Pick<Spill, "note"> | undefined;
  /** Where files must lie that a call names. */
  readonly roots?: Roots;
  /** Refuses what a session cannot go by. */
  readonly compaction?: CompactionSettings;
}

const maxWaiting = 64;

/** Changes what the parts inside a session's pi go by: in its record, and in the pi that it has. */
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
   * Puts a layer on top of what the session goes by. On disk when it resolves, and known to the pi that runs, if there is one;
   * none is started for it. Throws `invalid_params`, `path_invalid`, `session_closed`, `store_failed`, `link_failed`.
   */
  configure(given: OptimisationOptions, signal: AbortSignal): Promise<Result<"optimisation/configure">> {
    return this.#queue.run(() => this.#configure(given), signal);
  }

  /** A child has come from another session, which may go by something else. */
  async took(child: Child): Promise<void> {
    await this.#queue.run(() => this.#give(child));
  }

  async #configure(given: OptimisationOptions): Promise<Result<"optimisation/configure">> {
    const { record, roots } = this.#options;
    this.#requireOpen();
    await requireFiles(given, roots);
    const { options } = record.stored;
    const { merged, config, mistakes } = checkedOptimisation([options.optimisation, given], options, given);
    if (mistakes.length > 0) throw configurationRefusal(mistakes);
    requireNamedRoute(given, merged);
    this.#options.compaction?.require(record.stored.sessionId, merged);
    this.#requireOpen();
    const before = this.#parts();
    record.optimisedBy(Object.keys(merged).length === 0 ? undefined : merged);
    await record.saved().catch((error: unknown) => {
      record.optimisedBy(options.optimisation);
      throw error;
    });
    await this.#options.compaction?.giveBack();
    const after = this.#parts();
    // What starts now may have looked at the record before.
    await this.#core.startOver();
    const { state } = this.#core;
    if (state.kind !== "idle" && state.kind !== "running") return { configuration: config, from: "nextPi" };
    if (lacksTools(options, before, after)) return { configuration: config, from: "nextPi" };
    await this.#give(state.child);
    return { configuration: config, from: "nextRequest" };
  }

  async #give(child: Child): Promise<void> {
    const parts = this.#parts();
    const { stored } = this.#options.record;
    if (parts !== undefined && stored.ephemeral !== true) this.#options.spill?.note(dirname(stored.file));
    if (!isChildOf(this.#core, child) || hasParts(child, parts)) return;
    try {
      await child.link.send({ kind: "configure", parts: parts ?? null });
      gaveParts(child, parts);
    } catch (error) {
      // The next one is started with it.
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

/** A pi that was started with a list of tools gets no further ones. */
function lacksTools(
  options: Parameters<typeof spawnOptions>[0],
  before: ReturnType<typeof partsOf>,
  after: ReturnType<typeof partsOf>,
): boolean {
  const has = new Set(spawnOptions(options, before).tools);
  return spawnOptions(options, after).tools?.some((tool) => !has.has(tool)) === true;
}
