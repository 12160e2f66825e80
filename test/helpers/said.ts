import type { PreparedContext } from "../../context/document/built.ts";
import type { ContextItem } from "../../context/document/document.ts";
import type { ApiName } from "../../provider/dialect.ts";
import type { LogEntry } from "../../provider/log.ts";

// The contents of a request and of a prepared context, in one shape. It is written from the services' rules and does
// not
// know how messages are built from items.

/** By the API, as pi names it. */
export type TreeService = "openai-completions" | "openai-responses" | "anthropic-messages";

export interface SaidRequest {
  readonly api: ApiName;
  /** The prompt's section of prior instructions, as often as it occurs there. */
  readonly instructions: readonly string[];
  readonly messages: readonly Said[];
}

export interface Said {
  readonly from: "user" | "assistant" | "tool";
  readonly texts: readonly string[];
  readonly thinking: readonly string[];
  readonly calls: readonly (readonly [id: string, name: string, args: unknown])[];
  readonly results: readonly (readonly [id: string, text: string])[];
  readonly images: number;
}

const apis: Readonly<Record<TreeService, ApiName>> = {
  "openai-completions": "openai",
  "openai-responses": "openai-responses",
  "anthropic-messages": "anthropic",
};

/** Senders whose adjacent messages a service merges. */
const joining: Readonly<Record<TreeService, Said["from"] | undefined>> = {
  "openai-completions": undefined,
  "openai-responses": "assistant",
  "anthropic-messages": "tool",
};

/** What the service must get for a context followed by the prompt. */
export function preparedRequest(prepared: PreparedContext, prompt: string, service: TreeService): SaidRequest {
  const { items, instructions } = prepared;
  const messages = items.filter(({ role }) => role !== "system").map((item) => preparedMessage(item, service));
  return {
    api: apis[service],
    instructions: instructions === undefined ? [] : [instructions],
    messages: joined([...messages, said("user", { texts: [prompt] })], joining[service]),
  };
}

/** What the service got. */
export function sentRequest({ api, messages }: LogEntry, service: TreeService): SaidRequest {
  const head = messages.filter(({ role }) => role === "system").flatMap(({ texts }) => texts);
  const conversation = messages.flatMap(({ role, texts, thinking, toolCalls, toolResults, imageCount }) => {
    if (role === "system") return [];
    return said(toolResults.length > 0 ? "tool" : role, {
      texts,
      thinking,
      calls: toolCalls.map(({ id, name, arguments: args }) => [id, name, args] as const),
      results: toolResults.map(({ callId, text }) => [callId, text] as const),
      images: imageCount,
    });
  });
  const sections = head.flatMap((text) => [...text.matchAll(section)].map((match) => match[1] ?? ""));
  return { api, instructions: sections, messages: joined(conversation, joining[service]) };
}

const section = /<prior_instructions>\n(.*?)\n<\/prior_instructions>/gs;

function said(from: Said["from"], more: Partial<Said>): Said {
  return { from, texts: [], thinking: [], calls: [], results: [], images: 0, ...more };
}

function preparedMessage(item: ContextItem, service: TreeService): Said {
  const texts = item.content.flatMap((part) => (part.type === "text" ? [part.text] : []));
  const images = item.content.filter(({ type }) => type === "image").length;
  switch (item.role) {
    case "assistant":
      return said("assistant", {
        texts: saidIn(item, service),
        thinking: thinkingOf(item, service),
        calls: callsOf(item, service),
      });
    case "toolResult": {
      const text = texts.join("\n");
      // pi's own words, for services that refuse an empty result.
      const shown = text === "" && service !== "anthropic-messages" ? "(no tool output)" : text;
      return said("tool", { results: [[sentId(item.toolCallId ?? "", service), shown]], images });
    }
    case "event": {
      const [first, ...rest] = texts;
      const line = `Event: ${item.eventType ?? "unnamed"}`;
      return said("user", { texts: [first === undefined ? line : `${line}\n${first}`, ...rest], images });
    }
    default:
      return said("user", { texts, images });
  }
}

function callsOf({ toolCalls = [] }: ContextItem, service: TreeService): Said["calls"] {
  return toolCalls.map(({ id, name, arguments: args }) => [sentId(id, service), name, args]);
}

/** pi sends unsigned thinking to Anthropic as text. */
function saidIn({ content }: ContextItem, service: TreeService): readonly string[] {
  return content.flatMap((part) => {
    if (part.type === "text") return [part.text];
    const isSaid = service === "anthropic-messages" && part.type === "reasoning" && part.signature === undefined;
    return isSaid && part.text.trim() !== "" ? [part.text] : [];
  });
}

/** Only signed thinking can be sent back. */
function thinkingOf({ content }: ContextItem, service: TreeService): readonly string[] {
  return content.flatMap((part) => {
    if (part.type !== "reasoning" || part.signature === undefined) return [];
    return service !== "openai-completions" || part.signature === "reasoning_content" ? [part.text] : [];
  });
}

/** An id of OpenAI Responses is `call_id|item_id`; the call id pairs them. */
function sentId(id: string, service: TreeService): string {
  return service === "openai-responses" ? (id.split("|", 1)[0] ?? id) : id;
}

function joined(messages: readonly Said[], who: Said["from"] | undefined): readonly Said[] {
  const all: Said[] = [];
  for (const message of messages) {
    const last = all.at(-1);
    if (last === undefined || last.from !== who || message.from !== who) all.push(message);
    else all[all.length - 1] = both(last, message);
  }
  return all;
}

function both(one: Said, other: Said): Said {
  return {
    from: one.from,
    texts: [...one.texts, ...other.texts],
    thinking: [...one.thinking, ...other.thinking],
    calls: [...one.calls, ...other.calls],
    results: [...one.results, ...other.results],
    images: one.images + other.images,
  };
}
