import type { Component, Terminal, TuiMainScreen } from "@earendil-works/pi-tui";
import type { Block } from "./blocks.ts";

/** Rows of the conversation that a change of the window draws again; older ones are only in the terminal's scrollback. */
const maxRows = 6_000;
const keptRows = 4_000;

/**
 * The blocks of the conversation, one below the other. Rows that have left the window stay as they are: to change them,
 * the library would clear the scrollback and write everything again.
 */
export class Transcript implements Component {
  readonly #tui: TuiMainScreen;
  readonly #terminal: Pick<Terminal, "rows">;
  #blocks: Block[] = [];
  /** The rows of each block in the last frame, with the empty row before it. */
  #heights: number[] = [];
  /** The last block that was forgotten. */
  #forgotten: Block | undefined;

  constructor(tui: TuiMainScreen, terminal: Pick<Terminal, "rows">) {
    this.#tui = tui;
    this.#terminal = terminal;
  }

  add(block: Block): void {
    this.#blocks.push(block);
  }

  /** Removes blocks, except those that begin above the window. */
  remove(blocks: readonly Block[]): void {
    const top = this.#tui.captureRenderState().previousViewportTop;
    let start = 0;
    const kept = this.#blocks.map((block, index) => {
      const isKept = start < top || !blocks.includes(block);
      start += this.#heights[index] ?? 0;
      return isKept;
    });
    this.#heights = this.#heights.filter((_, index) => kept[index]);
    this.#blocks = this.#blocks.filter((_, index) => kept[index]);
  }

  /** Whether all rows of a block are above the window. */
  isAbove(block: Block): boolean {
    const index = this.#blocks.indexOf(block);
    if (index === -1) return true;
    const end = this.#heights.slice(0, index + 1).reduce((sum, height) => sum + height, 0);
    return this.#heights[index] !== undefined && end <= this.#tui.captureRenderState().previousViewportTop;
  }

  render(width: number): string[] {
    const { previousWidth, previousHeight, previousViewportTop } = this.#tui.captureRenderState();
    // After a change of its size the library writes everything again.
    const isSameSize = previousWidth === width && previousHeight === this.#terminal.rows;
    if (!isSameSize) this.invalidate();
    const top = isSameSize ? previousViewportTop : 0;
    const rows: string[] = [];
    this.#heights = this.#blocks.map((block, index) => {
      const start = rows.length;
      const height = this.#heights[index] ?? 0;
      const previous = index === 0 ? this.#forgotten : this.#blocks[index - 1];
      const gap = previous !== undefined && (block.isApart || previous.isApart) ? 1 : 0;
      const isAbove = start < top && start + height <= top;
      const own = block.render(width, isAbove ? Number.POSITIVE_INFINITY : Math.max(0, top - start - gap));
      if (own.length > 0 && gap > 0) rows.push("");
      for (const row of own) rows.push(row);
      return rows.length - start;
    });
    return rows;
  }

  invalidate(): void {
    for (const block of this.#blocks) block.invalidate();
  }

  /** Forgets the oldest blocks if there are many; what the terminal shows of them stays. */
  prune(): void {
    const total = this.#heights.reduce((sum, height) => sum + height, 0);
    if (total <= maxRows) return;
    const { previousLines, previousViewportTop, ...state } = this.#tui.captureRenderState();
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
    this.#tui.restoreRenderState({
      ...state,
      previousLines: previousLines.slice(rows),
      previousViewportTop: previousViewportTop - rows,
      cursorRow: state.cursorRow - rows,
      hardwareCursorRow: state.hardwareCursorRow - rows,
      maxLinesRendered: state.maxLinesRendered - rows,
    });
  }
}
