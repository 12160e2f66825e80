import type { Meta } from "../../protocol/link-context.ts";
import type { ContextCall, ContextItem } from "./document.ts";
import { speaksResponses } from "./ids.ts";

// OpenAI Responses knows which reasoning its calls and messages came with, by the ids of the items, and refuses them
// without it. Where the reasoning is left out they go without their ids, as those of other models do.

/** Whether a message's items have ids that its reasoning belongs to: `api` of the model that wrote it. */
export function hasSignedItems(api: unknown): boolean {
  return typeof api === "string" && speaksResponses({ api });
}

/** A call without the id of its item: of `call_id|item_id` the first. */
export function unsignedId(id: string): string {
  return id.split("|", 1)[0] ?? id;
}

/** One of pi's blocks without the id of its item. */
export function unsignedBlock(block: Meta): Meta {
  const { type, id, textSignature, ...rest } = block;
  if (type === "toolCall" && typeof id === "string") return { ...block, id: unsignedId(id) };
  return type === "text" && textSignature !== undefined
    ? { type, ...(id === undefined ? {} : { id }), ...rest }
    : block;
}

/** Gives results the ids that their calls have now. */
export class UnsignedCalls {
  readonly #ids = new Map<string, string>();

  /** The calls of one message as they were, and as they are. */
  add(before: readonly ContextCall[], after: readonly ContextCall[]): void {
    for (let place = 0; place < before.length; place += 1) this.note(before[place]?.id, after[place]?.id);
  }

  note(before: unknown, after: unknown): void {
    if (typeof before !== "string" || typeof after !== "string") return;
    if (before === after) this.#ids.delete(before);
    else this.#ids.set(before, after);
  }

  idOf(id: string): string {
    return this.#ids.get(id) ?? id;
  }

  result(item: ContextItem): ContextItem {
    const { toolCallId } = item;
    const now = toolCallId === undefined ? undefined : this.#ids.get(toolCallId);
    return now === undefined ? item : { ...item, toolCallId: now };
  }
}
