import { randomUUID } from "node:crypto";
import { constants, lstatSync, type Stats } from "node:fs";
import { link, open, rename, stat, unlink, writeFile } from "node:fs/promises";
import { uptime } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import type { SessionFileReason } from "../../protocol/custody.ts";
import { WireError } from "../../protocol/errors.ts";
import { isRecord } from "../../protocol/objects.ts";
import { limits } from "../configuration/limits.ts";
import { type HolderLife, holderOf, isLeaseHolder, type LeaseHolder, lifeOf, thisHolder } from "./lease-holder.ts";
import { unusable } from "./open-file.ts";
import { endMarked, marked } from "./processes.ts";

/** The JSON content of a lease file. */
export interface LeaseFacts {
  /** The version of the file's format. */
  readonly lease: 1;
  /** The id of this lease; never reused. */
  readonly id: string;
  readonly holder: LeaseHolder;
  /** The id of the daemon: a process can have several. */
  readonly daemonId: string;
  readonly stateDir: string;
  /**
   * Device and inode of that directory: containers have other directories at the same path, and the same one at other
   * paths.
   */
  readonly stateDirId?: string;
  readonly generation: number;
  /** Marks the child's descendants; absent without a child. */
  readonly childId?: string;
  /** The child, if it survives its daemon. */
  readonly survivor?: LeaseHolder;
  /** Unix milliseconds. */
  readonly at: number;
}

/** The child that writes the file. */
export interface LeaseChild {
  readonly childId: string;
  readonly pid: number;
  /** Whether it goes on without its daemon. */
  readonly survives: boolean;
}

/** A daemon that takes leases. */
export interface LeaseTaker {
  readonly daemonId: string;
  readonly stateDir: string;
}

export interface LeaseRequest extends LeaseTaker {
  /** pi's session file. It may be missing; its directory must exist. */
  readonly file: string;
  readonly generation: number;
}

/**
 * Next to pi's session file. pi lists names that end in `.jsonl` and ignores all others (measured on both versions).
 */
export function leasePath(file: string): string {
  return `${file}.lease`;
}

/** Attempts to take a lease that changes its owner meanwhile. */
const maxTries = 300;
const triesEveryMs = 10;
/** How many successive daemons may have died during a takeover. */
const maxGuards = 4;
/** How long the last child of a dead daemon may take to end by itself: its stdin ended with its daemon. */
const childEndsWithinMs = 2_000;
const withoutLinks: ReadonlySet<string | undefined> = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"]);
/** A lease file is always shorter. */
const maxLeaseBytes = 64 * 1024;

/**
 * The right to have a pi write a session file. pi has no lock: two writers of the same file create two branches, and
 * one of them is lost (measured). One daemon at a time holds it; another takes over the lease of a dead one.
 */
export class Lease {
  readonly file: string;
  readonly #path: string;
  #facts: LeaseFacts;
  /** Identifies the file that we wrote: while it is unchanged, the lease need not be read. */
  #stamp: string;

  private constructor(file: string, facts: LeaseFacts, stamp: string) {
    this.file = file;
    this.#path = leasePath(file);
    this.#facts = facts;
    this.#stamp = stamp;
  }

  /** Throws `session_in_use` with the owner, `session_file_unusable` with the reason. */
  static async take(request: LeaseRequest): Promise<Lease> {
    const { file, generation, daemonId, stateDir } = request;
    checkFile(file);
    const holder = await thisHolder();
    const stateDirId = await directoryId(stateDir);
    const facts: LeaseFacts = {
      ...{ lease: 1, id: randomUUID(), holder, daemonId, stateDir, generation, at: Date.now() },
      ...(stateDirId === undefined ? {} : { stateDirId }),
    };
    try {
      await take(leasePath(file), facts, maxGuards);
      return new Lease(file, facts, await stampOf(leasePath(file)));
    } catch (error) {
      throw named(error, file);
    }
  }

  /**
   * Checks that the lease still exists. A deleted one is taken again; if another daemon holds it, returns that
   * holder.
   */
  async confirm(): Promise<
    { readonly kind: "held" | "retaken" } | { readonly kind: "lost"; readonly error: WireError }
  > {
    try {
      if ((await stampOf(this.#path)) === this.#stamp) return { kind: "held" };
      const found = await read(this.#path);
      const isOurs = found.kind === "lease" && found.facts.id === this.#facts.id;
      if (!isOurs) await take(this.#path, this.#facts, maxGuards);
      this.#stamp = await stampOf(this.#path);
      return { kind: isOurs ? "held" : "retaken" };
    } catch (error) {
      return { kind: "lost", error: named(error, this.file) };
    }
  }

  /** Records the child that writes the file. The caller logs a failure: the lease is held anyway. */
  async note({ childId, pid, survives }: LeaseChild, generation: number): Promise<void> {
    const { survivor: _former, ...facts } = this.#facts;
    this.#facts = { ...facts, childId, generation, ...(survives && { survivor: await holderOf(pid) }) };
    const found = await read(this.#path);
    if (found.kind !== "lease" || found.facts.id !== this.#facts.id) return;
    await replace(this.#path, this.#facts);
    this.#stamp = await stampOf(this.#path);
  }

  /** Releases it. A lease that another daemon holds stays. */
  async release(): Promise<void> {
    await release(this.#path, this.#facts.id);
  }
}

type Found =
  | { readonly kind: "none" }
  | { readonly kind: "lease"; readonly facts: LeaseFacts }
  /** `mtimeMs`: of the unreadable file. */
  | { readonly kind: "unreadable"; readonly mtimeMs: number };

async function take(path: string, facts: LeaseFacts, guards: number): Promise<void> {
  const draft = `${path}.${facts.id}`;
  await writeFile(draft, JSON.stringify(facts), { mode: 0o600, flag: "wx" });
  try {
    for (let tries = 0; tries < maxTries; tries += 1) {
      if (await isLinked(draft, path, facts)) return;
      const found = await read(path);
      if (found.kind === "none") continue;
      if (found.kind === "lease" && found.facts.id === facts.id) return;
      if (!(await isDead(found, facts))) throw inUse(found);
      if (guards > 0 && (await takeOver(path, found, { facts, guards }))) return;
      await delay(triesEveryMs);
    }
    throw inUse(await read(path));
  } finally {
    await unlink(draft).catch(() => {});
  }
}

/**
 * Whether the file now has the second name: the first process to link a name owns it, and its content is never
 * partial.
 */
async function isLinked(draft: string, path: string, facts: LeaseFacts): Promise<boolean> {
  try {
    await link(draft, path).catch((error: NodeJS.ErrnoException) => {
      if (!withoutLinks.has(error.code)) throw error;
      // Some file systems do not support links. A partially written lease is unreadable, and stays.
      return writeFile(path, JSON.stringify(facts), { mode: 0o600, flag: "wx" });
    });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

/**
 * Replaces a dead lease by ours. The guard is a lease on the dead one, named after it: only its holder may replace
 * the dead lease, and a guard of a dead process is taken over in the same way.
 */
async function takeOver(path: string, dead: Found, own: { facts: LeaseFacts; guards: number }): Promise<boolean> {
  const name = dead.kind === "lease" ? dead.facts.id.slice(0, 8) : "unreadable";
  const guard = `${path}~${name}`;
  const guardFacts = { ...own.facts, id: randomUUID() };
  try {
    await take(guard, guardFacts, own.guards - 1);
  } catch (error) {
    if (error instanceof WireError) return false;
    throw error;
  }
  try {
    const now = await read(path);
    if (!isSame(now, dead)) return false;
    // The child of a former daemon with this state directory lives on, or that daemon's successor has ended it.
    const isOurs = now.kind === "lease" && hadSameDirectory(now.facts, own.facts, await lifeOf(now.facts.holder));
    if (now.kind === "lease" && now.facts.childId !== undefined && !isOurs) await endChildOf(now.facts.childId);
    await replace(path, own.facts);
    return true;
  } finally {
    await release(guard, guardFacts.id).catch(() => {});
  }
}

/** pi ends by itself with its daemon, after writing its data; remaining processes are killed. */
async function endChildOf(childId: string): Promise<void> {
  const deadline = Date.now() + childEndsWithinMs;
  while ((await marked([childId])).length > 0 && Date.now() < deadline) await delay(triesEveryMs);
  await endMarked([childId]);
}

/** Returns the lease of the living daemon, or of the pi that outlived its daemon, that writes a session file; undefined if there is none. */
export async function writerOf(file: string): Promise<LeaseFacts | undefined> {
  const found = await read(leasePath(file));
  if (found.kind !== "lease") return undefined;
  const { holder, survivor } = found.facts;
  const lives = await Promise.all([holder, ...(survivor === undefined ? [] : [survivor])].map(lifeOf));
  return lives.every((life) => life === "dead") ? undefined : found.facts;
}

/** Identifies a file among others of the same name; the inode of a deleted one is soon reused. */
async function stampOf(path: string): Promise<string> {
  return await stat(path).then(
    ({ ino, mtimeMs }) => `${ino} ${mtimeMs}`,
    (error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return "none";
      throw error;
    },
  );
}

async function replace(path: string, facts: LeaseFacts): Promise<void> {
  const draft = `${path}.${randomUUID()}`;
  await writeFile(draft, JSON.stringify(facts), { mode: 0o600, flag: "wx" });
  await rename(draft, path).catch(async (error: unknown) => {
    await unlink(draft).catch(() => {});
    throw error;
  });
}

async function release(path: string, id: string): Promise<void> {
  const found = await read(path);
  if (found.kind === "lease" && found.facts.id === id) await unlink(path);
}

async function read(path: string): Promise<Found> {
  try {
    // Opening a pipe or a device at the lease's path must not block.
    const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const found = await handle.stat();
      const isRead = found.isFile() && found.size <= maxLeaseBytes;
      const value: unknown = isRead ? parsed(await handle.readFile("utf8")) : undefined;
      return isLeaseFacts(value) ? { kind: "lease", facts: value } : { kind: "unreadable", mtimeMs: found.mtimeMs };
    } finally {
      await handle.close();
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return { kind: "none" };
    throw error;
  }
}

/** An unreadable lease is dead if it is older than the boot: a system crash tore it. */
async function isDead(found: Found, own: LeaseFacts): Promise<boolean> {
  if (found.kind === "unreadable") return found.mtimeMs < Date.now() - uptime() * 1_000;
  if (found.kind === "none") return false;
  const { holder, daemonId, survivor } = found.facts;
  const life = await lifeOf(holder);
  // The lock of a state directory admits one daemon at a time: another daemon with that directory has ended, whatever
  // its pid is now.
  if (daemonId !== own.daemonId && hadSameDirectory(found.facts, own, life)) return true;
  return life === "dead" && (survivor === undefined || (await lifeOf(survivor)) === "dead");
}

/** A daemon in another container cannot be checked, but on the same machine its state directory can be identified. */
function hadSameDirectory(found: LeaseFacts, own: LeaseFacts, life: HolderLife): boolean {
  if (found.stateDirId === undefined || own.stateDirId === undefined) {
    return life === "alive" && found.stateDir === own.stateDir;
  }
  const { bootId } = own.holder;
  const isSameMachine = life === "alive" || (bootId !== "" && found.holder.bootId === bootId);
  return isSameMachine && found.stateDirId === own.stateDirId;
}

/** The same directory has the same id at every path, and another one at the same path has another. */
export async function directoryId(path: string): Promise<string | undefined> {
  return await stat(path, { bigint: true }).then(
    ({ dev, ino }) => `${dev}:${ino}`,
    () => undefined,
  );
}

function isSame(one: Found, other: Found): boolean {
  if (one.kind === "lease" && other.kind === "lease") return one.facts.id === other.facts.id;
  return one.kind === "unreadable" && other.kind === "unreadable" && one.mtimeMs === other.mtimeMs;
}

function inUse(found: Found): WireError {
  if (found.kind !== "lease") {
    return new WireError("session_in_use", "The lease of the session's file cannot be read.", {
      reason: "unreadable_lease",
    });
  }
  const { holder, stateDir, generation, at } = found.facts;
  const { pid, host } = holder;
  return new WireError(
    "session_in_use",
    `The session's file is in use by another daemon (process ${pid} on ${host}, state directory ${stateDir}).`,
    { owner: { pid, host, stateDir, generation, at } },
  );
}

/**
 * Throws `session_file_unusable` for a file that a single lease cannot protect, that another user owns, or that is
 * too large for pi.
 */
export function checkFile(file: string): void {
  let found: Stats | undefined;
  try {
    found = lstatSync(file, { throwIfNoEntry: false });
  } catch (error) {
    throw named(error, file);
  }
  if (found === undefined) return;
  if (found.isSymbolicLink()) throw unusable(file, "symbolic_link", "is a symbolic link");
  if (!found.isFile()) throw unusable(file, "not_a_file", "is not a regular file");
  const { maxSessionFileBytes } = limits;
  if (found.size > maxSessionFileBytes) {
    throw unusable(file, "too_large", `has ${found.size} bytes; pi can load ${maxSessionFileBytes}`);
  }
  if (found.uid !== process.getuid?.()) throw unusable(file, "foreign_owner", "belongs to another user");
  if (found.nlink > 1)
    throw unusable(file, "hard_link", `has ${found.nlink} hard links, and a lease protects only one`);
}

const reasons: Readonly<Record<string, readonly [reason: SessionFileReason, words: string]>> = {
  ENOSPC: ["disk_full", "cannot be leased: the disk is full"],
  EDQUOT: ["disk_full", "cannot be leased: the disk quota is exceeded"],
  EACCES: ["directory_unwritable", "cannot be leased: its directory is not writable"],
  EPERM: ["directory_unwritable", "cannot be leased: its directory is not writable"],
  EROFS: ["directory_unwritable", "cannot be leased: its file system is read-only"],
  ENOENT: ["directory_missing", "cannot be leased: its directory does not exist"],
  ENAMETOOLONG: ["name_too_long", "cannot be leased: its name is too long"],
};

function named(error: unknown, file: string): WireError {
  if (error instanceof WireError) return new WireError(error.kind, error.message, { ...error.data, file });
  const code = (error as NodeJS.ErrnoException).code ?? "unknown";
  const [reason, words] = reasons[code] ?? ["unreadable", `cannot be leased (${code})`];
  return unusable(file, reason, words, error);
}

function isLeaseFacts(value: unknown): value is LeaseFacts {
  if (!isRecord(value)) return false;
  const { lease, id, holder, daemonId, stateDir, generation, at, childId, stateDirId, survivor } = value;
  return (
    lease === 1 &&
    [id, daemonId, stateDir].every((text) => typeof text === "string") &&
    isLeaseHolder(holder) &&
    (survivor === undefined || isLeaseHolder(survivor)) &&
    [generation, at].every((number) => Number.isInteger(number)) &&
    [childId, stateDirId].every((text) => text === undefined || typeof text === "string")
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
