import { closeSync, existsSync, openSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Logger } from "pino";
import type { StoreDamage, StoreInfo } from "../../protocol/daemon.ts";
import { keptFor } from "../lib/kept-for.ts";
import { CommitMark } from "./commit-mark.ts";
import { findDamage } from "./damage.ts";
import { Database } from "./database.ts";
import { aboveAll, isBuilt, type RebuildOptions, rebuild } from "./rebuild.ts";
import { SessionList } from "./session-list.ts";
import { SessionStore } from "./sessions.ts";
import { asidePath, damagedStores, replaceStore } from "./set-aside.ts";
import { backUpOlder } from "./upgrade.ts";

export interface OpenStoreOptions extends Pick<RebuildOptions, "findSession" | "textsIn"> {
  /** The database's file; its other files are next to it. */
  readonly path: string;
  /** Whether this daemon still holds the directory. */
  readonly isHeld?: () => boolean;
  readonly log: Logger;
}

/** The store of a daemon, checked, and rebuilt if it was damaged. */
export interface OpenStore {
  readonly database: Database;
  readonly sessions: SessionStore;
  info(): StoreInfo;
  close(): void;
}

/**
 * Opens the store. A damaged one is renamed, and a new one is built from the readable content; that is logged as an
 * error and reported in {@link StoreInfo}. A store of an older version is copied first. Throws a `NewerStoreError`,
 * or an error if the store cannot be opened, copied or rebuilt.
 */
export function openStore(options: OpenStoreOptions): OpenStore {
  const { path, log } = options;
  const directory = dirname(path);
  const listFile = join(directory, "sessions.jsonl");
  const mark = CommitMark.open(join(directory, "store.mark"));
  try {
    finishReplacing(path);
    const noted = mark.read();
    const damage = findDamage(path, noted);
    const listed = SessionList.read(listFile);
    if (damage !== undefined) {
      const commits = noted ?? 0;
      const report = rebuildStore({ ...options, damage, commits, listed, now: Date.now() });
      log.error({ damage: report }, "the store was damaged; it was set aside and rebuilt from the readable rows");
    }
    const older = backUpOlder(path, Date.now());
    if (older !== undefined)
      log.info(older, "the store has an older schema version; it was copied and will be migrated");
    createPrivate(path);
    const database = new Database(path, (error) => log.error({ err: error }, "a transaction of the store failed"), {
      mark,
      isHeld: options.isHeld,
      onRecovered: () => log.info("the store works again"),
    });
    const ahead = listed.ahead.map((session) => aboveAll(session, Date.now()));
    const list = new SessionList(listFile, (error) => log.warn({ err: error }, "cannot write the list of sessions"));
    const sessions = new SessionStore(database, list, { ahead, closed: listed.closed });
    // Checked once a second at most, because the value rarely changes.
    const files = keptFor(1_000, () => filesOf(path));
    return {
      database,
      sessions,
      info: () => ({ ...database.health, unwritten: database.unwritten, ...files() }),
      close: () => {
        database.close();
        list.close();
        mark.close();
      },
    };
  } catch (error) {
    mark.close();
    throw error;
  }
}

const suffix = ".rebuilt";

function rebuildStore(options: Omit<RebuildOptions, "target">): StoreDamage {
  const { path, damage, now } = options;
  const target = `${path}.rebuilding`;
  for (const part of ["", "-wal", "-shm"]) rmSync(`${target}${part}`, { force: true });
  createPrivate(target);
  const counts = rebuild({ ...options, target });
  const report: StoreDamage = { path: asidePath(path, now), at: now, why: damage.why, ...counts };
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
