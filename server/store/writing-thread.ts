import { extname } from "node:path";
import { MessageChannel, type MessagePort, receiveMessageOnPort, SHARE_ENV, Worker } from "node:worker_threads";
import type { LogState } from "./change-log.ts";
import {
  endedAt,
  Packer,
  repliesAt,
  type ThreadData,
  type ThreadReply,
  type ThreadRequest,
} from "./thread-messages.ts";
import type { WriterOutcome, WriterRequest } from "./writer.ts";
import type { ThreadCallbacks, WriterThread } from "./writers.ts";

export interface WritingThreadOptions extends ThreadCallbacks {
  readonly path: string;
  /** The file with the number of the newest commit. */
  readonly mark: number | undefined;
  readonly log: LogState | undefined;
}

/** How long to wait for the thread's end if the disk does not respond. */
const maxCloseMs = 30_000;
const waitStepMs = 1_000;

/**
 * A thread that writes to the database, so that syncs do not block the event loop. It takes about 10 MiB of memory,
 * and 30 ms to start.
 */
export class WritingThread implements WriterThread {
  readonly #worker: Worker;
  readonly #port: MessagePort;
  readonly #shared = new Int32Array(new SharedArrayBuffer(8));
  readonly #packer = new Packer();
  readonly #options: WritingThreadOptions;
  /** For the last request. The first outcome is that of the start. */
  #onOutcome: ((outcome: WriterOutcome) => void) | undefined;
  #isOver = false;

  constructor(options: WritingThreadOptions) {
    this.#options = options;
    const { port1, port2 } = new MessageChannel();
    const { path, mark, log } = options;
    const data: Omit<ThreadData, "port"> = { path, mark, log, shared: this.#shared };
    const workerData = { ...data, port: port2 };
    const entry = new URL(`./writer-thread${extname(import.meta.filename)}`, import.meta.url);
    this.#worker = new Worker(entry, { name: "store", workerData, transferList: [port2], env: SHARE_ENV });
    this.#worker.unref();
    this.#worker.on("error", (error) => this.#ended(error as Error));
    this.#worker.on("exit", (code) => this.#ended(new Error(`The writing thread ended with code ${code}.`)));
    this.#port = port1;
    port1.on("message", (reply: ThreadReply) => this.#receive(reply));
    port1.unref();
    this.#onOutcome = () => options.onReady();
  }

  request(request: WriterRequest, onOutcome: (outcome: WriterOutcome) => void): void {
    this.#onOutcome = onOutcome;
    if (request.kind !== "commit") this.#post(request);
    else {
      const packed = this.#packer.pack(request.changes);
      this.#post(
        { kind: "commit", packed, isSynced: request.isSynced },
        packed.bytes === undefined ? [] : [packed.bytes.buffer],
      );
    }
  }

  finish(maxMs: number): boolean {
    const deadline = performance.now() + maxMs;
    while (this.#onOutcome !== undefined) {
      const replies = Atomics.load(this.#shared, repliesAt);
      // Read before the port: messages that it posted before its end count.
      const isOver = Atomics.load(this.#shared, endedAt) === 1;
      const received = receiveMessageOnPort(this.#port);
      if (received !== undefined) this.#receive(received.message as ThreadReply);
      else if (isOver) this.#ended(new Error("The writing thread ended."));
      else if (performance.now() >= deadline) return false;
      else Atomics.wait(this.#shared, repliesAt, replies, Math.min(waitStepMs, deadline - performance.now()));
    }
    return true;
  }

  close(): void {
    if (this.#isOver) return;
    if (this.#onOutcome !== undefined) {
      // It is still starting.
      this.#onOutcome = () => {};
      this.finish(maxCloseMs);
    }
    this.#onOutcome = () => {};
    this.#post({ kind: "close" });
    this.finish(maxCloseMs);
    this.#isOver = true;
    this.#port.close();
    void this.#worker.terminate();
  }

  #post(request: ThreadRequest, transfer: readonly ArrayBuffer[] = []): void {
    // The process does not end by itself while a caller waits for the disk.
    this.#port.ref();
    this.#port.postMessage(request, transfer);
  }

  #receive(reply: ThreadReply): void {
    const onOutcome = this.#onOutcome;
    this.#onOutcome = undefined;
    this.#port.unref();
    if (reply.memory !== undefined) this.#packer.reuse(reply.memory);
    onOutcome?.(reply);
  }

  #ended(why: Error): void {
    if (this.#isOver) return;
    this.#isOver = true;
    // Messages that it posted before its end count.
    const received = receiveMessageOnPort(this.#port);
    if (received !== undefined) this.#receive(received.message as ThreadReply);
    this.#onOutcome = undefined;
    this.#port.close();
    void this.#worker.terminate();
    this.#options.onEnd(why);
  }
}
