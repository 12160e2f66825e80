import { isRecord } from "../../protocol/objects.ts";
import type { Composition } from "../../protocol/provider.ts";
import { deliveryIdOf } from "../delivery/marker.ts";
import type { AgentMessage } from "../pi-types.ts";

type Kind = keyof Composition;

/** What a message list is made of: the characters of its texts, by kind. Throws a `RangeError` if a value is too large. */
export function compositionOf(messages: readonly AgentMessage[]): Composition {
  const composition: Composition = {};
  const add = (kind: Kind, value: unknown): void => {
    const characters = charactersOf(value);
    if (characters > 0) composition[kind] = (composition[kind] ?? 0) + characters;
  };
  for (const message of messages) addMessage(message, add);
  return composition;
}

function addMessage(message: AgentMessage, add: (kind: Kind, value: unknown) => void): void {
  const addContent = (kind: Kind): void => {
    // Messages of other extensions may have any form.
    const content: unknown = "content" in message ? message.content : undefined;
    for (const block of Array.isArray(content) ? content : [content]) {
      if (typeof block === "string") add(kind, block);
      else if (!isRecord(block)) continue;
      else if (block["type"] === "text") add(kind, block["text"]);
      else if (block["type"] === "image") add("images", block["data"]);
      else if (block["type"] === "thinking") add("thinking", block["thinking"]);
      else if (block["type"] === "toolCall") add("toolCalls", [block["name"], block["arguments"]]);
    }
  };
  switch (message.role) {
    case "system":
      addContent("system");
      add("system", message.sections);
      add("tools", message.toolsAdded);
      break;
    case "bashExecution":
      if (message.excludeFromContext !== true) add("bash", [message.command, message.output]);
      break;
    case "branchSummary":
    case "compactionSummary":
      add("summaries", message.summary);
      break;
    case "custom":
      addContent(deliveryIdOf(message) === undefined ? "custom" : "pushes");
      break;
    case "toolResult":
      addContent("toolResults");
      break;
    case "user":
    case "assistant":
      addContent(message.role);
      break;
    default:
  }
}

/** A value with more parts has a cycle, or would hold up pi. */
const maxParts = 1_000_000;

/** The characters of all keys, texts, numbers and other values within a value. Throws a `RangeError` if it has too many. */
function charactersOf(value: unknown): number {
  let sum = 0;
  let parts = 0;
  // Without recursion: a model's arguments can be deep.
  const open = [value];
  const add = (part: unknown): void => {
    parts += 1;
    if (parts > maxParts) throw new RangeError(`A value in the messages has more than ${maxParts} parts.`);
    open.push(part);
  };
  while (open.length > 0) {
    const next = open.pop();
    if (typeof next === "string") sum += next.length;
    else if (Array.isArray(next)) for (const item of next) add(item);
    else if (typeof next === "object" && next !== null) {
      for (const [key, item] of Object.entries(next)) {
        if (item === undefined || typeof item === "function") continue;
        sum += key.length;
        add(item);
      }
    } else if (next !== undefined) sum += String(next).length;
  }
  return sum;
}
