import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createConnection, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import type { KeeperAnswer, KeeperConfig, KeeperLimits, KeeperRest } from "../../protocol/keeper.ts";
import { limits } from "../../server/configuration/limits.ts";
import { connectKept, type KeptIdentity, type KeptPlace } from "../../server/pi/kept-stdio.ts";
import { startTimeOf } from "../../server/pi/processes.ts";
import type { ChildStdio, KeeperLink } from "../../server/pi/stdio.ts";
import { patience } from "./patience.ts";

const keeperModule = join(import.meta.dirname, "..", "..", "extension", "keeper.ts");

export interface KeptProgram {
  /** The text of a module, in its directory. */
  readonly source?: string;
  /** Instead of the module: a script and its arguments. */
  readonly command?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  readonly limits?: Partial<KeeperLimits>;
  /** Default: the one of the checkout. */
  readonly keeper?: string;
  /** Begins the name of its directory. */
  readonly prefix?: string;
}

/** A process with a keeper whose daemon has died before it connected. Disposal kills it and removes its files. */
export interface Kept extends AsyncDisposable {
  readonly root: string;
  readonly place: KeptPlace;
  readonly identity: KeptIdentity;
  readonly ended: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
  /** Connects as the daemon does. */
  connect(from: number, timeoutMs?: number): Promise<ChildStdio | undefined>;
  /** The same for one that answers. Nothing can take its place afterwards: it would connect again. */
  takeOver(from: number): Promise<{ readonly stdio: ChildStdio; readonly keeper: KeeperLink; readonly said: Said }>;
  readonly stderr: string;
  /** What it left. */
  rest(): KeeperRest & { readonly text: string };
}

export async function keep(program: KeptProgram): Promise<Kept> {
  const { source = "", keeper = keeperModule, prefix = "kept-", env } = program;
  const root = mkdtempSync(join(tmpdir(), prefix));
  const module = join(root, "program.mjs");
  writeFileSync(module, source);
  const { command = [module] } = program;
  const place = { socket: join(root, "k", "12345678"), directory: join(root, "run") };
  for (const directory of ["k", "run"]) mkdirSync(join(root, directory), { mode: 0o700 });
  const stderrFile = join(place.directory, "stderr");
  const stderr = openSync(stderrFile, "a+", 0o600);
  const child = spawn(process.execPath, [keeper, ...command], {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: ["ignore", "ignore", stderr, "pipe"],
  });
  closeSync(stderr);
  const ended = exitOf(child);
  const childId = "00000000-child";
  const waits = { lookEveryMs: 10, orphanIdleMs: 600_000, orphanRunMs: 600_000 };
  const config: KeeperConfig = { childId, ...place, limits: { ...limits.keeper, ...waits, ...program.limits } };
  const channel = child.stdio[3] as Socket;
  channel.end(JSON.stringify(config));
  channel.resume();
  await once(channel, "close");
  const pid = child.pid as number;
  const identity = { childId, pid, startTime: (await startTimeOf(pid)) ?? "ended" };
  const connect: Kept["connect"] = (from, timeoutMs = patience.timeout) =>
    connectKept(place, identity, { from, timeoutMs, maxStderrBytes: limits.child.maxStderrBytes });
  return {
    ...{ root, place, identity, ended, connect },
    async takeOver(from) {
      const stdio = await connect(from);
      if (stdio?.keeper === undefined) throw new Error("it does not answer");
      return { stdio, keeper: stdio.keeper, said: new Said(stdio.stdout) };
    },
    get stderr() {
      return readFileSync(stderrFile, "utf8");
    },
    rest() {
      const text = readFileSync(join(place.directory, "rest"), "utf8");
      const end = text.indexOf("\n");
      return { ...(JSON.parse(text.slice(0, end)) as KeeperRest), text: text.slice(end + 1) };
    },
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await ended;
      rmSync(root, { recursive: true });
    },
  };
}

async function exitOf(child: ChildProcess): Kept["ended"] {
  const [code, signal] = await once(child, "exit");
  return { code, signal };
}

/** Everything that a stream says, as text that can be awaited. */
export class Said {
  readonly #chunks: Buffer[] = [];
  readonly #waiting = new Set<() => void>();
  readonly ended: Promise<string>;
  bytes = 0;

  constructor(stream: Readable) {
    const { promise, resolve } = Promise.withResolvers<string>();
    this.ended = promise;
    stream.on("error", () => {});
    stream.on("data", (chunk: Buffer) => {
      this.#chunks.push(chunk);
      this.bytes += chunk.length;
      for (const look of this.#waiting) look();
    });
    stream.on("close", () => resolve(this.text));
  }

  get text(): string {
    return Buffer.concat(this.#chunks).toString("utf8");
  }

  async until(isEnough: () => boolean): Promise<string> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const look = () => {
      if (isEnough()) resolve();
    };
    this.#waiting.add(look);
    look();
    await promise;
    this.#waiting.delete(look);
    return this.text;
  }
}

/** A connection of a daemon, byte by byte. It is like a killed daemon's when its socket is destroyed. */
export class RawConnection {
  readonly socket: Socket;
  readonly said: Said;

  constructor({ place }: Kept) {
    this.socket = createConnection({ path: place.socket });
    this.said = new Said(this.socket);
  }

  /** Resolves when all of it was handed to the system. */
  async write(text: string | Buffer): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.socket.write(text, () => resolve());
    await promise;
  }

  async from(offset: number): Promise<KeeperAnswer> {
    await this.write(`\u0001from ${offset} 1\n`);
    const text = await this.said.until(() => this.said.text.includes("\n"));
    return JSON.parse(text.slice(1, text.indexOf("\n")));
  }

  /** Its output, as soon as there is so much. */
  async output(bytes: number): Promise<string> {
    await this.said.until(() => this.#output.length >= bytes);
    return this.#output;
  }

  get #output(): string {
    return this.said.text.slice(this.said.text.indexOf("\n") + 1);
  }

  async close(): Promise<void> {
    this.socket.destroy();
    if (!this.socket.closed) await once(this.socket, "close");
  }
}
