import { tagOf } from "../../extension/message-tag.ts";
import type { AgentMessage } from "../../extension/pi-types.ts";
import { shownWithin } from "./block-budget.ts";
import { type ShownBlocks, shownText } from "./block-text.ts";
import type { Block, BlockTree } from "./pruning-services.ts";

type UserMessage = Extract<AgentMessage, { role: "user" }>;

/** Messages that represent blocks. Returns the same object while its content is unchanged. */
export class BlockMessages {
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
