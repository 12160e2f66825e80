/** A question that is being asked, and how many wait for its answer. */
interface Asking<T> {
  readonly answer: Promise<T>;
  readonly abandon: AbortController;
  waiting: number;
}

/** Questions that several may wait for: each is asked once at a time, and given up when nobody waits for it any more. */
export class SharedAsks<T> {
  readonly #underWay = new Map<string, Asking<T>>();

  /**
   * Gives the answer to the question that `key` stands for, which somebody may have begun to ask. Who is the last to leave
   * stays until nothing is left of it. Throws what `begin` throws, and the signal's reason.
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

  #begin(key: string, begin: (signal: AbortSignal) => Promise<T>): Asking<T> {
    const abandon = new AbortController();
    const asking = { answer: begin(abandon.signal), abandon, waiting: 0 };
    this.#underWay.set(key, asking);
    return asking;
  }

  /** Whoever asks from now on begins anew. */
  async #end(key: string, asking: Asking<T>): Promise<void> {
    if (this.#underWay.get(key) === asking) this.#underWay.delete(key);
    asking.abandon.abort();
    await asking.answer.catch(() => {});
  }
}
