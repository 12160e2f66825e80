import { isRecord } from "../../../protocol/objects.ts";
import { countMarks, isMarkedBlock, MARK, maxNesting } from "./payload.ts";
import { withoutMark } from "./sort-tools.ts";

/** Marks that services accept. */
const maxMarks = 4;
const markable: ReadonlySet<unknown> = new Set(["text", "image", "tool_result", "tool_use"]);

type Message = Readonly<Record<string, unknown>>;

/**
 * Returns the payload with at most four marks, none of them on text that the next request does not have. `isPassing`:
 * whether a message at the end is such text. Returns the same payload if no mark has to move.
 */
export function withSoundMarks(payload: unknown, isPassing: (message: unknown) => boolean): unknown {
  if (!isRecord(payload) || !Array.isArray(payload["messages"])) return payload;
  const { messages } = payload;
  if (partsOf(payload).every((part) => countMarks(part) === 0)) return payload;
  const durable = withDurableMark(messages, isPassing);
  return withinLimit(durable === messages ? payload : { ...payload, messages: durable });
}

/** Removes marks above the limit. The last mark of each part covers the whole part, so earlier ones go first. */
function withinLimit(payload: Message): Message {
  let excess = partsOf(payload).reduce((sum, part) => sum + countMarks(part), 0) - maxMarks;
  if (excess <= 0) return payload;
  const kept: Record<string, unknown> = { ...payload };
  for (const name of ["messages", "system", "tools"]) {
    const part = listOf(kept[name]);
    const freed = Math.min(excess, countMarks(part) - 1);
    if (freed <= 0) continue;
    kept[name] = withoutFirstMarks(part, freed);
    excess -= freed;
  }
  return kept;
}

function partsOf({ system, tools, messages }: Message): readonly (readonly unknown[])[] {
  return [system, tools, messages].map(listOf);
}

/** Moves the mark from passing messages to the last block before them. */
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
  const content = isRecord(message) ? message["content"] : undefined;
  const marked = listOf(content).findLast(isMarkedBlock) as Message | undefined;
  return marked?.[MARK];
}

/** `undefined`: nothing in it can carry a mark. */
function withMark(message: unknown, mark: unknown): unknown {
  if (!isRecord(message)) return undefined;
  const { content } = message;
  if (typeof content === "string") {
    return content === "" ? undefined : { ...message, content: [{ type: "text", text: content, [MARK]: mark }] };
  }
  const blocks = listOf(content);
  const at = blocks.findLastIndex((block) => isRecord(block) && markable.has(block["type"]));
  return at === -1 ? undefined : { ...message, content: blocks.with(at, { ...(blocks[at] as object), [MARK]: mark }) };
}

function withoutMarks(message: unknown): unknown {
  if (!isRecord(message) || !Array.isArray(message["content"])) return message;
  return { ...message, content: message["content"].map(withoutMark) };
}

/** Removes marks from the front, because those at the end cache the history. */
function withoutFirstMarks(items: readonly unknown[], count: number): readonly unknown[] {
  let left = count;
  const taken = (item: unknown, depth: number): unknown => {
    if (left <= 0 || !isRecord(item) || depth >= maxNesting) return item;
    let next: Message = item;
    if (Array.isArray(item["content"])) {
      const content = item["content"].map((block) => taken(block, depth + 1));
      if (content.some((block, at) => block !== (item["content"] as unknown[])[at])) next = { ...item, content };
    }
    if (left <= 0 || !isMarkedBlock(next)) return next;
    left -= 1;
    return withoutMark(next);
  };
  return items.map((item) => taken(item, 0));
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
