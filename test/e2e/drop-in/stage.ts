import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { onTestFinished } from "vitest";
import { connect } from "../../../client/connect.ts";
import type { Client } from "../../../client/index.ts";
import type { Step } from "../../../provider/script.ts";
import { piUnderTest } from "../../helpers/pi-versions.ts";
import { dropInProgram } from "./program.ts";
import { type Gates, World } from "./world.ts";

export interface Scene {
  readonly world: World;
  readonly client: Client;
  /** For a program that starts the drop-in as pi. */
  readonly env: NodeJS.ProcessEnv;
}

/** A daemon, a client of it, and what a front end needs to start the drop-in. */
export async function scene(script: readonly Step[] | ((gates: Gates) => readonly Step[])): Promise<Scene> {
  const world = await World.open({ script: typeof script === "function" ? script : () => script });
  onTestFinished(() => world[Symbol.asyncDispose]());
  const { prepare, env } = dropInProgram(piUnderTest().cli);
  const stop = await prepare?.(world);
  onTestFinished(() => stop?.());
  const client = await connect({ stateDir: world.stateDir });
  onTestFinished(() => void client.close());
  return { world, client, env: { ...world.env, ...env?.(world) } };
}

/** A started process that ends with the test. */
export function started(
  args: readonly string[],
  { world, env }: { readonly world: Pick<World, "cwd">; readonly env: NodeJS.ProcessEnv },
  { detached = false } = {},
): ChildProcessWithoutNullStreams {
  const child = spawn(process.execPath, args, { cwd: world.cwd, env, detached });
  onTestFinished(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  });
  return child;
}

export type Json = Readonly<Record<string, unknown>>;

/** A front end of pi: it writes commands, and reads responses and events. */
export class Front {
  stderr = "";
  responses = 0;
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #calls = new Map<unknown, (response: Json) => void>();
  readonly #events: { readonly type: string; readonly seen: () => void }[] = [];
  #said: { readonly text: string; readonly resolve: () => void } | undefined;
  /** How often pi has settled. */
  ends = 0;
  readonly #told = new Map<unknown, () => void>();
  /** The text of the deltas of the newest message. */
  text = "";
  readonly records: Json[] = [];
  #asked: () => void = () => {};
  /** What extensions have asked. */
  readonly questions: Json[] = [];

  constructor(child: ChildProcessWithoutNullStreams) {
    this.#child = child;
    child.stderr.on("data", (chunk: Buffer) => {
      this.stderr += chunk.toString();
    });
    createInterface({ input: child.stdout }).on("line", (line) => this.#receive(JSON.parse(line) as Json));
  }

  get pid(): number {
    return this.#child.pid as number;
  }

  get exited(): Promise<unknown> {
    return once(this.#child, "exit");
  }

  end(): void {
    this.#child.stdin.end();
  }

  write(record: Json): void {
    this.#child.stdin.write(`${JSON.stringify(record)}\n`);
  }

  /** Resolves when the deltas of the newest message are this text. */
  said(text: string): Promise<void> {
    return new Promise((resolve) => {
      this.#said = { text, resolve };
    });
  }

  /** Resolves when an extension has told this. */
  told(message: string): Promise<void> {
    return new Promise((resolve) => void this.#told.set(message, resolve));
  }

  call(command: Json): Promise<Json> {
    this.write(command);
    return new Promise((resolve) => void this.#calls.set(command["id"], resolve));
  }

  /** Resolves when an extension asks. */
  asked(): Promise<void> {
    return new Promise((resolve) => {
      this.#asked = resolve;
    });
  }

  event(type: string): Promise<void> {
    return new Promise((seen) => void this.#events.push({ type, seen }));
  }

  #read({ type, assistantMessageEvent: step }: Json): void {
    if (type === "message_start") this.text = "";
    const { type: kind, delta } = (step ?? {}) as { readonly type?: string; readonly delta?: string };
    if (type === "message_update" && kind === "text_delta") this.text += delta;
    if (type === "agent_settled") this.ends += 1;
    if (this.text === this.#said?.text) this.#said.resolve();
  }

  #receive(record: Json): void {
    this.records.push(record);
    if (record["type"] === "response") {
      this.responses += 1;
      this.#calls.get(record["id"])?.(record);
      return;
    }
    this.#read(record);
    if (record["method"] === "select" || record["method"] === "input") {
      this.questions.push(record);
      this.#asked();
    }
    if (record["method"] === "notify") this.#told.get(record["message"])?.();
    for (const awaited of this.#events.splice(0)) {
      if (awaited.type === record["type"]) awaited.seen();
      else this.#events.push(awaited);
    }
  }
}
