import { isObject, type SessionEntry } from "../../extension/pi-types.ts";
import { IDS_MARK } from "./record.ts";

export const maxMessageNumber = 999_999_999;
/** An entry says at most so many. */
const maxIds = 100_000;
const idPattern = /^m([0-9]{3,9})$/u;

/** `m001`: at least three digits. */
export function messageIdOf(number: number): string {
  return `m${String(number).padStart(3, "0")}`;
}

/** The number of an id in its written form, and in no other. */
export function messageNumberOf(id: string): number | undefined {
  const number = Number(idPattern.exec(id)?.[1] ?? 0);
  return number > 0 && messageIdOf(number) === id ? number : undefined;
}

/** The data of the custom entry that says which ids messages have. */
export function idsData(ids: ReadonlyMap<string, number>): object {
  return { v: 1, ids: Object.fromEntries([...ids].map(([entryId, number]) => [entryId, messageIdOf(number)])) };
}

/** Which ids an entry gives. What is not as we write it is passed over: people and other extensions write session files. */
export function idsIn(entry: SessionEntry): readonly (readonly [entryId: string, number: number])[] | undefined {
  if (entry.type !== "custom" || entry.customType !== IDS_MARK) return undefined;
  if (!isObject(entry.data) || entry.data["v"] !== 1 || !isObject(entry.data["ids"])) return undefined;
  return Object.entries(entry.data["ids"])
    .slice(0, maxIds)
    .flatMap(([entryId, id]) => {
      const number = typeof id === "string" ? messageNumberOf(id) : undefined;
      return number === undefined || entryId === "" || entryId.length > 256 ? [] : [[entryId, number] as const];
    });
}

const bareId = /(?<![>\w])m([0-9]{3,9})(?![\w<])/gu;

/** How many ids up to this one a text names without a tag. They stay: prose may speak of messages. */
export function bareIds(text: string, highest: number): number {
  let count = 0;
  for (const [id] of highest === 0 ? [] : text.matchAll(bareId))
    if ((messageNumberOf(id) ?? Number.POSITIVE_INFINITY) <= highest) count += 1;
  return count;
}
