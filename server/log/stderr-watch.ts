import { StringDecoder } from "node:string_decoder";
import { type MonotonicClock, systemClock } from "../lib/monotonic-clock.ts";
import type { Child } from "../pi/child.ts";
import type { Journal } from "./journal.ts";

type WatchedChild = Pick<Child, "stderrAfter" | "stderrFrom" | "restoredAt">;

/** Maximum delay for text that pi writes without another record. */
const lookMs = 1_000;
/** Maximum text that is sent per session and second; the oldest bytes are omitted. */
export const maxToldStderrBytes = 64 * 1024;
const windowMs = 1_000;

/** Tells what the session's pi writes to its stderr to the subscribers that want it. Reads nothing without them. */
export class StderrWatch {
  readonly #journal: Journal;
  readonly #clock: MonotonicClock;
  #child: WatchedChild | undefined;
  /** Bytes of the child's stderr that were told, or are not wanted. */
  #offset = 0;
  #decoder = new StringDecoder("utf8");
  #windowAt = Number.NEGATIVE_INFINITY;
  /** Bytes that may still be told in this window. */
  #left = maxToldStderrBytes;
  #stopTimer: (() => void) | undefined;

  constructor(journal: Journal, clock: MonotonicClock = systemClock) {
    this.#journal = journal;
    this.#clock = clock;
    journal.subscriptions.onStderr(() => this.#followed());
  }

  /** A child is ready. */
  attach(child: WatchedChild): void {
    this.#child = child;
    // What a former daemon has told is not known.
    if (child.restoredAt !== undefined) child.stderrFrom = endOf(child);
    this.#offset = child.stderrFrom;
    this.#decoder = new StringDecoder("utf8");
    this.look();
    this.#lookLater();
  }

  /** Tells what was written since the last look. */
  look(): void {
    const child = this.#child;
    if (child === undefined || !this.#isFollowed) return;
    const now = this.#clock.now();
    if (now - this.#windowAt >= windowMs) {
      this.#windowAt = now;
      this.#left = maxToldStderrBytes;
    }
    const { bytes, end, omitted } = newest(child, this.#offset, this.#left);
    // It waits for the next second, which has the full limit.
    if (bytes.length === 0 || (omitted > 0 && this.#left < maxToldStderrBytes)) return;
    this.#offset = end;
    this.#left -= bytes.length;
    if (omitted > 0) this.#decoder = new StringDecoder("utf8");
    this.#tell(this.#decoder.write(bytes), omitted);
  }

  /** Tells one subscriber what the child has written since its start, up to what was told to all. */
  tellStart(subscriberId: string): void {
    const child = this.#child;
    if (child === undefined) return;
    const { bytes, end, omitted } = newest(child, child.stderrFrom, maxToldStderrBytes);
    const text = bytes.subarray(0, bytes.length - Math.max(0, end - this.#offset)).toString("utf8");
    if (text !== "") this.#tell(text, omitted, subscriberId);
  }

  /** The child has ended, or belongs to another session. */
  childEnded(child: WatchedChild): void {
    if (this.#child !== child) return;
    // Nothing is read later, and the last text says why it ended.
    this.#windowAt = Number.NEGATIVE_INFINITY;
    this.look();
    child.stderrFrom = Math.max(this.#offset, endOf(child));
    this.#child = undefined;
    this.#lookLater();
  }

  get #isFollowed(): boolean {
    return this.#journal.subscriptions.followsStderr;
  }

  /** The first subscriber wants it from now on, or none does any more. */
  #followed(): void {
    if (this.#child !== undefined) this.#offset = endOf(this.#child);
    this.#decoder = new StringDecoder("utf8");
    this.#lookLater();
  }

  #lookLater(): void {
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    if (this.#child === undefined || !this.#isFollowed) return;
    this.#stopTimer = this.#clock.after(lookMs, () => {
      this.look();
      this.#lookLater();
    });
  }

  #tell(text: string, omittedBytes: number, subscriberId?: string): void {
    if (text === "" && omittedBytes === 0) return;
    this.#journal.tellStderr({ text, ...(omittedBytes > 0 ? { omittedBytes } : {}) }, subscriberId);
  }
}

function endOf(child: WatchedChild): number {
  return child.stderrAfter(0, 0).end;
}

/** The newest text after a place, without the rest of a cut character; `omitted`: bytes that are missing before it. */
function newest(child: WatchedChild, from: number, maxBytes: number) {
  const { bytes, end } = child.stderrAfter(from, maxBytes);
  const omitted = end - from - bytes.length;
  let start = 0;
  if (omitted > 0) while (start < Math.min(3, bytes.length) && ((bytes[start] as number) & 0xc0) === 0x80) start += 1;
  return { bytes: bytes.subarray(start), end, omitted: omitted + start };
}
