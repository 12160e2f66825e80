import { type ChildProcess, spawn } from "node:child_process";
import {
  closeSync,
  existsSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { open } from "node:fs/promises";
import { createConnection, type Socket } from "node:net";
import { dirname, join } from "node:path";
import { Readable, Writable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import type { KeeperAnswer, KeeperConfig, KeeperLimits, KeeperRest } from "../../protocol/keeper.ts";
import { within } from "../lib/deadline.ts";
import { isStill, type ProcessIdentity, signal } from "./processes.ts";
import type { SpawnPlan } from "./spawn-options.ts";
import { type ChildStdio, type KeeperLink, type ProcessExit, type StderrPart, started } from "./stdio.ts";

/** Where a kept process and the daemon meet. */
export interface KeptPlace {
  /** The socket on which its keeper listens; its directory is created with mode 0700. */
  readonly socket: string;
  /** For the process's stderr and for the output that it leaves at its end. Created with mode 0700. */
  readonly directory: string;
}

export interface KeptStart {
  readonly childId: string;
  readonly limits: KeeperLimits;
  /** How much of its stderr is read. */
  readonly maxStderrBytes: number;
  /** From the start of the process until its keeper listens. */
  readonly listenWithinMs: number;
}

/** A process that another daemon started. */
export type KeptIdentity = ProcessIdentity & { readonly childId: string };

/** The process cannot survive the daemon; the message says why. It has ended, and nothing remains. */
export class KeeperUnavailable extends Error {}

interface Identity {
  readonly childId: string;
  readonly pid: number;
}

/** How long a broken connection may take to be replaced. */
const reconnectMs = 2_000;
const pollMs = 20;

/** More than an answer with all prompts that may be open at once. */
const maxAnswerBytes = 64 * 1024;

/** Acknowledgements are sent in steps: the keeper frees its memory in pieces of this size. */
const ackBytes = 64 * 1024;

/** Of the stderr of a process that failed. */
const maxReasonBytes = 1_024;

const protocolByte = 0x01;
const lineFeed = 0x0a;

/**
 * Starts a process whose keeper holds its output, so that it survives the daemon. The plan's first argument after
 * Node's flags is the keeper. Rejects with {@link KeeperUnavailable}, or as the system did if it cannot start it.
 */
export async function startKept(
  plan: Omit<SpawnPlan, "startEnvironment">,
  place: KeptPlace,
  options: KeptStart,
): Promise<ChildStdio> {
  const { childId, limits, maxStderrBytes, listenWithinMs } = options;
  const child = await spawnKept(plan, place);
  const pid = child.pid as number;
  const ended = new Promise<void>((resolve) => void child.once("exit", () => resolve()));
  try {
    const config: KeeperConfig = { childId, ...place, limits };
    const words = await within(said(child.stdio[3] as Socket, JSON.stringify(config)), listenWithinMs);
    if (words.kind === "timeout") throw new Error(`did not listen within ${listenWithinMs} ms`);
    if (words.value !== "listening\n") throw new Error(`failed: ${tailOf(place, maxReasonBytes).trim()}`);
    const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
    const own = {
      isOver: async () => hasEnded(),
      wait: async (ms: number) => void (await within(ended, ms)),
      hasEnded,
      exit: () => ({ code: child.exitCode, signal: child.signalCode }),
    };
    const stdio = await meet(own, place, { childId, pid }, { from: 0, timeoutMs: listenWithinMs, maxStderrBytes });
    if (stdio === undefined) throw new Error(`did not answer within ${listenWithinMs} ms`);
    return stdio;
  } catch (cause) {
    if (child.exitCode === null && child.signalCode === null) signal(-pid, "SIGKILL");
    await ended;
    removeKeepers(place);
    throw new KeeperUnavailable(`The module that keeps the output of pi ${messageOf(cause)}.`, { cause });
  }
}

interface Connecting {
  readonly from: number;
  readonly timeoutMs: number;
  readonly maxStderrBytes: number;
}

/**
 * Connects to a process that another daemon started, with its output from `from` on. Resolves with `undefined` if it
 * lives and does not answer within `timeoutMs`. If it has ended, `stdout` is what it left; without a file of it
 * there is no `keeper`, and its exit is `unknown`.
 */
export async function connectKept(
  place: KeptPlace,
  identity: KeptIdentity,
  options: Connecting,
): Promise<ChildStdio | undefined> {
  let hasEnded = false;
  const other = {
    isOver: async () => {
      hasEnded ||= !(await isStill(identity));
      return hasEnded;
    },
    wait: (ms: number) => delay(ms),
    hasEnded: () => hasEnded,
  };
  return await meet(other, place, identity, options);
}

async function meet(
  process: KeptProcess,
  place: KeptPlace,
  identity: Identity,
  { from, timeoutMs, maxStderrBytes }: Connecting,
): Promise<KeptStdio | undefined> {
  const deadline = performance.now() + timeoutMs;
  const kept = { process, place, identity, from, maxStderrBytes };
  for (;;) {
    if (await process.isOver()) return new KeptStdio({ ...kept, rest: await readRest(place, identity) });
    const left = deadline - performance.now();
    if (left <= 0) return undefined;
    const connection = await connect(place.socket, identity, from, left);
    if (connection !== undefined) return new KeptStdio({ ...kept, connection });
    await process.wait(Math.min(pollMs, left));
  }
}

/** Where a child of a state directory is. */
export function keptPlaceOf(childId: string, socketDirectory: string, runDirectory: string): KeptPlace {
  return { socket: join(socketDirectory, childId.slice(0, 8)), directory: join(runDirectory, childId) };
}

/** Removes what the keeper has made; the other files are for a process with pipes. */
function removeKeepers({ socket, directory }: KeptPlace): void {
  for (const file of [socket, join(directory, "stderr"), join(directory, "rest")]) rmSync(file, { force: true });
}

/** Removes what a kept process has left. */
export function removeKept({ socket, directory }: KeptPlace): void {
  rmSync(socket, { force: true });
  rmSync(directory, { recursive: true, force: true });
}

async function spawnKept(plan: Omit<SpawnPlan, "startEnvironment">, place: KeptPlace): Promise<ChildProcess> {
  let stderr: number;
  try {
    for (const directory of [dirname(place.socket), place.directory])
      mkdirSync(directory, { mode: 0o700, recursive: true });
    stderr = openSync(join(place.directory, "stderr"), "ax+", 0o600);
  } catch (cause) {
    removeKeepers(place);
    throw new KeeperUnavailable(`The files of pi cannot be created: ${messageOf(cause)}.`, { cause });
  }
  try {
    const child = spawn(plan.file, plan.args, {
      cwd: plan.cwd,
      env: plan.env,
      // The keeper is told through the last one: pi's environment must not name the state directory.
      stdio: ["ignore", "ignore", stderr, "pipe"],
      detached: true,
      shell: false,
    });
    await started(child);
    return child;
  } catch (error) {
    removeKeepers(place);
    throw error;
  } finally {
    closeSync(stderr);
  }
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}

/** What a keeper says after it was told its configuration. */
async function said(channel: Socket, config: string): Promise<string> {
  let text = "";
  channel.on("error", () => {});
  channel.on("data", (chunk: Buffer) => {
    text += chunk.toString("latin1");
  });
  channel.end(config);
  await closed(channel);
  return text;
}

async function closed(stream: Readable): Promise<void> {
  if (stream.closed) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  stream.once("close", resolve);
  await promise;
}

interface Connected {
  readonly socket: Socket;
  readonly answer: KeeperAnswer;
}

/** Undefined: there is no such keeper, or it does not answer in time. */
async function connect(
  path: string,
  identity: Identity,
  from: number,
  timeoutMs: number,
): Promise<Connected | undefined> {
  if (!isOwnSocket(path)) return undefined;
  const socket = createConnection({ path });
  socket.on("error", () => {});
  socket.write(`\u0001from ${from} 1\n`);
  const line = await within(firstLine(socket), timeoutMs);
  const answer = line.kind === "done" ? answerIn(line.value, identity) : undefined;
  if (answer !== undefined) return { socket, answer };
  socket.destroy();
  return undefined;
}

/** Who owns the socket receives what clients say. */
function isOwnSocket(path: string): boolean {
  try {
    return [lstatSync(path), lstatSync(dirname(path))].every(
      (found, index) =>
        (index === 0 ? found.isSocket() : found.isDirectory()) &&
        found.uid === process.getuid?.() &&
        (found.mode & 0o077) === 0,
    );
  } catch {
    return false;
  }
}

/** The line without its end; empty if there is none. The stream is paused behind it. */
async function firstLine(socket: Socket): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  let read = Buffer.alloc(0);
  const take = (chunk: Buffer): void => {
    read = Buffer.concat([read, chunk]);
    const end = read.indexOf(lineFeed);
    if (end === -1 && read.length < maxAnswerBytes) return;
    socket.off("data", take);
    socket.pause();
    if (end !== -1 && end + 1 < read.length) socket.unshift(read.subarray(end + 1));
    resolve(end === -1 ? "" : read.toString("utf8", 0, end));
  };
  socket.on("data", take);
  socket.on("close", () => resolve(""));
  return await promise;
}

const counts = ["base", "head", "everSent", "taken"] as const;

function answerIn(line: string, identity: Identity): KeeperRest | undefined {
  try {
    const answer = JSON.parse(line.startsWith("\u0001") ? line.slice(1) : line) as KeeperRest;
    const isOfChild = answer.keeper === 1 && answer.childId === identity.childId && answer.pid === identity.pid;
    const isSound = counts.every((name) => Number.isSafeInteger(answer[name]) && answer[name] >= 0);
    const isGiven = Array.isArray(answer.given) && answer.given.every((id) => typeof id === "string");
    return isOfChild && isSound && isGiven ? answer : undefined;
  } catch {
    return undefined;
  }
}

/** The file that an ended process left. */
interface Rest {
  readonly answer: KeeperRest;
  /** Where the output begins in the file. */
  readonly start: number;
}

function mortalFile({ directory }: KeptPlace): string {
  return join(directory, "mortal");
}

/** Whether the process was to end with its daemon. */
export function isMortal(place: KeptPlace): boolean {
  return existsSync(mortalFile(place));
}

function restFile({ directory }: KeptPlace): string {
  return join(directory, "rest");
}

async function readRest(place: KeptPlace, identity: Identity): Promise<Rest | undefined> {
  try {
    const file = await open(restFile(place));
    try {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(maxAnswerBytes), 0, maxAnswerBytes, 0);
      const end = buffer.subarray(0, bytesRead).indexOf(lineFeed);
      const answer = end === -1 ? undefined : answerIn(buffer.toString("utf8", 0, end), identity);
      // Another daemon may have read the file to its end.
      return answer === undefined ? undefined : { answer: { ...answer, everSent: answer.head }, start: end + 1 };
    } finally {
      await file.close();
    }
  } catch {
    return undefined;
  }
}

/** The end of a process's stderr. */
function tailOf({ directory }: KeptPlace, maxBytes: number): string {
  try {
    const file = openSync(join(directory, "stderr"), "r");
    try {
      const { size } = fstatSync(file);
      const tail = Buffer.alloc(Math.min(size, maxBytes));
      const read = readSync(file, tail, 0, tail.length, size - tail.length);
      // A cut inside a character leaves a replacement character at the start.
      const text = tail.toString("utf8", 0, read);
      return read < size ? text.replace(/^\uFFFD+/, "") : text;
    } finally {
      closeSync(file);
    }
  } catch {
    return "";
  }
}

interface KeptProcess {
  readonly isOver: () => Promise<boolean>;
  /** What is known of it at the moment. */
  readonly hasEnded: () => boolean;
  /** Waits for so long, or for its end. */
  readonly wait: (ms: number) => Promise<void>;
  /** How the daemon's own child ended. */
  readonly exit?: () => ProcessExit;
}

interface KeptOptions {
  readonly process: KeptProcess;
  readonly place: KeptPlace;
  readonly identity: Identity;
  readonly from: number;
  readonly maxStderrBytes: number;
  readonly connection?: Connected;
  /** Of a process that has ended. */
  readonly rest?: Rest | undefined;
}

/**
 * The stdio of a process with a keeper. A connection that breaks while both live is replaced; if that fails, `stdin`
 * fails, and the owner ends the process. In the end `stdout` is completed from the file that the process left.
 */
class KeptStdio implements ChildStdio {
  readonly pid: number;
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly exited: Promise<ProcessExit>;
  readonly keeper?: KeeperLink;
  readonly #options: KeptOptions;
  readonly #exit = Promise.withResolvers<ProcessExit>();
  #stderr: string | undefined;
  /** The length of its stderr's file when it was last read, and what the file has lost at its beginning by then. */
  #stderrSize = 0;
  #stderrCut = 0;
  #socket: Socket | undefined;
  /** What `stdout` is read from. */
  #source: Readable | undefined;
  /** The offset after the last byte that was received. */
  #received: number;
  #acked: number;
  /** Lines of input whose sending has begun, counted as the keeper does. */
  #begun = 0;
  /** A mark waits for its prompt, so that they are sent, or sent again, together. */
  #mark: Buffer | undefined;
  #line: { readonly bytes: readonly Buffer[]; readonly done: () => void } | undefined;
  #isInexact = false;
  #isEnded = false;

  constructor(options: KeptOptions) {
    const { identity, connection, rest, from } = options;
    this.#options = options;
    this.pid = identity.pid;
    this.exited = this.#exit.promise;
    const answer = connection?.answer ?? rest?.answer;
    this.#received = Math.min(Math.max(from, answer?.base ?? 0), answer?.head ?? from);
    this.#acked = answer?.base ?? 0;
    this.stdout = new Readable({ read: () => void this.#source?.resume() });
    this.stdin = new Writable({
      write: (line: Buffer, _encoding, done) => this.#write(line, done),
      final: (done) => {
        this.#isEnded = true;
        this.#say("end");
        done();
      },
    });
    if (answer !== undefined) this.keeper = this.#link(answer, this.#received);
    if (connection === undefined) {
      void this.#finish(rest);
      return;
    }
    this.#begun = connection.answer.taken;
    this.#use(connection.socket);
  }

  get hasEnded(): boolean {
    return this.#options.process.hasEnded();
  }

  get stderrTail(): string {
    return this.#stderr ?? tailOf(this.#options.place, this.#options.maxStderrBytes);
  }

  stderrAfter(from: number, maxBytes: number): StderrPart {
    const path = join(this.#options.place.directory, "stderr");
    try {
      const { size } = statSync(path);
      // The keeper has cut a long file to its end: what came since the last look is not told from what is left.
      if (size < this.#stderrSize) this.#stderrCut += this.#stderrSize - size;
      this.#stderrSize = size;
      const end = this.#stderrCut + size;
      const wanted = Math.max(0, Math.min(end - from, maxBytes, size));
      if (wanted === 0) return { bytes: Buffer.alloc(0), end };
      const file = openSync(path, "r");
      try {
        const bytes = Buffer.alloc(wanted);
        return { bytes: bytes.subarray(0, readSync(file, bytes, 0, wanted, size - wanted)), end };
      } finally {
        closeSync(file);
      }
    } catch {
      return { bytes: Buffer.alloc(0), end: this.#stderrCut + this.#stderrSize };
    }
  }

  #link(answer: KeeperAnswer, from: number): KeeperLink {
    return {
      answer,
      from,
      ack: (offset) => {
        if (offset - this.#acked < ackBytes) return;
        this.#acked = offset;
        this.#say(`ack ${offset}`);
      },
      mark: (id) => {
        if (this.stdin.writable) this.stdin.write(`\u0001mark ${id}\n`);
      },
      forget: (id) => this.#say(`forget ${id}`),
      inexact: () => {
        this.#isInexact = true;
        this.#say("inexact");
      },
      mortal: () => writeFileSync(mortalFile(this.#options.place), "", { mode: 0o600 }),
    };
  }

  #say(text: string): void {
    if (this.#socket?.writable === true) this.#socket.write(`\u0001${text}\n`);
  }

  #write(line: Buffer, done: () => void): void {
    if (line[0] === protocolByte) {
      this.#mark = line;
      done();
      return;
    }
    this.#begun += 1;
    this.#line = { bytes: this.#mark === undefined ? [line] : [this.#mark, line], done };
    this.#mark = undefined;
    this.#send();
  }

  #send(): void {
    const line = this.#line;
    const socket = this.#socket;
    if (line === undefined || socket === undefined) return;
    socket.cork();
    for (const part of line.bytes.slice(0, -1)) socket.write(part);
    socket.write(line.bytes.at(-1) as Buffer, (error) => {
      if (error == null && this.#line === line) this.#sent();
    });
    socket.uncork();
  }

  #sent(): void {
    const line = this.#line;
    this.#line = undefined;
    line?.done();
  }

  #use(socket: Socket): void {
    this.#socket = socket;
    this.#read(socket, () => {
      this.#socket = undefined;
      void this.#replace();
    });
    this.#send();
  }

  /** Reads from a stream until it closes. */
  #read(source: Readable, onClose: () => void): void {
    this.#source = source;
    source.on("data", (chunk: Buffer) => {
      this.#received += chunk.length;
      if (!this.stdout.push(chunk)) source.pause();
    });
    const close = () => {
      if (this.#source !== source) return;
      this.#source = undefined;
      onClose();
    };
    source.once("close", close);
    source.resume();
    if (source.closed) close();
  }

  /** The connection broke, usually because the process has ended. */
  async #replace(): Promise<void> {
    const { process, place, identity } = this.#options;
    const deadline = performance.now() + reconnectMs;
    let isLost = false;
    while (!(await process.isOver())) {
      const left = deadline - performance.now();
      if (left > 0 && !isLost) {
        const connection = await connect(place.socket, identity, this.#received, left);
        if (connection !== undefined && this.#resume(connection)) return;
        isLost = connection !== undefined;
        connection?.socket.destroy();
      } else if (!this.stdin.destroyed) {
        this.stdin.destroy(new Error("The connection to pi broke."));
      }
      await process.wait(pollMs);
    }
    await this.#finish(await readRest(place, identity));
  }

  /** Whether nothing was lost with the former connection. */
  #resume({ socket, answer }: Connected): boolean {
    if (answer.base > this.#received) return false;
    const lost = this.#begun - answer.taken;
    if (lost === 0) this.#sent();
    else if (lost !== 1 || this.#line === undefined) return false;
    this.#use(socket);
    if (this.#isInexact) this.#say("inexact");
    if (this.#isEnded) this.#say("end");
    return true;
  }

  async #finish(rest: Rest | undefined): Promise<void> {
    this.#stderr = this.stderrTail;
    this.stdin.destroy();
    if (rest !== undefined) await this.#readRest(rest);
    this.stdout.push(null);
    await closed(this.stdout);
    const code = rest?.answer.code;
    const unknown = { code: null, signal: null, unknown: true } as const;
    this.#exit.resolve(this.#options.process.exit?.() ?? (code === undefined ? unknown : { code, signal: null }));
  }

  async #readRest({ answer, start }: Rest): Promise<void> {
    const file = await open(restFile(this.#options.place)).catch(() => undefined);
    if (file === undefined) return;
    const source = file.createReadStream({ start: start + Math.max(0, this.#received - answer.base) });
    source.on("error", () => {});
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#read(source, resolve);
    await promise;
  }
}
