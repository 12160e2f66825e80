import type { OutwardFrame } from "../../protocol/link.ts";
import type { PendingItem } from "../../protocol/pending.ts";
import { cut, type Fields, isId, isInteger, isPlain, isString, isWord, type Words } from "./frame-fields.ts";

const maxPending = 100;
const maxLabelLength = 200;
/** The latest moment that a `Date` can hold. */
const maxTime = 8_640_000_000_000_000;
const states: Words<PendingItem["state"]> = { running: true, delivering: true, failed: true };

/** Text for people: long text is cut, and an invalid item makes the frame invalid. */
export function readPending({ pending }: Fields, at: number): Extract<OutwardFrame, { kind: "pending" }> | undefined {
  if (!Array.isArray(pending) || pending.length > maxPending) return undefined;
  const items: PendingItem[] = [];
  // By index, because `map` skips holes.
  for (let i = 0; i < pending.length; i += 1) {
    const item = readItem(pending[i]);
    if (item === undefined) return undefined;
    items.push(item);
  }
  return { kind: "pending", at, pending: items };
}

function readItem(value: unknown): PendingItem | undefined {
  if (!isPlain(value)) return undefined;
  const { id, label, state, startedAt, error } = value;
  if (!isId(id) || !isString(label) || !isWord(states, state)) return undefined;
  if (!isInteger(startedAt) || startedAt < 0 || startedAt > maxTime) return undefined;
  if (error !== undefined && !isString(error)) return undefined;
  const item = { id, label: cut(label).slice(0, maxLabelLength).toWellFormed(), state, startedAt };
  return error === undefined ? item : { ...item, error: cut(error) };
}
