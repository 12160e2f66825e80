import { type ChildProcessByStdio, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { within } from "./deadline.ts";
import type { Resources } from "./figure.ts";

export interface AcpChildOptions {
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

/** An agent of ACP on its stdin and stdout. */
export class AcpChild {
  /** Called for the update of each piece of an answer. */
  onChunk: () => void = () => {};
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #pending = new Map<number, (answer: { result?: object; error?: { message: string } }) => void>();
  #lastId = 0;

  constructor({ args, cwd, env }: AcpChildOptions, resources: Resources) {
    const started = spawn(process.execPath, args, {
      cwd,
      env: { ...process.env, ...env },
      stdio: ["pipe", "pipe", "ignore"],
    });
    this.#child = resources.add(started, (child) => void child.kill());
    createInterface({ input: this.#child.stdout }).on("line", (line) => this.#receive(line));
  }

  get pid(): number {
    return this.#child.pid ?? -1;
  }

  /** Resolves with the result. */
  async request(method: string, params: object): Promise<Readonly<Record<string, unknown>>> {
    this.#lastId += 1;
    const { promise, resolve } = Promise.withResolvers<{ result?: object; error?: { message: string } }>();
    this.#pending.set(this.#lastId, resolve);
    this.#child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: this.#lastId, method, params })}\n`);
    const { result, error } = await within(60, method, promise);
    if (result === undefined) throw new Error(`${method}: ${error?.message}`);
    return result as Readonly<Record<string, unknown>>;
  }

  async create(cwd: string): Promise<string> {
    return String((await this.request("session/new", { cwd, mcpServers: [] }))["sessionId"]);
  }

  async prompt(sessionId: string, text: string): Promise<void> {
    await this.request("session/prompt", { sessionId, prompt: [{ type: "text", text }] });
  }

  stop(): void {
    this.#child.stdin.end();
  }

  #receive(line: string): void {
    if (line.includes('"agent_message_chunk"')) this.onChunk();
    else {
      const { id, method, ...answer } = JSON.parse(line) as { id?: number; method?: string };
      if (id === undefined || method !== undefined) return;
      this.#pending.get(id)?.(answer);
      this.#pending.delete(id);
    }
  }
}
