/** Assembles the text messages of a server's side of a WebSocket from its bytes (RFC 6455, 5.2 and 5.4). */
export class MessageReader {
  readonly texts: string[] = [];
  /** The payload of the largest frame. */
  largestFrame = 0;
  #bytes = Buffer.alloc(0);
  #parts: Buffer[] = [];

  push(chunk: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, chunk]);
    while (this.#frame());
  }

  #frame(): boolean {
    const bytes = this.#bytes;
    if (bytes.length < 2) return false;
    const [first = 0, short = 0] = bytes;
    const headBytes = short < 126 ? 2 : short === 126 ? 4 : 10;
    if (bytes.length < headBytes) return false;
    const length = short < 126 ? short : short === 126 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2));
    if (bytes.length < headBytes + length) return false;
    const opcode = first & 0x7f;
    if (opcode !== (this.#parts.length === 0 ? 1 : 0)) throw new Error(`A frame with the opcode ${opcode} came.`);
    this.largestFrame = Math.max(this.largestFrame, length);
    this.#parts.push(bytes.subarray(headBytes, headBytes + length));
    this.#bytes = bytes.subarray(headBytes + length);
    if ((first & 0x80) !== 0) {
      this.texts.push(Buffer.concat(this.#parts).toString("utf8"));
      this.#parts = [];
    }
    return true;
  }
}
