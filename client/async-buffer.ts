export interface BufferLimits {
  readonly maxItems: number;
  /** Bound of the sum of all items' sizes. */
  readonly maxSize: number;
}

/**
 * A bounded queue between a producer that cannot wait and a reader that iterates. It ends after its items have been read,
 * with an error or without; an error is thrown once.
 */
export class AsyncBuffer<T> {
  readonly #limits: BufferLimits;
  readonly #readers: PromiseWithResolvers<IteratorResult<T, undefined>>[] = [];
  #items: ({ readonly value: T; readonly size: number } | undefined)[] = [];
  #first = 0;
  #size = 0;
  #end: { error?: unknown } | undefined;

  constructor(limits: BufferLimits) {
    this.#limits = limits;
  }

  get ended(): boolean {
    return this.#end !== undefined;
  }

  /** Adds an item. Returns false, and drops the item, if a limit forbids it or the buffer has ended. */
  push(value: T, size = 0): boolean {
    if (this.#end !== undefined) return false;
    const reader = this.#readers.shift();
    if (reader !== undefined) {
      reader.resolve({ done: false, value });
      return true;
    }
    const count = this.#items.length - this.#first;
    // One item is always accepted, whatever its size: a reader that keeps up must not fail on it.
    if (count > 0 && (count >= this.#limits.maxItems || this.#size + size > this.#limits.maxSize)) return false;
    this.#items.push({ value, size });
    this.#size += size;
    return true;
  }

  /** Ends the buffer after its items. The first end counts. */
  end(error?: unknown): void {
    if (this.#end !== undefined) return;
    this.#end = error === undefined ? {} : { error };
    for (const reader of this.#readers.splice(0)) this.#take().then(reader.resolve, reader.reject);
  }

  /** Ends the buffer at once and drops its items. Replaces an earlier end. */
  discard(error?: unknown): void {
    this.#items = [];
    this.#first = 0;
    this.#size = 0;
    this.#end = undefined;
    this.end(error);
  }

  next(): Promise<IteratorResult<T, undefined>> {
    if (this.#first < this.#items.length || this.#end !== undefined) return this.#take();
    const reader = Promise.withResolvers<IteratorResult<T, undefined>>();
    this.#readers.push(reader);
    return reader.promise;
  }

  async #take(): Promise<IteratorResult<T, undefined>> {
    const item = this.#items[this.#first];
    if (item !== undefined) {
      this.#items[this.#first] = undefined;
      this.#first += 1;
      this.#size -= item.size;
      this.#compact();
      return { done: false, value: item.value };
    }
    if (this.#end !== undefined && "error" in this.#end) {
      const { error } = this.#end;
      this.#end = {};
      throw error;
    }
    return { done: true, value: undefined };
  }

  #compact(): void {
    if (this.#first < this.#items.length && this.#first < 1_024) return;
    this.#items = this.#items.slice(this.#first);
    this.#first = 0;
  }
}
