import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "pino";
import { configurationRefusal } from "../../protocol/configuration/refusal.ts";
import type { OptimisationConfig } from "../../protocol/optimisation/config.ts";
import type { OptimisationOptions } from "../../protocol/optimisation/options.ts";
import { resolveOptimisation } from "../../protocol/optimisation/resolve.ts";
import { thresholdOf } from "../../protocol/optimisation/threshold.ts";
import type { PiModel } from "../../protocol/pi-data.ts";
import { canonicalJson } from "../lib/canonical-json.ts";
import { SerialQueue } from "../lib/serial-queue.ts";
import type { StoredSession } from "../store/sessions.ts";

export interface CompactionSettingsOptions {
  /** pi's configuration directory that only this daemon's sessions have. `undefined`: there is none. */
  readonly directory: string | undefined;
  readonly sessions: () => Iterable<{ readonly stored: StoredSession }>;
  /** What pi answers when it is asked for its models. */
  readonly models: () => Promise<unknown>;
  readonly log: Logger;
}

type Compaction = OptimisationConfig["compaction"];

type Overrides = Readonly<Record<string, unknown>>;

/** Beside `settings.json`: what of its overrides is ours, and may be taken out again. */
const oursName = "pi-rpcd-compaction.json";
const place = ["optimisation", "compaction", "route"];
const maxWaiting = 1_000;

/**
 * Has pi compact earlier by its own settings (route `settings`). They hold for all sessions of a configuration directory,
 * and a user's own is never written. Overrides that somebody else has written there stay as they are, and ours go when no
 * session that is open wants them.
 */
export class CompactionSettings {
  readonly #options: CompactionSettingsOptions;
  readonly #queue = new SerialQueue({ maxWaiting, onFull: () => new Error("Too many sessions start.") });
  /** What was written, by {@link keyOf}; null: nothing of ours is there; undefined: nobody has looked. */
  #written: string | null | undefined;
  /** What sessions want that are being made, by their ids. */
  readonly #reserved = new Map<string, Compaction>();

  constructor(options: CompactionSettingsOptions) {
    this.#options = options;
  }

  /** Throws `invalid_params` where a session wants the route and cannot have it. */
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

  /** The same, for a session that is being made: it counts among the others until it is released. */
  reserve(sessionId: string, optimisation: OptimisationOptions | undefined): Disposable {
    this.require(sessionId, optimisation);
    const wanted = settingsOf(optimisation);
    if (wanted !== undefined) this.#reserved.set(sessionId, wanted);
    return { [Symbol.dispose]: () => void this.#reserved.delete(sessionId) };
  }

  /** Before a session's pi starts. Never rejects: pi compacts as it would, where nothing can be written. */
  async write(optimisation: OptimisationOptions | undefined): Promise<void> {
    const wanted = settingsOf(optimisation);
    if (wanted === undefined) await this.giveBack();
    else await this.#run((directory) => this.#write(directory, wanted));
  }

  /** Takes out what is ours, where no session wants it any more. Never rejects. */
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
      log.warn({ err: error, directory }, "the thresholds of compaction could not be written into pi's settings");
    }
  }

  async #write(directory: string, compaction: Compaction): Promise<void> {
    const key = keyOf(compaction);
    if (this.#written === key) return;
    const overrides: Record<string, unknown> = {};
    const answer = await this.#options.models();
    const models = isObject(answer) && Array.isArray(answer["models"]) ? (answer["models"] as readonly PiModel[]) : [];
    if (models.length === 0) throw new Error("pi has named no models.");
    for (const { provider, id, contextWindow = 0 } of models) {
      const threshold = thresholdOf(compaction, { provider, id, contextWindow });
      if (threshold === undefined) continue;
      const { reserveTokens, keepRecentTokens } = threshold;
      overrides[`${provider}/${id}`] = { reserveTokens, keepRecentTokens };
    }
    await mkdir(directory, { recursive: true, mode: 0o700 });
    await this.#replace(directory, await oursIn(directory), overrides);
    this.#written = key;
  }

  /** What is ours is known at each moment: a daemon that is killed in between leaves nothing that nobody takes out. */
  async #replace(directory: string, ours: readonly Overrides[], next: Overrides): Promise<void> {
    const file = join(directory, "settings.json");
    const settings = await objectIn(file);
    const compaction = isObject(settings["compaction"]) ? settings["compaction"] : {};
    const before = isObject(compaction["modelOverrides"]) ? compaction["modelOverrides"] : {};
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
 * Throws `invalid_params` where a call decides what the route writes without naming it: what naming it needs would not be
 * asked of it.
 */
export function requireNamedRoute(given: OptimisationOptions | undefined, merged: OptimisationOptions): void {
  if (given?.compaction === undefined || given.compaction.route === "settings" || settingsOf(merged) === undefined)
    return;
  throw refused(`Route "settings" holds for all sessions; name it in the call, or use "draft"`);
}

/** What the route would have written. `undefined`: it is another one. */
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

/** What was written there: of a daemon that was killed in the middle also what was there before. */
async function oursIn(directory: string): Promise<readonly Overrides[]> {
  const text = await readFile(join(directory, oursName), "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return "[]";
    throw error;
  });
  const ours: unknown = JSON.parse(text);
  if (!Array.isArray(ours) || !ours.every(isObject)) throw new Error(`${oursName} holds something else.`);
  return ours;
}

async function objectIn(file: string): Promise<Readonly<Record<string, unknown>>> {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return "{}";
    throw error;
  });
  const settings: unknown = JSON.parse(text);
  if (!isObject(settings)) throw new Error(`${file} is no object.`);
  return settings;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
