import { closeSync, existsSync, openSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Logger } from "pino";
import type { StoreDamage, StoreInfo } from "../../protocol/daemon.ts";
import { limits } from "../configuration/limits.ts";
import { keptFor } from "../lib/kept-for.ts";
import { ChangeLog, newestLogged } from "./change-log.ts";
import { CommitMark } from "./commit-mark.ts";
import { Copier, type CopierOptions } from "./copier.ts";
import { writeCopy } from "./copy.ts";
import { findDamage, isNewerThanCopy } from "./damage.ts";
import { Database } from "./database.ts";
import { schemaVersion } from "./migrations.ts";
import { aboveAll, isBuilt, type RebuildOptions, type Rebuilt, rebuild } from "./rebuild.ts";
import { SessionList } from "./session-list.ts";
import { SessionStore } from "./sessions.ts";
import { asidePath, damagedStores, replaceStore } from "./set-aside.ts";
import { backUpOlder } from "./upgrade.ts";

/** The files of a store before it is opened. */
export interface StoreCheck {
  /** As a sentence; then opening the store rebuilds it. */
  readonly damage: string | undefined;
  /** The newest known commit. */
  readonly noted: number | undefined;
  /** Whether the log of changes is of this store: older versions write none. */
  readonly isLogOfStore: boolean;
}

export interface OpenStoreOptions extends Pick<RebuildOptions, "findSession" | "textsIn"> {
  /** The database's file; its other files are next to it. */
  readonly path: string;
  /** Of this store; nothing has changed it since then. */
  readonly found: StoreCheck;
  /** Whether this daemon still holds the directory. */
  readonly isHeld?: () => boolean;
  readonly log: Logger;
  /** For tests. */
  readonly copies?: Pick<CopierOptions, "write" | "limits">;
}

/** The store of a daemon, checked, and rebuilt if it was damaged. */
export interface OpenStore {
  readonly database: Database;
  readonly sessions: SessionStore;
  readonly copier: Copier;
  info(): StoreInfo;
  close(): void;
}

/** Looks for damage. Throws if the store cannot be read for another reason. */
export function checkStore(path: string): StoreCheck {
  finishReplacing(path);
  const mark = CommitMark.open(markOf(path));
  try {
    const marked = mark.read();
    const isLogOfStore = mark.isLogged || !existsSync(path);
    const noted = isLogOfStore ? Math.max(marked ?? 0, newestLogged(path)) || undefined : marked;
    return { damage: findDamage(path, noted), noted, isLogOfStore };
  } finally {
    mark.close();
  }
}

/**
 * Opens the store. A damaged one is renamed, and a new one is built from its copy and its log; that is logged as an
 * error and reported in {@link StoreInfo}. A store of an older version is copied first. Throws a `NewerStoreError`,
 * or an error if the store cannot be opened, copied or rebuilt.
 */
export function openStore(options: OpenStoreOptions): OpenStore {
  const { path, log } = options;
  const { damage, noted, isLogOfStore } = options.found;
  const listFile = join(dirname(path), "sessions.jsonl");
  const isHeld = options.isHeld ?? (() => true);
  const mark = CommitMark.open(markOf(path));
  let changes: ChangeLog | undefined;
  try {
    const listed = SessionList.read(listFile);
    if (damage !== undefined) {
      const report = rebuildStore({ ...options, damage, noted: noted ?? 0, listed, now: Date.now() });
      log.error({ damage: report }, "the store was damaged; it was set aside and rebuilt from its copy and its log");
    } else if (!isLogOfStore) ChangeLog.forget(path);
    const older = backUpOlder(path, Date.now());
    if (older !== undefined)
      log.info(older, "the store has an older schema version; it was copied and will be migrated");
    createPrivate(path);
    changes = new ChangeLog(path, schemaVersion, limits.storeCopies.maxChangeLogBytes);
    const database = new Database(path, (error) => log.error({ err: error }, "a transaction of the store failed"), {
      mark,
      log: changes,
      isHeld,
      onRecovered: () => log.info("the store works again"),
    });
    const ahead = listed.ahead.map((session) => aboveAll(session, Date.now()));
    const list = new SessionList(listFile, (error) => log.warn({ err: error }, "cannot write the list of sessions"));
    const sessions = new SessionStore(database, list, { ahead, closed: listed.closed });
    const copier = new Copier({
      path,
      log: changes,
      limits: limits.storeCopies,
      commits: () => database.commits,
      isHeld,
      onFailure: (error) => log.warn({ err: error }, "cannot copy the store"),
      ...options.copies,
    });
    // Checked once a second at most, because the value rarely changes.
    const files = keptFor(1_000, () => filesOf(path));
    return {
      database,
      sessions,
      copier,
      info: () => {
        const { failure } = copier;
        const copy = failure === undefined ? {} : { copyFailure: failure };
        return { ...database.health, unwritten: database.unwritten, ...copy, ...files() };
      },
      close: () => {
        copier.close();
        database.close();
        list.close();
        changes?.close();
        mark.close();
      },
    };
  } catch (error) {
    changes?.close();
    mark.close();
    throw error;
  }
}

const suffix = ".rebuilt";

function markOf(path: string): string {
  return join(dirname(path), "store.mark");
}

function rebuildStore(options: Omit<RebuildOptions, "target">): StoreDamage {
  const { path, now } = options;
  const target = `${path}.rebuilding`;
  const build = (): Rebuilt => {
    for (const part of ["", "-wal", "-shm"]) rmSync(`${target}${part}`, { force: true });
    createPrivate(target);
    return rebuild({ ...options, target });
  };
  let built = build();
  if (built.isStale && isNewerThanCopy(path)) {
    // The log is not synced: a power failure may have damaged it, and left a database without its newest commits.
    writeCopy(path);
    built = build();
  }
  const report: StoreDamage = { path: asidePath(path, now), at: now, ...built.report };
  writeFileSync(`${path}${suffix}.json`, JSON.stringify(report), { mode: 0o600 });
  renameSync(target, `${path}${suffix}`);
  finishReplacing(path);
  return report;
}

/** Completes a replacement that a killed daemon began. */
function finishReplacing(path: string): void {
  const rebuilt = `${path}${suffix}`;
  if (isBuilt(rebuilt)) replaceStore(path, rebuilt, JSON.parse(readFileSync(`${rebuilt}.json`, "utf8")) as StoreDamage);
  rmSync(`${rebuilt}.json`, { force: true });
}

/** SQLite gives its other files the mode of the main one. */
function createPrivate(file: string): void {
  closeSync(openSync(file, "a", 0o600));
}

function filesOf(path: string): Pick<StoreInfo, "bytes" | "damaged"> {
  const bytes = ["", "-wal"].reduce((sum, part) => sum + sizeOf(`${path}${part}`), 0);
  return { bytes, damaged: [...damagedStores(path)] };
}

function sizeOf(file: string): number {
  return existsSync(file) ? statSync(file).size : 0;
}
