import { WireError } from "../../protocol/errors.ts";
import type { BuiltMessage } from "../../protocol/link-context.ts";
import { isRecord } from "../../protocol/objects.ts";
import { buildEvent } from "./build.ts";
import { CONTEXT_EVENT_TYPE, type ContextItem } from "./document.ts";
import { estimateMessage, estimateTokens } from "./estimate.ts";
import { grouped } from "./faults.ts";
import { type Counted, capResults, type Entry, total } from "./fit-entries.ts";

export interface FitOptions {
  /** In tokens; `null`: everything fits. */
  readonly budget: number | null;
  /** Default `trim`. With `keep` nothing is left out, whatever the budget. */
  readonly onOverflow?: "trim" | "error" | "keep";
  /** Tokens of the budget reserved for content outside the list. Default 0. */
  readonly reserved?: number;
}

/** Number of omitted messages and their tokens, including those counted by an omitted earlier notice. */
export interface Dropped {
  readonly messages: number;
  readonly tokens: number;
}

/** `eventType` of the notice about omitted messages; its `meta` is {@link Dropped}. */
export const TRIMMED_EVENT_TYPE = "context.trimmed";

/**
 * Selects the items that fit into the budget: whole user spans, newest first, and a notice for the omitted ones. If the
 * newest span alone is too large, its tool results are shortened, oldest first. Throws `context_over_budget` if that is
 * not enough, and with `error`. `system` items always stay.
 */
export function fitContext(
  items: readonly ContextItem[],
  options: FitOptions,
): { readonly items: readonly ContextItem[]; readonly tokens: number; readonly dropped: Dropped } {
  const { list, ...rest } = fitList(items, itemAdapter, options);
  return { items: list, ...rest };
}

/** {@link fitContext} for built messages. Deterministic: the notice takes the time of the omitted messages. */
export function fitMessages(
  messages: readonly BuiltMessage[],
  options: FitOptions,
): { readonly messages: readonly BuiltMessage[]; readonly tokens: number; readonly dropped: Dropped } {
  const { list, ...rest } = fitList(messages, messageAdapter, options);
  return { messages: list, ...rest };
}

/** Builds the notice for a list in which everything is omitted. */
export function noticeOf(messages: readonly BuiltMessage[]): BuiltMessage {
  const all = messages.map((value) => ({ value, kind: messageAdapter.kind(value), tokens: estimateMessage(value) }));
  return noticeFor(sum(all, messageAdapter), messages[0]?.timestamp ?? 0, messageAdapter);
}

interface ListAdapter<T> {
  readonly tokens: (entry: T) => number;
  readonly kind: (entry: T) => Entry["kind"];
  /** Ids of an assistant's calls. */
  readonly calls: (entry: T) => readonly string[];
  readonly answers: (entry: T) => string | undefined;
  readonly noticed: (entry: T) => Dropped | undefined;
  readonly notice: (item: ContextItem) => T;
}

const itemAdapter: ListAdapter<ContextItem> = {
  tokens: estimateTokens,
  kind: ({ role }) => role,
  calls: ({ toolCalls = [] }) => toolCalls.map(({ id }) => id),
  answers: ({ toolCallId }) => toolCallId,
  noticed: (item) => (item.role === "event" ? droppedOf(item.eventType, item.meta) : undefined),
  notice: (item) => item,
};

const messageAdapter: ListAdapter<BuiltMessage> = {
  tokens: estimateMessage,
  kind: ({ role }) => (role === "user" || role === "assistant" || role === "toolResult" ? role : "event"),
  calls: (message) =>
    message.role === "assistant"
      ? message.content.flatMap(({ type, id }) => (type === "toolCall" ? [String(id)] : []))
      : [],
  answers: (message) => (message.role === "toolResult" ? message.toolCallId : undefined),
  noticed: (message) => {
    if (message.role !== "custom" || message.customType !== CONTEXT_EVENT_TYPE) return undefined;
    return isRecord(message.details) ? droppedOf(message.details["eventType"], message.details["meta"]) : undefined;
  },
  notice: buildEvent,
};

function fitList<T extends Entry["value"]>(
  list: readonly T[],
  adapter: ListAdapter<T>,
  { budget, onOverflow = "trim", reserved = 0 }: FitOptions,
): { readonly list: readonly T[]; readonly tokens: number; readonly dropped: Dropped } {
  const counted = list.map(
    (value): Counted<T> => ({ value, kind: adapter.kind(value), tokens: adapter.tokens(value) }),
  );
  const needed = reserved + total(counted);
  if (budget === null || needed <= budget || onOverflow === "keep") {
    return { list, tokens: needed - reserved, dropped: nothing };
  }
  if (onOverflow === "error") throw overBudget(needed, budget, 'Use onOverflow "trim" or raise maxTokens.');

  const rest = counted.filter(({ kind }) => kind !== "system");
  const room = budget - (needed - total(rest));
  const starts = spanStarts(rest, adapter);
  const largestNotice = adapter.tokens(noticeFor({ messages: needed, tokens: needed }, 0, adapter));

  let start = rest.length;
  let taken = largestNotice;
  for (const begin of starts.toReversed()) {
    taken += total(rest, begin, start);
    if (taken > room) break;
    start = begin;
  }
  let kept: readonly Counted<T>[] = rest.slice(start);
  if (start === rest.length) {
    start = starts.at(-1) ?? 0;
    const newest = rest.slice(start);
    const left = room - (start === 0 ? 0 : largestNotice) - total(newest);
    const capped = capResults(newest, -left, adapter.tokens);
    if (capped === undefined) throw overBudget(needed, budget, "Its newest turn alone does not fit: raise maxTokens.");
    kept = capped;
  }
  const dropped = sum(rest.slice(0, start), adapter);
  const first = rest[0];
  const notice = start === 0 || first === undefined ? [] : [noticeFor(dropped, first.value.timestamp, adapter)];
  const fitted = assemble(counted, { start, kept, notice });
  const noticed = notice[0] === undefined ? 0 : adapter.tokens(notice[0]);
  return { list: fitted, tokens: needed - reserved - total(rest) + noticed + total(kept), dropped };
}

const nothing: Dropped = { messages: 0, tokens: 0 };

/** Assembles the list: `system` items in place, the notice before the kept items, and the kept items. */
function assemble<T>(
  counted: readonly Counted<T>[],
  {
    start,
    kept,
    notice,
  }: { readonly start: number; readonly kept: readonly Counted<T>[]; readonly notice: readonly T[] },
): readonly T[] {
  const list: T[] = [];
  let index = 0;
  for (const { kind, value } of counted) {
    if (kind === "system") {
      list.push(value);
      continue;
    }
    if (index === start) list.push(...notice);
    if (index >= start) list.push(kept[index - start]?.value ?? value);
    index += 1;
  }
  return list;
}

/**
 * Finds the starts of spans: the first entry and each user message. Without user messages, events start spans. A span
 * never starts between a call and its result.
 */
function spanStarts<T>(rest: readonly Counted<T>[], adapter: ListAdapter<T>): readonly number[] {
  const opener = rest.some(({ kind }) => kind === "user") ? "user" : "event";
  const starts: number[] = [];
  let open = new Set<string>();
  for (const [index, { kind, value }] of rest.entries()) {
    if (kind === "assistant") open = new Set(adapter.calls(value));
    else if (kind === "toolResult") open.delete(adapter.answers(value) ?? "");
    if (index === 0 || (kind === opener && open.size === 0)) starts.push(index);
  }
  return starts;
}

function sum<T>(entries: readonly Counted<T>[], adapter: ListAdapter<T>): Dropped {
  let messages = 0;
  let tokens = 0;
  for (const { value, tokens: own } of entries) {
    const noticed = adapter.noticed(value) ?? { messages: 1, tokens: own };
    messages += noticed.messages;
    tokens += noticed.tokens;
  }
  return { messages, tokens };
}

function noticeFor<T>({ messages, tokens }: Dropped, timestamp: number, adapter: ListAdapter<T>): T {
  const what = messages === 1 ? "1 earlier message" : `${messages} earlier messages`;
  const text = `${what} (about ${tokens} tokens) of this conversation ${messages === 1 ? "was" : "were"} left out.`;
  return adapter.notice({
    role: "event",
    eventType: TRIMMED_EVENT_TYPE,
    content: [{ type: "text", text }],
    meta: { messages, tokens },
    timestamp,
  });
}

function droppedOf(eventType: unknown, meta: unknown): Dropped | undefined {
  if (eventType !== TRIMMED_EVENT_TYPE || !isRecord(meta)) return undefined;
  const { messages, tokens } = meta;
  const isSound = Number.isSafeInteger(messages) && Number.isSafeInteger(tokens);
  return isSound ? { messages: messages as number, tokens: tokens as number } : undefined;
}

function overBudget(tokens: number, budget: number, help: string): WireError {
  const message = `The context needs about ${grouped(tokens)} tokens; the budget is ${grouped(budget)}. ${help}`;
  return new WireError("context_over_budget", message, { tokens, budget });
}
