import type { Gap } from "../../protocol/event.ts";
import { highestLevel, type ProviderLevel } from "../../protocol/provider-level.ts";
import { type Frame, unnumberedFrame } from "../frames/frame.ts";
import type { AnswerPlace } from "./answer-order.ts";
import { type ReadableLog, type ReadOptions, type Subscriber, Subscription } from "./subscription.ts";

/** What a subscriber requests. An absent field stays unchanged, or is off for a new subscription. */
export interface Orders extends ReadOptions {
  /** Level of detail for provider requests. */
  readonly provider?: ProviderLevel | undefined;
  /** Whether it can answer dialogs. */
  readonly dialogs?: boolean | undefined;
  /** Whether pi is to wait before the work of its editing tools. */
  readonly holdEdits?: boolean | undefined;
  /** Whether it gets the texts of files that the tool `write` replaces. */
  readonly formerText?: boolean | undefined;
  /** Whether it gets what pi writes to stderr. */
  readonly stderr?: boolean | undefined;
  /** Whether answers to its calls come in the order of the notifications. Cannot be turned off again. */
  readonly inOrder?: boolean | undefined;
  /** The program that shows the session. */
  readonly viewer?: string | undefined;
  /** The client of the subscriber. */
  readonly clientId?: string | undefined;
  /** Called once when a new subscription has ended, or its session is closed. */
  readonly onEnd?: (() => void) | undefined;
}

interface Order {
  readonly subscription: Subscription;
  readonly onGone: () => void;
  readonly provider: ProviderLevel;
  readonly dialogs: boolean;
  readonly holdEdits: boolean;
  readonly formerText: boolean;
  readonly stderr: boolean;
  readonly viewer: string | undefined;
  readonly clientId: string | undefined;
  readonly onEnd: (() => void) | undefined;
}

/** The subscriptions to one session's frames. */
export class Subscriptions {
  readonly #sessionId: string;
  readonly #log: ReadableLog;
  readonly #orders = new Map<string, Order>();
  #level: ProviderLevel = "off";
  #holdsEdits = false;
  #wantsFormerText = false;
  #followsStderr = false;
  #onStderr: () => void = () => {};
  #onLevel: () => void = () => {};
  #answerers = 0;
  #onAnswerers: () => void = () => {};
  #onLeft: (wasAsked: boolean) => void = () => {};
  readonly #onFault: (error: unknown, subscriberId: string) => void;

  /** `onFault`: a subscriber threw and was removed, because its stream would have a gap. */
  constructor(sessionId: string, log: ReadableLog, onFault: (error: unknown, subscriberId: string) => void = () => {}) {
    this.#sessionId = sessionId;
    this.#log = log;
    this.#onFault = onFault;
  }

  has(subscriberId: string): boolean {
    return this.#orders.has(subscriberId);
  }

  /** Whether anyone else follows the session, apart from subscribers of this viewer. */
  hasOthers(subscriberId: string | undefined, viewer?: string): boolean {
    for (const [id, order] of this.#orders)
      if (id !== subscriberId && (viewer === undefined || order.viewer !== viewer)) return true;
    return false;
  }

  /** The highest level that any subscriber requests. */
  get providerLevel(): ProviderLevel {
    return this.#level;
  }

  /** Whether any subscriber wants pi to wait before the work of its editing tools. */
  get holdsEdits(): boolean {
    return this.#holdsEdits;
  }

  /** Whether any subscriber gets the texts of files that the tool `write` replaces. */
  get wantsFormerText(): boolean {
    return this.#wantsFormerText;
  }

  /** Calls `onLevel` after each change of {@link providerLevel}, {@link holdsEdits} and {@link wantsFormerText}. */
  onProviderLevel(onLevel: () => void): void {
    this.#onLevel = onLevel;
  }

  /** Whether any subscriber gets what pi writes to stderr. */
  get followsStderr(): boolean {
    return this.#followsStderr;
  }

  /** Calls `onStderr` after each change of {@link followsStderr}. */
  onStderr(onStderr: () => void): void {
    this.#onStderr = onStderr;
  }

  /** Number of subscribers that can answer dialogs. */
  get answerers(): number {
    return this.#answerers;
  }

  /** Calls `onAnswerers` after each change of {@link answerers}. */
  onAnswerers(onAnswerers: () => void): void {
    this.#onAnswerers = onAnswerers;
  }

  /** Calls `onLeft` when the last subscriber has left. `wasAsked`: it unsubscribed; otherwise its connection ended. */
  onLeft(onLeft: (wasAsked: boolean) => void): void {
    this.#onLeft = onLeft;
  }

  canAnswer(subscriberId: string): boolean {
    return this.#orders.get(subscriberId)?.dialogs === true;
  }

  /** Number of subscribers that can answer dialogs, without some of them. */
  answerersWithout(subscriberIds: ReadonlySet<string>): number {
    return Array.from(this.#orders).filter(([id, { dialogs }]) => dialogs && !subscriberIds.has(id)).length;
  }

  /** Whether this client has a subscription that can answer dialogs, other than some subscribers. */
  isAnswerer(clientId: string, without?: ReadonlySet<string>): boolean {
    for (const [id, order] of this.#orders)
      if (order.dialogs && order.clientId === clientId && without?.has(id) !== true) return true;
    return false;
  }

  /** Whether answers to this subscriber come in the order of the notifications. */
  ordersAnswers(subscriberId: string): boolean {
    return this.#orders.get(subscriberId)?.subscription.ordersAnswers === true;
  }

  /** The place of an answer to this subscriber. Undefined: its answers have no order. */
  place(subscriberId: string): AnswerPlace | undefined {
    return this.#orders.get(subscriberId)?.subscription.place();
  }

  /** Assigns a subscriber to its client. Returns whether the subscriber exists. */
  named(subscriberId: string, clientId: string): boolean {
    const order = this.#orders.get(subscriberId);
    if (order === undefined) return false;
    this.#orders.set(subscriberId, { ...order, clientId });
    return true;
  }

  /** Adds a subscriber. Adding it again changes the given fields only. */
  add(subscriber: Subscriber, orders: Orders = {}): Subscription | undefined {
    if (subscriber.gone.aborted) return undefined;
    const known = this.#orders.get(subscriber.id);
    const onGone = known?.onGone ?? ((): void => void this.remove(subscriber.id));
    const subscription = known?.subscription ?? this.#subscription(subscriber, orders);
    const { provider = known?.provider ?? "off", dialogs = known?.dialogs ?? false } = orders;
    const { clientId = known?.clientId, holdEdits = known?.holdEdits ?? false } = orders;
    const { formerText = known?.formerText ?? false } = orders;
    const { stderr = known?.stderr ?? false, viewer = known?.viewer } = orders;
    const { onEnd } = known ?? orders;
    this.#orders.set(subscriber.id, {
      subscription,
      onGone,
      provider,
      dialogs,
      holdEdits,
      formerText,
      stderr,
      viewer,
      clientId,
      onEnd,
    });
    if (known === undefined) subscriber.gone.addEventListener("abort", onGone, { once: true });
    else subscription.changeReading({ types: orders.types, deltas: orders.deltas, coalesceMs: orders.coalesceMs });
    if (orders.inOrder === true) subscription.orderAnswers();
    this.#note();
    return subscription;
  }

  /** Returns whether there was a subscription. `wasAsked`: by the subscriber itself. */
  remove(subscriberId: string, wasAsked = false): boolean {
    const order = this.#orders.get(subscriberId);
    if (order === undefined) return false;
    order.subscription.subscriber.gone.removeEventListener("abort", order.onGone);
    order.subscription.end();
    this.#orders.delete(subscriberId);
    order.onEnd?.();
    this.#note();
    if (this.#orders.size === 0) this.#onLeft(wasAsked);
    return true;
  }

  /** The session is closed: they get what lies ready, and nothing comes after it. */
  close(): void {
    for (const [id, order] of this.#orders) {
      order.onEnd?.();
      this.#orders.set(id, { ...order, onEnd: undefined });
    }
  }

  publish(frame: Frame): void {
    // Without `guard`, whose closure would cost memory for each frame and subscriber.
    for (const [id, { subscription }] of this.#orders) {
      try {
        subscription.publish(frame);
      } catch (error) {
        this.#fault(id, error);
      }
    }
  }

  /** Reports a jump in the numbers. */
  publishGap(gap: Gap): void {
    for (const [id, { subscription }] of this.#orders) this.guard(id, () => subscription.publishGap(gap));
  }

  /**
   * Sends each subscriber of provider requests the frame for its level; `only` limits the receivers. Returns the ids
   * of the receivers.
   */
  tell(frameOf: (level: ProviderLevel) => Buffer, only?: ReadonlySet<string>): Set<string> {
    const told = new Set<string>();
    const frames = new Map<ProviderLevel, Frame>();
    for (const [id, { subscription, provider }] of this.#orders) {
      if (provider === "off" || only?.has(id) === false) continue;
      const frame = frames.get(provider) ?? unnumberedFrame(frameOf(provider), this.#sessionId);
      frames.set(provider, frame);
      if (this.guard(id, () => subscription.tell(frame))) told.add(id);
    }
    return told;
  }

  /** Sends a frame without a number to the subscribers of stderr, or to one of them. */
  tellStderr(frame: Frame, only?: string): void {
    for (const [id, { subscription, stderr }] of this.#orders)
      if (stderr && (only === undefined || only === id)) this.guard(id, () => subscription.tell(frame));
  }

  /** Sends a frame without a number to the subscribers of former texts. */
  tellFormerText(frame: Frame): void {
    for (const [id, { subscription, formerText }] of this.#orders)
      if (formerText) this.guard(id, () => subscription.tell(frame));
  }

  /** Isolates a failing subscriber from the others and from the caller. */
  guard(subscriberId: string, send: () => void): boolean {
    try {
      send();
      return true;
    } catch (error) {
      this.#fault(subscriberId, error);
      return false;
    }
  }

  #subscription(subscriber: Subscriber, reading: ReadOptions): Subscription {
    const onFault = (error: unknown): void => this.#fault(subscriber.id, error);
    return new Subscription({ subscriber, sessionId: this.#sessionId, log: this.#log, reading, onFault });
  }

  #fault(subscriberId: string, error: unknown): void {
    this.remove(subscriberId);
    this.#onFault(error, subscriberId);
  }

  #note(): void {
    const orders = [...this.#orders.values()];
    const level = highestLevel(orders.map(({ provider }) => provider));
    const answerers = orders.filter(({ dialogs }) => dialogs).length;
    const holdsEdits = orders.some(({ holdEdits }) => holdEdits);
    const wantsFormerText = orders.some(({ formerText }) => formerText);
    const followsStderr = orders.some(({ stderr }) => stderr);
    const isOther = {
      level: level !== this.#level || holdsEdits !== this.#holdsEdits || wantsFormerText !== this.#wantsFormerText,
      answerers: answerers !== this.#answerers,
      stderr: followsStderr !== this.#followsStderr,
    };
    this.#followsStderr = followsStderr;
    this.#level = level;
    this.#holdsEdits = holdsEdits;
    this.#wantsFormerText = wantsFormerText;
    this.#answerers = answerers;
    if (isOther.level) this.#onLevel();
    if (isOther.answerers) this.#onAnswerers();
    if (isOther.stderr) this.#onStderr();
  }
}
