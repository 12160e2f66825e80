import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { nodeFlags } from "../../cli/daemon-process.ts";
import type { DaemonFile } from "../../protocol/daemon-file.ts";
import type { DaemonOptions } from "../../server/daemon.ts";
import type { EdgeLimits } from "../../server/edge/limits.ts";

const script = join(import.meta.dirname, "..", "fixtures", "daemon-process.ts");
const fakePi = join(import.meta.dirname, "..", "fixtures", "fake-pi.mjs");

type Child = ChildProcessByStdio<Writable, Readable, null>;
type Lines = AsyncIterator<string>;

/** A daemon on the fake pi in a separate process, so that its memory can be measured. */
export class DaemonProcess implements AsyncDisposable {
  readonly cwd: string;
  readonly file: DaemonFile;
  readonly #root: string;
  readonly #child: Child;
  readonly #lines: Lines;

  private constructor(root: string, child: Child, lines: Lines, file: DaemonFile) {
    this.cwd = join(root, "cwd");
    this.file = file;
    this.#root = root;
    this.#child = child;
    this.#lines = lines;
  }

  static async start(
    edgeLimits: Partial<EdgeLimits> = {},
    more: Pick<DaemonOptions, "allowedOrigins"> = {},
  ): Promise<DaemonProcess> {
    const root = mkdtempSync(join(tmpdir(), "daemon-"));
    mkdirSync(join(root, "cwd"));
    const options = { stateDir: join(root, "state"), pi: fakePi, edgeLimits, ...more };
    // As the command line starts it.
    const flags = ["--expose-gc", ...nodeFlags];
    const child = spawn(process.execPath, [...flags, script, JSON.stringify(options)], {
      env: { ...process.env, PI_CODING_AGENT_DIR: join(root, "agent") },
      stdio: ["pipe", "pipe", "inherit"],
    });
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    return new DaemonProcess(root, child, lines, (await next(lines)) as DaemonFile);
  }

  /** In bytes, after garbage collection. */
  async memory(): Promise<NodeJS.MemoryUsage> {
    this.#child.stdin.write("\n");
    return (await next(this.#lines)) as NodeJS.MemoryUsage;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const gone = once(this.#child, "exit");
    this.#child.stdin.end();
    await gone;
    rmSync(this.#root, { recursive: true });
  }
}

async function next(lines: Lines): Promise<unknown> {
  const { value, done } = await lines.next();
  if (done === true) throw new Error("The daemon has ended.");
  return JSON.parse(value);
}
