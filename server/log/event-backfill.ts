import type { Logger } from "pino";
import { isRecord } from "../../protocol/objects.ts";
import { entriesAfter } from "../pi/entry-lines.ts";
import type { PiEvent } from "../pi/records.ts";
import type { EventLog } from "./event-log.ts";
import { enough, KnownEntries } from "./known-entries.ts";

export interface EventBackfillOptions {
  readonly log: EventLog;
  /** Records an entry as if pi had just reported it. */
  readonly record: (record: Buffer, entry: Readonly<Record<string, unknown>>) => void;
  /** Bytes read from the end of a session file. */
  readonly maxBytes: number;
  readonly logger: Logger;
}

const entryHead = Buffer.from('{"type":"rpcd_entry","entry":');
const entryTail = Buffer.from("}");

/**
 * Adds the entries of pi's session file that the log lacks: a killed child or daemon may have ended before it
 * reported or stored them.
 */
export class EventBackfill {
  readonly #options: EventBackfillOptions;
  #known = new KnownEntries();
  #hasLookedBack = false;

  constructor(options: EventBackfillOptions) {
    this.#options = options;
  }

  /** Notes an event of the log. */
  note(event: PiEvent): void {
    this.#known.note(event);
  }

  /** Like {@link run}, if an earlier daemon may have used numbers without storing their events. */
  async runIfLost(file: string): Promise<void> {
    if (this.#options.log.lost !== undefined) await this.run(file);
  }

  /** Never rejects. A file that cannot be read is logged and left unchanged. */
  async run(file: string): Promise<void> {
    const { record, maxBytes, logger } = this.#options;
    try {
      this.#lookBack();
      const known = this.#known;
      const missing = await entriesAfter(file, (entries) => known.placeIn(entries), maxBytes);
      for (const { entry, line } of missing) {
        record(Buffer.concat([entryHead, line, entryTail]), entry);
        known.note({ type: "rpcd_entry", entry });
      }
    } catch (error) {
      logger.error({ err: error }, "cannot backfill the log from pi's session file");
    }
  }

  /** Notes events that an earlier daemon stored, if this one has reported too few. */
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
  // pi writes `type` first.
  if (!interesting.some((head) => frame.includes(head))) return undefined;
  const { params } = JSON.parse(frame.toString("utf8")) as { readonly params: { readonly event?: unknown } };
  return isRecord(params.event) ? (params.event as PiEvent) : undefined;
}
