import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { OutwardFrame } from "../../protocol/link-outward.ts";
import { messageOf } from "../pi-types.ts";

type WithoutTime<F> = F extends unknown ? Omit<F, "at"> : never;

/** A frame without its time stamp. */
export type OutwardBody = WithoutTime<OutwardFrame>;

const maxErrorLength = 1_024;
const sameFaultAfterMs = 1_000;
const maxRememberedFaults = 100;

/**
 * Sends frames to the daemon as texts of the status key, in order with pi's own events. Never throws: a frame is lost
 * if it cannot be sent, or before the first session has started.
 */
export class Outbound {
  readonly #statusKey: string;
  readonly #lastFaults = new Map<string, number>();
  #ctx: ExtensionContext | undefined;

  constructor(statusKey: string) {
    this.#statusKey = statusKey;
  }

  /** Sets the context of the current session. Each `session_start` provides a new one and invalidates the previous. */
  bind(ctx: ExtensionContext): void {
    this.#ctx = ctx;
  }

  send(body: OutwardBody): void {
    try {
      this.#ctx?.ui.setStatus(this.#statusKey, JSON.stringify({ ...body, at: Date.now() }));
    } catch {
      // The session has just been replaced. The daemon asks again after the next hello.
    }
  }

  /** Reports an error of a part of the helper. The same error is reported at most once a second. */
  fault(where: string, thrown: unknown, part?: string): void {
    const error = messageOf(thrown).slice(0, maxErrorLength);
    const now = Date.now();
    const fault = `${where}: ${error}`;
    if (now - (this.#lastFaults.get(fault) ?? 0) < sameFaultAfterMs) return;
    if (this.#lastFaults.size >= maxRememberedFaults) this.#lastFaults.clear();
    this.#lastFaults.set(fault, now);
    this.send({ kind: "fault", where, error, ...(part === undefined ? {} : { part }) });
  }
}
