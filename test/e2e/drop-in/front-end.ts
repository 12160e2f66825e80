import { type ChildProcessByStdio, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import type { Gate } from "../../../provider/gate.ts";
import type { Program } from "./program.ts";
import { describeRecord, type PiRecord, readRecord } from "./records.ts";
import type { World } from "./world.ts";

/** A type of record, or a condition. */
export type Match = string | ((record: PiRecord) => boolean);

export interface FrontEndEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

interface Waiter {
  readonly check: () => boolean;
  readonly reject: (reason: Error) => void;
}

/** The program under test as a child process, and what a scenario does with it. */
export class FrontEnd {
  readonly world: World;
  readonly isDropIn: boolean;
  readonly records: PiRecord[] = [];
  readonly exited: Promise<FrontEndEnd>;
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #patienceMs: number;
  readonly #waiters = new Set<Waiter>();
  #stderr = "";
  #rest = "";
  #end: FrontEndEnd | undefined;
  #cursor = 0;
  #calls = 0;

  constructor(
    program: Program,
    world: World,
    options: { readonly args: readonly string[]; readonly patienceMs: number },
  ) {
    this.world = world;
    this.isDropIn = program.isDropIn;
    this.#patienceMs = options.patienceMs;
    const [command = process.execPath, ...before] = program.command;
    this.#child = spawn(command, [...before, "--mode", "rpc", ...options.args], {
      cwd: world.cwd,
      env: { ...world.env, ...program.env?.(world) },
      stdio: ["pipe", "pipe", "pipe"],
    });
    // The program may end before it has read everything.
    this.#child.stdin.on("error", () => {});
    this.#child.stdout.setEncoding("utf8").on("data", (text: string) => this.#read(text));
    this.#child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#stderr += text;
    });
    const { promise, resolve, reject } = Promise.withResolvers<FrontEndEnd>();
    this.#child.once("error", reject);
    this.#child.once("close", (code, signal) => {
      if (this.#rest !== "") this.records.push(readRecord(this.#rest));
      this.#end = { code, signal };
      resolve(this.#end);
      this.#look();
      for (const { reject: fail } of this.#waiters) fail(new Error(`The program has ended (${code ?? signal})`));
    });
    this.exited = promise;
  }

  get stderr(): string {
    return this.#stderr;
  }

  gate(name: string): Gate {
    return this.world.gates.named(name);
  }

  /** Writes text to stdin as it is. */
  write(text: string): void {
    this.#child.stdin.write(text);
  }

  send(command: object): void {
    this.write(`${JSON.stringify(command)}\n`);
  }

  /** Sends a command, with the next number as its id if it has none, and waits for its response. */
  async call(command: { readonly type: string; readonly [field: string]: unknown }): Promise<PiRecord> {
    this.#calls += 1;
    const { id = `call-${this.#calls}` } = command;
    this.send({ id, ...command });
    return await this.response(id);
  }

  /** Calls, and returns a list in the data of the response. */
  async list<T>(type: string, name: string): Promise<readonly T[]> {
    const { data } = await this.call({ type });
    return (data?.[name] ?? []) as readonly T[];
  }

  /** The response with this id, among earlier and later records. */
  response(id: unknown): Promise<PiRecord> {
    const wanted = JSON.stringify(id);
    return this.#wait(`the response ${wanted}`, () =>
      this.records.find((record) => record.type === "response" && JSON.stringify(record.id) === wanted),
    );
  }

  /** The next record that matches: the search begins after the record that the previous call has found. */
  until(match: Match, what = String(match)): Promise<PiRecord> {
    const matches = typeof match === "string" ? (record: PiRecord) => record.type === match : match;
    return this.#wait(what, () => {
      const index = this.records.findIndex((record, at) => at >= this.#cursor && matches(record));
      if (index === -1) return undefined;
      this.#cursor = index + 1;
      return this.records[index];
    });
  }

  settled(): Promise<PiRecord> {
    return this.until("agent_settled");
  }

  /** Sends a prompt and waits for the end of its run. */
  async prompt(message: string, more: object = {}): Promise<void> {
    // The end of an earlier run does not count.
    this.#cursor = this.records.length;
    await this.call({ type: "prompt", message, ...more });
    await this.settled();
  }

  /** The next delta of the answer with this text. Use texts that no other delta has. */
  async streamed(text: string): Promise<void> {
    await this.until(({ assistantMessageEvent: event }) => event?.delta?.includes(text) === true, `the delta ${text}`);
  }

  /** The next question or message of an extension. */
  request(method: string): Promise<PiRecord> {
    return this.until((record) => record.type === "extension_ui_request" && record["method"] === method, method);
  }

  /** Closes stdin and waits for the end of the program. */
  async end(lastText?: string): Promise<void> {
    this.#child.stdin.end(lastText);
    await this.ended();
  }

  async kill(signal: NodeJS.Signals): Promise<void> {
    this.#child.kill(signal);
    await this.ended();
  }

  /** Ends the program at once if it still runs. */
  async destroy(): Promise<void> {
    if (this.#end === undefined) this.#child.kill("SIGKILL");
    await this.exited;
  }

  /** Waits for the end of the program. */
  async ended(): Promise<void> {
    await this.#wait("the end of the program", () => this.#end);
  }

  #read(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    this.records.push(...lines.map(readRecord));
    this.#look();
  }

  #look(): void {
    for (const waiter of this.#waiters) if (waiter.check()) this.#waiters.delete(waiter);
  }

  async #wait<T>(what: string, find: () => T | undefined): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const check = (): boolean => {
      const found = find();
      if (found !== undefined) resolve(found);
      return found !== undefined;
    };
    if (check()) return await promise;
    const waiter = { check, reject };
    this.#waiters.add(waiter);
    if (this.#end !== undefined) reject(new Error("The program has ended"));
    const timer = setTimeout(() => reject(new Error("It did not come")), this.#patienceMs);
    try {
      return await promise;
    } catch (cause) {
      const last = this.records.slice(-5).map((record) => `\n  ${describeRecord(record)}`);
      const message = `Waited for ${what}: ${(cause as Error).message}. The last records:${last.join("")}`;
      throw new Error(message, { cause });
    } finally {
      clearTimeout(timer);
      this.#waiters.delete(waiter);
    }
  }
}
