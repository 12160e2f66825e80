import { gapFrame } from "../frames/frame.ts";
import { EventFilter, type Wanted } from "./event-filter.ts";
import type { Journal, Place } from "./journal.ts";

/** A notification as JSON. */
export interface PagedEvent {
  readonly method: string;
  readonly params: Record<string, unknown>;
}

export interface EventPage {
  readonly events: PagedEvent[];
  /** The cursor after the page. */
  readonly after: number;
}

/** Bytes read from a log at a time. */
const maxPageBytes = 1024 * 1024;
/** Maximum number of such reads for one page. */
const maxPieces = 16;

/** Returns at most `limit` matching notifications after a place. */
export function pageOf(journal: Journal, place: Place, wanted: Wanted, limit: number): EventPage {
  const filter = new EventFilter(wanted);
  const events: PagedEvent[] = [];
  let { after = 0 } = place;
  let next: Place = place;
  for (let piece = 0; piece < maxPieces && events.length < limit; piece += 1) {
    const { items, upTo } = journal.page(next, maxPageBytes);
    for (const item of items) {
      if (events.length === limit) return { events, after };
      if (item.kind === "gap") {
        if (filter.concerns(item.gap)) events.push(parsed(gapFrame(journal.sessionId, item.gap).bytes));
        after = item.gap.reason === "log_reset" ? 0 : item.gap.to;
      } else {
        if (filter.passes(item.frame)) events.push(parsed(item.frame.bytes));
        after = item.frame.seq;
      }
    }
    after = upTo;
    if (upTo >= journal.cursor) break;
    next = { after };
  }
  return { events, after };
}

function parsed(bytes: Buffer): PagedEvent {
  const { method, params } = JSON.parse(bytes.toString("utf8")) as PagedEvent;
  return { method, params };
}
