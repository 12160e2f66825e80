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
  /** The database's file; what belongs to it lies beside it. */
  readonly path: string;
  /** Whether the directory is still this daemon's. */
  readonly isHeld?: () => boolean;
  readonly log: Logger;
}

/** The store of a daemon, looked over and rebuilt where it was damaged. */
export interface OpenStore {
  readonly database: Database;
  readonly sessions: SessionStore;
  info(): StoreInfo;
  close(): void;
}

/**
 * Opens the store. A damaged one is set aside beside it under a name of its own, and another is begun with what can still
 * be read; that is logged as an error, and stays visible in {@link StoreInfo}. One of an older version is copied beside it
 * first. Throws a `NewerStoreError`, and where the store can be neither opened, copied nor rebuilt.
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
      log.error({ damage: report }, "the store was damaged; it was set aside, and another begun with what was left");
    }
    const older = backUpOlder(path, Date.now());
    if (older !== undefined)
      log.info(older, "the store is of an older version; it was copied, and is brought up to date");
    createPrivate(path);
    const database = new Database(path, (error) => log.error({ err: error }, "a transaction of the store failed"), {
      mark,
      isHeld: options.isHeld,
      onRecovered: () => log.info("the store can be written again"),
    });
    const ahead = listed.ahead.map((session) => aboveAll(session, Date.now()));
    const list = new SessionList(listFile, (error) => log.warn({ err: error }, "the list of sessions was not written"));
    const sessions = new SessionStore(database, list, { ahead, closed: listed.closed });
    // They are looked at once a second at most: whoever asks often pays for what seldom changes.
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

/** Where a daemon was killed while it put the rebuilt store in its place, the next one goes on. */
function finishReplacing(path: string): void {
  const rebuilt = `${path}${suffix}`;
  if (isBuilt(rebuilt)) replaceStore(path, rebuilt, JSON.parse(readFileSync(`${rebuilt}.json`, "utf8")) as StoreDamage);
  rmSync(`${rebuilt}.json`, { force: true });
}

/** SQLite gives its side files the mode of the main one. */
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
