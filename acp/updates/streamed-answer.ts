import { type TextKind, textIn } from "./messages.ts";

interface Block {
  readonly index: number;
  readonly kind: TextKind | "tool";
  /** Its text that was said. */
  said: string;
  /** Its deltas are not said: some are missing, or an earlier block is not complete. Its rest is said at its end. */
  isHeld: boolean;
  isOver: boolean;
}

/**
 * Says the text of an answer as it streams, each part once and in the order of its blocks. After lost deltas it waits
 * for the end of the block, or of the message, whose records have the complete text.
 */
export class StreamedAnswer {
  readonly #say: (kind: TextKind, text: string, index: number) => void;
  readonly #blocks = new Map<number, Block>();
  #isLost = false;

  /** `say` gets the index of the block that the text is of. */
  constructor(say: (kind: TextKind, text: string, index: number) => void) {
    this.#say = say;
  }

  /** Some events of the answer are missing here. */
  lose(): void {
    this.#isLost = true;
    for (const block of this.#blocks.values()) if (!block.isOver) block.isHeld = true;
  }

  started(index: number, kind: TextKind | "tool"): void {
    this.#blocks.set(index, { index, kind, said: "", isHeld: !this.#maySay(index), isOver: false });
  }

  delta(index: number, kind: TextKind, text: string): void {
    const block = this.#block(index, kind);
    if (!block.isHeld && !block.isOver) this.#sayOf(block, kind, text);
  }

  /** `content`: the block's complete text. */
  ended(index: number, kind: TextKind | "tool", content: string): void {
    const block = this.#block(index, kind);
    if (kind !== "tool") {
      if (block.isHeld && !this.#maySay(index)) return;
      this.#complete(block, kind, content);
    }
    block.isOver = true;
  }

  /** A block of the finished message: says what is missing of its text. */
  finished(index: number, part: unknown): void {
    const text = textIn(part);
    if (text !== undefined) this.#complete(this.#block(index, text.kind), text.kind, text.text);
  }

  #block(index: number, kind: TextKind | "tool"): Block {
    const known = this.#blocks.get(index);
    if (known !== undefined) return known;
    const block = { index, kind, said: "", isHeld: this.#isLost, isOver: false };
    this.#blocks.set(index, block);
    return block;
  }

  /** Whether all earlier blocks are complete, so that the order is kept. */
  #maySay(index: number): boolean {
    if (!this.#isLost) return true;
    for (let earlier = 0; earlier < index; earlier++) if (this.#blocks.get(earlier)?.isOver !== true) return false;
    return true;
  }

  /** An extension can replace the text of a finished message. What was said cannot be taken back, so it stays. */
  #complete(block: Block, kind: TextKind, content: string): void {
    if (block.kind === kind && content.length > block.said.length && content.startsWith(block.said)) {
      this.#sayOf(block, kind, content.slice(block.said.length));
    }
  }

  #sayOf(block: Block, kind: TextKind, text: string): void {
    if (text === "") return;
    block.said += text;
    this.#say(kind, text, block.index);
  }
}
