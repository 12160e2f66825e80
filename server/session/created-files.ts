import { mkdir, readdir, readFile, rm, rmdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Logger } from "pino";
import { WireError } from "../../protocol/errors.ts";
import { exhaustion } from "../pi/exhaustion.ts";
import type { LeaseTaker } from "../pi/lease.ts";
import { createSessionFile, removeIfEmpty, type SessionFileRequest } from "../pi/session-file.ts";
import { LeaseHold } from "./lease-hold.ts";

/**
 * The session files that are being created, written down before they are there: a daemon that is killed in the middle of
 * it leaves a file that belongs to no session, and the next one deletes it by this record.
 */
export class CreatedFiles {
  readonly #taker: LeaseTaker;
  readonly #log: Logger;
  readonly #directory: string;

  constructor(taker: LeaseTaker, log: Logger) {
    this.#taker = taker;
    this.#log = log;
    this.#directory = join(taker.stateDir, "creating");
  }

  /** Resolves when a daemon that comes later knows of the file. A full disk is no reason not to try. */
  async begin(sessionId: string, file: string): Promise<void> {
    try {
      await mkdir(this.#directory, { recursive: true, mode: 0o700 });
      await writeFile(join(this.#directory, sessionId), file, { mode: 0o600 });
    } catch (error) {
      this.#log.warn({ err: error, file }, "the creation of a session's file could not be written down");
    }
  }

  /** The session is in the store, or its file is gone. */
  async end(sessionId: string): Promise<void> {
    await rm(join(this.#directory, sessionId), { force: true }).catch(() => {});
    // Others may be under way.
    await rmdir(this.#directory).catch(() => {});
  }

  /** Deletes what a daemon that was killed has left: files of sessions that are not known, without any message. */
  async sweep(isKnown: (sessionId: string) => boolean): Promise<void> {
    const left = await readdir(this.#directory).catch(() => [] as string[]);
    for (const sessionId of left) {
      try {
        const file = await readFile(join(this.#directory, sessionId), "utf8");
        if (!isKnown(sessionId)) await this.#remove(file);
      } catch (error) {
        this.#log.warn({ err: error, sessionId }, "what a former daemon had begun could not be looked at");
      }
      await this.end(sessionId);
    }
  }

  async #remove(file: string): Promise<void> {
    const lease = new LeaseHold({ taker: this.#taker, log: this.#log });
    try {
      await lease.hold(file, 0);
    } catch {
      // Another daemon has it, or its directory is gone.
      return;
    }
    const isRemoved = await removeIfEmpty(file);
    await lease.letGo();
    this.#log.info(
      { file, directory: dirname(file), isRemoved },
      "looked at a session file that a killed daemon had created",
    );
  }
}

/** As `createSessionFile`. Throws `overloaded`, `start_failed`, and what a full disk and the like are. */
export async function createFile(request: SessionFileRequest): Promise<string> {
  return await createSessionFile(request).catch((cause: NodeJS.ErrnoException) => {
    const message = `pi's session file could not be created (${cause.code}): ${cause.message}.`;
    throw exhaustion(cause) ?? new WireError("start_failed", message, {}, { cause });
  });
}
