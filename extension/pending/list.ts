import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { PendingItem } from "../../protocol/pending.ts";
import type { OutwardBody } from "../link/outbound.ts";

export interface PendingListOptions {
  readonly send: (frame: OutwardBody) => void;
  readonly context: () => ExtensionContext | undefined;
}

/** Key of the status text and the widget. */
const uiKey = "pi-rpcd.pending";
const maxItems = 100;
const maxLines = 8;
const maxLabelLength = 200;
const maxErrorLength = 1_024;

/** Displays pending items: as a status text and a widget, which RPC clients get too, and as a frame. */
export class PendingList {
  readonly #options: PendingListOptions;
  readonly #items = new Map<string, PendingItem>();

  constructor(options: PendingListOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#items.size;
  }

  /** Adds or updates an item. More than 100 items are not shown. */
  show({ id, label, error, ...item }: PendingItem): void {
    if (!this.#items.has(id) && this.#items.size >= maxItems) return;
    this.#items.set(id, {
      ...item,
      id,
      label: line(label, maxLabelLength),
      ...(error === undefined ? {} : { error: line(error, maxErrorLength) }),
    });
    this.#publish();
  }

  hide(id: string): void {
    if (this.#items.delete(id)) this.#publish();
  }

  clear(): void {
    if (this.#items.size === 0) return;
    this.#items.clear();
    this.#publish();
  }

  /** Display only: nothing is lost without a display or with the context of a previous session. */
  #publish(): void {
    const items = [...this.#items.values()];
    this.#options.send({ kind: "pending", pending: items });
    try {
      const ui = this.#options.context()?.ui;
      ui?.setStatus(uiKey, items.length === 0 ? undefined : `${items.length} in the background`);
      ui?.setWidget(uiKey, items.length === 0 ? undefined : linesOf(items));
    } catch {
      // The session has just been replaced.
    }
  }
}

function linesOf(items: readonly PendingItem[]): string[] {
  const lines = items.slice(0, maxLines).map(({ label, state, error }) => `${signs[state]} ${label}${why(error)}`);
  return items.length > maxLines ? [...lines, `and ${items.length - maxLines} more`] : lines;
}

const signs: Readonly<Record<PendingItem["state"], string>> = { running: "…", delivering: "→", failed: "✗" };

function why(error: string | undefined): string {
  return error === undefined ? "" : `: ${error}`;
}

/** Returns a single line without control characters. */
function line(text: string, maxLength: number): string {
  return text
    .replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ")
    .slice(0, maxLength)
    .toWellFormed();
}
