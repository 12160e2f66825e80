import type { AgentMessage } from "../../extension/pi-types.ts";
import { BlockMessages } from "./block-messages.ts";
import type { BlockTree, PruningServices } from "./pruning-services.ts";
import { TrimmedCalls } from "./trimmed-calls.ts";

/** Replaces covered messages by their blocks. The result depends only on the arguments and the branch. */
export class Rendering {
  readonly #host: Pick<PruningServices, "entries" | "isUnanswered">;
  readonly #blocks = new BlockMessages();
  readonly #calls = new TrimmedCalls();

  constructor(host: Pick<PruningServices, "entries" | "isUnanswered">) {
    this.#host = host;
  }

  /** `budget`: tokens for all blocks together; `undefined`: no bound. Returns the same list if nothing changes. */
  of(messages: readonly AgentMessage[], tree: BlockTree, budget: number | undefined): readonly AgentMessage[] {
    if (tree.all.length === 0) return messages;
    this.#blocks.begin(tree, budget);
    this.#calls.begin(tree);
    const placed = new Set<string>();
    const made = messages.flatMap((message) => this.#shown(message, tree, placed) ?? []);
    const isSame = made.length === messages.length && made.every((message, at) => message === messages[at]);
    return isSame ? messages : made;
  }

  blockIn(message: AgentMessage): string | undefined {
    return this.#blocks.blockIn(message);
  }

  /** `undefined`: covered by a block that was already placed. A block replaces the first message that it covers. */
  #shown(message: AgentMessage, tree: BlockTree, placed: Set<string>): AgentMessage | undefined {
    const { entries, isUnanswered } = this.#host;
    const entryId = message.role === "system" ? undefined : entries.entryOf(message);
    if (entryId === undefined) return message;
    const block = tree.over(entryId);
    if (block === undefined) {
      const trimmed = this.#calls.of(message, entryId);
      if (trimmed !== message) entries.copied(trimmed, message);
      return trimmed;
    }
    // A push must reach the model, even if the file claims that a block covers it.
    if (isUnanswered(entryId)) return message;
    if (placed.has(block.id)) return undefined;
    placed.add(block.id);
    const record = this.#blocks.of(block, message.timestamp);
    entries.made(record);
    return record;
  }
}
