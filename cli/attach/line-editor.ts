import { printable } from "../text.ts";
import { textWidth, widthOf } from "./width.ts";

/** A key as `readline.emitKeypressEvents` names it. */
export interface Key {
  readonly name?: string | undefined;
  readonly ctrl?: boolean;
  readonly meta?: boolean;
}

/** The action of a key; undefined: the line may have changed, and nothing else happens. */
export type KeyAction =
  | { readonly kind: "line"; readonly text: string }
  | { readonly kind: "interrupt" }
  | { readonly kind: "end" };

/** Characters that would leave the row. */
const shownAs: Readonly<Record<string, string>> = { "\n": "⏎", "\t": " " };
const maxHistory = 100;
/** A longer line is not accepted. */
const maxCharacters = 100_000;

/** The input line. It may contain line breaks: by Alt-Enter, Ctrl-J, and by pasting. */
export class LineEditor {
  label = "> ";
  #characters: string[] = [];
  #cursor = 0;
  #history: string[] = [];
  /** The index of the shown history entry; the history's length means the current line. */
  #place = 0;
  #draft: readonly string[] = [];
  #isPasting = false;

  get text(): string {
    return this.#characters.join("");
  }

  /** Replaces the line with a text, with the cursor at its end, as if it were pasted. */
  set(text: string): void {
    this.#characters = typeable(text);
    this.#cursor = this.#characters.length;
  }

  press(text: string | undefined, key: Key): KeyAction | undefined {
    const { name, ctrl = false, meta = false } = key;
    if (name === "paste-start" || name === "paste-end") {
      this.#isPasting = name === "paste-start";
      return undefined;
    }
    if (this.#isPasting) {
      this.#insert(name === "return" ? "\n" : (text ?? ""));
      return undefined;
    }
    if (ctrl && name === "c") return { kind: "interrupt" };
    if (ctrl && name === "d" && this.#characters.length === 0) return { kind: "end" };
    // Enter is "return", Ctrl-J "enter".
    if (name === "return" && !meta) return this.#submit();
    if (name === "return" || name === "enter") this.#insert("\n");
    else if (!this.#move(name, ctrl) && !this.#erase(name, ctrl)) {
      if (!ctrl && !meta && text !== undefined && !text.startsWith("\u001b")) this.#insert(text);
    }
    return undefined;
  }

  /** The line in a row of at most `width` columns; only a part of a longer line. */
  view(width: number): { readonly label: string; readonly text: string; readonly column: number } {
    const label = textWidth(this.label) <= width / 2 ? this.label : "> ";
    const room = Math.max(4, width - textWidth(label));
    const shown = this.#characters.map((character) => shownAs[character] ?? character);
    let from = 0;
    let before = textWidth(shown.slice(0, this.#cursor).join(""));
    // The cursor needs a column.
    while (before >= room) {
      before -= widthOf(shown[from] ?? "");
      from += 1;
    }
    let text = "";
    let taken = 0;
    for (const character of shown.slice(from)) {
      taken += widthOf(character);
      if (taken > room) break;
      text += character;
    }
    return { label, text, column: textWidth(label) + before };
  }

  #submit(): KeyAction {
    const { text } = this;
    if (text.trim() !== "" && this.#history.at(-1) !== text)
      this.#history = [...this.#history, text].slice(-maxHistory);
    this.#place = this.#history.length;
    this.set("");
    return { kind: "line", text };
  }

  #insert(text: string): void {
    const added = typeable(text);
    if (this.#characters.length + added.length > maxCharacters) return;
    this.#characters.splice(this.#cursor, 0, ...added);
    this.#cursor += added.length;
  }

  /** Moves the cursor if the key is a movement; returns whether it is. */
  #move(name: string | undefined, ctrl: boolean): boolean {
    const end = this.#characters.length;
    if (name === "left" || (ctrl && name === "b"))
      this.#cursor = ctrl && name === "left" ? this.#wordStart() : Math.max(0, this.#cursor - 1);
    else if (name === "right" || (ctrl && name === "f")) this.#cursor = Math.min(end, this.#cursor + 1);
    else if (name === "home" || (ctrl && name === "a")) this.#cursor = 0;
    else if (name === "end" || (ctrl && name === "e")) this.#cursor = end;
    else if (name === "up") this.#recall(this.#place - 1);
    else if (name === "down") this.#recall(this.#place + 1);
    else return false;
    return true;
  }

  #erase(name: string | undefined, ctrl: boolean): boolean {
    const at = this.#cursor;
    if (name === "backspace") this.#cut(Math.max(0, at - 1), at);
    else if (name === "delete" || (ctrl && name === "d")) this.#cut(at, at + 1);
    else if (ctrl && name === "u") this.#cut(0, at);
    else if (ctrl && name === "k") this.#cut(at, this.#characters.length);
    else if (ctrl && name === "w") this.#cut(this.#wordStart(), at);
    else return false;
    return true;
  }

  #cut(from: number, to: number): void {
    this.#characters.splice(from, to - from);
    this.#cursor = from;
  }

  #wordStart(): number {
    let at = this.#cursor;
    while (at > 0 && this.#characters[at - 1] === " ") at -= 1;
    while (at > 0 && this.#characters[at - 1] !== " ") at -= 1;
    return at;
  }

  #recall(place: number): void {
    if (place < 0 || place > this.#history.length) return;
    if (this.#place === this.#history.length) this.#draft = this.#characters;
    this.#place = place;
    this.set(this.#history[place] ?? this.#draft.join(""));
  }
}

/** Removes the characters that could move the terminal's cursor or reverse the line. */
function typeable(text: string): string[] {
  const lines = text.replaceAll(/\r\n|[\r\u2028\u2029]/g, "\n");
  return [...printable(lines).replaceAll(/[\u061c\u200e\u200f]/g, "")];
}
