/** The subset of a terminal that `attach` uses. Any other input throws. */
export class SmallTerminal {
  readonly columns: number;
  readonly isTTY = true;
  readonly #rows: string[][] = [[]];
  #row = 0;
  #column = 0;

  constructor(columns: number) {
    this.columns = columns;
  }

  write(text: string): void {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: a terminal reads them
    for (const [part] of text.matchAll(/\u001b\[(\d*)([A-Za-z])|./gsu)) this.#take(part);
  }

  /** The screen's content, without blanks at the ends of rows. */
  get screen(): readonly string[] {
    const rows = this.#rows.map((row) =>
      Array.from(row, (character) => character ?? " ")
        .join("")
        .trimEnd(),
    );
    while (rows.at(-1) === "") rows.pop();
    return rows;
  }

  get cursor(): { readonly row: number; readonly column: number } {
    return { row: this.#row, column: this.#column };
  }

  #take(part: string): void {
    if (part === "\r") this.#column = 0;
    else if (part === "\n") [this.#row, this.#column] = [this.#row + 1, 0];
    else if (part === "\u001b[1A") this.#row = Math.max(0, this.#row - 1);
    else if (part.startsWith("\u001b[") && part.endsWith("C")) this.#column += Number(part.slice(2, -1));
    else if (part === "\u001b[J") {
      this.#rows.length = this.#row + 1;
      this.#rows[this.#row]?.splice(this.#column);
    } else if (part < " " || part.startsWith("\u001b")) throw new Error(`unexpected ${JSON.stringify(part)}`);
    else this.#print(part);
    while (this.#rows.length <= this.#row) this.#rows.push([]);
  }

  #print(character: string): void {
    if (this.#column >= this.columns) throw new Error("a row is longer than the terminal is wide");
    const row = this.#rows[this.#row] as string[];
    row[this.#column] = character;
    this.#column += 1;
  }
}
