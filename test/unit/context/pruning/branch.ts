import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { BlockFold } from "../../../../context/pruning/block-fold.ts";
import { BlockWriting } from "../../../../context/pruning/block-writing.ts";
import { createBlocks } from "../../../../context/pruning/blocks.ts";
import type { Blocks, PruningServices } from "../../../../context/pruning/pruning-services.ts";
import { BLOCKS_MARK, type BlockRecord, type Segment } from "../../../../context/pruning/record.ts";
import { Rendering } from "../../../../context/pruning/rendering.ts";
import type { AgentMessage, SessionEntry } from "../../../../extension/pi-types.ts";

/** A branch, entry by entry: each follows the leaf. */
export class Branch {
  readonly #entries = new Map<string, SessionEntry>();
  #leaf: string | undefined;
  #calls = 0;
  isIdle = true;
  window: number | undefined = 200_000;

  get entries(): readonly SessionEntry[] {
    return [...this.#entries.values()];
  }

  get leaf(): string | undefined {
    return this.#leaf;
  }

  /** Goes back, or to another branch. */
  go(entryId: string): void {
    this.#leaf = entryId;
  }

  add(entry: Readonly<Record<string, unknown>>): string {
    const id = typeof entry["id"] === "string" ? entry["id"] : `e${this.#entries.size + 1}`;
    const timestamp = new Date(1_000 * this.#entries.size).toISOString();
    this.#entries.set(id, { timestamp, parentId: this.#leaf ?? null, ...entry, id } as unknown as SessionEntry);
    this.#leaf = id;
    return id;
  }

  message(message: Readonly<Record<string, unknown>>, id?: string): string {
    const timestamp = 1_000 * this.#entries.size;
    return this.add({ type: "message", message: { timestamp, ...message }, ...(id === undefined ? {} : { id }) });
  }

  user(text: string): string {
    return this.message({ role: "user", content: [{ type: "text", text }] });
  }

  /** A call with its result. Returns the entries. */
  call(name: string, args: object, text: string, fields: object = {}): readonly [string, string] {
    const id = `call${++this.#calls}`;
    const answer = this.message({ role: "assistant", content: [{ type: "toolCall", id, name, arguments: args }] });
    const content = [{ type: "text", text }];
    const result = this.message({ role: "toolResult", toolCallId: id, toolName: name, content, ...fields });
    return [answer, result];
  }

  /** A call of compress that has stored these blocks. */
  compress(topic: string, ...blocks: readonly BlockRecord[]): readonly [string, string] {
    const ranges = blocks.map(({ body }) => ({ startId: "m001", endId: "m002", summary: JSON.stringify(body) }));
    const details = { v: 1, topic, blocks };
    return this.call("compress", { topic, ranges }, "Stored.", { details, isError: false });
  }

  operate(operation: string, block: string): string {
    return this.add({ type: "custom", customType: BLOCKS_MARK, data: { v: 1, operation, block } });
  }

  compact(firstKeptEntryId: string): string {
    return this.add({ type: "compaction", summary: "Before.", firstKeptEntryId, tokensBefore: 1 });
  }

  get context(): ExtensionContext {
    return {
      model: { provider: "test", id: "model", contextWindow: this.window },
      isIdle: () => this.isIdle,
      sessionManager: {
        getSessionId: () => "s1",
        getLeafEntry: () => (this.#leaf === undefined ? undefined : this.#entries.get(this.#leaf)),
        getEntry: (id: string) => this.#entries.get(id),
        getEntries: () => [...this.#entries.values()],
      },
    } as unknown as ExtensionContext;
  }

  /** The messages of the branch, without compactions. */
  get messages(): readonly { readonly entryId: string; readonly message: AgentMessage }[] {
    const found: { readonly entryId: string; readonly message: AgentMessage }[] = [];
    let entry = this.#leaf === undefined ? undefined : this.#entries.get(this.#leaf);
    while (entry !== undefined) {
      if (entry.type === "message") found.push({ entryId: entry.id, message: entry.message });
      entry = entry.parentId === null ? undefined : this.#entries.get(entry.parentId);
    }
    return found.reverse();
  }
}

/** A block of these entries, with this text. */
export function blockOf(
  id: string,
  entryIds: readonly string[],
  body: string | readonly Segment[],
  fields: Partial<BlockRecord> = {},
): BlockRecord {
  const segments = typeof body === "string" ? [{ text: body }] : body;
  return {
    id,
    firstEntryId: entryIds[0] ?? "",
    lastEntryId: entryIds.at(-1) ?? "",
    entryIds,
    children: segments.flatMap((segment) => ("block" in segment ? [segment.block] : [])),
    body: segments,
    kept: [],
    tokensBefore: 1_000,
    tokensAfter: 10,
    ...fields,
  };
}

/** The blocks of a session with these services. */
export function blocksOf(services: PruningServices): Blocks {
  const fold = new BlockFold();
  const rendering = new Rendering(services);
  return createBlocks(services, { fold, rendering, writing: new BlockWriting(services, fold) });
}
