import type { Component, TuiMainScreen } from "@earendil-works/pi-tui";
import type { Block } from "./blocks.ts";

/** Rows of the conversation that a change of the window draws again; older ones are only in the terminal's scrollback. */
const maxRows = 6_000;
const keptRows = 4_000;

/** The blocks of the conversation, one below the other. */
export class Transcript implements Component {
  #blocks: Block[] = [];
  /** The rows of each block in the last frame. */
  #heights: number[] = [];
  /** The last block that was forgotten. */
  #forgotten: Block | undefined;

  add(block: Block): void {
    this.#blocks.push(block);
  }

  remove(blocks: readonly Block[]): void {
    this.#blocks = this.#blocks.filter((block) => !blocks.includes(block));
    this.#heights = [];
  }

  render(width: number): string[] {
    const rows: string[] = [];
    this.#heights = this.#blocks.map((block, index) => {
      const before = rows.length;
      const own = block.render(width);
      const previous = index === 0 ? this.#forgotten : this.#blocks[index - 1];
      if (own.length > 0 && previous !== undefined && (block.isApart || previous.isApart)) rows.push("");
      for (const row of own) rows.push(row);
      return rows.length - before;
    });
    return rows;
  }

  invalidate(): void {
    for (const block of this.#blocks) block.invalidate();
  }

  /** Forgets the oldest blocks if there are many; what the terminal shows of them stays. */
  prune(tui: TuiMainScreen): void {
    const total = this.#heights.reduce((sum, height) => sum + height, 0);
    if (total <= maxRows) return;
    const { previousLines, previousViewportTop, ...state } = tui.captureRenderState();
    let rows = 0;
    let count = 0;
    for (const height of this.#heights) {
      if (total - rows <= keptRows || rows + height > previousViewportTop) break;
      rows += height;
      count += 1;
    }
    if (count === 0) return;
    this.#forgotten = this.#blocks[count - 1];
    this.#blocks = this.#blocks.slice(count);
    this.#heights = this.#heights.slice(count);
    tui.restoreRenderState({
      ...state,
      previousLines: previousLines.slice(rows),
      previousViewportTop: previousViewportTop - rows,
      cursorRow: state.cursorRow - rows,
      hardwareCursorRow: state.hardwareCursorRow - rows,
      maxLinesRendered: state.maxLinesRendered - rows,
    });
  }
}
