import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { PendingItem } from "../../protocol/pending.ts";
import type { OutwardBody } from "../link/outbound.ts";

export interface PendingListOptions {
  readonly send: (frame: OutwardBody) => void;
  readonly context: () => ExtensionContext | undefined;
}

/** The key of the status text and of the widget. */
const uiKey = "pi-rpcd.pending";
const maxItems = 100;
const maxLines = 8;
const maxLabelLength = 200;
const maxErrorLength = 1_024;

/** What is pending in this pi, for people: a status text and a widget, which RPC clients get too, and a frame. */
export class PendingList {
  readonly #options: PendingListOptions;
  readonly #items = new Map<string, PendingItem>();

  constructor(options: PendingListOptions) {
    this.#options = options;
  }

  /** Adds an item or changes the one with this id. Beyond a hundred, further ones are not shown. */
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

  /** Display only: where there is no display, or a context of a former session, nothing is lost. */
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

/** One line without what could steer a terminal. */
function line(text: string, maxLength: number): string {
  return text
    .replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ")
    .slice(0, maxLength)
    .toWellFormed();
}
