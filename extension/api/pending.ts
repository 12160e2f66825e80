import { randomUUID } from "node:crypto";
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import type { PendingItem } from "../../protocol/pending.ts";
import type { Engine } from "../engine-port.ts";
import { messageOf } from "../pi-types.ts";
import { openEngine } from "./open.ts";

/** How long a failure is shown. */
const failureShownMs = 5_000;

/**
 * An entry of the pending display: pi's status line and a widget above the editor, which RPC clients get as well, and
 * the daemon's notification `pending/updated`. For display only; its methods never throw.
 */
export class PendingEntry {
  readonly #engine: Engine;
  #item: PendingItem;
  #hasEnded = false;

  /** Use {@link showPending}. */
  constructor(engine: Engine, item: PendingItem) {
    this.#engine = engine;
    this.#item = item;
    this.#change({});
  }

  get state(): PendingItem["state"] | "ended" {
    return this.#hasEnded ? "ended" : this.#item.state;
  }

  label(label: string): void {
    this.#change({ label });
  }

  /**
   * The work is done and its result is on its way: the entry ends when `delivered` resolves. When it rejects, the entry
   * shows why for five seconds, and ends.
   */
  until(delivered: Promise<unknown>): void {
    this.#change({ state: "delivering" });
    delivered.then(
      () => this.end(),
      (error: unknown) => this.fail(messageOf(error)),
    );
  }

  /** Shows why there will be no result, for five seconds, and ends the entry. */
  fail(error: string): void {
    this.#change({ state: "failed", error });
    setTimeout(() => this.end(), failureShownMs).unref();
  }

  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#safely(() => this.#engine.pending.hide(this.#item.id));
  }

  #change(change: Partial<PendingItem>): void {
    if (this.#hasEnded) return;
    this.#item = { ...this.#item, ...change };
    this.#safely(() => this.#engine.pending.show(this.#item));
  }

  #safely(act: () => void): void {
    try {
      act();
    } catch {
      // The display is gone.
    }
  }
}

/** Shows a new entry. Throws like `deliver` when delivery is not open in this pi. */
export function showPending(pi: ExtensionAPI, label: string): PendingEntry {
  return new PendingEntry(openEngine(pi), { id: randomUUID(), label, state: "running", startedAt: Date.now() });
}
