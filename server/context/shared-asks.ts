/** A question in progress, with the number of its callers. */
interface PendingAsk<T> {
  readonly answer: Promise<T>;
  readonly abandon: AbortController;
  waiting: number;
}

/** Shares questions between callers: each is asked once at a time, and aborted when its last caller goes away. */
export class SharedAsks<T> {
  readonly #underWay = new Map<string, PendingAsk<T>>();

  /**
   * Returns the answer for `key`; joins a question in progress. The last caller to leave waits for its cleanup.
   * Throws what `begin` throws, and the signal's reason.
   */
  async ask(key: string, signal: AbortSignal, begin: (signal: AbortSignal) => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    const asking = this.#underWay.get(key) ?? this.#begin(key, begin);
    asking.waiting += 1;
    const left = Promise.withResolvers<never>();
    const leave = (): void => left.reject(signal.reason);
    signal.addEventListener("abort", leave, { once: true });
    try {
      return await Promise.race([asking.answer, left.promise]);
    } finally {
      signal.removeEventListener("abort", leave);
      asking.waiting -= 1;
      if (asking.waiting === 0) await this.#end(key, asking);
    }
  }

  #begin(key: string, begin: (signal: AbortSignal) => Promise<T>): PendingAsk<T> {
    const abandon = new AbortController();
    const asking = { answer: begin(abandon.signal), abandon, waiting: 0 };
    this.#underWay.set(key, asking);
    return asking;
  }

  /** Later callers start a new question. */
  async #end(key: string, asking: PendingAsk<T>): Promise<void> {
    if (this.#underWay.get(key) === asking) this.#underWay.delete(key);
    asking.abandon.abort();
    await asking.answer.catch(() => {});
  }
}
