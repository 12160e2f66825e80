import { highestLevel, type ProviderLevel } from "../../protocol/provider-level.ts";
import { type Frame, unnumberedFrame } from "../frames/frame.ts";

/** Whoever gets a session's frames. */
export interface Subscriber {
  readonly id: string;
  readonly gone: AbortSignal;
  /** Queues a frame. Never blocks, never throws. */
  send(frame: Frame): void;
}

interface Order {
  readonly subscriber: Subscriber;
  readonly onGone: () => void;
  /** What it wants to hear of the requests to the provider. */
  readonly provider: ProviderLevel;
}

/** The standing orders for one session's frames. */
export class Subscriptions {
  readonly #orders = new Map<string, Order>();
  #level: ProviderLevel = "off";
  #onLevel: () => void = () => {};

  /** What the most curious of them wants. */
  get providerLevel(): ProviderLevel {
    return this.#level;
  }

  /** Called behind each change of {@link providerLevel}. */
  onProviderLevel(onLevel: () => void): void {
    this.#onLevel = onLevel;
  }

  /** Adds a subscriber until it goes. Adding it again changes its level, if one is given, and nothing else. */
  add(subscriber: Subscriber, provider?: ProviderLevel): void {
    if (subscriber.gone.aborted) return;
    const known = this.#orders.get(subscriber.id);
    const onGone = known?.onGone ?? ((): void => void this.remove(subscriber.id));
    this.#orders.set(subscriber.id, {
      subscriber: known?.subscriber ?? subscriber,
      onGone,
      provider: provider ?? known?.provider ?? "off",
    });
    if (known === undefined) subscriber.gone.addEventListener("abort", onGone, { once: true });
    this.#noteLevel();
  }

  /** Whether there was one to remove. */
  remove(subscriberId: string): boolean {
    const order = this.#orders.get(subscriberId);
    order?.subscriber.gone.removeEventListener("abort", order.onGone);
    const wasThere = this.#orders.delete(subscriberId);
    this.#noteLevel();
    return wasThere;
  }

  publish(frame: Frame): void {
    for (const { subscriber } of this.#orders.values()) subscriber.send(frame);
  }

  /**
   * Sends each subscriber that wants to hear of requests the frame of its level; `only` names those that may get it. Gives
   * the ids of those that did.
   */
  tell(frameOf: (level: ProviderLevel) => Buffer, only?: ReadonlySet<string>): Set<string> {
    const told = new Set<string>();
    const frames = new Map<ProviderLevel, Frame>();
    for (const [id, { subscriber, provider }] of this.#orders) {
      if (provider === "off" || only?.has(id) === false) continue;
      const frame = frames.get(provider) ?? unnumberedFrame(frameOf(provider));
      frames.set(provider, frame);
      subscriber.send(frame);
      told.add(id);
    }
    return told;
  }

  #noteLevel(): void {
    const level = highestLevel(Array.from(this.#orders.values(), ({ provider }) => provider));
    if (level === this.#level) return;
    this.#level = level;
    this.#onLevel();
  }
}
