// The head of an unmasked, uncompressed server message (RFC 6455, 5.2). It is the same for all clients, so it is
// built once for all of them.

export const opcodes = { continuation: 0, text: 1 } as const;
const finalBit = 0x80;
/** Payloads from this size, up to {@link mediumEnd}, have a head of {@link mediumHeadBytes}. */
const mediumStart = 126;
const mediumEnd = 0x1_00_00;
export const mediumHeadBytes = 4;
export const maxHeadBytes = 10;

/** Whether the head of a complete text message of this size takes {@link mediumHeadBytes}. */
export function isMedium(payloadBytes: number): boolean {
  return payloadBytes >= mediumStart && payloadBytes < mediumEnd;
}

export function headLength(payloadBytes: number): number {
  if (payloadBytes < mediumStart) return 2;
  return payloadBytes < mediumEnd ? mediumHeadBytes : maxHeadBytes;
}

/** Writes a head at `at` and returns the start of the payload. */
export function writeHead(
  into: Buffer,
  at: number,
  payloadBytes: number,
  part: { opcode: number; isLast: boolean },
): number {
  into[at] = part.opcode | (part.isLast ? finalBit : 0);
  if (payloadBytes < mediumStart) {
    into[at + 1] = payloadBytes;
    return at + 2;
  }
  if (payloadBytes < mediumEnd) {
    into[at + 1] = mediumStart;
    into[at + 2] = payloadBytes >> 8;
    into[at + 3] = payloadBytes & 0xff;
    return at + mediumHeadBytes;
  }
  into[at + 1] = mediumStart + 1;
  into.writeUInt32BE(Math.floor(payloadBytes / 0x1_00_00_00_00), at + 2);
  into.writeUInt32BE(payloadBytes % 0x1_00_00_00_00, at + 6);
  return at + maxHeadBytes;
}

/** The head of a complete message. */
export const wholeText = { opcode: opcodes.text, isLast: true } as const;
