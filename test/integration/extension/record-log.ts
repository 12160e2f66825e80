import type { ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import type { OutwardFrame } from "../../../protocol/link-outward.ts";

export type PiProcess = ChildProcessByStdio<Writable, Readable, Readable>;
export type PiRecord = Readonly<Record<string, unknown>>;
export type Fits = (record: PiRecord) => boolean;

/** All records of pi, in order. A wait that can no longer be fulfilled rejects with the end of pi's stderr. */
export class RecordLog {
  readonly records: PiRecord[] = [];
  readonly frames: OutwardFrame[] = [];
  readonly #child: PiProcess;
  readonly #statusKey: string;
  readonly #frames = new WeakMap<PiRecord, OutwardFrame>();
  readonly #waiting = new Set<{ readonly fits: Fits; resolve(record: PiRecord): void; reject(error: Error): void }>();
  #stderr = "";
  #ended: Error | undefined;
  #rest = "";

  constructor(child: PiProcess, statusKey: string) {
    this.#child = child;
    this.#statusKey = statusKey;
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => this.#read(chunk));
    child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
      this.#stderr = (this.#stderr + chunk).slice(-4_000);
    });
    child.stdin.on("error", () => {});
    child.on("close", (code, signal) => {
      this.#ended = new Error(`pi has ended (${code ?? signal}). ${this.#stderr}`);
      for (const waiting of this.#waiting) waiting.reject(this.#ended);
    });
  }

  /** Forgets all records so far, except the newest frame of this kind. */
  forget(but: OutwardFrame["kind"]): void {
    const kept = this.records.findLast((record) => this.frameOf(record)?.kind === but);
    const frame = kept === undefined ? undefined : this.frameOf(kept);
    this.records.splice(0, this.records.length, ...(kept === undefined ? [] : [kept]));
    this.frames.splice(0, this.frames.length, ...(frame === undefined ? [] : [frame]));
  }

  get stderr(): string {
    return this.#stderr;
  }

  /** Resolves when pi's stderr contains a text. */
  async stderrHas(text: string): Promise<void> {
    while (!this.#stderr.includes(text)) {
      if (this.#ended !== undefined) throw this.#ended;
      await Promise.race([once(this.#child.stderr, "data"), once(this.#child, "close")]);
    }
  }

  frameOf(record: PiRecord): OutwardFrame | undefined {
    return this.#frames.get(record);
  }

  /** The first record that fits, past or future. Each is offered to `fits` once, in order. */
  async until(fits: Fits): Promise<PiRecord> {
    const known = this.records.find(fits);
    if (known !== undefined) return known;
    if (this.#ended !== undefined) throw this.#ended;
    const { promise, resolve, reject } = Promise.withResolvers<PiRecord>();
    const waiting = { fits, resolve, reject };
    this.#waiting.add(waiting);
    try {
      return await promise;
    } finally {
      this.#waiting.delete(waiting);
    }
  }

  #read(chunk: string): void {
    const lines = (this.#rest + chunk).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) this.#take(JSON.parse(line) as PiRecord);
  }

  #take(record: PiRecord): void {
    this.records.push(record);
    if (record["method"] === "setStatus" && record["statusKey"] === this.#statusKey) {
      const frame = JSON.parse(String(record["statusText"])) as OutwardFrame;
      this.frames.push(frame);
      this.#frames.set(record, frame);
    }
    for (const waiting of [...this.#waiting]) {
      if (!waiting.fits(record)) continue;
      this.#waiting.delete(waiting);
      waiting.resolve(record);
    }
  }
}
