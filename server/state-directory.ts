import { randomBytes } from "node:crypto";
import {
  chmodSync,
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { DAEMON_FILE_NAME, type DaemonFile } from "../protocol/daemon-file.ts";
import { makeDirectory } from "./lib/make-directory.ts";
import { readPrivate, writePrivate } from "./lib/private-file.ts";
import { StartError } from "./lib/start-error.ts";

/** Maximum length of a Unix socket's path, without its final NUL (sun_path is 108 bytes on Linux, 104 on macOS). */
const maxSocketPathBytes = process.platform === "linux" ? 107 : 103;

/**
 * The daemon's directory (0700): its store, token, socket and discovery file. One daemon holds it at a time; the
 * kernel releases it when that daemon ends in any way.
 */
export class StateDirectory {
  readonly path: string;
  readonly #lock: DatabaseSync;
  /** Device and inode of the locked file. */
  readonly #lockId: string | undefined;
  #announced: DaemonFile | undefined;
  #isRunOver = false;

  private constructor(path: string, lock: DatabaseSync) {
    this.path = path;
    this.#lock = lock;
    this.#lockId = fileId(lockFile(path));
  }

  /** Throws a {@link StartError}: `state_dir_unusable`, `socket_path_too_long`, `daemon_already_running`. */
  static acquire(path: string): StateDirectory {
    const socket = join(path, "daemon.sock");
    const bytes = Buffer.byteLength(socket);
    if (bytes > maxSocketPathBytes) {
      throw new StartError(
        "socket_path_too_long",
        `The socket's path ${socket} has ${bytes} bytes; the system allows ${maxSocketPathBytes}. Choose a shorter state directory with --state-dir or PI_RPCD_STATE_DIR.`,
      );
    }
    makePrivate(path);
    const directory = new StateDirectory(path, takeLock(path));
    mkdirSync(directory.runDirectory, { mode: 0o700, recursive: true });
    rmSync(directory.daemonFile, { force: true });
    return directory;
  }

  /**
   * Whether this directory is still the locked one. It may have been deleted or moved, and another daemon may have
   * started at its path: then its files are not this daemon's.
   */
  get isHeld(): boolean {
    return fileId(lockFile(this.path)) === this.#lockId;
  }

  get socketPath(): string {
    return join(this.path, "daemon.sock");
  }

  get store(): string {
    return join(this.path, "store.db");
  }

  /** For files that live as long as a child's start or a frame. Emptied when the daemon starts. */
  get runDirectory(): string {
    return join(this.path, "run");
  }

  /** Empties {@link runDirectory}, except for these children's files. */
  clearRun(childIds: ReadonlySet<string> = new Set()): void {
    for (const name of readdirSync(this.runDirectory))
      if (!childIds.has(name)) rmSync(join(this.runDirectory, name), { recursive: true, force: true });
  }

  /** For the sockets of children that survive the daemon. */
  get keeperDirectory(): string {
    return join(this.path, "k");
  }

  /** Texts that parts inside pi moved out of transcripts, by their SHA-256. */
  get spillDirectory(): string {
    return join(this.path, "spill");
  }

  /** The list of directories of sessions that may refer to them. */
  get spillNotes(): string {
    return join(this.path, "spill.json");
  }

  get daemonFile(): string {
    return join(this.path, DAEMON_FILE_NAME);
  }

  /** The token of this state directory: 256 bits, created at the first start, in a file of mode 0600. */
  token(): string {
    const file = join(this.path, "token");
    try {
      if (!existsSync(file))
        writeFileSync(file, `${randomBytes(32).toString("base64url")}\n`, { mode: 0o600, flag: "wx" });
      return readToken(file);
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new StartError(
        "token_unusable",
        `The token ${file} cannot be used: ${why}. Delete it; the next start creates another.`,
        { cause },
      );
    }
  }

  /** Replaces {@link token}, also for clients that read the address. Changes nothing if that fails. */
  replaceToken(token: string): void {
    const former = this.#announced;
    this.#writeToken(token);
    if (former === undefined) return;
    try {
      this.announce({ ...former, token });
    } catch (error) {
      this.#writeToken(former.token);
      throw error;
    }
  }

  /** The named tokens, as hashes. */
  get tokensFile(): string {
    return join(this.path, "tokens.json");
  }

  /** Tells clients the daemon's address. Writes completely or not at all. */
  announce(daemon: DaemonFile): void {
    const temporary = `${this.daemonFile}.${process.pid}`;
    writeFileSync(temporary, `${JSON.stringify(daemon, null, 2)}\n`, { mode: 0o600 });
    renameSync(temporary, this.daemonFile);
    this.#announced = daemon;
  }

  /** The address that clients find. */
  get announced(): DaemonFile | undefined {
    return this.#announced;
  }

  #writeToken(token: string): void {
    writePrivate(join(this.path, "token"), `${token}\n`);
  }

  /** All children have ended: {@link release} deletes their files. */
  endRun(): void {
    this.#isRunOver = true;
  }

  release(): void {
    if (this.isHeld) {
      rmSync(this.daemonFile, { force: true });
      if (this.#isRunOver) rmSync(this.runDirectory, { recursive: true, force: true });
    }
    this.#lock.close();
  }
}

function readToken(file: string): string {
  const token = readPrivate(file).trim();
  if (!/^[\w-]{43,}$/.test(token)) throw new Error("it does not contain a token");
  return token;
}

function makePrivate(path: string): void {
  try {
    makeDirectory(path, 0o700);
    const found = lstatSync(path);
    if (!found.isDirectory()) throw new Error("it is not a directory");
    if (found.uid !== process.getuid?.()) throw new Error("it belongs to another user");
    if ((found.mode & 0o077) !== 0) chmodSync(path, 0o700);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new StartError(
      "state_dir_unusable",
      `The state directory ${path} cannot be used: ${why}. Choose another with --state-dir.`,
      { cause },
    );
  }
}

function lockFile(path: string): string {
  return join(path, "lock.db");
}

function fileId(file: string): string | undefined {
  try {
    const { dev, ino } = statSync(file, { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    return undefined;
  }
}

/** Creates the file with mode 0600 if it is missing. */
function createPrivate(file: string): void {
  closeSync(openSync(file, "a", 0o600));
}

/** A lock that the kernel releases with the process, so that a killed daemon cannot block the next one. */
function takeLock(path: string): DatabaseSync {
  let lock: DatabaseSync | undefined;
  try {
    createPrivate(lockFile(path));
    lock = new DatabaseSync(lockFile(path));
    lock.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE;");
    return lock;
  } catch (cause) {
    lock?.close();
    const why = cause instanceof Error ? cause.message : String(cause);
    if (!/locked|busy/i.test(why)) {
      throw new StartError("state_dir_unusable", `The state directory ${path} cannot be locked: ${why}.`, { cause });
    }
    throw new StartError(
      "daemon_already_running",
      `A daemon is already running on ${path}${describeHolder(path)}. Stop it with: pi-rpcd stop`,
      { cause },
    );
  }
}

function describeHolder(path: string): string {
  try {
    const { pid, url } = JSON.parse(readFileSync(join(path, DAEMON_FILE_NAME), "utf8")) as DaemonFile;
    return ` (process ${pid}, ${url})`;
  } catch {
    return "";
  }
}
