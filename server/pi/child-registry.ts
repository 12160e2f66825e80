import { appendFileSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import { descendants, endMarked, isStill, marked, type ProcessIdentity, signal } from "./processes.ts";

/** A child that may still live, as the book has it. */
interface Entry {
  readonly id: string;
  /** Absent where its daemon ended before it could note it. */
  readonly pid?: number;
}

/** After so many lines beyond one for each living child the file is written anew. */
const maxSpareLines = 1_000;

/** A pi whose daemon has been killed reads the end of its stdin and ends; it may do so in order for so long. */
const endsByItselfMs = 3_000;
const afterTermMs = 2_000;
const pollMs = 20;

/**
 * Which children may live, in a file of the state directory, so that a daemon that was killed leaves no process behind:
 * the next one ends what it finds. A child's marker is written down before the child exists. Nothing is synced: what a
 * killed process has written is there, and a system that went down has no children left.
 */
export class ChildRegistry {
  readonly #file: string;
  readonly #log: Logger;
  readonly #isHeld: () => boolean;
  readonly #living = new Map<string, Entry>();
  /** The ids of the children that a former daemon has left. */
  readonly leftovers: readonly string[];
  #lines = 0;

  private constructor(file: string, log: Logger, isHeld: () => boolean, leftovers: readonly string[]) {
    this.leftovers = leftovers;
    this.#file = file;
    this.#log = log;
    this.#isHeld = isHeld;
  }

  /**
   * Ends what a former daemon has left, and begins a new book. The directory must be held by this daemon alone; once it
   * is not, nothing is written there.
   */
  static async open(stateDir: string, log: Logger, isHeld: () => boolean = () => true): Promise<ChildRegistry> {
    const file = join(stateDir, "children.jsonl");
    const entries = entriesIn(file);
    const ended = await endLeftovers(entries);
    if (ended > 0) log.warn({ ended }, "ended what a former daemon's children had left behind");
    rmSync(file, { force: true });
    const leftovers = entries.map(({ id }) => id);
    return new ChildRegistry(file, log, isHeld, leftovers);
  }

  /** A child is about to be started. Throws what writing can throw: an unnoted child could outlive a killed daemon. */
  begin(id: string): void {
    this.#living.set(id, { id });
    this.#append({ id });
  }

  /** It runs. */
  started(id: string, pid: number): void {
    const entry = { id, pid };
    this.#living.set(id, entry);
    this.#attempt(() => this.#append(entry));
  }

  /** Nothing of it is left. */
  ended(id: string): void {
    if (!this.#living.delete(id)) return;
    this.#attempt(() => {
      if (this.#lines < this.#living.size + maxSpareLines) this.#append({ id, ended: true });
      else this.#writeAnew();
    });
  }

  /** The daemon ends, in order: where nothing is left of any child the next one has nothing to look for. */
  close(): void {
    if (this.#living.size === 0 && this.#isHeld()) rmSync(this.#file, { force: true });
  }

  #append(line: object): void {
    if (!this.#isHeld()) throw new Error("The state directory was removed or replaced.");
    appendFileSync(this.#file, `${JSON.stringify(line)}\n`, { mode: 0o600 });
    this.#lines += 1;
  }

  #writeAnew(): void {
    if (!this.#isHeld()) return;
    const temporary = `${this.#file}.${process.pid}`;
    writeFileSync(temporary, [...this.#living.values()].map((entry) => `${JSON.stringify(entry)}\n`).join(""), {
      mode: 0o600,
    });
    renameSync(temporary, this.#file);
    this.#lines = this.#living.size;
  }

  /** What is not written costs the next daemon a look at a child that has ended, or the number of one that lives. */
  #attempt(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#log.warn({ err: error }, "the list of children could not be written");
    }
  }
}

/** A line that is none is passed over: its daemon was killed while it wrote. */
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

/** Gives each pi its time to end, and ends what is left: what carries a marker, which no process of others can. */
async function endLeftovers(entries: readonly Entry[]): Promise<number> {
  const ids = entries.map(({ id }) => id);
  const left = ids.length === 0 ? [] : await marked(ids);
  if (left.length === 0) return 0;
  const below = (await Promise.all(left.map(({ pid }) => descendants(pid)))).flat();
  const pids = new Set(entries.map(({ pid }) => pid));
  const children = left.filter(({ pid }) => pids.has(pid));
  if (!(await gone(children, endsByItselfMs))) {
    for (const child of children) if (await isStill(child)) signal(child.pid, "SIGTERM");
    await gone(children, afterTermMs);
  }
  return await endMarked(ids, { known: below });
}

/** Waits until none of them is there, for at most `timeoutMs`. Gives whether that is so. */
async function gone(processes: readonly ProcessIdentity[], timeoutMs: number): Promise<boolean> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const there = await Promise.all(processes.map(isStill));
    if (!there.includes(true)) return true;
    if (performance.now() > deadline) return false;
    await delay(pollMs);
  }
}
