import { appendFileSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import { descendants, endMarked, isStill, marked, type ProcessIdentity, signal } from "./processes.ts";

/** A child that may still be running. */
interface Entry {
  readonly id: string;
  /** Absent if its daemon ended before it could record it. */
  readonly pid?: number;
  /** Whether it can go on without its daemon. */
  readonly survives?: boolean;
}

/** The file is rewritten after this many lines in addition to one for each living child. */
const maxSpareLines = 1_000;

/** A pi with pipes whose daemon was killed reads the end of its stdin; this is the time for its regular shutdown. */
const endsByItselfMs = 3_000;
const afterTermMs = 2_000;
const pollMs = 20;

/**
 * The children that may be running, in a file of the state directory, so that the next daemon can end those of a
 * killed one. A child's marker is written before the child exists. Writes are not synced: they survive a killed
 * process, and after a system crash there are no children.
 */
export class ChildRegistry {
  readonly #file: string;
  readonly #log: Logger;
  readonly #isHeld: () => boolean;
  readonly #living = new Map<string, Entry>();
  /** Children of former daemons that may go on. */
  readonly #survivors: readonly Entry[];
  readonly #leftovers: string[] = [];
  #lines = 0;

  private constructor(file: string, log: Logger, isHeld: () => boolean, survivors: readonly Entry[]) {
    this.#survivors = survivors;
    this.#file = file;
    this.#log = log;
    this.#isHeld = isHeld;
  }

  /**
   * Ends the children that a previous daemon left, except those that survive it: a failed start must end unusable
   * processes, and no run that goes on. This daemon must hold the directory; when it no longer does, nothing is written
   * there.
   */
  static async open(stateDir: string, log: Logger, isHeld: () => boolean = () => true): Promise<ChildRegistry> {
    const file = fileIn(stateDir);
    const entries = entriesIn(file);
    const survivors = entries.filter(({ survives }) => survives === true);
    const registry = new ChildRegistry(file, log, isHeld, survivors);
    await registry.#end(
      entries.filter((entry) => !survivors.includes(entry)),
      endsByItselfMs,
    );
    for (const entry of survivors) registry.#living.set(entry.id, entry);
    registry.#restart();
    return registry;
  }

  /** Ids of the children of a previous daemon that were ended. */
  get leftovers(): readonly string[] {
    return this.#leftovers;
  }

  /** Ends the children that survived a previous daemon, except those with these ids. Returns their number. */
  async endSurvivors(except: ReadonlySet<string>): Promise<number> {
    const left = this.#survivors.filter(({ id }) => this.#living.has(id) && !except.has(id));
    if (left.length === 0) return 0;
    await this.#end(left, 0);
    for (const { id } of left) this.#living.delete(id);
    this.#restart();
    return left.length;
  }

  /**
   * Called before a child is started. Throws errors of writing: an unrecorded child could outlive a killed daemon.
   */
  begin(id: string): void {
    this.#living.set(id, { id });
    this.#append({ id });
  }

  /** The child runs. `survives`: it can go on without this daemon. */
  started(id: string, pid: number, survives = false): void {
    const entry = { id, pid, ...(survives && { survives }) };
    this.#living.set(id, entry);
    this.#attempt(() => this.#append(entry));
  }

  /** All processes of the child have ended. */
  ended(id: string): void {
    if (!this.#living.delete(id)) return;
    this.#attempt(() => {
      if (this.#lines < this.#living.size + maxSpareLines) this.#append({ id, ended: true });
      else this.#rewrite();
    });
  }

  /** Whether all children have ended. */
  get isEmpty(): boolean {
    return this.#living.size === 0;
  }

  /** At a regular shutdown: if no child has left a process, the next daemon has nothing to search for. */
  close(): void {
    if (this.#living.size === 0 && this.#isHeld()) rmSync(this.#file, { force: true });
  }

  async #end(entries: readonly Entry[], byItselfMs: number): Promise<void> {
    const ended = await endLeftovers(entries, byItselfMs);
    if (ended > 0) this.#log.warn({ ended }, "ended processes that a previous daemon's children left");
    this.#leftovers.push(...entries.map(({ id }) => id));
  }

  /** Begins the file again. */
  #restart(): void {
    if (this.#living.size > 0) this.#rewrite();
    else if (this.#isHeld()) rmSync(this.#file, { force: true });
  }

  #append(line: object): void {
    if (!this.#isHeld()) throw new Error("The state directory was removed or replaced.");
    appendFileSync(this.#file, `${JSON.stringify(line)}\n`, { mode: 0o600 });
    this.#lines += 1;
  }

  #rewrite(): void {
    if (!this.#isHeld()) return;
    const temporary = `${this.#file}.${process.pid}`;
    writeFileSync(temporary, [...this.#living.values()].map((entry) => `${JSON.stringify(entry)}\n`).join(""), {
      mode: 0o600,
    });
    renameSync(temporary, this.#file);
    this.#lines = this.#living.size;
  }

  /** A missing line only makes the next daemon search for an ended child, or lack the pid of a running one. */
  #attempt(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#log.warn({ err: error }, "cannot write the list of children");
    }
  }
}

/**
 * Ends the children that the daemon of a state directory left, and returns the number of processes that did not end
 * by themselves. No daemon may hold the directory.
 */
export async function endLeftChildren(stateDir: string): Promise<number> {
  return await endLeftovers(entriesIn(fileIn(stateDir)), endsByItselfMs);
}

function fileIn(stateDir: string): string {
  return join(stateDir, "children.jsonl");
}

/** Invalid lines are skipped: the daemon was killed while writing. */
function entriesIn(file: string): readonly Entry[] {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch {
    return [];
  }
  const living = new Map<string, Entry>();
  for (const line of text.split("\n")) {
    const entry = entryOf(line);
    if (entry === undefined) continue;
    if (entry.ended === true) living.delete(entry.id);
    else living.set(entry.id, entry);
  }
  return [...living.values()];
}

function entryOf(line: string): (Entry & { readonly ended?: boolean }) | undefined {
  try {
    const entry = JSON.parse(line) as Partial<Entry>;
    return typeof entry?.id === "string" && entry.id !== "" ? (entry as Entry) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Waits `byItselfMs` for each pi to end, then kills the rest: processes with a marker, which other processes cannot have.
 */
async function endLeftovers(entries: readonly Entry[], byItselfMs: number): Promise<number> {
  const ids = entries.map(({ id }) => id);
  const left = ids.length === 0 ? [] : await marked(ids);
  if (left.length === 0) return 0;
  const below = (await Promise.all(left.map(({ pid }) => descendants(pid)))).flat();
  const pids = new Set(entries.map(({ pid }) => pid));
  const children = left.filter(({ pid }) => pids.has(pid));
  const asked: ProcessIdentity[] = [];
  if (!(await waitUntilEnded(children, byItselfMs))) {
    for (const child of children) {
      if (!(await isStill(child))) continue;
      signal(child.pid, "SIGTERM");
      asked.push(child);
    }
    await waitUntilEnded(children, afterTermMs);
  }
  const there = await Promise.all(asked.map(isStill));
  return there.filter((isThere) => !isThere).length + (await endMarked(ids, { known: below }));
}

/** Waits until all have ended, for at most `timeoutMs`. Returns whether they have. */
async function waitUntilEnded(processes: readonly ProcessIdentity[], timeoutMs: number): Promise<boolean> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const there = await Promise.all(processes.map(isStill));
    if (!there.includes(true)) return true;
    if (performance.now() > deadline) return false;
    await delay(pollMs);
  }
}
