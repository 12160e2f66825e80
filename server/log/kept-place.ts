import type { LogPlace } from "../store/children.ts";

export interface KeptPlaceOptions {
  /** More output than this is not kept. */
  readonly maxBytes: number;
  /** How long output is kept for clients that are late. */
  readonly keepMs: number;
}

interface Mark extends LogPlace {
  /** All before it was told by then, in milliseconds of {@link KeptPlace.place}. */
  readonly at: number;
}

/** What is between its first start and its last end. pi's parallel tool calls are not told apart. */
interface Open {
  count: number;
  start: LogPlace | undefined;
}

/** The distance of two marks is at least one of these. */
const markMs = 1_000;
const markBytes = 256 * 1024;

type Begins = (record: Buffer) => boolean;

/** Compares the first bytes as pi writes them, without a string: it runs for each record that is not a delta. */
function begins(type: string): Begins {
  const head = Buffer.from(`{"type":"${type}"`, "latin1");
  return (record) => {
    // From the end: the beginnings are the same.
    for (let i = head.length - 1; i >= 0; i -= 1) if (record[i] !== head[i]) return false;
    return true;
  };
}

const isMessageStart = begins("message_start");
const isMessageEnd = begins("message_end");
const isToolStart = begins("tool_execution_start");
const isToolEnd = begins("tool_execution_end");
const isAgentEnd = begins("agent_end");

/**
 * From where a later daemon must get pi's output again, so that the deltas of the open message, of the open tool calls and
 * of the last seconds are complete.
 */
export class KeptPlace {
  readonly #options: KeptPlaceOptions;
  #kept: LogPlace;
  #marks: Mark[] = [];
  readonly #message: Open = { count: 0, start: undefined };
  readonly #tools: Open = { count: 0, start: undefined };

  constructor(kept: LogPlace, options: KeptPlaceOptions) {
    this.#kept = kept;
    this.#options = options;
  }

  /** Notes a record before it is appended at `place`. Deltas need not be noted. */
  note(record: Buffer, place: LogPlace): void {
    if (isMessageStart(record)) began(this.#message, place);
    else if (isMessageEnd(record)) ended(this.#message);
    else if (isToolStart(record)) began(this.#tools, place);
    else if (isToolEnd(record)) ended(this.#tools);
    // Nothing of a run is open after it.
    else if (isAgentEnd(record)) this.#clear();
  }

  /**
   * The place now; call it each second and after each 256 KiB. `current`: up to where the output was handled. `limit`:
   * the place up to which changes are stored. `now`, in milliseconds, must not go backwards.
   */
  place(current: LogPlace, limit: LogPlace, now: number): LogPlace {
    const { maxBytes, keepMs } = this.#options;
    const newest = this.#marks.at(-1);
    if (newest === undefined || now - newest.at >= markMs || current.offset - newest.offset >= markBytes)
      this.#marks.push({ ...current, at: now });
    const late = this.#marks.findLastIndex(({ at }) => now - at >= keepMs);
    if (late > 0) this.#marks.splice(0, late);
    let kept: LogPlace = late === -1 ? this.#kept : (this.#marks[0] as Mark);
    for (const { start } of [this.#message, this.#tools]) if (start !== undefined) kept = earlier(kept, start);
    if (current.offset - kept.offset > maxBytes) {
      const near = this.#marks.findIndex(({ offset }) => current.offset - offset <= maxBytes);
      if (near > 0) this.#marks.splice(0, near);
      kept = near === -1 ? current : (this.#marks[0] as Mark);
    }
    kept = earlier(kept, limit);
    if (kept.offset > this.#kept.offset) this.#kept = { offset: kept.offset, seq: kept.seq };
    return this.#kept;
  }

  /** Output before `place` is of no use: its numbers cannot be found again. */
  moveTo(place: LogPlace): void {
    this.#kept = place;
    this.#marks = [];
    this.#clear();
  }

  #clear(): void {
    for (const open of [this.#message, this.#tools]) {
      open.count = 0;
      open.start = undefined;
    }
  }
}

function began(open: Open, place: LogPlace): void {
  open.count += 1;
  open.start ??= place;
}

function ended(open: Open): void {
  open.count = Math.max(0, open.count - 1);
  if (open.count === 0) open.start = undefined;
}

function earlier(one: LogPlace, other: LogPlace): LogPlace {
  return other.offset < one.offset ? other : one;
}
