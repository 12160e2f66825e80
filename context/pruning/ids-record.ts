import type { SessionEntry } from "../../extension/pi-types.ts";
import { isRecord } from "../../protocol/objects.ts";
import { IDS_MARK } from "./record.ts";

export const maxMessageNumber = 999_999_999;
/** Ids of one entry. */
const maxIds = 100_000;
const idPattern = /^m([0-9]{3,9})$/u;

/** `m001`: at least three digits. */
export function messageIdOf(number: number): string {
  return `m${String(number).padStart(3, "0")}`;
}

/** The number of an id in canonical form. `undefined` for any other form. */
export function messageNumberOf(id: string): number | undefined {
  const number = Number(idPattern.exec(id)?.[1] ?? 0);
  return number > 0 && messageIdOf(number) === id ? number : undefined;
}

/** The data of the custom entry that records message ids. */
export function idsData(ids: ReadonlyMap<string, number>): object {
  return { v: 1, ids: Object.fromEntries([...ids].map(([entryId, number]) => [entryId, messageIdOf(number)])) };
}

/**
 * The ids that an entry records. Data of another form is ignored, because people and other extensions write session
 * files.
 */
export function idsIn(entry: SessionEntry): readonly (readonly [entryId: string, number: number])[] | undefined {
  if (entry.type !== "custom" || entry.customType !== IDS_MARK) return undefined;
  if (!isRecord(entry.data) || entry.data["v"] !== 1 || !isRecord(entry.data["ids"])) return undefined;
  return Object.entries(entry.data["ids"])
    .slice(0, maxIds)
    .flatMap(([entryId, id]) => {
      const number = typeof id === "string" ? messageNumberOf(id) : undefined;
      return number === undefined || entryId === "" || entryId.length > 256 ? [] : [[entryId, number] as const];
    });
}

const bareId = /(?<![>\w])m([0-9]{3,9})(?![\w<])/gu;

/** Counts untagged ids up to `highest` in a text. They are not removed, because prose may mention messages. */
export function bareIds(text: string, highest: number): number {
  let count = 0;
  for (const [id] of highest === 0 ? [] : text.matchAll(bareId))
    if ((messageNumberOf(id) ?? Number.POSITIVE_INFINITY) <= highest) count += 1;
  return count;
}
