import { once } from "node:events";
import {
  chmodSync,
  closeSync,
  existsSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";
import type { KeeperAnswer, KeeperConfig } from "../protocol/keeper.ts";

// Runs the program that its first argument names, usually pi, and replaces that process's standard streams: output is
// kept until a daemon has acknowledged it, so that the process survives the daemon. It is the script of the process,
// not a preloaded module: Node loads those again in each worker, and fails if an upgrade has removed them.

const segmentBytes = 64 * 1024;
/** Segments that are used again: new ones would cost page faults and garbage collections while pi streams. */
const maxSpare = 16;
const protocolByte = 0x01;
const lineFeed = 0x0a;

/** The file behind descriptor 2 is cut to its end when it is longer. */
const maxStderrBytes = 1024 * 1024;
const keptStderrBytes = 64 * 1024;

/** These repeat the whole result so far. */
const updateStart = Buffer.from('{"type":"tool_execution_update",');

/** The helper extension in the same process says whether pi is at work. Without a helper it is not. */
interface Hook {
  isAtWork?: () => boolean;
}

/** Output in segments of one size, by its offset. */
class Output {
  readonly #segments: Buffer[] = [];
  readonly #spare: Buffer[] = [];
  /** Offset of the first segment. */
  #start = 0;
  base = 0;
  head = 0;

  append(bytes: Buffer): void {
    for (let from = 0; from < bytes.length; ) {
      const place = (this.head - this.#start) % segmentBytes;
      if (this.head - this.#start === this.#segments.length * segmentBytes) {
        this.#segments.push(this.#spare.pop() ?? Buffer.allocUnsafeSlow(segmentBytes));
      }
      const copied = bytes.copy(this.#segments.at(-1) as Buffer, place, from);
      from += copied;
      this.head += copied;
    }
  }

  /** The bytes from an offset to the end of its segment. */
  at(offset: number): Buffer {
    const from = offset - this.#start;
    const index = Math.floor(from / segmentBytes);
    const end = Math.min(segmentBytes, this.head - this.#start - index * segmentBytes);
    return (this.#segments[index] as Buffer).subarray(from % segmentBytes, end);
  }

  release(offset: number): void {
    this.base = Math.max(this.base, Math.min(offset, this.head));
    for (; this.#start + segmentBytes <= this.base; this.#start += segmentBytes) {
      const released = this.#segments.shift() as Buffer;
      if (this.#spare.length < maxSpare) this.#spare.push(released);
    }
  }
}

/** A daemon's connection. */
class Connection {
  readonly socket: Socket;
  /** In the order in which they were accepted. */
  readonly ordinal: number;
  /** The beginning of a line. */
  parts: Buffer[] = [];
  bytes = 0;

  constructor(socket: Socket, ordinal: number) {
    this.socket = socket;
    this.ordinal = ordinal;
  }
}

class Keeper {
  readonly #config: KeeperConfig;
  readonly #output = new Output();
  readonly #server: Server;
  readonly #hook: Hook = {};
  readonly #given = new Set<string>();
  readonly stdin: Readable;
  readonly stdout: Writable;
  readonly stderr: Writable;
  #accepted = 0;
  #current: Connection | undefined;
  #wasConnected = false;
  #sent = 0;
  #everSent = 0;
  #taken = 0;
  /** The id of the prompt in the next line. */
  #marked: string | undefined;
  #inexact = false;
  #isAtRecord = true;
  /** Whether pi reads its input. */
  #isRead = false;
  /** The callback of the write that waits for room. */
  #waiting: (() => void) | undefined;
  #aloneSince = performance.now();
  #idleSince = this.#aloneSince;
  #endedAt: number | undefined;
  #terminatedAt: number | undefined;
  /** The file that was written at the exit. */
  #rest: string | undefined;

  constructor(config: KeeperConfig) {
    this.#config = config;
    this.#server = createServer((socket) => this.#accept(socket));
    this.#server.on("error", () => {});
    this.#server.unref();
    this.stdin = new Readable({ read: () => this.#wanted() });
    this.stdin.on("resume", () => this.#hold(true));
    for (const event of ["pause", "end"]) this.stdin.on(event, () => this.#hold(false));
    this.stdout = new Writable({ write: (bytes: Buffer, _encoding, done) => this.#write(bytes, done) });
    this.stderr = new Writable({ write: (bytes: Buffer, _encoding, done) => done(this.#complain(bytes)) });
    Object.defineProperty(globalThis, Symbol.for("pi-rpcd.keeper"), { value: this.#hook });
  }

  /** Rejects if it cannot listen. */
  async listen(): Promise<void> {
    const { socket } = this.#config;
    this.#server.listen(socket);
    await once(this.#server, "listening");
    // Until then its directory protects it: the umask belongs to pi.
    chmodSync(socket, 0o600);
    setInterval(() => this.#look(), this.#config.limits.lookEveryMs).unref();
    process.on("exit", (code) => this.#exit(code));
  }

  #accept(socket: Socket): void {
    const connection = new Connection(socket, ++this.#accepted);
    socket.unref();
    socket.on("error", () => {});
    socket.on("data", (chunk: Buffer) => this.#read(connection, chunk));
    socket.on("drain", () => this.#send());
    socket.on("close", () => {
      if (this.#current !== connection) return;
      this.#current = undefined;
      this.#aloneSince = performance.now();
      this.#idleSince = this.#aloneSince;
    });
  }

  #read(connection: Connection, chunk: Buffer): void {
    const { socket } = connection;
    let start = 0;
    for (let end = chunk.indexOf(lineFeed); end !== -1 && !socket.destroyed; end = chunk.indexOf(lineFeed, start)) {
      const last = chunk.subarray(start, end + 1);
      start = end + 1;
      const line = connection.bytes === 0 ? last : Buffer.concat([...connection.parts, last]);
      connection.parts = [];
      connection.bytes = 0;
      if (line[0] === protocolByte) this.#obey(connection, line.toString("utf8", 1, line.length - 1));
      else if (this.#current === connection) this.#handOn(line);
      else socket.destroy();
    }
    if (start < chunk.length) {
      connection.parts.push(chunk.subarray(start));
      connection.bytes += chunk.length - start;
      if (connection.bytes > this.#config.limits.maxLineBytes) socket.destroy();
    }
  }

  #obey(connection: Connection, text: string): void {
    const [word, value = ""] = text.split(" ");
    if (word === "from") this.#attach(connection, Number.parseInt(value, 10));
    if (this.#current !== connection) return;
    if (word === "ack") this.#acknowledge(Number.parseInt(value, 10));
    else if (word === "mark") this.#marked = value;
    else if (word === "forget") this.#given.delete(value);
    else if (word === "inexact") this.#inexact = true;
    else if (word === "end") this.#end();
  }

  /** What the former connection has not delivered is dropped, so that the answer remains true. */
  #attach(connection: Connection, from: number): void {
    const { socket } = connection;
    const isNewest = this.#current === undefined || this.#current.ordinal < connection.ordinal;
    if (!isNewest || !Number.isSafeInteger(from)) {
      socket.destroy();
      return;
    }
    this.#current?.socket.destroy();
    this.#current = connection;
    this.#wasConnected = true;
    this.#marked = undefined;
    socket.write(`\u0001${JSON.stringify(this.#answer())}\n`);
    this.#sent = Math.max(this.#output.base, Math.min(from, this.#output.head));
    this.#send();
  }

  #answer(): KeeperAnswer {
    const { base, head } = this.#output;
    return {
      keeper: 1,
      childId: this.#config.childId,
      pid: process.pid,
      base,
      head,
      everSent: this.#everSent,
      taken: this.#taken,
      given: [...this.#given],
      inexact: this.#inexact,
      ending: this.#endedAt !== undefined,
    };
  }

  #send(): void {
    const socket = this.#current?.socket;
    if (socket === undefined) return;
    while (this.#sent < this.#output.head && !socket.writableNeedDrain && !socket.destroyed) {
      const bytes = this.#output.at(this.#sent);
      this.#sent += bytes.length;
      this.#everSent = Math.max(this.#everSent, this.#sent);
      socket.write(bytes);
    }
  }

  #acknowledge(offset: number): void {
    if (!Number.isSafeInteger(offset)) return;
    this.#output.release(Math.min(offset, this.#sent));
    this.#letWrite();
  }

  #write(bytes: Buffer, done: () => void): void {
    if (!this.#isSkipped(bytes)) {
      this.#output.append(bytes);
      if (bytes.length > 0) this.#isAtRecord = bytes.at(-1) === lineFeed;
      this.#send();
      if (this.#rest !== undefined) this.#addToRest(this.#rest, bytes);
    }
    this.#waiting = done;
    this.#letWrite();
    if (this.#waiting !== undefined) this.#hold(this.#isRead);
  }

  /**
   * pi flushes its output before it exits: from the end of its input on, nothing may block that. A daemon acknowledges
   * whole records, so one that is written in pieces may need more room.
   */
  #letWrite(): void {
    const { base, head } = this.#output;
    const { maxHeldBytes, maxLineBytes } = this.#config.limits;
    const room = this.#isAtRecord ? maxHeldBytes : maxHeldBytes + 2 * maxLineBytes;
    if (head - base > room && this.#endedAt === undefined) return;
    const done = this.#waiting;
    if (done === undefined) return;
    this.#waiting = undefined;
    this.#hold(this.#isRead);
    done();
  }

  /** No client has seen such a record, and the next one or the tool's end repeats it. */
  #isSkipped(bytes: Buffer): boolean {
    const { base, head } = this.#output;
    return (
      this.#current === undefined &&
      head - base > this.#config.limits.maxHeldBytes / 2 &&
      this.#isAtRecord &&
      bytes.at(-1) === lineFeed &&
      bytes.subarray(0, updateStart.length).equals(updateStart)
    );
  }

  #handOn(line: Buffer): void {
    if (this.#endedAt !== undefined) return;
    this.#taken += 1;
    if (this.#marked !== undefined) this.#given.add(this.#marked);
    this.#marked = undefined;
    if (!this.stdin.push(line)) this.#current?.socket.pause();
  }

  /** Like pipes, it keeps the process alive only while somebody reads or a write waits. */
  #hold(isRead: boolean): void {
    this.#isRead = isRead;
    if (isRead || this.#waiting !== undefined) this.#server.ref();
    else this.#server.unref();
  }

  #wanted(): void {
    this.#hold(true);
    this.#current?.socket.resume();
  }

  #end(): void {
    if (this.#endedAt !== undefined) return;
    this.#endedAt = performance.now();
    this.stdin.push(null);
    this.#letWrite();
  }

  #look(): void {
    cutStderr();
    if (this.#current !== undefined) return;
    const now = performance.now();
    const { firstConnectionMs, orphanIdleMs, orphanRunMs, endStepMs } = this.#config.limits;
    if (this.#endedAt === undefined) {
      if (this.#isAtWork()) this.#idleSince = now;
      const alone = now - this.#aloneSince;
      const isOver = this.#wasConnected
        ? this.#isMortal() || alone >= orphanRunMs || now - this.#idleSince >= orphanIdleMs
        : alone >= firstConnectionMs;
      if (isOver) this.#end();
      return;
    }
    if (now - Math.max(this.#endedAt, this.#aloneSince, this.#terminatedAt ?? 0) < endStepMs) return;
    // Without a handler the system would end the process before its output is in a file.
    if (this.#terminatedAt !== undefined || process.listenerCount("SIGTERM") === 0) process.exit(143);
    this.#terminatedAt = now;
    process.kill(process.pid, "SIGTERM");
  }

  /** The daemon was ending when it disappeared. In a file, because a failed write drops what was not read of a socket. */
  #isMortal(): boolean {
    return existsSync(join(this.#config.directory, "mortal"));
  }

  #isAtWork(): boolean {
    try {
      return this.#hook.isAtWork?.() === true;
    } catch {
      return false;
    }
  }

  #complain(bytes: Buffer): null {
    try {
      writeFileSync(2, bytes);
    } catch {
      // A full disk must not end pi.
    }
    return null;
  }

  /** Writes what no daemon has acknowledged, completely or not at all. */
  #exit(code: number): void {
    const { directory, socket } = this.#config;
    const rest = join(directory, "rest");
    const temporary = `${rest}.part`;
    try {
      const file = openSync(temporary, "w", 0o600);
      try {
        writeFileSync(file, `${JSON.stringify({ code, ...this.#answer() })}\n`);
        for (let at = this.#output.base; at < this.#output.head; ) {
          const bytes = this.#output.at(at);
          writeFileSync(file, bytes);
          at += bytes.length;
        }
      } finally {
        closeSync(file);
      }
      renameSync(temporary, rest);
      this.#rest = rest;
    } catch {
      rmSync(temporary, { force: true });
    }
    rmSync(socket, { force: true });
  }

  /** Output of another listener of the exit. */
  #addToRest(rest: string, bytes: Buffer): void {
    try {
      writeFileSync(rest, bytes, { flag: "a" });
    } catch {
      // As for the rest itself: the disk is full.
    }
  }
}

function cutStderr(): void {
  try {
    const { size } = fstatSync(2);
    if (size <= maxStderrBytes) return;
    const end = Buffer.allocUnsafe(keptStderrBytes);
    const read = readSync(2, end, 0, keptStderrBytes, size - keptStderrBytes);
    ftruncateSync(2, 0);
    writeFileSync(2, end.subarray(0, read));
  } catch {
    // The disk is full, or the directory was removed.
  }
}

function replaceStream(name: "stdin" | "stdout" | "stderr", fd: number, stream: Readable | Writable): void {
  const asBefore = () => stream;
  Object.assign(stream, { fd, ref: asBefore, unref: asBefore });
  Object.defineProperty(process, name, { configurable: true, enumerable: true, get: () => stream });
}

const channel = 3;
const keeper = new Keeper(JSON.parse(readFileSync(channel, "utf8")) as KeeperConfig);
await keeper.listen();
replaceStream("stdin", 0, keeper.stdin);
replaceStream("stdout", 1, keeper.stdout);
replaceStream("stderr", 2, keeper.stderr);
writeSync(channel, "listening\n");
closeSync(channel);
process.argv.splice(1, 1);
await import(pathToFileURL(process.argv[1] as string).href);
