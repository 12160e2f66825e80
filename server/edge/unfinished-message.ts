/** The longest head of a frame: two bytes, eight of the length, four of the mask. */
const maxHeadBytes = 14;
/** The memory that a kept fragment takes in addition to its bytes. */
const fragmentBytes = 256;

/** Follows the frame heads in a WebSocket's bytes, to count how much of an incomplete message has arrived. */
export class UnfinishedMessage {
  readonly #head = Buffer.alloc(maxHeadBytes);
  #headLength = 0;
  /** Missing bytes of the current frame's payload. */
  #left = 0;
  #bytes = 0;
  #since: number | undefined;

  /** The received bytes of the incomplete message, with the memory of its fragments. */
  get bytes(): number {
    return this.#bytes;
  }

  /** When its first bytes arrived, in the time of `performance.now()`; undefined if no message is incomplete. */
  get since(): number | undefined {
    return this.#since;
  }

  /** Counts the next bytes. */
  take(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#left > 0) {
        const taken = Math.min(this.#left, chunk.length - at);
        at += taken;
        this.#left -= taken;
        if (!this.#isControl) this.#bytes += taken;
        if (this.#left === 0) this.#frameEnded();
      } else {
        this.#head[this.#headLength] = chunk[at] as number;
        this.#headLength += 1;
        at += 1;
        if (this.#headLength > 1 && this.#headLength === this.#wholeHeadLength) this.#headEnded();
      }
    }
    this.#since = this.#bytes === 0 ? undefined : (this.#since ?? performance.now());
  }

  get #isControl(): boolean {
    return ((this.#head[0] as number) & 0x08) !== 0;
  }

  get #wholeHeadLength(): number {
    const second = this.#head[1] as number;
    const short = second & 0x7f;
    const more = short === 127 ? 8 : short === 126 ? 2 : 0;
    return 2 + more + (second & 0x80 ? 4 : 0);
  }

  #headEnded(): void {
    const short = (this.#head[1] as number) & 0x7f;
    if (short < 126) this.#left = short;
    else this.#left = short === 126 ? this.#head.readUInt16BE(2) : Number(this.#head.readBigUInt64BE(2));
    if (!this.#isControl) this.#bytes += fragmentBytes;
    if (this.#left === 0) this.#frameEnded();
  }

  #frameEnded(): void {
    this.#headLength = 0;
    const isLast = ((this.#head[0] as number) & 0x80) !== 0;
    if (!isLast || this.#isControl) return;
    this.#bytes = 0;
    this.#since = undefined;
  }
}
