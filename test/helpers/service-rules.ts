import type { ContextItem, ContextTarget } from "../../context/document/document.ts";

// Requests that the services refuse with HTTP 400, written from their documents. It does not know how a context is
// repaired.

/** One message as a service sees it: results are messages of their own, events are the user's. */
interface Message {
  readonly from: "user" | "assistant" | "tool";
  readonly item: ContextItem;
}

type Rules = (messages: readonly Message[], target: ContextTarget) => string[];

/** Why a service would refuse the conversation; empty if it would not. Instructions are sent separately. */
export function refusals(items: readonly ContextItem[], target: ContextTarget): string[] {
  const messages = items.filter(({ role }) => role !== "system").map((item) => ({ from: senderOf(item), item }));
  return [ofAll, ofChatCompletions, ofResponses, ofAnthropic].flatMap((rules) => rules(messages, target));
}

function senderOf({ role }: ContextItem): Message["from"] {
  return role === "assistant" ? "assistant" : role === "toolResult" ? "tool" : "user";
}

const ofAll: Rules = (messages, target) =>
  messages.flatMap((message, index) => {
    const found = [...contentFaults(message, target), ...callFaults(message, target)];
    if (!Number.isFinite(new Date(message.item.timestamp).getTime())) found.push("time");
    return found.map((fault) => `${index}: ${fault}`);
  });

function contentFaults({ from, item }: Message, target: ContextTarget): string[] {
  const isOwn = isOfTarget(item, target);
  const found: string[] = [];
  for (const part of item.content) {
    if (part.type === "text" && part.text.trim() === "") found.push("blank text");
    if (part.type === "text" && /\p{Surrogate}/u.test(part.text)) found.push("lone surrogate");
    if (part.type === "image" && (from === "assistant" || !target.takesImages)) found.push("image");
    if (part.type === "reasoning" && !isOwn) found.push("reasoning of another model");
  }
  const says = item.content.some(({ type }) => type !== "reasoning") || (item.toolCalls ?? []).length > 0;
  if (!says && (item.role === "user" || from === "assistant")) found.push("empty message");
  return found;
}

function callFaults({ item }: Message, target: ContextTarget): string[] {
  const found: string[] = [];
  for (const { id, name, arguments: given } of item.toolCalls ?? []) {
    const sent = isOfTarget(item, target) ? (id.split("|")[0] ?? "") : id;
    if (!/^[A-Za-z0-9_-]{1,64}$/.test(sent)) found.push(`id ${id}`);
    if (!/^[A-Za-z0-9_-]{1,64}$/.test(name)) found.push(`name ${name}`);
    if (loneSurrogate.test(JSON.stringify(given))) found.push("lone surrogate in arguments");
    if (target.api === "google-generative-ai" && /^[0-9-]/.test(name)) found.push(`name ${name}`);
    if (typeof given !== "object" || given === null || Array.isArray(given)) found.push("arguments");
  }
  return found;
}

/** As in JSON: valid pairs are not escaped there. */
const loneSurrogate = /(?<!\\)(?:\\\\)*\\ud[89a-f]/;

function isOfTarget({ model }: ContextItem, target: ContextTarget): boolean {
  return model !== undefined && shortModel(model).join() === shortModel(target).join();
}

function shortModel({ api, provider, id }: { readonly api: string; readonly provider: string; readonly id: string }) {
  return [api, provider, id];
}

/**
 * A message of the role `tool` answers a call of the assistant before it, and each call is answered directly after it.
 */
const ofChatCompletions: Rules = (messages, target) => {
  const found: string[] = [];
  if (target.api === "openai-completions" && target.provider === "openai") {
    const ids = messages.flatMap(({ item }) => (item.toolCalls ?? []).map(({ id }) => id));
    // What pi makes of longer ids.
    const short = ids.map((id) => id.slice(0, 40));
    if (new Set(short).size !== new Set(ids).size) found.push("chat: ids are the same in their first 40 characters");
    found.push(...ids.filter((id) => id.length > 40).map((id) => `chat: id of more than 40 characters: ${id}`));
  }
  let open: string[] = [];
  for (const [index, { from, item }] of messages.entries()) {
    if (from === "tool") {
      const place = open.indexOf(item.toolCallId ?? "");
      if (place === -1) found.push(`${index}: chat: a result of no open call: ${item.toolCallId}`);
      else open.splice(place, 1);
      continue;
    }
    if (open.length > 0) found.push(`${index}: chat: calls without results: ${open.join()}`);
    open = (item.toolCalls ?? []).map(({ id }) => id);
  }
  if (open.length > 0) found.push(`end: chat: calls without results: ${open.join()}`);
  return found;
};

/** Calls and outputs are matched by `call_id` over the whole input, in which each occurs once. */
const ofResponses: Rules = (messages, target) => {
  const isSent = target.api === "openai-responses";
  const short = (id: string): string => (isSent ? (id.split("|")[0] ?? id) : id);
  const calls = new Map<string, string>();
  const found: string[] = isSent ? itemFaults(messages, target) : [];
  const answered = new Set<string>();
  for (const [index, { item }] of messages.entries()) {
    for (const { id, name } of item.toolCalls ?? []) {
      if (calls.has(short(id))) found.push(`${index}: responses: call_id twice: ${id}`);
      calls.set(short(id), name);
    }
    if (item.role !== "toolResult") continue;
    const id = short(item.toolCallId ?? "");
    if (!calls.has(id)) found.push(`${index}: responses: output without a call: ${id}`);
    if (calls.get(id) !== item.toolName) found.push(`${index}: responses: output of another tool: ${item.toolName}`);
    if (answered.has(id)) found.push(`${index}: responses: two outputs: ${id}`);
    answered.add(id);
  }
  if (answered.size !== calls.size) found.push("end: responses: calls without output");
  return found;
};

/**
 * Items with an id have a unique one; something follows reasoning. pi removes a trailing `_` from ids of another model.
 */
function itemFaults(messages: readonly Message[], target: ContextTarget): string[] {
  const found: string[] = [];
  const seen = new Set<string>();
  const take = (id: string, index: number): void => {
    if (seen.has(id)) found.push(`${index}: responses: duplicate item: ${id}`);
    seen.add(id);
  };
  for (const [index, { from, item }] of messages.entries()) {
    if (from !== "assistant") continue;
    if (!isOfTarget(item, target)) {
      for (const { id } of item.toolCalls ?? []) if (id.endsWith("_")) found.push(`${index}: responses: id ${id}`);
      continue;
    }
    const blocks = item.blocks ?? blocksOf(item);
    for (const block of blocks) for (const id of itemIds(block)) take(id, index);
    const last = blocks.at(-1);
    if (last?.["type"] === "thinking" && last["thinkingSignature"] !== undefined)
      found.push(`${index}: responses: reasoning without its following item`);
  }
  return found;
}

/** As pi stores it. */
function blocksOf({ content, toolCalls = [] }: ContextItem): readonly Readonly<Record<string, unknown>>[] {
  return [
    ...content.map((part) =>
      part.type === "reasoning" ? { type: "thinking", thinkingSignature: part.signature } : { type: part.type },
    ),
    ...toolCalls.map(({ id }) => ({ type: "toolCall", id })),
  ];
}

/** The ids of OpenAI Responses items in pi's blocks: after `|`, and in signatures, bare or in JSON. */
function itemIds({ type, id, textSignature, thinkingSignature }: Readonly<Record<string, unknown>>): string[] {
  if (type === "toolCall") return String(id).split("|").slice(1);
  const signature = type === "text" ? textSignature : thinkingSignature;
  if (typeof signature !== "string") return [];
  return [signature.startsWith("{") ? String((JSON.parse(signature) as { id?: unknown }).id) : signature];
}

/** The user begins; a message with tool_use is followed by one that begins with the tool_result of each. */
const ofAnthropic: Rules = (messages) => {
  const found: string[] = [];
  if (messages.length > 0 && messages[0]?.from !== "user")
    found.push("0: anthropic: the first message is not the user's");
  for (const [index, { from, item }] of messages.entries()) {
    if (from !== "assistant" || item.toolCalls === undefined) continue;
    const ids = item.toolCalls.map(({ id }) => id);
    if (new Set(ids).size !== ids.length) found.push(`${index}: anthropic: tool_use ids are not unique`);
    const behind = messages.slice(index + 1, index + 1 + ids.length).map((message) => message.item.toolCallId ?? "");
    if (behind.toSorted().join() !== ids.toSorted().join())
      found.push(`${index}: anthropic: tool_use without tool_result`);
  }
  return found;
};
