import { createHash, randomUUID } from "node:crypto";
import { chmod, mkdir, open, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "pino";
import { WireError } from "../../protocol/errors.ts";
import { exhaustion } from "../pi/exhaustion.ts";

/** A file as it must be when it is read again. */
export interface FileSum {
  readonly bytes: number;
  readonly sha256: string;
}

/** What was kept of a session is not there any more, and will not be. */
export class LostContext extends WireError {
  constructor(reason: "missing" | "hash_mismatch") {
    const message = "The session's context is not in the daemon's directory as it was kept.";
    super("context_transport_failed", message, { reason });
  }
}

type Part = "context" | "repairs";

/**
 * What the daemon keeps of sessions' contexts in its state directory, for its user alone: of an ephemeral session what
 * each of its pi gets, and of each the repairs that were made.
 */
export class KeptContexts {
  readonly #directory: string;
  readonly #log: Logger;

  constructor(stateDir: string, log: Logger) {
    this.#directory = join(stateDir, "contexts");
    this.#log = log;
  }

  /** Whole or not at all. Throws `context_transport_failed`, also for a full disk. */
  async put(sessionId: string, part: Part, bytes: Uint8Array): Promise<FileSum> {
    await writeWhole(this.#directory, this.#name(sessionId, part), bytes);
    return { bytes: bytes.byteLength, sha256: sumOf(bytes) };
  }

  /** Throws `context_transport_failed`: a {@link LostContext} where it is not what was put. */
  async get(sessionId: string, sum: FileSum): Promise<Buffer> {
    const file = join(this.#directory, this.#name(sessionId, "context"));
    const bytes = await readWhole(file, sum.bytes);
    if (bytes !== undefined && sumOf(bytes) === sum.sha256) return bytes;
    throw new LostContext(bytes === undefined ? "missing" : "hash_mismatch");
  }

  /** The repairs, as JSON; undefined where there are none, and where what is kept of them was torn. */
  async repairs(sessionId: string): Promise<unknown> {
    const text = await readFile(join(this.#directory, this.#name(sessionId, "repairs")), "utf8").catch(() => undefined);
    try {
      return text === undefined ? undefined : JSON.parse(text);
    } catch {
      return undefined;
    }
  }

  async forget(sessionId: string): Promise<void> {
    const names = (["context", "repairs"] as const).map((part) => this.#name(sessionId, part));
    await Promise.all(names.map((name) => rm(join(this.#directory, name), { force: true }).catch(() => {})));
  }

  /** Deletes what is of no session: a daemon that was killed has left it. */
  async sweep(isKnown: (sessionId: string) => boolean): Promise<void> {
    const left = await readdir(this.#directory).catch(() => [] as string[]);
    for (const name of left) {
      const [, sessionId] = /^(.+)\.(?:context|repairs)\.json$/.exec(name) ?? [];
      if (sessionId !== undefined && isKnown(sessionId)) continue;
      await rm(join(this.#directory, name), { force: true }).catch((error: unknown) =>
        this.#log.warn({ err: error }, "what a former daemon has left of a context could not be deleted"),
      );
    }
  }

  #name(sessionId: string, part: Part): string {
    return `${sessionId}.${part}.json`;
  }
}

export interface ExportFilesLimits {
  readonly keepExportsMs: number;
  readonly maxExports: number;
}

/** Exports that were wanted as files. The daemon deletes them: the oldest behind so many, and each behind its time. */
export class ExportFiles {
  readonly #directory: string;
  readonly #limits: ExportFilesLimits;
  /** The oldest first. */
  readonly #files = new Map<string, NodeJS.Timeout>();

  constructor(stateDir: string, limits: ExportFilesLimits) {
    this.#directory = join(stateDir, "exports");
    this.#limits = limits;
  }

  /** Gives the path. Throws `context_transport_failed`, also for a full disk. */
  async put(bytes: Uint8Array): Promise<string> {
    const { keepExportsMs, maxExports } = this.#limits;
    const name = `context-${randomUUID()}.json`;
    await writeWhole(this.#directory, name, bytes);
    this.#files.set(name, setTimeout(() => void this.#drop(name), keepExportsMs).unref());
    for (const oldest of [...this.#files.keys()].slice(0, -maxExports)) await this.#drop(oldest);
    return join(this.#directory, name);
  }

  /** Nothing of a former daemon is anybody's any more. */
  async clear(): Promise<void> {
    for (const timer of this.#files.values()) clearTimeout(timer);
    this.#files.clear();
    await rm(this.#directory, { recursive: true, force: true }).catch(() => {});
  }

  async #drop(name: string): Promise<void> {
    clearTimeout(this.#files.get(name));
    this.#files.delete(name);
    await rm(join(this.#directory, name), { force: true }).catch(() => {});
  }
}

/** Undefined: there is none of that length. Throws where the system cannot read it now. */
async function readWhole(file: string, bytes: number): Promise<Buffer | undefined> {
  try {
    const { size } = await stat(file);
    return size === bytes ? await readFile(file) : undefined;
  } catch (cause) {
    const { code = "unknown" } = cause as NodeJS.ErrnoException;
    if (code === "ENOENT") return undefined;
    const message = `The session's context cannot be read from the daemon's directory (${code}).`;
    throw exhaustion(cause) ?? new WireError("context_transport_failed", message, { reason: code }, { cause });
  }
}

/** To a temporary name first, on the disk when it has its own. */
async function writeWhole(directory: string, name: string, bytes: Uint8Array): Promise<void> {
  const temporary = join(directory, `${name}.${randomUUID()}.tmp`);
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    await chmod(directory, 0o700);
    const handle = await open(temporary, "wx", 0o600);
    try {
      await handle.writeFile(bytes);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, join(directory, name));
  } catch (cause) {
    await rm(temporary, { force: true }).catch(() => {});
    const { code = "unknown" } = cause as NodeJS.ErrnoException;
    const message = `The context could not be written to the daemon's directory (${code}).`;
    throw exhaustion(cause) ?? new WireError("context_transport_failed", message, { reason: code });
  }
}

function sumOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
