import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import type { Logger } from "pino";
import type { WireError } from "../../protocol/errors.ts";
import { Lease, type LeaseTaker, unusable } from "../pi/lease.ts";

export interface LeaseHoldOptions {
  readonly taker: LeaseTaker;
  readonly log: Logger;
}

/**
 * The lease of one session's file, for as long as anything of ours may write the file. It has as many holders as there
 * are children that are not gone yet; who deletes the file is one too.
 */
export class LeaseHold {
  readonly #options: LeaseHoldOptions;
  #lease: Lease | undefined;
  #holders = 0;
  /** Taking and giving up, one after the other. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: LeaseHoldOptions) {
    this.#options = options;
  }

  /** Throws `session_in_use` and `session_file_unusable`. Each hold is given up once, by {@link letGo}. */
  hold(file: string, generation: number): Promise<void> {
    return this.#next(async () => {
      this.#lease ??= await Lease.take({ ...this.#options.taker, file, generation });
      this.#holders += 1;
    });
  }

  /** As {@link hold}, where there is no file that could be another's. */
  holdNothing(): Promise<void> {
    return this.#next(async () => {
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

  /** Before a run: whether the lease is still ours. One that was deleted is taken again; gives why it cannot be. */
  confirm(): Promise<WireError | undefined> {
    return this.#next(async () => {
      const found = await this.#lease?.confirm();
      if (found?.kind === "retaken")
        this.#options.log.warn("the lease of the session's file had vanished; it is taken again");
      return found?.kind === "lost" ? found.error : undefined;
    });
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

  /** Resolves when what was begun here is done. */
  idle(): Promise<void> {
    return this.#next(async () => {});
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
