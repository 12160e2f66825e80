import { type Component, fuzzyFilter, matchesKey, type SelectItem, SelectList } from "@earendil-works/pi-tui";
import { oneLine } from "../text.ts";
import { safeRow, type Theme } from "./theme.ts";

export interface ChoiceOptions {
  readonly title: string;
  readonly items: readonly { readonly label: string; readonly description?: string }[];
  readonly theme: Theme;
  /** Keys that move to an item by its index. Default: the digits from 1 to 9. */
  readonly shortcuts?: Readonly<Record<string, number>>;
  /** The item that Enter chooses before another key is pressed. Default: 0. */
  readonly preselected?: number;
  /** Whether typed characters narrow the list. */
  readonly isFiltered?: boolean;
  /** Called with the index of the chosen item, or without one if the list was dismissed. */
  readonly onChoice: (index: number | undefined) => void;
}

const maxVisible = 10;
const digits: Readonly<Record<string, number>> = Object.fromEntries(
  Array.from("123456789", (digit, index) => [digit, index]),
);

/** A list from which the user chooses an item: with the arrow keys or a shortcut, and Enter. */
export class Choice implements Component {
  readonly #options: ChoiceOptions;
  readonly #items: readonly SelectItem[];
  #list: SelectList;
  #query = "";

  constructor(options: ChoiceOptions) {
    this.#options = options;
    this.#items = options.items.map(({ label, description }, index) => ({
      value: String(index),
      label: oneLine(label) || "(empty)",
      ...(description === undefined ? {} : { description: oneLine(description) }),
    }));
    this.#list = this.#listOf(this.#items);
    this.#list.setSelectedIndex(options.preselected ?? 0);
  }

  handleInput(data: string): void {
    const { shortcuts = digits, isFiltered = false } = this.#options;
    if (isFiltered && (matchesKey(data, "backspace") || /^[\p{L}\p{N}\p{P} ]$/u.test(data))) {
      this.#query = matchesKey(data, "backspace") ? this.#query.slice(0, -1) : this.#query + data;
      this.#list = this.#listOf(fuzzyFilter([...this.#items], this.#query, ({ label }) => label));
      return;
    }
    const index = isFiltered ? undefined : shortcuts[data.toLowerCase()];
    if (index === undefined) this.#list.handleInput(data);
    else if (index < this.#items.length) this.#list.setSelectedIndex(index);
  }

  render(width: number): string[] {
    const { title, theme, shortcuts, isFiltered = false } = this.#options;
    const letters = shortcuts === undefined ? "" : `${Object.keys(shortcuts).join(", ")} or `;
    const hint = isFiltered ? "type to search" : `${letters}arrow keys`;
    const keys = theme.paint("dim", ` (${hint}, Enter chooses, Esc dismisses)`);
    const head = `${theme.paint("magenta", oneLine(`? ${title}`))}${this.#query === "" ? keys : ` ${this.#query}`}`;
    return [head, ...this.#list.render(width)].map((row) => safeRow(row, width));
  }

  invalidate(): void {
    this.#list.invalidate();
  }

  #listOf(items: readonly SelectItem[]): SelectList {
    const { theme, onChoice } = this.#options;
    const list = new SelectList([...items], maxVisible, theme.select, {
      minPrimaryColumnWidth: 12,
      maxPrimaryColumnWidth: 60,
    });
    list.onSelect = ({ value }) => onChoice(Number(value));
    list.onCancel = () => onChoice(undefined);
    return list;
  }
}
