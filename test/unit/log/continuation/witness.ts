import type { Gap } from "../../../../protocol/event.ts";
import type { Frame } from "../../../../server/frames/frame.ts";
import type { Subscriber } from "../../../../server/log/subscription.ts";

/** What a client was told under a number. */
interface Told {
  readonly isDelta: boolean;
  readonly text: string;
  /** The message or tool call of a delta. */
  readonly part: string | undefined;
  /** When a daemon first handled it. */
  readonly at: number;
}

/** What a gap may hide now. */
export interface Allowed {
  /** Numbers may be lost for another reason than that they are deltas. */
  readonly losses: boolean;
  /** Larger frames are not stored. */
  readonly maxStoredBytes: number;
  /** Deltas up to this number need not be kept. */
  readonly deltasUpTo: number;
  /** Deltas that were told later are kept. */
  readonly keptSince: number;
  /** Deltas of these messages and tool calls are kept. */
  readonly open: ReadonlySet<string>;
}

/** Remembers what clients were told by all daemons. A number that changes, or a hole, is an error. */
export class Witness {
  readonly told = new Map<number, Told>();
  allowed: Allowed = { losses: false, maxStoredBytes: 0, deltasUpTo: 0, keptSince: 0, open: new Set() };
  readonly errors: string[] = [];

  frame({ seq, bytes, isDelta }: Frame): void {
    const whole = bytes.toString("utf8");
    // Without a stored frame its time may differ.
    const isStored = !isDelta && whole.length <= this.allowed.maxStoredBytes;
    const text = !isStored ? whole.slice(whole.indexOf('"generation"')) : whole;
    const known = this.told.get(seq);
    if (known === undefined) {
      const part = /"part":"(\w+)"/.exec(whole)?.[1];
      this.told.set(seq, { isDelta, text, part, at: Number(/"at":(\d+)/.exec(whole)?.[1]) });
    } else if (known.text !== text) this.errors.push(`${seq} was ${known.text} and is ${text}`);
  }

  gap({ from, to, reason, onlyDeltas }: Gap): void {
    const { losses, maxStoredBytes, deltasUpTo, keptSince, open } = this.allowed;
    const what = `the gap ${from}..${to} (${reason})`;
    const numbers = Array.from({ length: to - from + 1 }, (_, i) => from + i);
    const isTooLarge = (seq: number): boolean => {
      const { text = "" } = this.told.get(seq) ?? {};
      // Without the head of its frame.
      return text === "" || text.length > maxStoredBytes - 100;
    };
    if (reason === "not_retained" && onlyDeltas !== true && numbers.every(isTooLarge)) return;
    if (reason === "log_reset" || (onlyDeltas !== true && !losses)) {
      this.errors.push(`${what} is not allowed`);
      return;
    }
    if (onlyDeltas !== true) return;
    if (to > deltasUpTo && !losses) this.errors.push(`${what} is beyond ${deltasUpTo}`);
    for (const seq of numbers) {
      const told = this.told.get(seq);
      if (told === undefined) continue;
      if (!told.isDelta) this.errors.push(`${what} hides ${told.text}`);
      if (losses) continue;
      if (told.at > keptSince) this.errors.push(`${what} hides the new delta ${seq}`);
      if (told.part !== undefined && open.has(told.part))
        this.errors.push(`${what} hides a delta of open ${told.part}`);
    }
  }
}

/** A client that remembers its place while it is not connected. */
export class ClientModel implements Subscriber {
  readonly id: string;
  cursor: number;
  readonly #witness: Witness;
  /** Returns whether the daemon was killed, before or after a send. */
  readonly #isKilled: () => boolean;
  #connection = new AbortController();
  isConnected = false;

  constructor(id: string, witness: Witness, isKilled: () => boolean, cursor = 0) {
    this.id = id;
    this.#witness = witness;
    this.#isKilled = isKilled;
    this.cursor = cursor;
  }

  get gone(): AbortSignal {
    return this.#connection.signal;
  }

  connect(): void {
    this.#connection = new AbortController();
    this.isConnected = true;
  }

  disconnect(): void {
    this.isConnected = false;
    this.#connection.abort();
  }

  send(frame: Frame): void {
    if (!this.isConnected || this.#isKilled()) return;
    const first = frame.firstSeq ?? frame.seq;
    if (first !== this.cursor + 1) this.#witness.errors.push(`${this.id} has ${this.cursor} and gets ${first}`);
    if (frame.firstSeq === undefined) this.#witness.frame(frame);
    else this.#witness.gap((JSON.parse(frame.bytes.toString("utf8")) as { params: Gap }).params);
    this.cursor = frame.seq;
    this.#isKilled();
  }
}
