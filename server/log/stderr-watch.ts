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
    const { bytes, end } = child.stderrAfter(this.#offset, this.#left);
    const omitted = end - this.#offset - bytes.length;
    // The rest comes with the next window, as far as that is large enough.
    if (bytes.length === 0 || (omitted > 0 && this.#left < maxToldStderrBytes)) return;
    this.#offset = end;
    this.#left -= bytes.length;
    if (omitted > 0) this.#decoder = new StringDecoder("utf8");
    const start = omitted > 0 ? cutCharacter(bytes) : 0;
    this.#tell(this.#decoder.write(bytes.subarray(start)), omitted + start);
  }

  /** Tells one subscriber what the child has written since its start, up to what was told to all. */
  tellStart(subscriberId: string): void {
    const child = this.#child;
    if (child === undefined) return;
    const { bytes, end } = child.stderrAfter(child.stderrFrom, maxToldStderrBytes);
    const omitted = end - child.stderrFrom - bytes.length;
    const start = omitted > 0 ? cutCharacter(bytes) : 0;
    const text = bytes.subarray(start, bytes.length - Math.max(0, end - this.#offset)).toString("utf8");
    if (text !== "") this.#tell(text, omitted + start, subscriberId);
  }

  /** The child has ended, or belongs to another session. */
  childEnded(child: WatchedChild): void {
    if (this.#child !== child) return;
    // There is no later look, and its last words say why it ended.
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

/** How many bytes at the beginning are the rest of a character. */
function cutCharacter(bytes: Buffer): number {
  let start = 0;
  while (start < Math.min(3, bytes.length) && ((bytes[start] as number) & 0xc0) === 0x80) start += 1;
  return start;
}
