import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import type { ReaderAnswer, ReaderTask } from "../reader-process.ts";
import type { Resources } from "./figure.ts";

const script = join(import.meta.dirname, "..", "reader-process.ts");

/** Readers in a separate process, so that their work does not affect the measuring process. */
export class Readers {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #lines: AsyncIterator<string>;

  private constructor(task: ReaderTask) {
    this.#child = spawn(process.execPath, [...process.execArgv, script, JSON.stringify(task)], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
  }

  /** Resolves when all of them are subscribed. */
  static async start(task: ReaderTask, resources: Resources): Promise<Readers> {
    const readers = resources.add(new Readers(task), (started) => started.stop());
    await readers.#lines.next();
    return readers;
  }

  /** Resolves when this many records have arrived since the start. */
  async received(records = 0): Promise<ReaderAnswer> {
    this.#child.stdin.write(`${records}\n`);
    const { value } = await this.#lines.next();
    return JSON.parse(value) as ReaderAnswer;
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const gone = once(this.#child, "exit");
    this.#child.stdin.end();
    await gone;
  }
}
