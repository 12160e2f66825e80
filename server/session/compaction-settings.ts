import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
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

const place = ["optimisation", "compaction", "route"];
const maxWaiting = 1_000;

/**
 * Has pi compact earlier by its own settings (route `settings`). They hold for all sessions of a configuration directory,
 * and a user's own is never written.
 */
export class CompactionSettings {
  readonly #options: CompactionSettingsOptions;
  readonly #queue = new SerialQueue({ maxWaiting, onFull: () => new Error("Too many sessions start.") });
  #written: string | undefined;

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
    for (const { stored } of this.#options.sessions()) {
      const theirs = stored.sessionId === sessionId ? undefined : settingsOf(stored.options.optimisation);
      if (theirs !== undefined && keyOf(theirs) !== key) {
        throw refused(`Route "settings" needs one value for all sessions of this configuration directory; use "draft"`);
      }
    }
  }

  /** Before a session's pi starts. Never rejects: pi compacts as it would, where nothing can be written. */
  async write(optimisation: OptimisationOptions | undefined): Promise<void> {
    const { directory, log } = this.#options;
    const wanted = settingsOf(optimisation);
    if (wanted === undefined || directory === undefined) return;
    try {
      await this.#queue.run(() => this.#write(directory, wanted), new AbortController().signal);
    } catch (error) {
      log.warn({ err: error, directory }, "the thresholds of compaction could not be written into pi's settings");
    }
  }

  async #write(directory: string, compaction: Compaction): Promise<void> {
    const key = keyOf(compaction);
    if (this.#written === key) return;
    const overrides: Record<string, { reserveTokens: number; keepRecentTokens: number }> = {};
    const answer = await this.#options.models();
    const models = isObject(answer) && Array.isArray(answer["models"]) ? (answer["models"] as readonly PiModel[]) : [];
    for (const { provider, id, contextWindow = 0 } of models) {
      const threshold = thresholdOf(compaction, { provider, id, contextWindow });
      if (threshold === undefined) continue;
      const { reserveTokens, keepRecentTokens } = threshold;
      overrides[`${provider}/${id}`] = { reserveTokens, keepRecentTokens };
    }
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const file = join(directory, "settings.json");
    const settings = await objectIn(file);
    const before = isObject(settings["compaction"]) ? settings["compaction"] : {};
    const next = { ...settings, compaction: { ...before, modelOverrides: overrides } };
    const draft = `${file}.${process.pid}.tmp`;
    await writeFile(draft, `${JSON.stringify(next, undefined, 2)}\n`, { mode: 0o600 });
    await rename(draft, file);
    this.#written = key;
  }
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
