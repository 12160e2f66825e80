import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import type { Logger } from "pino";
import { Lease, type LeaseTaker, unusable } from "../pi/lease.ts";

export interface CustodyOptions {
  readonly taker: LeaseTaker;
  readonly log: Logger;
}

/**
 * One session's hold on pi's session file: the lease, for as long as anything of ours may write the file. It has as many
 * holders as there are children that are not gone yet, and who deletes the file is one too.
 */
export class Custody {
  readonly #options: CustodyOptions;
  #lease: Lease | undefined;
  #holders = 0;
  /** Taking and giving up, one after the other. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: CustodyOptions) {
    this.#options = options;
  }

  /** Throws `session_in_use` and `session_file_unusable`. Each hold is given up once, by {@link letGo}. */
  hold(file: string, generation: number): Promise<void> {
    return this.#next(async () => {
      this.#lease ??= await Lease.take({ ...this.#options.taker, file, generation });
      this.#holders += 1;
    });
  }

  /** As {@link hold}, for a child that is about to be started; makes the file's directory if it is gone. */
  async holdForChild(file: string, generation: number): Promise<void> {
    await mkdir(dirname(file), { recursive: true }).catch((error: NodeJS.ErrnoException) => {
      throw unusable(file, "directory_unwritable", `has no directory, and none can be made (${error.code})`, error);
    });
    await this.hold(file, generation);
  }

  /**
   * Does the work with the file in hand, behind what the work ends: nobody else has the file in between. Without the file,
   * which another daemon may have, the work is done and `last` is not.
   */
  async with<T>(file: string, generation: number, work: () => Promise<T>, last: () => Promise<unknown>): Promise<T> {
    const isHeld = await this.hold(file, generation).then(
      () => true,
      () => false,
    );
    try {
      return await work();
    } finally {
      if (isHeld) {
        await last();
        await this.letGo();
      }
    }
  }

  /** A child has been started on the file. Its descendants are known by its id to whoever takes over after our death. */
  noteChild(childId: string, generation: number): Promise<void> {
    return this.#next(async () => {
      try {
        await this.#lease?.note(childId, generation);
      } catch (error) {
        this.#options.log.warn({ err: error }, "the lease of the session's file could not be brought up to date");
      }
    });
  }

  /** Never rejects: a lease that cannot be deleted is one of a dead owner as soon as this daemon has ended. */
  letGo(): Promise<void> {
    return this.#next(async () => {
      this.#holders -= 1;
      if (this.#holders === 0) await this.#giveUp();
    });
  }

  async #giveUp(): Promise<void> {
    const lease = this.#lease;
    this.#lease = undefined;
    try {
      await lease?.release();
    } catch (error) {
      this.#options.log.warn({ err: error }, "the lease of the session's file could not be given up");
    }
  }

  #next<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work);
    this.#turn = done.catch(() => {});
    return done;
  }
}
