import { type ChildProcessByStdio, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import type { Resources } from "./figure.ts";

export interface DirectChildOptions {
  /** Default: Node. */
  readonly file?: string;
  readonly args: readonly string[];
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
}

interface Response {
  readonly id?: string;
  readonly type: string;
}

/** The baseline: splits a child's stdout and parses every record, and does nothing else. */
export class DirectChild {
  /** Called for each record except responses. */
  onRecord: (record: { readonly type: string }) => void = () => {};
  readonly exited: Promise<void>;
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #pending = new Map<string, Pick<PromiseWithResolvers<Response>, "resolve" | "reject">>();
  #parts: Buffer[] = [];
  #lastId = 0;

  private constructor({ file = process.execPath, args, cwd, env }: DirectChildOptions) {
    this.#child = spawn(file, args, {
      ...(cwd !== undefined && { cwd }),
      env: { ...process.env, ...env },
      stdio: ["pipe", "pipe", "ignore"],
    });
    this.exited = new Promise((resolve) => this.#child.once("exit", () => resolve()));
    void this.exited.then(() => {
      for (const { reject } of this.#pending.values()) reject(new Error("The child ended before its answer."));
    });
    this.#child.stdout.on("data", (chunk: Buffer) => this.#push(chunk));
  }

  get pid(): number {
    return this.#child.pid ?? -1;
  }

  static start(options: DirectChildOptions, resources?: Resources): DirectChild {
    const child = new DirectChild(options);
    resources?.add(child, (started) => started.stop());
    return child;
  }

  request(command: { readonly type: string; readonly [field: string]: unknown }): Promise<Response> {
    this.#lastId += 1;
    const id = `b${this.#lastId}`;
    const { promise, resolve, reject } = Promise.withResolvers<Response>();
    this.#pending.set(id, { resolve, reject });
    this.#child.stdin.write(`${JSON.stringify({ ...command, id })}\n`);
    return promise;
  }

  async stop(): Promise<void> {
    this.#child.stdin.end();
    const kill = setTimeout(() => this.#child.kill("SIGKILL"), 10_000);
    await this.exited;
    clearTimeout(kill);
  }

  #push(chunk: Buffer): void {
    let start = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      const last = chunk.subarray(start, end);
      this.#record(this.#parts.length === 0 ? last : Buffer.concat([...this.#parts, last]));
      this.#parts = [];
      start = end + 1;
    }
    if (start < chunk.length) this.#parts.push(chunk.subarray(start));
  }

  #record(line: Buffer): void {
    const record = JSON.parse(line.toString("utf8")) as Response;
    if (record.type !== "response" || record.id === undefined) {
      this.onRecord(record);
      return;
    }
    this.#pending.get(record.id)?.resolve(record);
    this.#pending.delete(record.id);
  }
}
