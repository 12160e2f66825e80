import { tagOf } from "../../extension/message-tag.ts";
import type { AgentMessage } from "../../extension/pi-types.ts";
import { shownWithin } from "./block-budget.ts";
import { type ShownBlocks, shownText } from "./block-text.ts";
import type { Block, BlockTree, PruningServices } from "./pruning-services.ts";
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

type UserMessage = Extract<AgentMessage, { role: "user" }>;

/** Messages that represent blocks. Returns the same object while its content is unchanged. */
class BlockMessages {
  #tree: BlockTree | undefined;
  #budget: number | undefined;
  #shown: ShownBlocks = new Map();
  /** By id, from the latest request. */
  #made = new Map<string, UserMessage>();
  readonly #blocks = new WeakMap<object, string>();

  /** Call at the start of each request. */
  begin(tree: BlockTree, budget: number | undefined): void {
    if (tree === this.#tree && budget === this.#budget) return;
    this.#tree = tree;
    this.#budget = budget;
    this.#shown = shownWithin(tree, budget);
    const active = new Map([...this.#made].filter(([id]) => tree.find(id)?.state.kind === "active"));
    this.#made = new Map([...active].filter(([id, { content }]) => textIn(content) === this.#textOf(id)));
  }

  /** `timestamp`: of the first covered message. */
  of(block: Block, timestamp: number): AgentMessage {
    const known = this.#made.get(block.id);
    if (known !== undefined && known.timestamp === timestamp) return known;
    const text = this.#textOf(block.id);
    const content: UserMessage["content"] = [text, tagOf(block.id)].map((one) => ({ type: "text", text: one }));
    const message: UserMessage = { role: "user", content, timestamp };
    this.#made.set(block.id, message);
    this.#blocks.set(message, block.id);
    return message;
  }

  blockIn(message: AgentMessage): string | undefined {
    return this.#blocks.get(message);
  }

  #textOf(id: string): string {
    const block = this.#tree?.find(id);
    return block === undefined || this.#tree === undefined ? "" : shownText(block, this.#tree, this.#shown);
  }
}

function textIn(content: UserMessage["content"]): string {
  const first = typeof content === "string" ? undefined : content[0];
  return first?.type === "text" ? first.text : "";
}
