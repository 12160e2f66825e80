import { hash } from "node:crypto";
import type { Delivery } from "../../protocol/delivery.ts";
import type { Gap } from "../../protocol/event.ts";
import { within } from "../../server/lib/deadline.ts";
import { isEvent } from "./restore-stage.ts";

/** A frame of a session's log, as some client got it. */
export interface Frame {
  readonly seq: number;
  readonly method: string;
  /** pi's type of an event; undefined for the daemon's own notifications. */
  readonly type: string | undefined;
  /** Of pi's record inside the envelope. */
  readonly eventHash: string | undefined;
  /** Of the whole frame, and of the frame without its time. */
  readonly hash: string;
  readonly hashWithoutTime: string;
  /** The params of the daemon's own notifications. */
  readonly params: Readonly<Record<string, unknown>> | undefined;
  readonly by: string;
}

/**
 * - `bytes`: a number means two things. `time`: only the time of a frame differs. `order`: a number is missing or comes
 *   again on one connection. `gap`: a gap that was not promised. `events`: what pi wrote is not what clients got.
 * - `receipt`: a state was told twice, or not. `state`: the session was in a state that a client must not see.
 */
export type FaultKind = "bytes" | "time" | "order" | "gap" | "events" | "receipt" | "state";

export interface RecordFault {
  readonly kind: FaultKind;
  readonly message: string;
}

const deltas: ReadonlySet<string> = new Set(["message_update", "tool_execution_update", "bash_execution_update"]);
const maxFaults = 200;

/** What the clients of one session were told by all daemons: one frame for each number. */
export class SessionRecord {
  readonly sessionId: string;
  readonly frames = new Map<number, Frame>();
  readonly faults: RecordFault[] = [];
  readonly gaps: (Gap & { readonly by: string })[] = [];
  readonly #merged: { readonly from: number; readonly to: number }[] = [];
  readonly #watchers = new Set<(frame: Frame) => void>();
  #epoch: string | undefined;
  #deltasWithOtherTimes = 0;
  #compared = 0;
  #receipts = 0;

  constructor(sessionId: string) {
    this.sessionId = sessionId;
  }

  get epoch(): string | undefined {
    return this.#epoch;
  }

  /** How often a client got a delta with another time than the first. */
  get deltasWithOtherTimes(): number {
    return this.#deltasWithOtherTimes;
  }

  /** How many envelopes were compared with one of the same number that a client had got before. */
  get compared(): number {
    return this.#compared;
  }

  /** How many steps of prompts, deliveries, runs and dialogs were told, by the newest check. */
  get receipts(): number {
    return this.#receipts;
  }

  /** The newest number that any client got. */
  get newest(): number {
    return Math.max(0, ...this.frames.keys());
  }

  subscribed(by: string, epoch: string): void {
    this.#epoch ??= epoch;
    if (epoch !== this.#epoch) this.say("order", `${by} got the log ${epoch} instead of ${this.#epoch}`);
  }

  /** A frame with one number, as unprocessed text. */
  told(by: string, seq: number, text: string): void {
    const before = this.frames.get(seq);
    const whole = hash("sha1", text, "base64");
    if (before !== undefined) this.#compared += 1;
    if (before?.hash === whole) return;
    const frame = frameOf(by, seq, whole, text);
    if (before === undefined) {
      this.frames.set(seq, frame);
      for (const watcher of [...this.#watchers]) watcher(frame);
      return;
    }
    const isSame = before.hashWithoutTime === frame.hashWithoutTime;
    // Nothing keeps the time of a delta: a later daemon reads the record again.
    if (isSame && isDelta(frame)) {
      this.#deltasWithOtherTimes += 1;
      return;
    }
    const was = `${before.by} got ${before.method} ${before.type ?? ""}`;
    this.say(isSame ? "time" : "bytes", `${seq}: ${was}, ${by} got ${text.slice(0, 300)}`);
  }

  /** An envelope that replaces several deltas, for a client that reads slowly: it has no bytes of its own in the log. */
  merged(from: number, to: number): void {
    this.#merged.push({ from, to });
  }

  /** A gap that a client got. `isAllowed`: whether this client was promised no more. */
  gap(by: string, gap: Gap, isAllowed: boolean): void {
    this.gaps.push({ ...gap, by });
    if (!isAllowed) this.say("gap", `${by} got ${JSON.stringify(gap)}`);
  }

  say(kind: FaultKind, message: string): void {
    if (this.faults.length < maxFaults) this.faults.push({ kind, message });
  }

  /** Calls `watcher` with each new frame until the returned function is called. */
  watch(watcher: (frame: Frame) => void): () => void {
    this.#watchers.add(watcher);
    return () => void this.#watchers.delete(watcher);
  }

  /** The first frame that fits, past or future. */
  async until(fits: (frame: Frame) => boolean): Promise<Frame> {
    for (const frame of this.frames.values()) if (fits(frame)) return frame;
    const found = Promise.withResolvers<Frame>();
    const unwatch = this.watch((frame) => {
      if (fits(frame)) found.resolve(frame);
    });
    try {
      return await found.promise;
    } finally {
      unwatch();
    }
  }

  /** The daemon's own notifications with a name, in the order of their numbers. */
  named(method: string): Readonly<Record<string, unknown>>[] {
    return this.#inOrder().flatMap((frame) => (frame.method === method ? [frame.params ?? {}] : []));
  }

  /**
   * Checks that clients got each event that pi wrote, once and in the order in which pi wrote it. `mayLack`: a record of
   * which clients were promised no more than a gap.
   */
  checkEvents(records: readonly string[], mayLack: (record: string) => boolean = () => false): void {
    const isMerged = this.#merged.some(({ from, to }) => !this.frames.has(from) || !this.frames.has(to));
    const lacks = (record: string): boolean =>
      mayLack(record) || (isMerged && record.startsWith('{"type":"message_update"'));
    const written = records.filter(isEvent);
    const hashes = written.map((record) => hash("sha1", record, "base64"));
    const got = this.#inOrder().filter(({ type }) => type !== undefined && !type.startsWith("rpcd_"));
    let next = 0;
    for (const { seq, type, eventHash } of got) {
      while (hashes[next] !== eventHash && next < written.length && lacks(written[next] ?? "")) next += 1;
      if (hashes[next] !== eventHash) {
        const where = hashes.indexOf(eventHash ?? "");
        const what = where === -1 ? "pi never wrote" : `is pi's event ${where}`;
        const expected = written[next]?.slice(0, 200) ?? "nothing";
        this.say("events", `number ${seq} (${type}) ${what}; pi's event ${next} is ${expected}`);
        return;
      }
      next += 1;
    }
    const left = written.slice(next).filter((record) => !lacks(record));
    if (left.length > 0) this.say("events", `${left.length} events did not come, from ${left[0]?.slice(0, 200)}`);
    for (const { seq, type } of this.#inOrder()) {
      if (type?.startsWith("rpcd_") === true) this.say("events", `number ${seq} is ${type}`);
    }
  }

  /** Checks that each number up to the newest is known, or in a gap that was promised. */
  checkNumbers(): void {
    const seqs = [...this.frames.keys()].sort((a, b) => a - b);
    let expected = 1;
    for (const seq of seqs) {
      while (expected < seq && this.#isCovered(expected)) expected += 1;
      if (seq !== expected) {
        this.say("order", `no client got number ${expected}; the next known one is ${seq}`);
        return;
      }
      expected += 1;
    }
  }

  #isCovered(seq: number): boolean {
    return [...this.gaps, ...this.#merged].some(({ from, to }) => from <= seq && seq <= to);
  }

  /** Whether only deltas, as far as any client got them, are between two numbers, both included. */
  hasOnlyDeltas(from: number, to: number): boolean {
    for (let seq = from; seq <= to; seq += 1) {
      const frame = this.frames.get(seq);
      if (frame !== undefined && !isDelta(frame)) return false;
    }
    return true;
  }

  /** Checks that every step of prompts, deliveries, runs and dialogs was told once. */
  checkReceipts(): void {
    const told = new Map<string, number>();
    const count = (key: string): void => {
      const times = (told.get(key) ?? 0) + 1;
      told.set(key, times);
      if (times === 2) this.say("receipt", `told again: ${key.slice(0, 400)}`);
    };
    const delivered = new Map<string, Delivery>();
    for (const { method, params } of this.#inOrder()) {
      if (params === undefined) continue;
      switch (method) {
        case "prompt/updated": {
          const { promptId, state, outcome, runId, entryId } = params["prompt"] as Readonly<Record<string, unknown>>;
          count(`prompt ${promptId} ${state} ${outcome ?? ""} run ${runId ?? ""} entry ${entryId ?? ""}`);
          break;
        }
        case "delivery/updated": {
          const delivery = params["delivery"] as Delivery;
          const { deliveryId, updatedAt: _, ...facts } = delivery;
          count(`delivery ${deliveryId} ${JSON.stringify(facts)}`);
          const before = delivered.get(deliveryId);
          if (before !== undefined && before.history.length > delivery.history.length) {
            this.say("receipt", `delivery ${deliveryId} went back from ${before.state} to ${delivery.state}`);
          }
          delivered.set(deliveryId, delivery);
          break;
        }
        case "run/started":
        case "run/ended":
          count(`${method} ${params["runId"]}`);
          break;
        case "dialog/opened":
          count(`${method} ${(params["dialog"] as { readonly dialogId: string }).dialogId}`);
          break;
        case "dialog/resolved":
          count(`${method} ${params["dialogId"]}`);
          break;
        default:
      }
    }
    this.#receipts = told.size;
  }

  /** Checks that the end of everything was told whose beginning was told, and no other. Nothing may be under way. */
  checkEnds(): void {
    for (const message of this.#missingEnds()) this.say("receipt", message);
  }

  /** Waits for what {@link checkEnds} requires: the end of a run is told after its session is idle. */
  async untilEnds(timeoutMs: number): Promise<void> {
    const complete = Promise.withResolvers<void>();
    const look = (): void => {
      if (this.#missingEnds().length === 0) complete.resolve();
    };
    const unwatch = this.watch(look);
    look();
    await within(complete.promise, timeoutMs);
    unwatch();
  }

  #missingEnds(): readonly string[] {
    const missing: string[] = [];
    const open = new Set<string>();
    const prompts = new Map<unknown, string>();
    for (const { method, params = {} } of this.#inOrder()) {
      const { runId, dialogId, dialog, prompt } = params as Readonly<Record<string, Readonly<Record<string, unknown>>>>;
      if (method === "run/started") open.add(`run ${runId}`);
      if (method === "dialog/opened") open.add(`dialog ${dialog?.["dialogId"]}`);
      const ended = { "run/ended": `run ${runId}`, "dialog/resolved": `dialog ${dialogId}` }[method];
      if (ended !== undefined && !open.delete(ended)) missing.push(`only the end of ${ended} was told`);
      if (method === "prompt/updated")
        prompts.set(prompt?.["promptId"], String(prompt?.["outcome"] ?? prompt?.["state"]));
    }
    for (const what of open) missing.push(`the end of ${what} was not told`);
    for (const [promptId, last] of prompts) {
      if (["stored", "started", "queued", "inserted"].includes(last))
        missing.push(`the prompt ${promptId} was told as ${last}, and no outcome`);
    }
    return missing;
  }

  /** The last told state of each delivery. */
  lastDeliveries(): ReadonlyMap<string, Delivery> {
    const last = new Map<string, Delivery>();
    for (const params of this.named("delivery/updated")) {
      const delivery = params["delivery"] as Delivery;
      last.set(delivery.deliveryId, delivery);
    }
    return last;
  }

  /** Checks that no client was told that the child, or its run, had ended. */
  checkStates(): void {
    for (const { seq, method, params } of this.#inOrder()) {
      const session = params?.["session"] as Readonly<Record<string, unknown>> | undefined;
      if (method === "session/updated" && ["hibernated", "crashed"].includes(String(session?.["state"]))) {
        this.say("state", `number ${seq}: the session is ${session?.["state"]}`);
      }
      if (method === "run/ended" && params?.["outcome"] === "interrupted") {
        this.say("state", `number ${seq}: the run ${params["runId"]} was interrupted`);
      }
    }
  }

  #inOrder(): Frame[] {
    return [...this.frames.values()].sort((a, b) => a.seq - b.seq);
  }
}

function isDelta({ type }: Frame): boolean {
  return type !== undefined && deltas.has(type);
}

function frameOf(by: string, seq: number, whole: string, text: string): Frame {
  const { method, params } = JSON.parse(text) as { readonly method: string; readonly params: Frame["params"] };
  const hashWithoutTime = hash("sha1", text.replace(/"at":\d+/, ""), "base64");
  if (method !== "session/event") {
    return { seq, method, type: undefined, eventHash: undefined, hash: whole, hashWithoutTime, params, by };
  }
  const key = '"event":';
  const event = text.slice(text.indexOf(key) + key.length, -2);
  const { type } = JSON.parse(event) as { readonly type: string };
  return {
    seq,
    method,
    type,
    eventHash: hash("sha1", event, "base64"),
    hash: whole,
    hashWithoutTime,
    params: undefined,
    by,
  };
}
