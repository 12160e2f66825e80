import { existsSync } from "node:fs";
import type { Delivery, DeliveryEffects } from "../../protocol/delivery.ts";
import type { SessionInfo } from "../../protocol/session.ts";
import { isEnd } from "./checker.ts";
import type { Claim, Death, PushFact, Sighting } from "./history.ts";

/** A push of the soak, with or without its answer. */
export interface Pushed extends Omit<PushFact, "answer"> {
  answer: PushFact["answer"];
  readonly sessionId: string;
  readonly params: Readonly<Record<string, unknown>>;
}

/** Everything reported to the soak's clients, with a way to wait for reports. */
export class Ledger {
  readonly pushes = new Map<string, Pushed>();
  readonly sightings: Sighting[] = [];
  readonly claims: Claim[] = [];
  readonly deaths: Death[] = [];
  readonly damages: number[] = [];
  readonly cuts: number[] = [];
  readonly #latest = new Map<string, Delivery>();
  readonly #sessions = new Map<string, SessionInfo>();
  /** Every reported file of a session's pi. */
  readonly #files = new Map<string, Set<string>>();
  readonly #forgotten = new Set<string>();
  readonly #looks = new Set<() => void>();

  saw(sighting: Sighting): void {
    const { delivery } = sighting;
    if (!this.pushes.has(delivery.deliveryId)) return;
    this.sightings.push(sighting);
    const before = this.#latest.get(delivery.deliveryId);
    if (before === undefined || delivery.history.length >= before.history.length) {
      this.#latest.set(delivery.deliveryId, delivery);
    }
    this.#changed();
  }

  sawSession(session: SessionInfo): void {
    this.#sessions.set(session.sessionId, session);
    this.#files.set(session.sessionId, (this.#files.get(session.sessionId) ?? new Set()).add(session.file));
    this.#changed();
  }

  claimed(from: string, effects: DeliveryEffects): void {
    for (const { deliveryId, state } of effects) this.claims.push({ deliveryId, state, from });
  }

  /** A process is about to be killed: the child of a session, or the daemon. */
  died(session?: { readonly name: string }): void {
    const unwritten = new Set<string>();
    for (const push of this.pushes.values()) {
      const file = this.#sessions.get(push.sessionId)?.file;
      if (file !== undefined && !existsSync(file)) unwritten.add(push.session);
    }
    this.deaths.push({
      at: Date.now(),
      ...(session === undefined ? {} : { session: session.name }),
      ...(unwritten.size === 0 ? {} : { unwritten: [...unwritten] }),
    });
  }

  /** The daemon has reported a damaged store: all records must be requested again. */
  damaged(): void {
    this.damages.push(Date.now());
    this.#latest.clear();
  }

  /** The ends of the store and of its log were damaged, and the daemon has reported nothing. */
  cut(): void {
    this.cuts.push(Date.now());
  }

  /** The daemon no longer knows the push, and has given the reason. */
  forgotten(id: string): void {
    this.#forgotten.add(id);
  }

  /** The record with the most steps that any client received. */
  latest(id: string): Delivery | undefined {
    return this.#latest.get(id);
  }

  session(sessionId: string): SessionInfo | undefined {
    return this.#sessions.get(sessionId);
  }

  files(sessionId: string): readonly string[] {
    return [...(this.#files.get(sessionId) ?? [])];
  }

  /** The unfinished pushes of a session. */
  open(sessionId: string): readonly Pushed[] {
    return [...this.pushes.values()].filter((push) => {
      const latest = this.#latest.get(push.id);
      if (this.#forgotten.has(push.id)) return false;
      return push.sessionId === sessionId && push.answer !== "refused" && (latest === undefined || !isEnd(latest));
    });
  }

  /** Resolves with true as soon as `isSo` returns true, with false after `timeoutMs`. */
  async until(isSo: () => boolean, timeoutMs: number): Promise<boolean> {
    if (isSo()) return true;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const look = (): void => {
      if (isSo()) resolve(true);
    };
    this.#looks.add(look);
    const timer = setTimeout(() => resolve(false), timeoutMs);
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      this.#looks.delete(look);
    }
  }

  /** Starts again with other sessions. */
  clear(): void {
    this.pushes.clear();
    this.sightings.length = 0;
    this.claims.length = 0;
    this.deaths.length = 0;
    this.damages.length = 0;
    this.cuts.length = 0;
    this.#latest.clear();
    this.#forgotten.clear();
    this.#sessions.clear();
    this.#files.clear();
  }

  #changed(): void {
    for (const look of this.#looks) look();
  }
}
