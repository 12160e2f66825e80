import { closeSync, fstatSync, openSync, readSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { stateDirectory } from "../client/discovery.ts";
import { CommandError } from "./errors.ts";
import { exitCodes } from "./exit-codes.ts";
import type { Invocation } from "./invocation.ts";
import { defaultLogFile } from "./log-file.ts";
import { logLine } from "./log-line.ts";
import { endWithReader } from "./reader-end.ts";
import { printableJson } from "./text.ts";
import { wholeNumber } from "./values.ts";

const chunkBytes = 65_536;
/** The interval of polling the file. Watching would miss writes of another machine into a shared directory. */
const lookEveryMs = 200;

/** Prints the end of the daemon's log, and follows it. */
export async function logs({ options, output, env, signal }: Invocation<"logs">): Promise<number> {
  const { file, lines = "50" } = options;
  const count = wholeNumber(lines, { option: "lines", command: "logs" }, { min: 0, max: 100_000 });
  const path = file === undefined ? defaultLogFile(stateDirectory(options["state-dir"], env)) : resolve(file);
  const print = (line: string): void => output.print(output.json ? printableJson(line) : logLine(line, output));
  if (options.follow === true) endWithReader();
  let reader = open(path, options.follow === true);
  if (reader !== undefined) {
    // After a rotation, the end of the log is in the previous file.
    const rest = reader.last(count);
    const before = rest.length < count ? open(`${path}.1`, true) : undefined;
    for (const line of before?.last(count - rest.length) ?? []) print(line);
    before?.close();
    for (const line of rest) print(line);
  }
  try {
    while (options.follow === true) {
      if (reader?.isReplaced() === true) {
        for (const line of reader.more()) print(line);
        reader.close();
        reader = undefined;
      }
      reader ??= open(path, true);
      for (const line of reader?.more() ?? []) print(line);
      await pause(lookEveryMs, undefined, { signal }).catch(() => signal.throwIfAborted());
    }
    return exitCodes.done;
  } finally {
    reader?.close();
  }
}

function open(path: string, mayBeAbsent: boolean): LogReader | undefined {
  try {
    return new LogReader(path);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === "ENOENT" && mayBeAbsent) return undefined;
    const what = code === "ENOENT" ? "No log exists" : `The log cannot be read (${code})`;
    throw new CommandError("no_log", `${what}: ${path}. If the daemon was started with --log-file, name that file.`, {
      cause,
    });
  }
}

/** The complete lines of a growing file. */
class LogReader {
  readonly #path: string;
  readonly #descriptor: number;
  readonly #inode: number;
  #position = 0;
  #rest: Buffer = Buffer.alloc(0);

  constructor(path: string) {
    this.#path = path;
    this.#descriptor = openSync(path, "r");
    this.#inode = fstatSync(this.#descriptor).ino;
  }

  /** The last complete lines of the file; {@link more} continues after them. */
  last(count: number): readonly string[] {
    const size = fstatSync(this.#descriptor).size;
    const parts: Buffer[] = [];
    let breaks = 0;
    let from = size;
    // One line break more than lines: the one before the first line.
    while (from > 0 && breaks <= count) {
      const start = Math.max(0, from - chunkBytes);
      const part = this.#read(start, from - start);
      for (const byte of part) if (byte === 10) breaks += 1;
      parts.unshift(part);
      from = start;
    }
    const whole = Buffer.concat(parts);
    const end = whole.lastIndexOf(10) + 1;
    this.#position = from + end;
    return count === 0 ? [] : linesOf(whole.subarray(0, end)).slice(-count);
  }

  /** The lines that were added since. */
  more(): readonly string[] {
    const lines: string[] = [];
    for (;;) {
      const part = this.#read(this.#position, chunkBytes);
      if (part.length === 0) return lines;
      this.#position += part.length;
      const all = Buffer.concat([this.#rest, part]);
      const end = all.lastIndexOf(10) + 1;
      this.#rest = all.subarray(end);
      lines.push(...linesOf(all.subarray(0, end)));
    }
  }

  /** Whether the path is now another file. */
  isReplaced(): boolean {
    return statSync(this.#path, { throwIfNoEntry: false })?.ino !== this.#inode;
  }

  close(): void {
    closeSync(this.#descriptor);
  }

  #read(position: number, length: number): Buffer {
    const buffer = Buffer.alloc(length);
    return buffer.subarray(0, readSync(this.#descriptor, buffer, 0, length, position));
  }
}

function linesOf(bytes: Buffer): readonly string[] {
  return bytes
    .toString("utf8")
    .split("\n")
    .filter((line) => line !== "");
}
