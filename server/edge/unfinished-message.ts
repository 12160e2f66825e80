/** The first bytes of a frame: two, of a longer length up to eight, and four of the mask. */
const maxHeadBytes = 14;
/** What it costs to keep a fragment beside its bytes. */
const fragmentBytes = 256;

/** Follows the frames of a WebSocket's bytes, and reads none: how much there is of a message that is not whole. */
export class UnfinishedMessage {
  readonly #head = Buffer.alloc(maxHeadBytes);
  #headLength = 0;
  /** What lacks of the payload of the frame whose head has come. */
  #left = 0;
  #bytes = 0;
  #since: number | undefined;

  /** What has come of it, with what it costs to keep its fragments. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Since when it comes, in the time of `performance.now()`; undefined where there is none. */
  get since(): number | undefined {
    return this.#since;
  }

  /** Takes what has come next. */
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
