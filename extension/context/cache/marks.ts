import { isObject } from "../../pi-types.ts";
import { countMarks, isMarkedBlock, MARK } from "./payload.ts";
import { withoutMark } from "./sort-tools.ts";

/** Marks that services take. */
const maxMarks = 4;
const markable: ReadonlySet<unknown> = new Set(["text", "image", "tool_result", "tool_use"]);

type Message = Readonly<Record<string, unknown>>;

/**
 * The payload with at most four marks, none of which rests on text that the next request does not have. `isPassing`:
 * whether a message at the end is such. Gives the payload itself where nothing is to be moved, and where it has no marks.
 */
export function withSoundMarks(payload: unknown, isPassing: (message: unknown) => boolean): unknown {
  if (!isObject(payload) || !Array.isArray(payload["messages"])) return payload;
  const { system, tools, messages } = payload;
  const others = countMarks(listOf(system)) + countMarks(listOf(tools));
  const all = others + countMarks(messages);
  if (all === 0) return payload;
  const durable = withDurableMark(messages, isPassing);
  const left = countMarks(durable);
  const kept = left + others > maxMarks ? withoutFirstMarks(durable, left + others - maxMarks) : durable;
  const excess = countMarks(kept) + others - maxMarks;
  if (kept === messages && excess <= 0) return payload;
  // What stands first in a request is what the fewest requests share nothing of: the last mark of a part serves it all.
  const freed =
    excess > 0 ? withoutFirstMarks(listOf(system), Math.min(excess, countMarks(listOf(system)) - 1)) : system;
  return { ...payload, ...(freed === system ? {} : { system: freed }), messages: kept };
}

/** Moves the mark from what passes to the last block in front of it that stays. */
function withDurableMark(messages: readonly unknown[], isPassing: (message: unknown) => boolean): readonly unknown[] {
  let end = messages.length;
  while (end > 0 && isPassing(messages[end - 1])) end -= 1;
  const passing = messages.slice(end);
  const mark = passing.map(markOf).findLast((found) => found !== undefined);
  if (mark === undefined) return messages;
  const durable = messages.slice(0, end);
  for (let at = end - 1; at >= 0; at -= 1) {
    const marked = withMark(durable[at], mark);
    if (marked === undefined) continue;
    durable[at] = marked;
    break;
  }
  return [...durable, ...passing.map(withoutMarks)];
}

function markOf(message: unknown): unknown {
  const content = isObject(message) ? message["content"] : undefined;
  const marked = listOf(content).findLast(isMarkedBlock) as Message | undefined;
  return marked?.[MARK];
}

/** `undefined`: nothing in it can carry a mark. */
function withMark(message: unknown, mark: unknown): unknown {
  if (!isObject(message)) return undefined;
  const { content } = message;
  if (typeof content === "string") {
    return content === "" ? undefined : { ...message, content: [{ type: "text", text: content, [MARK]: mark }] };
  }
  const blocks = listOf(content);
  const at = blocks.findLastIndex((block) => isObject(block) && markable.has(block["type"]));
  return at === -1 ? undefined : { ...message, content: blocks.with(at, { ...(blocks[at] as object), [MARK]: mark }) };
}

function withoutMarks(message: unknown): unknown {
  if (!isObject(message) || !Array.isArray(message["content"])) return message;
  return { ...message, content: message["content"].map(withoutMark) };
}

/** Takes marks away from the front: those at the end are what caches the history. */
function withoutFirstMarks(items: readonly unknown[], count: number): readonly unknown[] {
  let left = count;
  const taken = (item: unknown): unknown => {
    if (left <= 0 || !isObject(item)) return item;
    let next: Message = item;
    if (Array.isArray(item["content"])) {
      const content = item["content"].map(taken);
      if (content.some((block, at) => block !== (item["content"] as unknown[])[at])) next = { ...item, content };
    }
    if (left <= 0 || !isMarkedBlock(next)) return next;
    left -= 1;
    return withoutMark(next);
  };
  return count <= 0 ? items : items.map(taken);
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
