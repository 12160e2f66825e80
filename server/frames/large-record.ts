// A large record is copied once, in slices, into memory with space around it: its notification is completed in place.
// The memory is shared, so that the thread that stores it gets it without a copy.

/** Records from this size are handled in slices. */
export const largeRecordBytes = 256 * 1024;

/** More than the head of `session/event` with the longest session id. */
const spaceBefore = 512;
const spaceAfter = 8;

/** Memory for a large record. */
export function largeRecord(bytes: number): Buffer {
  return Buffer.from(new SharedArrayBuffer(spaceBefore + bytes + spaceAfter), spaceBefore, bytes);
}

/** Writes `head` before a large record and `tail` after it; returns all of it. Undefined: the record has no space. */
export function completed({ buffer, byteOffset, length }: Buffer, head: string, tail: Buffer): Buffer | undefined {
  if (!(buffer instanceof SharedArrayBuffer) || byteOffset !== spaceBefore || head.length > spaceBefore)
    return undefined;
  const whole = Buffer.from(buffer, spaceBefore - head.length, head.length + length + tail.length);
  whole.write(head, "latin1");
  tail.copy(whole, head.length + length);
  return whole;
}

/** Whether a frame was made from a large record: only such a frame is in shared memory. */
export function isLarge({ buffer }: Buffer): boolean {
  return buffer instanceof SharedArrayBuffer;
}

/** A large frame with a byte after it. */
export function followedBy({ buffer, byteOffset, length }: Buffer, byte: number): Buffer {
  const whole = Buffer.from(buffer as SharedArrayBuffer, byteOffset, length + 1);
  whole[length] = byte;
  return whole;
}
