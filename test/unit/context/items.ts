import type { ContextItem } from "../../../context/document/document.ts";
import { Random } from "../../soak/random.ts";

/** Seeded numbers from 0 to below `limit`. */
export type Dice = (limit: number) => number;

export function dice(seed: number): Dice {
  const random = new Random(seed);
  return (limit) => random.integer(0, limit - 1);
}

export function text(content: string): ContextItem["content"] {
  return [{ type: "text", text: content }];
}

const words = ["the", "duck", "swims", "{", "}", "\n    ", "0x1f", "鴨が泳ぐ", "🦆", "getElementById", "—", "1234567"];

export function someText(roll: Dice, most: number): string {
  return Array.from({ length: roll(most) + 1 }, () => words[roll(words.length)]).join(" ");
}

/** A valid conversation: every call is followed by its result. */
export function someItems(roll: Dice, spans: number): readonly ContextItem[] {
  const items: ContextItem[] = [];
  let time = 1;
  let ids = 0;
  const add = (item: Omit<ContextItem, "timestamp" | "nodeId">): void => {
    items.push({ ...item, timestamp: time, nodeId: `n${time++}` });
  };
  if (roll(3) === 0) add({ role: "system", content: text(someText(roll, 20)) });
  if (roll(3) === 0) add({ role: "event", eventType: "ci.done", content: text(someText(roll, 9)), meta: { a: 1 } });
  for (let span = 0; span < spans; span += 1) {
    add({ role: "user", content: text(someText(roll, 60)) });
    for (let turn = roll(4); turn > 0; turn -= 1) {
      const calls = Array.from({ length: roll(3) + 1 }, () => ({
        id: `c${ids++}`,
        name: roll(2) === 0 ? "bash" : "read",
        arguments: { command: someText(roll, 12), deep: [{ path: "a.ts" }] },
      }));
      add({ role: "assistant", content: roll(2) === 0 ? [] : text(someText(roll, 20)), toolCalls: calls });
      for (const { id, name } of calls) {
        const content = [...text(someText(roll, 200)), ...(roll(4) === 0 ? text(someText(roll, 90)) : [])];
        add({ role: "toolResult", toolCallId: id, toolName: name, isError: roll(5) === 0, content });
      }
      if (roll(6) === 0) add({ role: "event", eventType: "git.push", content: text(someText(roll, 9)) });
    }
    if (roll(8) > 0)
      add({ role: "assistant", content: text(someText(roll, 60)), model: { api: "a", provider: "p", id: "m" } });
  }
  return items;
}
