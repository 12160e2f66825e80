import type { OutwardFrame } from "../../protocol/link.ts";

/**
 * Delays the helper's frames from its `settled` until pi's own `agent_settled`, a moment later. Otherwise clients
 * could hear of a parked push while the session still refuses prompts. The order of frames does not change.
 */
export class SettlingGate {
  readonly #take: (frame: OutwardFrame) => void;
  #kept: OutwardFrame[] | undefined;

  constructor(take: (frame: OutwardFrame) => void) {
    this.#take = take;
  }

  pass(frame: OutwardFrame, isRunning: boolean): void {
    if (frame.kind === "settled" && isRunning) this.#kept ??= [];
    if (this.#kept === undefined) this.#take(frame);
    else this.#kept.push(frame);
  }

  /** pi has settled or ended. */
  open(): void {
    const kept = this.#kept ?? [];
    this.#kept = undefined;
    for (const frame of kept) this.#take(frame);
  }
}
