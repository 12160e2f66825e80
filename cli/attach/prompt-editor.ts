import { Editor, matchesKey, type TUI } from "@earendil-works/pi-tui";
import { safeRow, type Theme } from "./theme.ts";

/** The text that a user writes. Its rows cannot control the terminal, whatever was pasted. */
export class PromptEditor extends Editor {
  /** Called with the text as it was written, of which the library's `onSubmit` removes the blanks at both ends. */
  onText: (text: string) => void = () => {};
  #written = "";

  constructor(tui: TUI, theme: Theme) {
    super(tui, theme.editor);
    this.onSubmit = (trimmed) => this.onText(this.#written.trim() === trimmed ? this.#written : trimmed);
  }

  /** Takes the whole text out of the editor. */
  take(): string {
    const text = this.getExpandedText();
    this.setText("");
    return text;
  }

  override handleInput(data: string): void {
    if (matchesKey(data, "enter")) this.#written = this.getExpandedText();
    super.handleInput(data);
  }

  override render(width: number): string[] {
    return super.render(width).map((row) => safeRow(row, width));
  }
}
