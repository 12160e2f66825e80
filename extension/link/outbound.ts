import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { OutwardFrame } from "../../protocol/link.ts";
import { messageOf } from "../pi-types.ts";

type WithoutTime<F> = F extends unknown ? Omit<F, "at"> : never;

/** A frame before it is stamped with the moment of its sending. */
export type OutwardBody = WithoutTime<OutwardFrame>;

const maxErrorLength = 1_024;
const sameFaultAfterMs = 1_000;
const maxRememberedFaults = 100;

/**
 * Sends frames to the daemon as texts of the status key, in exact order with pi's own events. Never throws: a frame
 * that cannot be sent is lost, as is one before the first session has started.
 */
export class Outbound {
  readonly #statusKey: string;
  readonly #lastFaults = new Map<string, number>();
  #ctx: ExtensionContext | undefined;

  constructor(statusKey: string) {
    this.#statusKey = statusKey;
  }

  /** pi's contexts are useless after a replacement of the session: every `session_start` brings a new one. */
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

  /** Says that a part of the helper threw. A part that throws at every turn is reported once a second. */
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
