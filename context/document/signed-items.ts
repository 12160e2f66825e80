import type { Meta } from "../../protocol/link-context.ts";
import type { ContextCall, ContextItem } from "./document.ts";
import { speaksResponses } from "./ids.ts";

// OpenAI Responses links calls and messages to their reasoning by item ids, and refuses them without it. If the
// reasoning is left out, the ids are removed, as for other models.

/** Whether item ids of a message link to its reasoning; `api` of the model that wrote it. */
export function hasSignedItems(api: unknown): boolean {
  return typeof api === "string" && speaksResponses({ api });
}

/** Removes the item id from a call id: the first part of `call_id|item_id`. */
export function unsignedId(id: string): string {
  return id.split("|", 1)[0] ?? id;
}

/** Removes the item id from a pi block. */
export function unsignedBlock(block: Meta): Meta {
  const { type, id, textSignature, ...rest } = block;
  if (type === "toolCall" && typeof id === "string") return { ...block, id: unsignedId(id) };
  return type === "text" && textSignature !== undefined
    ? { type, ...(id === undefined ? {} : { id }), ...rest }
    : block;
}

/** Renames results to the current ids of their calls. */
export class UnsignedCalls {
  readonly #ids = new Map<string, string>();

  /** Records the calls of a message before and after. */
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
