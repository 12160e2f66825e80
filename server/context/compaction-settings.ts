import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "pino";
import { configurationRefusal } from "../../protocol/configuration/refusal.ts";
import { isRecord } from "../../protocol/objects.ts";
import type { OptimisationConfig } from "../../protocol/optimisation/config.ts";
import type { OptimisationOptions } from "../../protocol/optimisation/options.ts";
import { resolveOptimisation } from "../../protocol/optimisation/resolve.ts";
import { thresholdOf } from "../../protocol/optimisation/threshold.ts";
import type { PiModel } from "../../protocol/pi-data.ts";
import { canonicalJson } from "../lib/canonical-json.ts";
import { SerialQueue } from "../lib/serial-queue.ts";
import type { StoredSession } from "../store/stored-session.ts";

export interface CompactionSettingsOptions {
  /** pi's configuration directory, if only this daemon's sessions use it. */
  readonly directory: string | undefined;
  readonly sessions: () => Iterable<{ readonly stored: StoredSession }>;
  /** pi's answer with its models. */
  readonly models: () => Promise<unknown>;
  readonly log: Logger;
}

type Compaction = OptimisationConfig["compaction"];

type Overrides = Readonly<Record<string, unknown>>;

/** Stored next to `settings.json`: the overrides that the daemon wrote and may remove again. */
const oursName = "pi-rpcd-compaction.json";
const place = ["optimisation", "compaction", "route"];
const maxWaiting = 1_000;

/**
 * Makes pi compact earlier through its own settings (route `settings`). They apply to all sessions of a configuration
 * directory; a user's own directory is never written. Overrides of other programs stay unchanged, and the daemon's
 * are removed when no open session wants them.
 */
export class CompactionSettings {
  readonly #options: CompactionSettingsOptions;
  readonly #queue = new SerialQueue({ maxWaiting, onFull: () => new Error("Too many sessions start.") });
  /** What was written, by {@link keyOf}; null: no overrides of the daemon; undefined: not read yet. */
  #written: string | null | undefined;
  /** The settings for sessions being created, by their ids. */
  readonly #reserved = new Map<string, Compaction>();

  constructor(options: CompactionSettingsOptions) {
    this.#options = options;
  }

  /** Throws `invalid_params` where the route is not possible for a session. */
  require(sessionId: string, optimisation: OptimisationOptions | undefined): void {
    const wanted = settingsOf(optimisation);
    if (wanted === undefined) return;
    if (this.#options.directory === undefined) {
      throw refused(`Route "settings" would change your pi settings; use "draft"`);
    }
    const key = keyOf(wanted);
    for (const [otherId, theirs] of this.#wanted()) {
      if (otherId !== sessionId && keyOf(theirs) !== key) {
        throw refused(`Route "settings" needs one value for all sessions of this configuration directory; use "draft"`);
      }
    }
  }

  /** The same for a session being created: it counts as a session until it is released. */
  reserve(sessionId: string, optimisation: OptimisationOptions | undefined): Disposable {
    this.require(sessionId, optimisation);
    const wanted = settingsOf(optimisation);
    if (wanted !== undefined) this.#reserved.set(sessionId, wanted);
    return { [Symbol.dispose]: () => void this.#reserved.delete(sessionId) };
  }

  /** Called before a session's pi starts. Never rejects: without the settings, pi compacts as usual. */
  async write(optimisation: OptimisationOptions | undefined): Promise<void> {
    const wanted = settingsOf(optimisation);
    if (wanted === undefined) await this.giveBack();
    else await this.#run((directory) => this.#write(directory, wanted));
  }

  /** Removes the daemon's overrides when no session wants them. Never rejects. */
  async giveBack(): Promise<void> {
    if (this.#written === null) return;
    await this.#run(async (directory) => {
      if ([...this.#wanted()].length > 0) return;
      const ours = await oursIn(directory);
      if (ours.length > 0) await this.#replace(directory, ours, {});
      this.#written = null;
    });
  }

  *#wanted(): Generator<readonly [sessionId: string, Compaction]> {
    yield* this.#reserved;
    for (const { stored } of this.#options.sessions()) {
      const wanted = settingsOf(stored.options.optimisation);
      if (wanted !== undefined) yield [stored.sessionId, wanted];
    }
  }

  async #run(work: (directory: string) => Promise<void>): Promise<void> {
    const { directory, log } = this.#options;
    if (directory === undefined) return;
    try {
      await this.#queue.run(() => work(directory), new AbortController().signal);
    } catch (error) {
      log.warn({ err: error, directory }, "cannot write compaction thresholds to pi's settings");
    }
  }

  async #write(directory: string, compaction: Compaction): Promise<void> {
    const key = keyOf(compaction);
    if (this.#written === key) return;
    const overrides: Record<string, unknown> = {};
    const answer = await this.#options.models();
    const models = isRecord(answer) && Array.isArray(answer["models"]) ? (answer["models"] as readonly PiModel[]) : [];
    if (models.length === 0) throw new Error("pi reported no models.");
    for (const { provider, id, contextWindow = 0, cost } of models) {
      const threshold = thresholdOf(compaction, { provider, id, contextWindow, cost: { tiers: tiersIn(cost) } });
      if (threshold === undefined) continue;
      const { reserveTokens, keepRecentTokens } = threshold;
      overrides[`${provider}/${id}`] = { reserveTokens, keepRecentTokens };
    }
    await mkdir(directory, { recursive: true, mode: 0o700 });
    await this.#replace(directory, await oursIn(directory), overrides);
    this.#written = key;
  }

  /**
   * The daemon's overrides are recorded before they are written, so that a killed daemon leaves none that are never
   * removed.
   */
  async #replace(directory: string, ours: readonly Overrides[], next: Overrides): Promise<void> {
    const file = join(directory, "settings.json");
    const settings = await objectIn(file);
    const compaction = isRecord(settings["compaction"]) ? settings["compaction"] : {};
    const before = isRecord(compaction["modelOverrides"]) ? compaction["modelOverrides"] : {};
    const isOurs = (model: string, value: unknown): boolean =>
      ours.some((known) => Object.hasOwn(known, model) && canonicalJson(known[model]) === canonicalJson(value));
    const others = Object.fromEntries(Object.entries(before).filter(([model, value]) => !isOurs(model, value)));
    const mine = Object.fromEntries(Object.entries(next).filter(([model]) => !Object.hasOwn(others, model)));
    const merged = { ...others, ...mine };
    const kept = join(directory, oursName);
    await replaceFile(kept, [...ours, mine]);
    const { modelOverrides: _, ...rest } = compaction;
    const written = Object.keys(merged).length === 0 ? rest : { ...rest, modelOverrides: merged };
    const { compaction: __, ...further } = settings;
    await replaceFile(file, Object.keys(written).length === 0 ? further : { ...further, compaction: written });
    if (Object.keys(mine).length === 0) await rm(kept, { force: true });
    else await replaceFile(kept, [mine]);
  }
}

/**
 * Throws `invalid_params` where a call changes what the route writes without naming the route, because the checks for
 * the route would be skipped.
 */
export function requireNamedRoute(given: OptimisationOptions | undefined, merged: OptimisationOptions): void {
  if (given?.compaction === undefined || given.compaction.route === "settings" || settingsOf(merged) === undefined)
    return;
  throw refused(`Route "settings" applies to all sessions; name it in the call, or use "draft"`);
}

/** The overrides of the route. `undefined`: another route. */
export function settingsOf(optimisation: OptimisationOptions | undefined): Compaction | undefined {
  if (optimisation?.compaction === undefined) return undefined;
  const { compaction } = resolveOptimisation(optimisation);
  return compaction.enabled && compaction.route === "settings" ? compaction : undefined;
}

function keyOf({ thresholdPercent, maxContextTokens, models }: Compaction): string {
  return canonicalJson({ thresholdPercent, maxContextTokens, models });
}

function refused(why: string): Error {
  return configurationRefusal([{ place, why }]);
}

async function replaceFile(file: string, value: unknown): Promise<void> {
  const draft = `${file}.${process.pid}.tmp`;
  await writeFile(draft, `${JSON.stringify(value, undefined, 2)}\n`, { mode: 0o600 });
  await rename(draft, file);
}

/** The recorded overrides; after a killed daemon, possibly also those from before. */
async function oursIn(directory: string): Promise<readonly Overrides[]> {
  const text = await readFile(join(directory, oursName), "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return "[]";
    throw error;
  });
  const ours: unknown = JSON.parse(text);
  if (!Array.isArray(ours) || !ours.every(isRecord)) throw new Error(`${oursName} has an unexpected format.`);
  return ours;
}

async function objectIn(file: string): Promise<Readonly<Record<string, unknown>>> {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return "{}";
    throw error;
  });
  const settings: unknown = JSON.parse(text);
  if (!isRecord(settings)) throw new Error(`${file} is not a JSON object.`);
  return settings;
}

/** The dearer tiers of a price. An extension can register any. */
function tiersIn(cost: unknown): { readonly inputTokensAbove: number }[] {
  const tiers = isRecord(cost) ? cost["tiers"] : undefined;
  return (Array.isArray(tiers) ? tiers : [])
    .filter(isRecord)
    .flatMap(({ inputTokensAbove: above }) => (typeof above === "number" ? [{ inputTokensAbove: above }] : []));
}
