import { emitKeypressEvents } from "node:readline";
import type { ReadStream } from "node:tty";
import type { Key } from "./line-editor.ts";

/** The part of a terminal that the keyboard uses: `process.stdin`, or that of a test. */
export type KeySource = Pick<ReadStream, "on" | "off" | "setRawMode" | "resume" | "pause">;

export interface KeyboardOptions {
  readonly source: KeySource;
  /** Writes control sequences to the terminal. */
  readonly write: (text: string) => unknown;
  readonly onKey: (text: string | undefined, key: Key) => void;
}

/** The keys of a terminal as they are pressed; pasted text is recognised. `close` restores the terminal. */
export class Keyboard {
  readonly #options: KeyboardOptions;
  readonly #onKey = (text: string | undefined, key: Key | undefined): void => this.#options.onKey(text, key ?? {});
  readonly #onExit = (): void => this.close();
  #isClosed = false;

  constructor(options: KeyboardOptions) {
    this.#options = options;
    const { source, write } = options;
    emitKeypressEvents(source as ReadStream);
    source.on("keypress", this.#onKey);
    source.setRawMode(true);
    source.resume();
    write("\u001b[?2004h");
    // Also when this process is ended early.
    process.once("exit", this.#onExit);
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    process.removeListener("exit", this.#onExit);
    const { source, write } = this.#options;
    write("\u001b[?2004l");
    source.off("keypress", this.#onKey);
    source.setRawMode(false);
    source.pause();
  }
}
