import { type AutocompleteProvider, Editor, matchesKey, type TUI } from "@earendil-works/pi-tui";
import { safeRow, type Theme } from "./theme.ts";

const escapeKey = "\u001b";

/** The text that a user writes. Its rows cannot control the terminal, whatever was pasted. */
export class PromptEditor extends Editor {
  /** Called with the text as written; the library's `onSubmit` gets it without the spaces at both ends. */
  onText: (text: string) => void = () => {};
  #written = "";
  /** The text for which the newest completions were found. */
  #completed: string | undefined;

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

  override setAutocompleteProvider(provider: AutocompleteProvider): void {
    super.setAutocompleteProvider({
      ...provider,
      getSuggestions: async (lines, line, column, options) => {
        const text = this.#textAtCursor();
        const suggestions = await provider.getSuggestions(lines, line, column, options);
        if (suggestions !== null) this.#completed = text;
        return suggestions;
      },
    });
  }

  override handleInput(data: string): void {
    const isEnter = matchesKey(data, "enter");
    // The library keeps the list of an earlier text, until it has the next one or after Ctrl-U for example.
    const isOutdated = this.isShowingAutocomplete() && this.#completed !== this.#textAtCursor();
    if (isOutdated && (isEnter || matchesKey(data, "tab"))) super.handleInput(escapeKey);
    if (isEnter && this.isShowingAutocomplete() && this.#isChangedByCompletion()) return;
    if (isEnter) this.#written = this.getExpandedText();
    super.handleInput(data);
    if (this.isShowingAutocomplete() && this.getText() === "") super.handleInput(escapeKey);
  }

  override render(width: number): string[] {
    return super.render(width).map((row) => safeRow(row, width));
  }

  /** Accepts the completion. The library's Enter also sends it, although the user has not seen it as text. */
  #isChangedByCompletion(): boolean {
    const before = this.getText();
    super.handleInput("\t");
    return this.getText().trimEnd() !== before.trimEnd();
  }

  #textAtCursor(): string {
    const { line, col } = this.getCursor();
    return `${line}:${col}:${this.getText()}`;
  }
}
