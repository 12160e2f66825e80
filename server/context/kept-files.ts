import { createHash, randomUUID } from "node:crypto";
import { chmod, mkdir, open, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "pino";
import { WireError } from "../../protocol/errors.ts";
import { exhaustion } from "../pi/exhaustion.ts";

/** A file's expected content when it is read again. */
export interface FileSum {
  readonly bytes: number;
  readonly sha256: string;
}

/** The stored context of a session is missing, permanently. */
export class LostContext extends WireError {
  constructor(reason: "missing" | "hash_mismatch") {
    const message = "The session's stored context is missing or was changed.";
    super("context_transport_failed", message, { reason });
  }
}

type Part = "context" | "repairs";

/**
 * Session contexts in the daemon's state directory, readable by its user only: for an ephemeral session the context
 * for each of its pi, and for every session the repairs.
 */
export class KeptContexts {
  readonly #directory: string;
  readonly #log: Logger;

  constructor(stateDir: string, log: Logger) {
    this.#directory = join(stateDir, "contexts");
    this.#log = log;
  }

  /** Writes all or nothing. Throws `context_transport_failed`, also for a full disk. */
  async put(sessionId: string, part: Part, bytes: Uint8Array): Promise<FileSum> {
    await writeWhole(this.#directory, this.#name(sessionId, part), bytes);
    return { bytes: bytes.byteLength, sha256: sumOf(bytes) };
  }

  /** Throws `context_transport_failed`: a {@link LostContext} if the content has changed. */
  async get(sessionId: string, sum: FileSum): Promise<Buffer> {
    const file = join(this.#directory, this.#name(sessionId, "context"));
    const bytes = await readWhole(file, sum.bytes);
    if (bytes !== undefined && sumOf(bytes) === sum.sha256) return bytes;
    throw new LostContext(bytes === undefined ? "missing" : "hash_mismatch");
  }

  /** The repairs as JSON; undefined if there are none, or the file is incomplete. */
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

  /** Deletes files of unknown sessions, which a killed daemon left. */
  async sweep(isKnown: (sessionId: string) => boolean): Promise<void> {
    const left = await readdir(this.#directory).catch(() => [] as string[]);
    for (const name of left) {
      const [, sessionId] = /^(.+)\.(?:context|repairs)\.json$/.exec(name) ?? [];
      if (sessionId !== undefined && isKnown(sessionId)) continue;
      await rm(join(this.#directory, name), { force: true }).catch((error: unknown) =>
        this.#log.warn({ err: error }, "cannot delete context files of a former daemon"),
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

/** Exports as files. The daemon deletes them: the oldest when there are too many, and each after its time. */
export class ExportFiles {
  readonly #directory: string;
  readonly #limits: ExportFilesLimits;
  /** Oldest first. */
  readonly #files = new Map<string, NodeJS.Timeout>();

  constructor(stateDir: string, limits: ExportFilesLimits) {
    this.#directory = join(stateDir, "exports");
    this.#limits = limits;
  }

  /** Returns the path. Throws `context_transport_failed`, also for a full disk. */
  async put(bytes: Uint8Array): Promise<string> {
    const { keepExportsMs, maxExports } = this.#limits;
    const name = `context-${randomUUID()}.json`;
    await writeWhole(this.#directory, name, bytes);
    this.#files.set(name, setTimeout(() => void this.#drop(name), keepExportsMs).unref());
    for (const oldest of [...this.#files.keys()].slice(0, -maxExports)) await this.#drop(oldest);
    return join(this.#directory, name);
  }

  /** Files of a former daemon have no user. */
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

/** Undefined: no file of that length. Throws where the system cannot read it now. */
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

/** Writes a temporary file, and renames it once it is on disk. */
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
