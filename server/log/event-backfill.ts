import type { Logger } from "pino";
import { entriesBehind } from "../pi/entry-lines.ts";
import { isRecordObject, type PiEvent } from "../pi/records.ts";
import type { EventLog } from "./event-log.ts";
import { enough, KnownEntries } from "./known-entries.ts";

export interface EventBackfillOptions {
  readonly log: EventLog;
  /** Tells a record as if pi had written it. */
  readonly record: (record: Buffer) => void;
  /** What is read of a session file's end. */
  readonly maxBytes: number;
  readonly logger: Logger;
}

const entryHead = Buffer.from('{"type":"rpcd_entry","entry":');
const entryTail = Buffer.from("}");

/**
 * Brings into a log what pi's session file has and the log has not: what a child or a daemon that was killed had not told
 * any more, or had told and not stored.
 */
export class EventBackfill {
  readonly #options: EventBackfillOptions;
  #known = new KnownEntries();
  #hasLookedBack = false;

  constructor(options: EventBackfillOptions) {
    this.#options = options;
  }

  /** Takes note of an event that is in the log. */
  note(event: PiEvent): void {
    this.#known.note(event);
  }

  /** Never rejects: what cannot be read is left as it is, and logged. */
  async run(file: string): Promise<void> {
    const { record, maxBytes, logger } = this.#options;
    try {
      this.#lookBack();
      const known = this.#known;
      const missing = await entriesBehind(file, (entries) => known.placeIn(entries), maxBytes);
      for (const { entry, line } of missing) {
        record(Buffer.concat([entryHead, line, entryTail]));
        known.note({ type: "rpcd_entry", entry });
      }
    } catch (error) {
      logger.error({ err: error }, "what pi's session file has more than the log could not be told");
    }
  }

  /** What an earlier daemon has stored, if this one has not told enough. */
  #lookBack(): void {
    if (this.#hasLookedBack || this.#known.isEnough) return;
    this.#hasLookedBack = true;
    const known = new KnownEntries();
    const events: PiEvent[] = [];
    this.#options.log.lookBack((frame) => {
      const event = eventOf(frame);
      if (event !== undefined) events.push(event);
      return events.length >= enough;
    });
    for (const event of events.reverse()) known.note(event);
    this.#known = known;
  }
}

const interesting = ["message_end", "entry_appended", "rpcd_entry"].map((type) => Buffer.from(`{"type":"${type}"`));

function eventOf(frame: Buffer): PiEvent | undefined {
  // pi writes the type first.
  if (!interesting.some((head) => frame.includes(head))) return undefined;
  const { params } = JSON.parse(frame.toString("utf8")) as { readonly params: { readonly event?: unknown } };
  return isRecordObject(params.event) ? (params.event as PiEvent) : undefined;
}
