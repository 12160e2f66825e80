import { type Terminal, visibleWidth } from "@earendil-works/pi-tui";

const graphemes = new Intl.Segmenter();
const token = new RegExp(
  [
    String.raw`\u001b\[(?<params>[?0-9;]*)(?<final>[A-Za-z])`,
    String.raw`(?<reset>\u001b\]8;;\u0007)`,
    String.raw`(?<control>[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069])`,
    String.raw`(?<text>[^\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]+)`,
  ].join("|"),
  "gu",
);

/**
 * The subset of a terminal that a screen uses, with its scrollback. It throws if anything else arrives, such as another
 * control sequence or a row that is too wide.
 */
export class MemoryTerminal implements Terminal {
  columns: number;
  rows: number;
  readonly kittyProtocolActive = false;
  /** Everything that was written. */
  written = "";
  #lines: string[][] = [[]];
  #row = 0;
  #column = 0;
  #onInput: (data: string) => void = () => {};
  #onResize: () => void = () => {};

  constructor(columns = 80, rows = 24) {
    this.columns = columns;
    this.rows = rows;
  }

  /** All rows, from the beginning of the scrollback, without blanks at their ends. */
  get text(): string {
    return this.#lines
      .map((cells) =>
        Array.from(cells, (cell) => cell ?? " ")
          .join("")
          .trimEnd(),
      )
      .join("\n")
      .trimEnd();
  }

  /** Keys or a paste, as one sequence. */
  press(data: string): void {
    this.#onInput(data);
  }

  type(text: string): void {
    for (const { segment } of graphemes.segment(text)) this.press(segment);
  }

  paste(text: string): void {
    this.press(`\u001b[200~${text.replaceAll("\n", "\r")}\u001b[201~`);
  }

  resize(columns: number, rows = this.rows): void {
    [this.columns, this.rows] = [columns, rows];
    this.#onResize();
  }

  start(onInput: (data: string) => void, onResize: () => void): void {
    this.#onInput = onInput;
    this.#onResize = onResize;
  }

  stop(): void {
    this.#onInput = () => {};
  }

  write(data: string): void {
    this.written += data;
    for (const { groups, 0: all } of data.matchAll(token)) {
      const { params = "", final, control, text } = groups ?? {};
      if (text !== undefined) this.#print(text);
      else if (control !== undefined) this.#control(control);
      else if (final !== undefined) this.#sequence(params, final, all);
    }
  }

  async drainInput(): Promise<void> {}
  moveBy(): void {}
  hideCursor(): void {}
  showCursor(): void {}
  clearLine(): void {}
  clearFromCursor(): void {}
  clearScreen(): void {}
  setTitle(): void {
    throw new Error("the title was set");
  }
  setProgress(): void {}

  get #top(): number {
    return Math.max(0, this.#lines.length - this.rows);
  }

  #control(control: string): void {
    if (control === "\r") this.#column = 0;
    else if (control === "\n") {
      this.#row += 1;
      while (this.#lines.length <= this.#row) this.#lines.push([]);
    } else throw new Error(`the control character ${JSON.stringify(control)}`);
  }

  #sequence(params: string, final: string, all: string): void {
    const number = Number(params || "1");
    if (final === "m" || all.startsWith("\u001b[?2026")) return;
    if (final === "A") this.#row = Math.max(this.#top, this.#row - number);
    else if (final === "B") this.#row = Math.min(this.#top + this.rows - 1, this.#row + number);
    else if (final === "G") this.#column = number - 1;
    else if (all === "\u001b[2K") this.#lines[this.#row] = [];
    else if (all === "\u001b[H") [this.#row, this.#column] = [this.#top, 0];
    // As tmux does: the screen goes to the scrollback, and 3J clears that.
    else if (all === "\u001b[2J") this.#lines.push(...Array.from({ length: this.rows }, () => []));
    else if (all === "\u001b[3J") {
      this.#lines = [[]];
      this.#row = 0;
    } else throw new Error(`the control sequence ${JSON.stringify(all)}`);
    while (this.#lines.length <= this.#row) this.#lines.push([]);
  }

  #print(text: string): void {
    const cells = this.#lines[this.#row] as string[];
    for (const { segment } of graphemes.segment(text)) {
      const width = visibleWidth(segment);
      if (this.#column + width > this.columns) throw new Error(`a row is wider than ${this.columns}: ${text}`);
      cells[this.#column] = segment;
      for (let more = 1; more < width; more += 1) cells[this.#column + more] = "";
      this.#column += width;
    }
  }
}
