import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import type { Logger } from "pino";
import type { WireError } from "../../protocol/errors.ts";
import { Lease, type LeaseChild, type LeaseTaker } from "../pi/lease.ts";
import { unusable } from "../pi/open-file.ts";

export interface LeaseHoldOptions {
  readonly taker: LeaseTaker;
  readonly log: Logger;
}

/**
 * The lease of one session's file, held while our processes may write the file. Holders are the children that have
 * not ended, and deletions of the file.
 */
export class LeaseHold {
  readonly #options: LeaseHoldOptions;
  #lease: Lease | undefined;
  #holders = 0;
  /** Serialises acquisition and release. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: LeaseHoldOptions) {
    this.#options = options;
  }

  /** Throws `session_in_use` and `session_file_unusable`. Each hold is released once, by {@link letGo}. */
  hold(file: string, generation: number): Promise<void> {
    return this.#next(async () => {
      this.#lease ??= await Lease.take({ ...this.#options.taker, file, generation });
      this.#holders += 1;
    });
  }

  /** Like {@link hold}, for a file that no other process can use. */
  holdNothing(): Promise<void> {
    return this.#next(async () => {
      this.#holders += 1;
    });
  }

  /** Like {@link hold}, for a child that is about to be started; creates the file's directory if it is missing. */
  async holdForChild(file: string, generation: number): Promise<void> {
    await mkdir(dirname(file), { recursive: true }).catch((error: NodeJS.ErrnoException) => {
      throw unusable(file, "directory_unwritable", `has no directory, and it cannot be created (${error.code})`, error);
    });
    await this.hold(file, generation);
  }

  /** Before a run: checks that the lease is still ours. A deleted one is taken again; returns why that fails. */
  confirm(): Promise<WireError | undefined> {
    return this.#next(async () => {
      const found = await this.#lease?.confirm();
      if (found?.kind === "retaken")
        this.#options.log.warn("the lease of the session's file is missing; taking it again");
      return found?.kind === "lost" ? found.error : undefined;
    });
  }

  /** A child was started on the file. Its id lets a later owner recognise its descendants after our death. */
  noteChild(child: LeaseChild, generation: number): Promise<void> {
    return this.#next(async () => {
      try {
        await this.#lease?.note(child, generation);
      } catch (error) {
        this.#options.log.warn({ err: error }, "cannot update the lease of the session's file");
      }
    });
  }

  /** Never rejects: a lease that cannot be deleted expires with this daemon. */
  letGo(): Promise<void> {
    return this.#next(async () => {
      this.#holders -= 1;
      if (this.#holders === 0) await this.#giveUp();
    });
  }

  /** Resolves when all operations in progress have ended. */
  idle(): Promise<void> {
    return this.#next(async () => {});
  }

  async #giveUp(): Promise<void> {
    const lease = this.#lease;
    this.#lease = undefined;
    try {
      await lease?.release();
    } catch (error) {
      this.#options.log.warn({ err: error }, "cannot release the lease of the session's file");
    }
  }

  #next<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work);
    this.#turn = done.catch(() => {});
    return done;
  }
}
