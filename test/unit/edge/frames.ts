import { randomBytes } from "node:crypto";
import type { Transport } from "../../../server/edge/admission.ts";
import { type RawSocket, rawSocket, type TestEdge, token } from "../../helpers/edge.ts";

export interface FrameOptions {
  readonly fin?: boolean;
  readonly masked?: boolean;
  /** The bits that compression and other extensions use. */
  readonly reserved?: number;
}

export const opcodes = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10, unknown: 3 } as const;

/** One WebSocket frame of a client (RFC 6455, section 5.2), also such as none should send. */
export function frame(opcode: number, payload: string | Buffer, options: FrameOptions = {}): Buffer {
  const { fin = true, masked = true, reserved = 0 } = options;
  const data = Buffer.from(payload);
  const mask = masked ? randomBytes(4) : Buffer.alloc(0);
  const head = Buffer.alloc(data.length < 126 ? 2 : data.length < 65_536 ? 4 : 10);
  head[0] = (fin ? 0x80 : 0) | (reserved << 4) | opcode;
  const bit = masked ? 0x80 : 0;
  if (head.length === 2) head[1] = bit | data.length;
  else if (head.length === 4) {
    head[1] = bit | 126;
    head.writeUInt16BE(data.length, 2);
  } else {
    head[1] = bit | 127;
    head.writeBigUInt64BE(BigInt(data.length), 2);
  }
  if (masked) for (let i = 0; i < data.length; i += 1) data[i] = (data[i] ?? 0) ^ (mask[i % 4] ?? 0);
  return Buffer.concat([head, mask, data]);
}

/** A bare socket after its upgrade. */
export async function upgraded(edge: TestEdge, transport: Transport = "tcp"): Promise<RawSocket> {
  const raw = rawSocket(edge, transport);
  const head = [
    "GET /v1/ws HTTP/1.1",
    `host: localhost:${edge.port}`,
    `authorization: Bearer ${token}`,
    "connection: Upgrade",
    "upgrade: websocket",
    "sec-websocket-version: 13",
    "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
  ];
  raw.socket.write(`${head.join("\r\n")}\r\n\r\n`);
  await raw.until((text) => text.includes("\r\n\r\n"));
  return raw;
}

/** The code and the reason of the close frame with which what came after the upgrade ends. */
export function closeOf(text: string): { readonly code: number; readonly reason: string } | undefined {
  const bytes = Buffer.from(text, "latin1");
  for (let at = bytes.indexOf("\r\n\r\n") + 4; at < bytes.length; ) {
    const small = (bytes[at + 1] ?? 0) & 0x7f;
    const start = at + (small < 126 ? 2 : small === 126 ? 4 : 10);
    const length =
      small < 126 ? small : small === 126 ? bytes.readUInt16BE(at + 2) : Number(bytes.readBigUInt64BE(at + 2));
    const payload = bytes.subarray(start, start + length);
    if (((bytes[at] ?? 0) & 0x0f) === opcodes.close)
      return { code: payload.readUInt16BE(0), reason: payload.subarray(2).toString() };
    at = start + length;
  }
  return undefined;
}
