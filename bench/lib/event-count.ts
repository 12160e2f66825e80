/** The params of `session/event` and `session/gap` that say which numbers they cover. */
interface Covered {
  readonly sessionId: string;
  readonly seq: number;
  /** Of a merged envelope: the oldest number in it. */
  readonly firstSeq?: number;
}

interface Gap {
  readonly sessionId: string;
  readonly from: number;
  readonly to: number;
}

/** Accounts for the numbers of events. A number in a merged envelope or a gap counts too, so no wait for it hangs. */
export class EventCount {
  /** Numbers that came, alone or merged, or that never come. */
  accounted = 0;
  /** Envelopes that were saved by merging. */
  merged = 0;
  lost = 0;
  misordered = 0;
  readonly #newest = new Map<string, number>();

  event({ sessionId, seq, firstSeq = seq }: Covered): void {
    const last = this.#newest.get(sessionId) ?? firstSeq - 1;
    if (firstSeq <= last) this.misordered += 1;
    else this.lost += firstSeq - last - 1;
    this.merged += seq - firstSeq;
    this.accounted += Math.max(0, seq - last);
    this.#newest.set(sessionId, seq);
  }

  gap({ sessionId, from, to }: Gap): void {
    this.lost += to - from + 1;
    this.accounted += to - from + 1;
    this.#newest.set(sessionId, to);
  }
}

const firstSeq = Buffer.from('"firstSeq":', "latin1");
/** The envelope's head, before the event. */
const headBytes = 192;

/** Whether a frame of `session/event` is a merged envelope, without parsing it. */
export function isMerged(frame: Buffer): boolean {
  return frame.subarray(0, headBytes).includes(firstSeq);
}
