import type { ConversationView } from "../state/conversation.ts";
import type { RowGroup } from "../state/items.ts";
import type { OpenSession } from "../state/open-session.ts";
import { messageKey } from "../state/pi-values.ts";
import type { Looks } from "./place.ts";

/** How many pages are read to find an entry: all requests that are listed are within. */
const maxPages = 100;
/** How many frames a row may take to be built. */
const maxFrames = 60;

/** By its entry; an answer of which the page has no entry by the time when it was begun. */
interface MessagePlace {
  readonly entryId: string | undefined;
  readonly startedAt?: number | undefined;
}

/** Shows the first row of what a request has left in the conversation; without one, the end of the conversation. */
export async function leadToMessage(
  looks: Looks,
  conversation: ConversationView,
  message: MessagePlace,
): Promise<void> {
  looks.tab.value = "conversation";
  await showMessage(conversation, message, ".log");
}

/** The same in the view of a conversation that is shown. */
export async function showMessage(
  conversation: ConversationView,
  { entryId, startedAt }: MessagePlace,
  selector: string,
): Promise<void> {
  const place = await find(conversation, entryId, startedAt);
  const log = document.querySelector<HTMLElement>(selector);
  if (place === undefined || log === null) {
    log?.focus();
    return;
  }
  await focusRow(log, place);
}

/** Chooses another request; over the conversation it leads to its message. */
export function stepRequest({ figures, conversation }: OpenSession, looks: Looks, by: 1 | -1): void {
  const requests = figures.value?.requests;
  requests?.step(by);
  const chosen = requests?.chosen.value;
  if (looks.tab.value === "conversation" && chosen !== undefined) void leadToMessage(looks, conversation, chosen);
}

/** Focuses a row, when it is built, and returns it. */
export async function focusRow(log: HTMLElement, { group, rowId }: RowPlace): Promise<HTMLElement | undefined> {
  for (let frames = 0; frames < maxFrames; frames += 1) {
    const row = log.querySelector<HTMLElement>(`[data-row="${CSS.escape(rowId)}"]`);
    if (row !== null) {
      row.focus({ preventScroll: true });
      row.scrollIntoView({ block: "center" });
      return row;
    }
    log.querySelector(`[data-part="${group}"]`)?.scrollIntoView({ block: "center" });
    await new Promise(requestAnimationFrame);
  }
  return undefined;
}

export interface RowPlace {
  /** The group that has it. */
  readonly group: RowGroup["id"];
  readonly rowId: string;
}

/** The first row of an entry, after loading the pages before it. Undefined: nothing of it is shown. */
async function find(
  conversation: ConversationView,
  entryId: string | undefined,
  startedAt: number | undefined,
): Promise<RowPlace | undefined> {
  let isReloaded = false;
  conversation.setFilter("all");
  for (let pages = 0; pages < maxPages; pages += 1) {
    const place = placeOf(conversation.groups.value, entryId, startedAt);
    if (place !== undefined) return place;
    // Rows that came live have no entries; those of a page have.
    const reloads = !conversation.hasOlder.value;
    if (reloads && (isReloaded || startedAt !== undefined)) return undefined;
    isReloaded ||= reloads;
    const outcome = await (reloads ? conversation.reload() : conversation.older());
    if (outcome.kind === "refused") return undefined;
  }
  return undefined;
}

/** A live row has no entry: its id begins with the time of its message. */
function placeOf(
  groups: readonly RowGroup[],
  entryId: string | undefined,
  startedAt: number | undefined,
): RowPlace | undefined {
  const key = startedAt === undefined ? undefined : `${messageKey({ role: "assistant", timestamp: startedAt })}/`;
  for (const { id: group, rows } of groups) {
    for (const { id: rowId, item } of rows.value) {
      const { value: shown } = item;
      const isOfEntry =
        entryId !== undefined &&
        (shown.entryId === entryId || (shown.kind === "tool" && shown.outputEntryId === entryId));
      if (isOfEntry || (key !== undefined && rowId.startsWith(key))) return { group, rowId };
    }
  }
  return undefined;
}
