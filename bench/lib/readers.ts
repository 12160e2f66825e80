import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import type { ReaderAnswer, ReaderTask } from "../reader-process.ts";
import { within } from "./deadline.ts";
import type { Resources } from "./figure.ts";

const script = join(import.meta.dirname, "..", "reader-process.ts");
const startSeconds = 60;

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

  get pid(): number {
    return this.#child.pid ?? -1;
  }

  /** Resolves when all of them are subscribed. */
  static async start(task: ReaderTask, resources: Resources): Promise<Readers> {
    const readers = resources.add(new Readers(task), (started) => started.stop());
    await within(startSeconds, "the start of the readers", readers.#lines.next());
    return readers;
  }

  /** Resolves when this many records have arrived, merged ones included. Rejects, with the number that has, after that. */
  async received(records = 0, seconds = 30): Promise<ReaderAnswer> {
    this.#child.stdin.write(`${records}\n`);
    const answer = this.#lines.next();
    const timer = setTimeout(() => this.#child.stdin.write(`${records}\n`), seconds * 1_000);
    const { value } = await within(seconds + 5, `${records} records at the readers`, answer);
    clearTimeout(timer);
    const told = JSON.parse(value) as ReaderAnswer;
    if (told.records < records)
      throw new Error(
        `${told.records} of ${records} records arrived within ${seconds} s; ${told.merged} were merged and ${told.lost} lost.`,
      );
    return told;
  }

  /** Stops the whole process, which then reads nothing. */
  pause(): void {
    this.#child.kill("SIGSTOP");
  }

  resume(): void {
    this.#child.kill("SIGCONT");
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const gone = once(this.#child, "exit");
    this.resume();
    this.#child.stdin.end();
    await gone;
  }
}
